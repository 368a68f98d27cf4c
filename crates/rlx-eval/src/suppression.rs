//! Non-maximum suppression.

use crate::tensor::Tensor;
use rlx_ir::op::index::NonMaxSuppression;

/// A box as its lower and upper corner.
#[derive(Clone, Copy)]
struct Corners {
    low: (f64, f64),
    high: (f64, f64),
}

impl Corners {
    fn new(b: &[f64], center_point: bool) -> Corners {
        if center_point {
            let (x, y, w, h) = (b[0], b[1], b[2] / 2.0, b[3] / 2.0);
            return Corners { low: (x - w, y - h), high: (x + w, y + h) };
        }
        Corners { low: (b[0].min(b[2]), b[1].min(b[3])), high: (b[0].max(b[2]), b[1].max(b[3])) }
    }

    fn area(&self) -> f64 {
        (self.high.0 - self.low.0) * (self.high.1 - self.low.1)
    }

    /// Intersection over union; 0 where either has no area.
    fn overlap(&self, other: &Corners) -> f64 {
        let width = self.high.0.min(other.high.0) - self.low.0.max(other.low.0);
        let height = self.high.1.min(other.high.1) - self.low.1.max(other.low.1);
        let common = width.max(0.0) * height.max(0.0);
        if self.area() <= 0.0 || other.area() <= 0.0 || common <= 0.0 {
            return 0.0;
        }
        common / (self.area() + other.area() - common)
    }
}

pub(crate) fn non_max_suppression(op: &NonMaxSuppression, operands: &[Tensor]) -> Tensor {
    let (boxes, scores) = (&operands[0], &operands[1]);
    let most = usize::try_from(operands[2].scalar_i64()).unwrap_or(0);
    let (overlap_limit, score_limit) = (operands[3].as_floats()[0], operands[4].as_floats()[0]);
    let (batches, n, classes) = (boxes.dims[0], boxes.dims[1], scores.dims[1]);
    let mut chosen = Vec::new();
    for batch in 0..batches {
        let corners: Vec<Corners> = (0..n)
            .map(|i| Corners::new(&boxes.as_floats()[(batch * n + i) * 4..][..4], op.center_point))
            .collect();
        for class in 0..classes {
            let scores = &scores.as_floats()[(batch * classes + class) * n..][..n];
            let mut order: Vec<usize> = (0..n).filter(|i| scores[*i] > score_limit).collect();
            order.sort_by(|i, j| scores[*j].total_cmp(&scores[*i]));
            let mut kept: Vec<usize> = Vec::new();
            for i in order {
                if kept.len() >= most {
                    break;
                }
                if kept.iter().all(|k| corners[*k].overlap(&corners[i]) <= overlap_limit) {
                    kept.push(i);
                }
            }
            chosen.extend(kept.into_iter().flat_map(|i| [batch as i64, class as i64, i as i64]));
        }
    }
    Tensor::i64s(vec![chosen.len() / 3, 3], chosen)
}
