//! What the compiler asks of a backend: which composites it runs itself, what it fuses, how operands must lie.

use rlx_ir::{Composite, Node, Op, TensorType};

/// How an operand's elements must lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandLayout {
    /// Any offset and strides.
    Strided,
    /// Row-major without gaps.
    Contiguous,
}

/// The kernel that a step runs by, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// The kernel's name.
    pub kernel: &'static str,
    /// Why this one; empty where there is but one.
    pub reason: String,
}

/// Something that programs are compiled for.
pub trait Target: Send + Sync {
    /// The name in reports.
    fn name(&self) -> &str;

    /// Whether a composite on operands of these types has a kernel here; if not, why it is decomposed.
    fn native(&self, composite: &Composite, operands: &[&TensorType]) -> Result<(), String>;

    /// Whether a node (elementwise, or a reduction) may be part of a region.
    fn fusible(&self, node: &Node, operands: &[&TensorType]) -> bool;

    /// How operand `index` of a step must lie.
    fn operand_layout(&self, op: &Op, index: usize, operands: &[&TensorType]) -> OperandLayout;

    /// Whether result `result` may be written over operand `operand`, where both are contiguous, of the same size, and
    /// the operand is not needed afterwards.
    fn in_place(&self, op: &Op, operand: usize, result: usize, operands: &[&TensorType]) -> bool;

    /// The kernel of a step.
    fn route(&self, op: &Op, operands: &[&TensorType]) -> Route;
}
