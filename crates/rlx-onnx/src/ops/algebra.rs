//! Products and functions of whole matrices: einsum and determinants.

use rlx_ir::op::einsum::Einsum;
use rlx_ir::op::solve::Det;

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Det", &[11, 22], det), //
    onnx("Einsum", &[12, 28], einsum),
];

fn det(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    Ok(cx.builder().push1(Det {}, &[x])?.into())
}

fn einsum(cx: &mut NodeContext<'_, '_>) -> Handled {
    let operands = cx.all_inputs()?;
    let equation = cx.optional_string("equation")?;
    let equation = equation.ok_or_else(|| NodeProblem::MissingAttribute { name: "equation".to_owned() })?;
    Ok(cx.builder().push1(Einsum { equation: equation.into() }, &operands)?.into())
}
