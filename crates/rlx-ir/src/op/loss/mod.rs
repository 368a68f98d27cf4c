//! Losses: what training minimises. Narrow floats are computed in f32 and rounded once.
//!
//! `classify` holds the losses of class labels, `compare` those of two tensors of one size.

mod classify;
mod compare;

pub use classify::{BinaryCrossEntropy, BinaryCrossEntropyWithLogits, NllLoss, SoftmaxCrossEntropy};
pub use compare::{
    CosineEmbeddingLoss, CosineSimilarity, ElementLoss, ElementLossOp, HuberLoss, KlDivergence, SmoothL1Loss,
};

use super::norm::statistics_dtype;
use crate::builder::Builder;
use crate::error::TypeError;
use crate::graph::Value;
use crate::names;
use crate::types::Shape;

names! {
    /// How the losses of all elements become the result.
    pub enum Reduction {
        /// They stay as they are.
        None = "none",
        /// Their mean; by weight where classes have weights.
        Mean = "mean",
        /// Their sum.
        Sum = "sum",
        /// Their sum over the size of the first axis (1 if there is none).
        BatchMean = "batch_mean",
    }
}

impl Reduction {
    /// The sizes of the result, from those of the losses.
    fn shape(self, losses: Shape) -> Shape {
        if self == Reduction::None { losses } else { Shape::scalar() }
    }

    /// The result in the losses' type.
    fn apply(self, b: &mut Builder, losses: Value) -> Result<Value, TypeError> {
        let axes: Vec<usize> = (0..b.rank(losses)).collect();
        match self {
            Reduction::None => Ok(losses),
            Reduction::Mean => b.mean(losses, &axes, false),
            Reduction::Sum => b.sum(losses, &axes, false),
            Reduction::BatchMean => {
                let sum = b.sum(losses, &axes, false)?;
                let Some(batch) = b.shape(losses).first().cloned() else { return Ok(sum) };
                let count = b.dim_as(&batch, b.dtype(sum))?;
                b.div(sum, count)
            }
        }
    }
}

/// x in the type that losses are computed in.
fn widened(b: &mut Builder, x: Value) -> Result<Value, TypeError> {
    b.cast(x, statistics_dtype(b.dtype(x)))
}
