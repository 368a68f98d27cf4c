//! The seam between steps and kernels.
//!
//! A step is prepared once, when its program is loaded ([`Kernel`], which holds packed weights and compiled regions);
//! bound whenever its sizes change ([`Bound`], which chooses the variant and asks for scratch); and run.

use crate::array::{In, Out};
use crate::pool::Pool;
use rlx_eval::Fault;
use rlx_ir::{Bindings, Literal};
use rlx_opt::program::Layout;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// What binding sees.
pub struct BindContext<'a> {
    /// The operands' layouts.
    pub operands: &'a [Layout],
    /// The results' layouts, packed; empty if the step is dynamic.
    pub results: &'a [Layout],
    /// The symbols known so far.
    pub bindings: &'a Bindings,
}

/// A step made ready.
pub trait Kernel: Send + Sync {
    /// The kernel for these sizes.
    ///
    /// # Errors
    /// If the sizes cannot be run: what the operation's definition refuses.
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault>;
}

/// A step with its sizes.
pub trait Bound: Send {
    /// Bytes of scratch, which [`RunContext::scratch`] then points to.
    fn scratch(&self) -> usize {
        0
    }

    /// Computes the results.
    ///
    /// # Errors
    /// What the operation's definition refuses.
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault>;

    /// Computes results whose sizes are known only now; called instead of `run` for dynamic steps.
    ///
    /// # Errors
    /// What the operation's definition refuses.
    fn run_dynamic(
        &mut self,
        _cx: &RunContext<'_>,
        _arguments: &Arguments<'_>,
    ) -> Result<Vec<Literal>, Fault> {
        Err(Fault::Unsupported { what: "results of unknown size".into(), found: "a kernel without".into() })
    }
}

/// What running sees.
pub struct RunContext<'a> {
    /// The threads.
    pub pool: &'a Pool,
    /// Set by whoever wants the run to end.
    pub cancel: Option<&'a AtomicBool>,
    /// When the run must have ended.
    pub deadline: Option<Instant>,
    /// Whether programs of bodies look after their memory; see [`RunControl`](crate::RunControl).
    pub sentinels: bool,
    /// [`Bound::scratch`] bytes, aligned to 64.
    pub scratch: *mut u8,
}

/// Operands and results of one run of a step.
pub struct Arguments<'a> {
    pub(crate) operand_layouts: &'a [Layout],
    pub(crate) result_layouts: &'a [Layout],
    pub(crate) pointers: &'a [*mut u8],
}

// SAFETY: the addresses are only used through `In` and `Out`, which say what threads may do with them.
#[allow(unsafe_code)]
unsafe impl Sync for Arguments<'_> {}

impl<'a> Arguments<'a> {
    /// How many operands there are.
    pub fn operand_count(&self) -> usize {
        self.operand_layouts.len()
    }

    /// How many results there are.
    pub fn result_count(&self) -> usize {
        self.result_layouts.len()
    }

    /// Operand `i`.
    #[allow(unsafe_code)]
    pub fn operand(&self, i: usize) -> In<'a> {
        // SAFETY: the instance fills `pointers` with the addresses of planned memory, operands first.
        unsafe { In::new(&self.operand_layouts[i], self.pointers[i]) }
    }

    /// Result `i`.
    #[allow(unsafe_code)]
    pub fn result(&self, i: usize) -> Out<'a> {
        // SAFETY: as above; results come after the operands.
        unsafe { Out::new(&self.result_layouts[i], self.pointers[self.operand_layouts.len() + i]) }
    }
}
