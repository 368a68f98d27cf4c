//! Constant folding by the oracle.

use crate::oracle::{EvalOptions, Oracle};
use rlx_ir::{Builder, ConstantFolder, Literal, Op, Primitive, TensorType};

/// Folds operations whose operands and results are at most `max_elements` elements each. Operations that bind symbols
/// or call users' code are left as they are, and so is whatever fails: it must fail when the graph runs.
#[derive(Clone, Debug)]
pub struct OracleFolder {
    /// The most elements of an operand or a result.
    pub max_elements: usize,
}

impl ConstantFolder for OracleFolder {
    fn fold(&self, op: &Op, operands: &[&Literal], types: &[TensorType]) -> Option<Vec<Literal>> {
        let binds = matches!(
            op,
            Op::Primitive(
                Primitive::BindDim(_)
                    | Primitive::NonZero(_)
                    | Primitive::NonMaxSuppression(_)
                    | Primitive::If(_)
                    | Primitive::While(_)
                    | Primitive::Scan(_)
                    | Primitive::Call(_)
                    | Primitive::Custom(_)
                    | Primitive::Dequantise(_)
            )
        );
        let small = |n: Option<usize>| n.is_some_and(|n| n <= self.max_elements);
        let sizes = types.iter().map(|t| t.shape.as_const().map(|d| d.iter().product()));
        let mut counts = operands.iter().map(|l| Some(l.element_count())).chain(sizes);
        if binds || !counts.all(small) {
            return None;
        }
        let mut b = Builder::verbatim("constant");
        let values: Vec<_> = operands.iter().map(|l| b.constant((*l).clone())).collect();
        let results = b.push(op.clone(), &values).ok()?;
        let names: Vec<String> = (0..results.len()).map(|i| i.to_string()).collect();
        let graph = b.finish(names.iter().map(String::as_str).zip(results)).ok()?;
        Oracle::new(&graph, EvalOptions::default()).ok()?.run(&[]).ok()
    }
}
