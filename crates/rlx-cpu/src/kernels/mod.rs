//! The kernels, a file a family, and the one place that says which step runs by which.

pub mod control;
pub mod conv;
pub mod copy;
pub mod gemm;
pub mod reference;
pub mod region;
pub mod transfer;
mod transpose;
pub mod window;

use crate::error::RunError;
use crate::kernel::Kernel;
use crate::load::PrepareContext;
use crate::target::is_control;
use rlx_ir::{Composite, Op, Primitive, TensorType};
use rlx_opt::program::StepOp;
use rlx_opt::target::{OperandLayout, Route};

/// Whether a composite has a kernel of its own; if not, why.
pub(crate) fn native(composite: &Composite, operands: &[&TensorType]) -> Result<(), String> {
    let bytes = matches!(composite, Composite::ConvInteger(_)) && conv::route_bytes(operands).is_some();
    if bytes || region::native(composite, operands) {
        return Ok(());
    }
    Err("its decomposition is what runs here".into())
}

/// How operand `index` of an operation must lie.
pub(crate) fn operand_layout(op: &Op, _index: usize, operands: &[&TensorType]) -> OperandLayout {
    if is_control(op) {
        return OperandLayout::Contiguous;
    }
    match route(op, operands).kernel {
        "window" if matches!(op, Op::Primitive(Primitive::ReduceWindowGrad(_))) => OperandLayout::Contiguous,
        "conv" if matches!(op, Op::Composite(_)) => OperandLayout::Contiguous,
        "region" | "reference" | "gemm" | "conv" | "window" => OperandLayout::Strided,
        _ => OperandLayout::Contiguous,
    }
}

/// Whether a result may be written over an operand.
pub(crate) fn in_place(op: &Op, operand: usize, _result: usize, operands: &[&TensorType]) -> bool {
    route(op, operands).kernel == "region" && region::in_place(op, operand, operands)
}

/// The kernel of an operation.
pub(crate) fn route(op: &Op, operands: &[&TensorType]) -> Route {
    let because = |kernel, reason: &str| Route { kernel, reason: reason.to_string() };
    match op {
        Op::Primitive(Primitive::If(_) | Primitive::While(_) | Primitive::Scan(_)) => because("control", ""),
        Op::Primitive(Primitive::Call(_)) => because("region", "fused"),
        Op::Primitive(Primitive::Dot(_) | Primitive::IntegerDot(_)) => match gemm::route(op, operands) {
            Some(reason) => Route { kernel: "gemm", reason },
            None => because("reference", "no tiles for these element types: the oracle's loops"),
        },
        Op::Primitive(Primitive::Conv(conv)) => match conv::route(conv, operands) {
            Some(reason) => Route { kernel: "conv", reason },
            None => because("reference", "no tiles for these element types: the oracle's loops"),
        },
        Op::Composite(Composite::ConvInteger(_)) => match conv::route_bytes(operands) {
            Some(reason) => Route { kernel: "conv", reason },
            None => because("reference", "no bytes: the oracle's loops"),
        },
        Op::Primitive(Primitive::ReduceWindow(_)) => {
            match operands.first().and_then(|x| window::route(x.dtype)) {
                Some(reason) => Route { kernel: "window", reason },
                None => because("reference", "no lanes for this element type: the oracle's loops"),
            }
        }
        Op::Primitive(Primitive::ReduceWindowGrad(_)) => {
            match operands.first().and_then(|x| window::route_gradient(x.dtype)) {
                Some(reason) => Route { kernel: "window", reason },
                None => because("reference", "no lanes for this element type: the oracle's loops"),
            }
        }
        op if region::runs_alone(op, operands) => because("region", "one operation"),
        _ => because("reference", "no kernel of its own yet: the oracle's loops"),
    }
}

/// The kernel of a step, prepared.
pub(crate) fn prepare(cx: PrepareContext<'_>) -> Result<Box<dyn Kernel>, RunError> {
    let op = match &cx.step.op {
        StepOp::Copy => return Ok(Box::new(copy::Copy)),
        StepOp::Op(op) => op,
    };
    match cx.step.kernel {
        "conv" => conv::prepare(op, &cx),
        "window" => window::prepare(op, cx.step.operand_types[0].dtype),
        "gemm" => gemm::prepare(op, &cx),
        "control" => Ok(control::prepare(op, &cx)),
        "region" => region::prepare(op, &cx),
        _ => Ok(Box::new(reference::Reference::new(op, &cx))),
    }
}
