//! Results whose sizes depend on values: what is not zero, and boxes that survive suppression.

use super::number::Pair;
use crate::array::{In, Plain, width};
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use rlx_eval::Fault;
use rlx_ir::op::index::NonMaxSuppression;
use rlx_ir::{DType, Literal, Op, Primitive, TensorType};
use std::cmp::Reverse;
use std::sync::Mutex;

/// Elements that one thread looks at at a time.
const PART: usize = 32 << 10;

/// Whether an operation is one of this family, on types that it has here.
pub(crate) fn supports(op: &Op, operands: &[&TensorType]) -> bool {
    match op {
        Op::Primitive(Primitive::NonZero(_)) => width(operands[0].dtype) > 0,
        Op::Primitive(Primitive::NonMaxSuppression(_)) => {
            matches!(operands[0].dtype, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
        }
        _ => false,
    }
}

/// The kernel of an operation of this family.
pub(crate) fn prepare(op: &Op) -> Option<Box<dyn Kernel>> {
    let finder = match op {
        Op::Primitive(Primitive::NonZero(_)) => Finder::NonZero,
        Op::Primitive(Primitive::NonMaxSuppression(op)) => Finder::Suppression(op.clone()),
        _ => return None,
    };
    Some(Box::new(finder))
}

#[derive(Clone)]
enum Finder {
    NonZero,
    Suppression(NonMaxSuppression),
}

impl Kernel for Finder {
    fn bind(&self, _: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        Ok(Box::new(self.clone()))
    }
}

impl Finder {
    fn find(&self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<Literal, Fault> {
        let (dims, found) = match self {
            Finder::NonZero => non_zero(cx, &arguments.operand(0)),
            Finder::Suppression(op) => suppressed(op, arguments),
        };
        let bytes: Vec<u8> = found.iter().flat_map(|x| x.to_le_bytes()).collect();
        Literal::new(DType::I64, dims, bytes).map_err(|e| Fault::Custom(e.to_string()))
    }
}

impl Bound for Finder {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let (found, out) = (self.find(cx, arguments)?, arguments.result(0));
        if found.dims() != out.dims() {
            let declared = TensorType::new(out.dtype(), out.dims());
            return Err(Fault::Result { output: 0, declared, found: format!("i64{:?}", found.dims()) });
        }
        out.bytes().copy_from_slice(found.bytes());
        Ok(())
    }

    fn run_dynamic(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<Vec<Literal>, Fault> {
        Ok(vec![self.find(cx, arguments)?])
    }
}

/// The positions of the elements that pass a test, in order.
fn positions<T: Plain>(
    cx: &RunContext<'_>,
    x: &In<'_>,
    test: impl Fn(T) -> bool + Sync + Send,
) -> Vec<usize> {
    let x = x.slice::<T>();
    let parts: Mutex<Vec<(usize, Vec<usize>)>> = Mutex::new(Vec::new());
    cx.pool.for_ranges(x.len(), PART, |range| {
        let start = range.start;
        let found: Vec<usize> = range.filter(|i| test(x[*i])).collect();
        parts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((start, found));
    });
    let mut parts = parts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    parts.sort_unstable_by_key(|(start, _)| *start);
    parts.into_iter().flat_map(|(_, found)| found).collect()
}

fn non_zero(cx: &RunContext<'_>, x: &In<'_>) -> (Vec<usize>, Vec<i64>) {
    let dims = x.dims();
    let found = if x.layout().count() == 0 {
        Vec::new()
    } else {
        match x.dtype() {
            DType::F64 => positions(cx, x, |x: f64| x != 0.0),
            DType::F32 => positions(cx, x, |x: f32| x != 0.0),
            DType::F16 | DType::BF16 => positions(cx, x, |x: u16| x & 0x7fff != 0),
            // Without a negative zero, whose code is NaN; and without any zero.
            DType::F8E4M3FNUZ | DType::F8E5M2FNUZ => positions(cx, x, |x: u8| x != 0),
            DType::E8M0 => positions(cx, x, |_: u8| true),
            DType::F8E4M3FN | DType::F8E5M2 => positions(cx, x, |x: u8| x & 0x7f != 0),
            DType::C64 => positions(cx, x, |x: Pair<f32>| x != Pair(0.0, 0.0)),
            DType::C128 => positions(cx, x, |x: Pair<f64>| x != Pair(0.0, 0.0)),
            dtype => match width(dtype) {
                1 => positions(cx, x, |x: u8| x != 0),
                2 => positions(cx, x, |x: u16| x != 0),
                4 => positions(cx, x, |x: u32| x != 0),
                _ => positions(cx, x, |x: u64| x != 0),
            },
        }
    };
    let mut indices = Vec::with_capacity(found.len() * dims.len());
    for axis in 0..dims.len() {
        let stride: usize = dims[axis + 1..].iter().product();
        indices.extend(found.iter().map(|i| (i / stride % dims[axis]) as i64));
    }
    (vec![dims.len(), found.len()], indices)
}

/// A box as its lower and upper corner.
#[derive(Clone, Copy)]
struct Corners {
    low: (f64, f64),
    high: (f64, f64),
    area: f64,
}

impl Corners {
    fn new(b: &[f64], center_point: bool) -> Corners {
        let (low, high) = if center_point {
            let (x, y, w, h) = (b[0], b[1], b[2] / 2.0, b[3] / 2.0);
            ((x - w, y - h), (x + w, y + h))
        } else {
            ((b[0].min(b[2]), b[1].min(b[3])), (b[0].max(b[2]), b[1].max(b[3])))
        };
        Corners { low, high, area: (high.0 - low.0) * (high.1 - low.1) }
    }

    /// Intersection over union; 0 where either has no area.
    fn overlap(&self, other: &Corners) -> f64 {
        let width = self.high.0.min(other.high.0) - self.low.0.max(other.low.0);
        let height = self.high.1.min(other.high.1) - self.low.1.max(other.low.1);
        let common = width.max(0.0) * height.max(0.0);
        if self.area <= 0.0 || other.area <= 0.0 || common <= 0.0 {
            return 0.0;
        }
        common / (self.area + other.area - common)
    }
}

fn floats(x: &In<'_>) -> Vec<f64> {
    if x.layout().count() == 0 {
        return Vec::new();
    }
    match x.dtype() {
        DType::F64 => x.slice::<f64>().to_vec(),
        DType::F32 => x.slice::<f32>().iter().map(|x| f64::from(*x)).collect(),
        DType::F16 => x.slice::<half::f16>().iter().map(|x| x.to_f64()).collect(),
        _ => x.slice::<half::bf16>().iter().map(|x| x.to_f64()).collect(),
    }
}

fn suppressed(op: &NonMaxSuppression, arguments: &Arguments<'_>) -> (Vec<usize>, Vec<i64>) {
    let (boxes, scores) = (arguments.operand(0), arguments.operand(1));
    let most = usize::try_from(arguments.operand(2).scalar()).unwrap_or(0);
    let limit = |i: usize| floats(&arguments.operand(i)).first().copied().unwrap_or(0.0);
    let (overlap_limit, score_limit) = (limit(3), limit(4));
    let (batches, n, classes) = (boxes.dims()[0], boxes.dims()[1], scores.dims()[1]);
    let (boxes, scores) = (floats(&boxes), floats(&scores));
    let mut chosen = Vec::new();
    for batch in 0..batches {
        let rows = boxes[batch * n * 4..(batch + 1) * n * 4].chunks_exact(4);
        let corners: Vec<Corners> = rows.map(|b| Corners::new(b, op.center_point)).collect();
        for class in 0..classes {
            let scores = &scores[(batch * classes + class) * n..][..n];
            let mut order: Vec<usize> = (0..n).filter(|i| scores[*i] > score_limit).collect();
            order.sort_by_key(|i| Reverse(Score(scores[*i])));
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
    (vec![chosen.len() / 3, 3], chosen)
}

/// A score in the total order of floats.
#[derive(PartialEq)]
struct Score(f64);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Score) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Score) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
