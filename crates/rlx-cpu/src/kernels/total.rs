//! Reductions that are no regions by themselves: into a wider accumulator, of types without lanes, and those whose axes
//! are known only with the sizes (`sum_to`).
//!
//! What a region can do after all (a cast before the reduction, or a `sum_to` whose sizes tell its axes) is made one. The
//! rest is combined in the carriers (f64 for floats), one element after the other, and rounded once.
#![allow(unsafe_code)]

use super::carrier::{
    Carried, PIECE, Rounding, complex_at, float_at, for_pieces, integer_bits, signed_at, store, unsigned_at,
};
use super::region;
use super::transfer::Address;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use crate::load::PrepareContext;
use rlx_eval::Fault;
use rlx_eval::numeric::float::{maximum, minimum};
use rlx_eval::numeric::wrap::Integer;
use rlx_ir::op::control::Call;
use rlx_ir::op::elementwise::Cast;
use rlx_ir::op::reduce::{Reduce, ReduceOp};
use rlx_ir::{Builder, DTypeClass, Dim, Graph, Op, Primitive, TensorType};
use rlx_opt::program::Layout;
use smallvec::SmallVec;
use std::sync::Arc;

/// Whether an operation is one of this family, on types that it has here.
pub(crate) fn supports(op: &Op, operands: &[&TensorType]) -> bool {
    let reduces = matches!(op, Op::Primitive(Primitive::Reduce(_) | Primitive::SumTo(_)));
    reduces && operands[0].dtype.bits().is_some_and(|bits| bits >= 8)
}

/// The kernel of an operation of this family.
pub(crate) fn prepare(op: &Op, cx: &PrepareContext<'_>) -> Option<Box<dyn Kernel>> {
    let x = &cx.step.operand_types[0];
    let (reduce, known) = match op {
        Op::Primitive(Primitive::Reduce(op)) => (op.clone(), true),
        Op::Primitive(Primitive::SumTo(op)) => {
            let axes = repeated(x.dims(), &op.dims);
            let known = axes.is_some();
            let axes = axes.unwrap_or_default();
            (Reduce { op: ReduceOp::Sum, axes, keep_dims: true, accum: None }, known)
        }
        _ => return None,
    };
    let fused = || region::prepare(&Op::Primitive(as_region(&reduce, x)?), cx).ok();
    let region = known.then(fused).flatten();
    Some(Box::new(Total { reduce: known.then_some(reduce), region }))
}

/// The axes that broadcasting `dims` to `x` repeats, where the sizes tell.
fn repeated(x: &[Dim], dims: &[Dim]) -> Option<Vec<usize>> {
    let added = x.len().checked_sub(dims.len())?;
    let mut axes: Vec<usize> = (0..added).collect();
    for (i, (from, to)) in x[added..].iter().zip(dims).enumerate() {
        if from == to {
            continue;
        }
        if *to != Dim::ONE {
            return None;
        }
        axes.push(added + i);
    }
    Some(axes)
}

/// The reduction, after a cast to its accumulator, as the call of a region.
fn as_region(reduce: &Reduce, x: &TensorType) -> Option<Primitive> {
    let wide = reduce.accum.unwrap_or(x.dtype);
    let alone = Reduce { accum: None, ..reduce.clone() };
    let castable = region::Lane::of(x.dtype).is_some();
    let wide_type = x.with_dtype(wide);
    if !castable || !region::runs_alone(&Op::from(alone.clone()), &[&wide_type]) {
        return None;
    }
    let build = || -> Result<Graph, rlx_ir::TypeError> {
        let mut b = Builder::verbatim("region");
        let mut value = b.input("x", x.clone())?;
        if wide != x.dtype {
            value = b.push1(Cast { to: wide, saturate: false, round: None }, &[value])?;
        }
        let y = b.push1(alone.clone(), &[value])?;
        b.finish([("y", y)])
    };
    build().ok().map(|body| Primitive::Call(Call { body: Arc::new(body) }))
}

struct Total {
    /// `None` if the axes are known only with the sizes.
    reduce: Option<Reduce>,
    region: Option<Box<dyn Kernel>>,
}

impl Kernel for Total {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let (x, y) = (&cx.operands[0], &cx.results[0]);
        let added = x.dims.len().saturating_sub(y.dims.len());
        if let Some(region) = &self.region {
            let keeps = self.reduce.as_ref().is_some_and(|r| r.keep_dims);
            // The region keeps reduced axes of size 1, which a sum may leave out in front.
            let mut dims: SmallVec<[usize; 6]> = y.dims.clone();
            if keeps {
                dims.insert_many(0, std::iter::repeat_n(1, added));
            }
            let results = [Layout::packed(y.dtype, &dims)];
            return region.bind(&BindContext {
                operands: cx.operands,
                results: &results,
                bindings: cx.bindings,
            });
        }
        let (op, axes): (ReduceOp, SmallVec<[usize; 6]>) = match &self.reduce {
            Some(reduce) => (reduce.op, reduce.axes.iter().copied().collect()),
            None => {
                let repeated = |axis: &usize| *axis < added || y.dims[axis - added] != x.dims[*axis];
                (ReduceOp::Sum, (0..x.dims.len()).filter(repeated).collect())
            }
        };
        let width = crate::array::width(x.dtype) as isize;
        let of = |reduced: bool| {
            let axes = (0..x.dims.len()).filter(|a| axes.contains(a) == reduced);
            axes.map(|a| (x.dims[a], x.strides[a] * width)).collect()
        };
        Ok(Box::new(BoundTotal { op, kept: of(false), reduced: of(true) }))
    }
}

