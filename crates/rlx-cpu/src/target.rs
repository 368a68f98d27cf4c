//! What the compiler asks of the CPU.

use rlx_ir::{Composite, DType, Node, Op, Primitive, TensorType};
use rlx_opt::target::{OperandLayout, Route, Target};

use crate::kernels;

/// The CPU as a target.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

impl Target for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn native(&self, composite: &Composite, operands: &[&TensorType]) -> Result<(), String> {
        kernels::native(composite, operands)
    }

    fn fusible(&self, node: &Node, operands: &[&TensorType]) -> bool {
        kernels::region::fusible(node, operands)
    }

    fn operand_layout(&self, op: &Op, index: usize, operands: &[&TensorType]) -> OperandLayout {
        kernels::operand_layout(op, index, operands)
    }

    fn in_place(&self, op: &Op, operand: usize, result: usize, operands: &[&TensorType]) -> bool {
        kernels::in_place(op, operand, result, operands)
    }

    fn route(&self, op: &Op, operands: &[&TensorType]) -> Route {
        kernels::route(op, operands)
    }
}

/// Whether two types have elements of one width.
pub(crate) fn same_width(a: DType, b: DType) -> bool {
    a.bits().is_some() && a.bits() == b.bits()
}

/// Whether this is control flow, which has kernels that run programs.
pub(crate) fn is_control(op: &Op) -> bool {
    matches!(op, Op::Primitive(Primitive::If(_) | Primitive::While(_) | Primitive::Scan(_)))
}
