//! Compiling and running on the CPU, as the command line asks.

use crate::interrupt;
use clap::Args;
use rlx::ir::Literal;
use rlx::{
    CompileOptions, Device, Executable, MemoryUse, Model, RunError, RunOptions, Session, Slots, Tensor,
};
use std::time::{Duration, Instant};

/// How a model is compiled, and with how many threads it runs.
#[derive(Args)]
pub(crate) struct CompileArguments {
    /// The number of threads [default: as many as this process may use at once]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Run each operation by itself instead of in fused regions
    #[arg(long)]
    pub(crate) no_fuse: bool,

    /// Verify the graph after each pass of the compiler
    #[arg(long)]
    pub(crate) verify: bool,
}

/// A compiled model and how long that took.
pub(crate) struct Compiled {
    /// The model, ready to run.
    pub(crate) executable: Executable,
    /// The time of compiling and loading.
    pub(crate) time: Duration,
}

impl CompileArguments {
    /// The options of the compiler.
    pub(crate) fn options(&self) -> CompileOptions {
        let defaults = CompileOptions::default();
        CompileOptions { fuse: !self.no_fuse, verify: self.verify || defaults.verify, ..defaults }
    }

    /// A session with the threads asked for.
    pub(crate) fn session(&self) -> anyhow::Result<Session> {
        Ok(Session::new(Device::Cpu { threads: self.threads.unwrap_or(0) })?)
    }

    /// The model, compiled and loaded.
    pub(crate) fn compile(&self, model: &Model) -> anyhow::Result<Compiled> {
        let session = self.session()?;
        let start = Instant::now();
        let executable = model.compile(&session, &self.options())?;
        Ok(Compiled { executable, time: start.elapsed() })
    }
}

/// The outputs on inputs in order, and the memory that the run took. Ctrl-C ends it.
pub(crate) fn run(
    executable: &Executable,
    inputs: &[Literal],
    options: &RunOptions<'_>,
) -> Result<(Vec<Literal>, MemoryUse), RunError> {
    let tensors: Vec<Tensor> = inputs.iter().cloned().map(Tensor::from).collect();
    let mut slots = Slots::default();
    let memory = run_into(executable, &tensors, &mut slots, options)?;
    let outputs = (0..executable.program().outputs.len())
        .filter_map(|i| {
            let (dtype, dims, bytes) = slots.output(i)?;
            Literal::new(dtype, dims, bytes.to_vec()).ok()
        })
        .collect();
    Ok((outputs, memory))
}

/// As [`run()`], with the outputs in `slots`, whose memory is used again.
pub(crate) fn run_into(
    executable: &Executable,
    tensors: &[Tensor],
    slots: &mut Slots,
    options: &RunOptions<'_>,
) -> Result<MemoryUse, RunError> {
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    executable.run_into(&tensors, slots, &RunOptions { cancel: Some(interrupt::flag()), ..*options })
}
