//! Fourier transforms along an axis, by `rustfft` and `realfft`, which plan the factors and twiddles once for a length.
//!
//! Lines are transformed in parallel; each is copied to a buffer of its thread first, so that any axis will do.
#![allow(unsafe_code)]

use super::along::split;
use super::number::Pair;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rlx_eval::Fault;
use rlx_ir::op::spectral::{Fft, FftOp};
use rlx_ir::{DType, Op, Primitive};
use rustfft::{FftNum, FftPlanner};
use std::cell::RefCell;
use std::sync::Arc;

/// Elements that one thread transforms at a time.
const PART: usize = 4 << 10;

/// The kernel of a transform.
pub(crate) fn prepare(op: &Op) -> Option<Box<dyn Kernel>> {
    match op {
        Op::Primitive(Primitive::Fft(op)) => Some(Box::new(Transform { op: op.clone() })),
        _ => None,
    }
}

struct Transform {
    op: Fft,
}

/// The plan of a length.
enum Plan<T> {
    Complex { plan: Arc<dyn rustfft::Fft<T>>, scale: T },
    Forward(Arc<dyn RealToComplex<T>>),
    Inverse { plan: Arc<dyn ComplexToReal<T>>, scale: T },
}

struct BoundTransform<T> {
    plan: Plan<T>,
    /// Of the operand.
    from: [usize; 3],
    /// The result's size along the axis.
    length: usize,
}

/// f32 and f64: what a thread keeps for its lines.
trait Part: FftNum + Default {
    fn with<R>(work: impl FnOnce(&mut Line<Self>) -> R) -> R;
    fn recip(length: usize) -> Self;
}

/// A line, and what a plan works in.
struct Line<T> {
    real: Vec<T>,
    complex: Vec<Complex<T>>,
    scratch: Vec<Complex<T>>,
}

macro_rules! parts {
    ($($t:ident),*) => {$(
        impl Part for $t {
            fn with<R>(work: impl FnOnce(&mut Line<$t>) -> R) -> R {
                thread_local! {
                    static LINE: RefCell<Line<$t>> =
                        const { RefCell::new(Line { real: Vec::new(), complex: Vec::new(), scratch: Vec::new() }) };
                }
                LINE.with_borrow_mut(work)
            }
            fn recip(length: usize) -> $t {
                (1.0 / length as f64) as $t
            }
        }
    )*};
}
parts!(f32, f64);

impl Kernel for Transform {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let wide = matches!(cx.operands[0].dtype, DType::F64 | DType::C128);
        Ok(if wide { Box::new(bind::<f64>(&self.op, cx)) } else { Box::new(bind::<f32>(&self.op, cx)) })
    }
}

fn bind<T: Part>(op: &Fft, cx: &BindContext<'_>) -> BoundTransform<T> {
    let from = split(&cx.operands[0].dims, op.axis);
    let length = cx.results[0].dims[op.axis];
    let one = T::recip(1);
    let plan = match op.op {
        FftOp::Forward => Plan::Complex { plan: FftPlanner::new().plan_fft_forward(length), scale: one },
        FftOp::Inverse => {
            Plan::Complex { plan: FftPlanner::new().plan_fft_inverse(length), scale: T::recip(length.max(1)) }
        }
        FftOp::Real => Plan::Forward(RealFftPlanner::new().plan_fft_forward(from[1])),
        FftOp::RealInverse => {
            let plan = RealFftPlanner::new().plan_fft_inverse(length);
            Plan::Inverse { plan, scale: T::recip(length.max(1)) }
        }
    };
    BoundTransform { plan, from, length }
}

impl<T: Part> Bound for BoundTransform<T>
where
    T: crate::array::Plain,
    Pair<T>: crate::array::Plain,
{
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let [outer, size, inner] = self.from;
        if self.from.contains(&0) || self.length == 0 {
            return Ok(());
        }
        let (x, y, this) = (arguments.operand(0), arguments.result(0), &*self);
        cx.pool.for_ranges(outer * inner, (PART / size).max(1), |range| {
            T::with(|line| {
                for i in range {
                    let (block, at) = (i / inner, i % inner);
                    // A plan fails only on lengths that are not its own.
                    match &this.plan {
                        Plan::Complex { plan, scale } => {
                            line.read(x.slice::<Pair<T>>(), block * size * inner + at, inner, size);
                            line.scratch.resize(plan.get_inplace_scratch_len(), Complex::default());
                            plan.process_with_scratch(&mut line.complex, &mut line.scratch);
                            line.write(&y, block * this.length * inner + at, inner, *scale);
                        }
                        Plan::Forward(plan) => {
                            line.real.clear();
                            let x = &x.slice::<T>()[block * size * inner + at..];
                            line.real.extend(x.iter().step_by(inner).take(size));
                            line.complex.resize(this.length, Complex::default());
                            line.scratch.resize(plan.get_scratch_len(), Complex::default());
                            let _ = plan.process_with_scratch(
                                &mut line.real,
                                &mut line.complex,
                                &mut line.scratch,
                            );
                            line.write(&y, block * this.length * inner + at, inner, T::recip(1));
                        }
                        Plan::Inverse { plan, scale } => {
                            line.read(x.slice::<Pair<T>>(), block * size * inner + at, inner, size);
                            line.make_real(this.length);
                            line.real.resize(this.length, T::default());
                            line.scratch.resize(plan.get_scratch_len(), Complex::default());
                            let _ = plan.process_with_scratch(
                                &mut line.complex,
                                &mut line.real,
                                &mut line.scratch,
                            );
                            for (k, value) in line.real.iter().enumerate() {
                                let to = (block * this.length + k) * inner + at;
                                y.slice_at::<T>(to, 1)[0] = *value * *scale;
                            }
                        }
                    }
                }
            });
        });
        Ok(())
    }
}

impl<T: Part> Line<T>
where
    Pair<T>: crate::array::Plain,
{
    /// Takes `size` numbers, `step` apart, from `start` on.
    fn read(&mut self, x: &[Pair<T>], start: usize, step: usize, size: usize) {
        self.complex.clear();
        self.complex.extend(x[start..].iter().step_by(step).take(size).map(|p| Complex::new(p.0, p.1)));
    }

    /// Puts the numbers, scaled, `step` apart.
    fn write(&self, y: &crate::array::Out<'_>, start: usize, step: usize, scale: T) {
        for (k, value) in self.complex.iter().enumerate() {
            y.slice_at::<Pair<T>>(start + k * step, 1)[0] = Pair(value.re * scale, value.im * scale);
        }
    }

    /// Leaves out the imaginary parts that no real numbers give.
    fn make_real(&mut self, length: usize) {
        if let Some(first) = self.complex.first_mut() {
            first.im = T::default();
        }
        if length.is_multiple_of(2)
            && let Some(middle) = self.complex.get_mut(length / 2)
        {
            middle.im = T::default();
        }
    }
}
