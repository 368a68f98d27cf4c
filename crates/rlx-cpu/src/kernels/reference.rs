//! Operations without a kernel of their own: run by the oracle's loops, and reported so.

use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use crate::load::PrepareContext;
use rlx_eval::{EvalOptions, Fault, evaluate_primitive};
use rlx_ir::{Bindings, Literal, Op, Primitive, TensorType};
use std::sync::Arc;

/// An operation that the oracle runs.
pub struct Reference {
    op: Arc<Op>,
    types: Arc<[TensorType]>,
}

impl Reference {
    /// The step's operation by the oracle.
    pub fn new(op: &Op, cx: &PrepareContext<'_>) -> Reference {
        Reference { op: Arc::new(op.clone()), types: cx.step.result_types.clone().into() }
    }
}

impl Kernel for Reference {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        Ok(Box::new(BoundReference {
            op: Arc::clone(&self.op),
            types: Arc::clone(&self.types),
            bindings: cx.bindings.clone(),
        }))
    }
}

struct BoundReference {
    op: Arc<Op>,
    types: Arc<[TensorType]>,
    bindings: Bindings,
}

impl BoundReference {
    fn evaluate(&self, arguments: &Arguments<'_>) -> Result<Vec<Literal>, Fault> {
        let operands: Vec<Literal> =
            (0..arguments.operand_count()).map(|i| arguments.operand(i).to_literal()).collect();
        let Op::Primitive(primitive) = &*self.op else {
            return Err(Fault::Unsupported { what: self.op.name().to_string(), found: "a composite".into() });
        };
        let primitive: &Primitive = primitive;
        evaluate_primitive(primitive, &self.types, &operands, &self.bindings, &EvalOptions::default())
    }
}

impl Bound for BoundReference {
    fn run(&mut self, _: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let results = self.evaluate(arguments)?;
        for (i, literal) in results.iter().enumerate() {
            let out = arguments.result(i);
            let fits = literal.dtype() == out.dtype() && literal.dims() == out.dims();
            if !fits {
                let found = format!("{}{:?}", literal.dtype(), literal.dims());
                return Err(Fault::Result { output: i, declared: self.types[i].clone(), found });
            }
            out.bytes().copy_from_slice(literal.bytes());
        }
        Ok(())
    }

    fn run_dynamic(&mut self, _: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<Vec<Literal>, Fault> {
        self.evaluate(arguments)
    }
}