/// Sizes and strides in bytes, outermost first.
type Axes = SmallVec<[(usize, isize); 6]>;

struct BoundTotal {
    op: ReduceOp,
    kept: Axes,
    reduced: Axes,
}

/// Where index `i` of a block of these axes lies.
fn offset(axes: &Axes, i: usize) -> isize {
    let (mut rest, mut at) = (i, 0isize);
    for (size, stride) in axes.iter().rev() {
        at += (rest % size) as isize * stride;
        rest /= size;
    }
    at
}

impl BoundTotal {
    /// The combination of the elements that result `i` is made of.
    fn fold<C: Copy>(
        &self,
        x: *const u8,
        i: usize,
        read: impl Fn(*const u8) -> C,
        empty: C,
        f: impl Fn(C, C) -> C,
    ) -> C {
        let x = x.wrapping_offset(offset(&self.kept, i));
        let count: usize = self.reduced.iter().map(|(size, _)| size).product();
        (0..count).fold(empty, |sum, j| f(sum, read(x.wrapping_offset(offset(&self.reduced, j)))))
    }

    fn piece<C: Copy>(
        &self,
        x: *const u8,
        range: std::ops::Range<usize>,
        read: impl Fn(*const u8) -> C,
        empty: C,
        f: impl Fn(C, C) -> C,
    ) -> [C; PIECE] {
        let mut sums = [empty; PIECE];
        for (sum, i) in sums.iter_mut().zip(range) {
            *sum = self.fold(x, i, &read, empty, &f);
        }
        sums
    }
}

fn integers<I: Integer>(op: ReduceOp, bits: u32, one: I) -> (I, fn(I, I) -> I) {
    match op {
        ReduceOp::Sum => (I::default(), |x, y| x.wrapped_add(y, 64)),
        ReduceOp::Prod => (one, |x, y| x.wrapped_mul(y, 64)),
        ReduceOp::Max => (I::least(bits), I::max),
        ReduceOp::Min => (I::greatest(bits), I::min),
        ReduceOp::Any => (I::default(), I::max),
        ReduceOp::All => (one, I::min),
    }
}

/// A complex number: its parts.
type Pair = (f64, f64);

fn complex(op: ReduceOp) -> (Pair, fn(Pair, Pair) -> Pair) {
    match op {
        ReduceOp::Prod => ((1.0, 0.0), |(a, b), (c, d)| (a * c - b * d, a * d + b * c)),
        _ => ((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d)),
    }
}

fn floats(op: ReduceOp) -> (f64, fn(f64, f64) -> f64) {
    match op {
        ReduceOp::Prod => (1.0, |x, y| x * y),
        ReduceOp::Max => (f64::NEG_INFINITY, maximum),
        ReduceOp::Min => (f64::INFINITY, minimum),
        _ => (0.0, |x, y| x + y),
    }
}

impl Bound for BoundTotal {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let (operand, out) = (arguments.operand(0), arguments.result(0));
        let (dtype, x) = (operand.dtype(), Address(operand.pointer().cast_mut()));
        let to = Address(out.pointer());
        let (this, bits) = (&*self, integer_bits(out.dtype()));
        for_pieces(cx.pool, &[out.layout().count()], false, |piece| {
            let range = piece.first()..piece.first() + piece.count;
            let x = x.at(0).cast_const();
            // SAFETY (all reads): the offsets are those of elements of the operand.
            let sums = match dtype.class() {
                DTypeClass::Signed => {
                    let (empty, f) = integers(this.op, bits, 1i64);
                    Carried::Signed(this.piece(x, range, |at| unsafe { signed_at(dtype, at) }, empty, f))
                }
                DTypeClass::Unsigned | DTypeClass::Bool => {
                    let (empty, f) = integers(this.op, bits, 1u64);
                    Carried::Unsigned(this.piece(x, range, |at| unsafe { unsigned_at(dtype, at) }, empty, f))
                }
                DTypeClass::Complex => {
                    let (empty, f) = complex(this.op);
                    Carried::Complex(this.piece(x, range, |at| unsafe { complex_at(dtype, at) }, empty, f))
                }
                _ => {
                    let (empty, f) = floats(this.op);
                    Carried::Float(this.piece(x, range, |at| unsafe { float_at(dtype, at) }, empty, f))
                }
            };
            // SAFETY: a piece of the result, which only this call writes.
            unsafe { store(out.dtype(), to, piece, &sums, Rounding::NEAREST) };
        });
        Ok(())
    }
}
