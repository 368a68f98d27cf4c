//! Losses of class labels.

use rlx_ir::op::loss::{NllLoss, Reduction, SoftmaxCrossEntropy};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("NegativeLogLikelihoodLoss", &[12, 13, 22], negative_log_likelihood),
    onnx("SoftmaxCrossEntropyLoss", &[12, 13], softmax_cross_entropy),
];

fn reduction(cx: &NodeContext<'_, '_>) -> Result<Reduction, NodeProblem> {
    match cx.string("reduction", "mean")?.as_str() {
        "none" => Ok(Reduction::None),
        "mean" => Ok(Reduction::Mean),
        "sum" => Ok(Reduction::Sum),
        other => Err(cx.bad_attribute("reduction", "none, mean or sum", other)),
    }
}

fn negative_log_likelihood(cx: &mut NodeContext<'_, '_>) -> Handled {
    let loss = NllLoss { ignore_index: cx.optional_int("ignore_index")?, reduction: reduction(cx)? };
    let mut operands = vec![cx.input(0)?, cx.input(1)?];
    operands.extend(cx.optional(2)?);
    Ok(cx.builder().push1(loss, &operands)?.into())
}

fn softmax_cross_entropy(cx: &mut NodeContext<'_, '_>) -> Handled {
    let loss = SoftmaxCrossEntropy {
        ignore_index: cx.optional_int("ignore_index")?,
        label_smoothing: 0.0.into(),
        reduction: reduction(cx)?,
        log_probabilities: cx.wanted(1),
    };
    let mut operands = vec![cx.input(0)?, cx.input(1)?];
    operands.extend(cx.optional(2)?);
    Ok(cx.builder().push(loss, &operands)?.into_iter().collect())
}
