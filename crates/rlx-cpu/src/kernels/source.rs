//! Counters, and the passage between sizes and values.

use super::number::{Element, with_ordered};
use crate::array::Out;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use rlx_eval::Fault;
use rlx_eval::numeric::minifloat::MiniFloat;
use rlx_ir::op::source::Iota;
use rlx_ir::{DType, DTypeClass, Op, Primitive};

/// Elements that one thread writes at a time.
const PART: usize = 16 << 10;

/// Whether an operation is one of this family.
pub(crate) fn is_source(op: &Op) -> bool {
    match op {
        Op::Primitive(Primitive::Iota(op)) => super::number::is_ordered(op.ty.dtype),
        Op::Primitive(Primitive::DimValue(_) | Primitive::BindDim(_)) => true,
        _ => false,
    }
}

/// The kernel of an operation of this family.
pub(crate) fn prepare(op: &Op) -> Option<Box<dyn Kernel>> {
    let Op::Primitive(primitive) = op else { return None };
    Some(match primitive {
        Primitive::Iota(op) => Box::new(Counter { op: op.clone() }),
        Primitive::DimValue(op) => Box::new(Size { dim: op.dim.clone() }),
        Primitive::BindDim(op) => Box::new(AtLeast { min: op.min }),
        _ => return None,
    })
}

/// The value of a size, which binding knows.
struct Size {
    dim: rlx_ir::Dim,
}

struct BoundSize(i64);

impl Kernel for Size {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        Ok(Box::new(BoundSize(self.dim.eval(cx.bindings)?)))
    }
}

impl Bound for BoundSize {
    fn run(&mut self, _: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        arguments.result(0).slice::<i64>().fill(self.0);
        Ok(())
    }
}

/// A scalar that becomes a size: passed through if it is large enough. The instance reads it from the result.
#[derive(Clone, Copy)]
struct AtLeast {
    min: i64,
}

impl Kernel for AtLeast {
    fn bind(&self, _: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        Ok(Box::new(*self))
    }
}

impl Bound for AtLeast {
    fn run(&mut self, _: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let value = arguments.operand(0).slice::<i64>().first().copied().unwrap_or(0);
        if value < self.min {
            return Err(Fault::BelowMinimum { value, min: self.min });
        }
        arguments.result(0).slice::<i64>().fill(value);
        Ok(())
    }
}

#[derive(Clone)]
struct Counter {
    op: Iota,
}

struct BoundCounter {
    op: Iota,
    /// Sizes before, of, and after the axis.
    split: [usize; 3],
}

impl Kernel for Counter {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        Ok(Box::new(BoundCounter {
            op: self.op.clone(),
            split: super::along::split(&cx.results[0].dims, self.op.axis),
        }))
    }
}

impl Bound for BoundCounter {
    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let (out, dtype) = (arguments.result(0), self.op.ty.dtype);
        let (start, step) = (self.op.start.get(), self.op.step.get());
        let exact = move |i: usize| (i as f64).mul_add(step, start);
        let (first, by) = (start as i64, step as i64);
        let whole = move |i: usize| first.wrapping_add(by.wrapping_mul(i as i64));
        match (dtype, format_of(dtype)) {
            (DType::F64, _) => self.fill(cx, &out, exact),
            (DType::F32, _) => self.fill(cx, &out, move |i| exact(i) as f32),
            (_, Some(format)) if dtype.bits() == Some(16) => {
                self.fill(cx, &out, move |i| format.encode(exact(i), false) as u16);
            }
            (_, Some(format)) => self.fill(cx, &out, move |i| format.encode(exact(i), false) as u8),
            _ => with_ordered!(dtype, T => self.integers::<T>(cx, &out, whole)),
        }
        Ok(())
    }
}

/// The parameters of a narrow float.
fn format_of(dtype: DType) -> Option<MiniFloat> {
    (dtype.class() == DTypeClass::Float).then(|| super::carrier::format(dtype)).flatten()
}

impl BoundCounter {
    /// Integers of any width are the low bits of the count.
    fn integers<T: Element>(
        &self,
        cx: &RunContext<'_>,
        out: &Out<'_>,
        value: impl Fn(usize) -> i64 + Sync + Send,
    ) {
        match size_of::<T>() {
            1 => self.fill(cx, out, move |i| value(i) as u8),
            2 => self.fill(cx, out, move |i| value(i) as u16),
            4 => self.fill(cx, out, move |i| value(i) as u32),
            _ => self.fill(cx, out, value),
        }
    }

    fn fill<T: crate::array::Plain>(
        &self,
        cx: &RunContext<'_>,
        out: &Out<'_>,
        value: impl Fn(usize) -> T + Sync + Send,
    ) {
        let [_, size, inner] = self.split;
        cx.pool.for_ranges(out.layout().count(), PART, |range| {
            let start = range.start;
            let part = out.slice_at::<T>(start, range.len());
            if inner == 1 {
                let mut i = start % size;
                for x in part {
                    *x = value(i);
                    i += 1;
                    if i == size {
                        i = 0;
                    }
                }
                return;
            }
            let mut element = start;
            let mut rest = part;
            while !rest.is_empty() {
                let run = (inner - element % inner).min(rest.len());
                let (now, later) = rest.split_at_mut(run);
                now.fill(value(element / inner % size));
                element += run;
                rest = later;
            }
        });
    }
}
