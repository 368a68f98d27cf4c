//! Regions on the CPU: a small vector program over tiles.
//!
//! A tile is a block of rows (indices of the kept axes) with all their reduced elements; each instruction runs over the
//! whole tile before the next one starts, so that what passes between instructions stays in cache. Tiles are cut by the
//! sizes alone: results do not depend on the threads.

mod access;
mod compile;
mod float;
mod lanes;
mod long;
mod loops;
mod reduce;
mod run;
mod table;
mod wide;

use crate::error::RunError;
use crate::kernel::Kernel;
use crate::load::PrepareContext;
use rlx_ir::op::control::Call;
use rlx_ir::{Builder, Composite, Graph, Node, Op, Primitive, TensorType};
use rlx_opt::program::Step;
use rlx_opt::region::{Region, is_elementwise};
use std::sync::Arc;

pub(crate) use float::{max, min, to_odd_f32};
pub use lanes::Lane;
pub(crate) use loops::FunctionF32;

/// Whether a node may be part of a region here: all its element types have lanes, and its function a table entry.
pub fn fusible(node: &Node, operands: &[&TensorType]) -> bool {
    supported(&node.op, operands, node.types.first())
}

fn supported(op: &Op, operands: &[&TensorType], result: Option<&TensorType>) -> bool {
    let lanes: Option<Vec<Lane>> = operands.iter().map(|t| Lane::of(t.dtype)).collect();
    let Some(lanes) = lanes else { return false };
    let primitive = match op {
        Op::Primitive(primitive) => primitive,
        Op::Composite(composite) => return native(composite, operands),
    };
    match primitive {
        Primitive::Unary(op) => lanes.first().is_some_and(|l| table::unary(op.op, *l).is_some()),
        Primitive::Binary(op) => lanes.first().is_some_and(|l| table::binary(op.op, *l).is_some()),
        Primitive::Compare(_) | Primitive::Select(_) => true,
        Primitive::Cast(op) => Lane::of(op.to).is_some(),
        Primitive::Reduce(op) => {
            let (Some(lane), Some(x)) = (lanes.first(), operands.first()) else { return false };
            let same = op.accum.is_none_or(|a| a == x.dtype) || result.is_some_and(|t| t.dtype == x.dtype);
            same && reduce::function(op.op, *lane).is_some()
        }
        _ => false,
    }
}

/// Whether a composite is an instruction here.
pub fn native(composite: &Composite, operands: &[&TensorType]) -> bool {
    match (composite, operands) {
        (Composite::Activation(op), [x]) => {
            Lane::of(x.dtype).is_some_and(|lane| table::activation(op.op, lane).is_some())
        }
        _ => false,
    }
}

/// Whether an operation by itself runs as a region.
pub fn runs_alone(op: &Op, operands: &[&TensorType]) -> bool {
    let reduces = match op {
        Op::Primitive(Primitive::Reduce(op)) => operands.first().is_some_and(|x| {
            let ones = op.axes.iter().all(|axis| x.dims()[*axis] == rlx_ir::Dim::ONE);
            !op.axes.is_empty() && !ones
        }),
        _ => false,
    };
    (is_elementwise(op) || reduces) && supported(op, operands, None)
}

/// Whether the result may be written over this operand: it is read element by element, at the place where the result
/// goes.
pub fn in_place(op: &Op, operand: usize, operands: &[&TensorType]) -> bool {
    match op {
        Op::Primitive(Primitive::Call(call)) => {
            let Some(region) = Region::of(&call.body) else { return false };
            let Some(output) = call.body.outputs().first() else { return false };
            let input = call.body.inputs()[operand];
            let (from, to) = (call.body.type_of(input), call.body.type_of(output.value));
            from.dims() == to.dims()
                && crate::target::same_width(from.dtype, to.dtype)
                && region.levels[input.node.index()] == region.levels[output.value.node.index()]
        }
        op if is_elementwise(op) => {
            let from = operands[operand].dtype;
            let to = match op {
                Op::Primitive(Primitive::Cast(cast)) => cast.to,
                Op::Primitive(Primitive::Compare(_)) => rlx_ir::DType::Bool,
                Op::Primitive(Primitive::Select(_)) => operands[1].dtype,
                _ => from,
            };
            crate::target::same_width(from, to)
        }
        _ => false,
    }
}

/// The kernel of a region, or of one operation as a region.
pub(crate) fn prepare(op: &Op, cx: &PrepareContext<'_>) -> Result<Box<dyn Kernel>, RunError> {
    let body = match op {
        Op::Primitive(Primitive::Call(Call { body })) => Arc::clone(body),
        op => Arc::new(alone(op, cx.step).map_err(broken)?),
    };
    let region = Region::of(&body).ok_or_else(|| broken("a body that is no region"))?;
    Ok(Box::new(compile::compile(&body, &region).map_err(broken)?))
}

fn broken(cause: impl std::fmt::Display) -> RunError {
    let fault = rlx_eval::Fault::Unsupported { what: "region".into(), found: cause.to_string() };
    rlx_eval::EvalError::Node {
        op: "region".into(),
        locations: rlx_ir::Locations::none(),
        fault: Box::new(fault),
    }
    .into()
}

/// A body of one operation. Operands of an elementwise one get the sizes of its result: where they are other
/// expressions, the step's checks have seen to it that they are equal.
fn alone(op: &Op, step: &Step) -> Result<Graph, rlx_ir::TypeError> {
    let mut b = Builder::verbatim("region");
    let mut values = Vec::with_capacity(step.operand_types.len());
    for (i, t) in step.operand_types.iter().enumerate() {
        let dims = if is_elementwise(op) { step.result_types[0].dims() } else { t.dims() };
        values.push(b.input(&format!("x{i}"), t.with_shape(dims))?);
    }
    let y = b.push1(op.clone(), &values)?;
    b.finish([("y", y)])
}
