//! Reductions over windows and their gradient.
//!
//! Leading axes along which windows have one element are planes. Each plane is copied with its padding filled in, then
//! lanes of windows combine one element after the other, in the order that the operation declares.
#![allow(unsafe_code)]

use crate::array::{In, Out, Plain, width};
use crate::error::RunError;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use crate::kernels::conv::bytes::Line;
use crate::kernels::conv::expand::{Expand, Expands, Filling, Less};
use crate::kernels::conv::geometry::{Axis, Expanded, Geometry, Windows};
use crate::kernels::gemm::panels::{MOST_LANES, Offsets};
use crate::kernels::gemm::unsupported;
use crate::kernels::region::{max as greatest, min as least};
use half::{bf16, f16};
use rlx_eval::Fault;
use rlx_eval::numeric::float::{maximum, minimum};
use rlx_ir::op::window::{ReduceWindow, ReduceWindowGrad, WindowGradOp, WindowOp};
use rlx_ir::{Bindings, DType, Dim, Op, Primitive};
use rlx_opt::program::Layout;

/// Elements of planes that are expanded at once: few enough to stay in cache.
const ROUND: usize = 1 << 20;

/// Windows combined at once.
const LANES: usize = MOST_LANES;

/// A reduction of elements.
trait Combine<T: Copy> {
    const EMPTY: T;
    fn combine(x: T, y: T) -> T;
}

struct Sum;
struct Prod;
struct Max;
struct Min;

macro_rules! combine {
    ($($t:ty: $sum:expr, $prod:expr, $max:expr, $min:expr, [$zero:expr, $one:expr, $lowest:expr, $highest:expr]);* $(;)?) => {$(
        combine!(@one Sum, $t, $zero, $sum);
        combine!(@one Prod, $t, $one, $prod);
        combine!(@one Max, $t, $lowest, $max);
        combine!(@one Min, $t, $highest, $min);
    )*};
    (@one $op:ident, $t:ty, $empty:expr, $combine:expr) => {
        impl Combine<$t> for $op {
            const EMPTY: $t = $empty;
            #[inline(always)]
            fn combine(x: $t, y: $t) -> $t {
                $combine(x, y)
            }
        }
    };
}

macro_rules! combine_integers {
    ($($t:ty),*) => {
        combine!($($t: <$t>::wrapping_add, <$t>::wrapping_mul, Ord::max, Ord::min, [0, 1, <$t>::MIN, <$t>::MAX]);*);
    };
}

combine!(
    f32: |x, y| x + y, |x, y| x * y, greatest, least, [0.0, 1.0, f32::NEG_INFINITY, f32::INFINITY];
    f64: |x, y| x + y, |x, y| x * y, maximum, minimum, [0.0, 1.0, f64::NEG_INFINITY, f64::INFINITY]
);
combine_integers!(i8, i16, i32, i64, u8, u16, u32, u64);

/// Elements as they are stored.
trait Narrowed<T>: Plain {
    fn narrowed(x: T) -> Self;
}

macro_rules! narrowed {
    ($($t:ty),*) => {$(
        impl Narrowed<$t> for $t {
            #[inline(always)]
            fn narrowed(x: $t) -> $t {
                x
            }
        }
    )*};
}
narrowed!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

impl Narrowed<f32> for f16 {
    fn narrowed(x: f32) -> f16 {
        f16::from_f32(x)
    }
}

impl Narrowed<f32> for bf16 {
    fn narrowed(x: f32) -> bf16 {
        bf16::from_f32(x)
    }
}

/// Combines the windows of a plane, rows of `row` windows one after the other.
///
/// # Safety
/// The windows lead to elements from the first argument on; [`LANES`] elements behind the last may be read.
type Rows<T, O> = unsafe fn(*const T, &Windows, usize, &mut [O]);

/// # Safety
/// As [`Rows`].
#[inline(always)]
unsafe fn rows<C: Combine<T>, T: Plain, O: Narrowed<T>>(
    plane: *const T,
    windows: &Windows,
    row: usize,
    out: &mut [O],
) {
    for (index, out) in out.chunks_mut(row.max(1)).enumerate() {
        let first = plane.wrapping_offset(windows.positions.at(index * row));
        for (i, out) in out.chunks_mut(LANES).enumerate() {
            let first = first.wrapping_add(i * LANES);
            // SAFETY (both): lanes beyond the row read elements behind it, which are kept free.
            if out.len() <= 8 {
                unsafe { part::<C, T, O, 8>(first, windows, out) }
            } else {
                unsafe { part::<C, T, O, LANES>(first, windows, out) }
            }
        }
    }
}

/// # Safety
/// As [`Rows`].
#[inline(always)]
unsafe fn part<C: Combine<T>, T: Plain, O: Narrowed<T>, const N: usize>(
    first: *const T,
    windows: &Windows,
    out: &mut [O],
) {
    let mut lanes = [C::EMPTY; N];
    for offset in &windows.taps {
        // SAFETY: as promised by the caller.
        let elements = unsafe { std::slice::from_raw_parts(first.offset(*offset), N) };
        for (lane, element) in lanes.iter_mut().zip(elements) {
            *lane = C::combine(*lane, *element);
        }
    }
    for (to, lane) in out.iter_mut().zip(lanes) {
        *to = O::narrowed(lane);
    }
}

/// # Safety
/// As [`Rows`].
unsafe fn plain<C: Combine<T>, T: Plain, O: Narrowed<T>>(
    plane: *const T,
    windows: &Windows,
    row: usize,
    out: &mut [O],
) {
    // SAFETY: as promised by the caller.
    unsafe { rows::<C, T, O>(plane, windows, row, out) }
}

/// # Safety
/// As [`Rows`]; the processor has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<C: Combine<T>, T: Plain, O: Narrowed<T>>(
    plane: *const T,
    windows: &Windows,
    row: usize,
    out: &mut [O],
) {
    // SAFETY: as promised by the caller.
    unsafe { rows::<C, T, O>(plane, windows, row, out) }
}

/// The function for this processor.
fn rows_of<C: Combine<T>, T: Plain, O: Narrowed<T>>() -> Rows<T, O> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        return avx2::<C, T, O>;
    }
    plain::<C, T, O>
}

/// Why windows are reduced here; `None` if they are not.
pub(crate) fn route(dtype: DType) -> Option<String> {
    let number = dtype.is_int() && dtype.bits().is_some_and(|bits| bits >= 8);
    let float = matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::BF16);
    (number || float).then(|| "planes with their padding, lanes of windows".to_string())
}

/// Why a gradient is computed here; `None` if it is not.
pub(crate) fn route_gradient(dtype: DType) -> Option<String> {
    let float = matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::BF16);
    float.then(|| "window by window, planes apart".to_string())
}

/// The kernel of a reduction over windows or of its gradient.
pub(crate) fn prepare(op: &Op, dtype: DType) -> Result<Box<dyn Kernel>, RunError> {
    macro_rules! reduce {
        ($window:expr, $t:ty, $o:ty) => {{
            let rows = match $window.op {
                WindowOp::Sum => rows_of::<Sum, $t, $o>(),
                WindowOp::Prod => rows_of::<Prod, $t, $o>(),
                WindowOp::Max => rows_of::<Max, $t, $o>(),
                WindowOp::Min => rows_of::<Min, $t, $o>(),
            };
            let expand = <$t>::expand_of(dtype).ok_or_else(|| unsupported(op, &dtype.to_string()))?;
            Ok(Box::new(Reduction::<$t, $o> { op: $window.clone(), rows, expand }))
        }};
    }
    match op {
        Op::Primitive(Primitive::ReduceWindow(window)) => match dtype {
            DType::F64 => reduce!(window, f64, f64),
            DType::F32 => reduce!(window, f32, f32),
            DType::F16 => reduce!(window, f32, f16),
            DType::BF16 => reduce!(window, f32, bf16),
            DType::I64 => reduce!(window, i64, i64),
            DType::I32 => reduce!(window, i32, i32),
            DType::I16 => reduce!(window, i16, i16),
            DType::I8 => reduce!(window, i8, i8),
            DType::U64 => reduce!(window, u64, u64),
            DType::U32 => reduce!(window, u32, u32),
            DType::U16 => reduce!(window, u16, u16),
            DType::U8 => reduce!(window, u8, u8),
            _ => Err(unsupported(op, &dtype.to_string())),
        },
        Op::Primitive(Primitive::ReduceWindowGrad(window)) => match dtype {
            DType::F64 => Ok(Box::new(Gradient { op: window.clone(), plane: gradient::<f64, f64> })),
            DType::F32 => Ok(Box::new(Gradient { op: window.clone(), plane: gradient::<f32, f32> })),
            DType::F16 => Ok(Box::new(Gradient { op: window.clone(), plane: gradient::<f32, f16> })),
            DType::BF16 => Ok(Box::new(Gradient { op: window.clone(), plane: gradient::<f32, bf16> })),
            _ => Err(unsupported(op, &dtype.to_string())),
        },
        _ => Err(unsupported(op, "no windows")),
    }
}

/// The attributes of windows.
struct Attributes<'a> {
    window: &'a [Dim],
    strides: &'a [i64],
    dilations: &'a [i64],
    padding: &'a [(Dim, Dim)],
}

/// Planes and the windows of one.
struct Planes {
    count: usize,
    /// The planes' first elements.
    first: Offsets,
    geometry: Geometry,
}

impl Planes {
    fn new(a: &Attributes<'_>, x: &Layout, counts: &[usize], bindings: &Bindings) -> Result<Planes, Fault> {
        let mut axes = Vec::with_capacity(counts.len().max(1));
        let mut outer = 0;
        for (i, output) in counts.iter().enumerate() {
            let axis = Axis {
                input: x.dims[i],
                input_stride: x.strides[i],
                low: a.padding[i].0.eval(bindings)? as isize,
                lhs_dilation: 1,
                kernel: a.window[i].eval_size(bindings)?,
                rhs_dilation: a.dilations[i] as usize,
                stride: a.strides[i] as usize,
                output: *output,
            };
            let single = axis.kernel == 1 && axis.stride == 1 && axis.low == 0 && axis.input == axis.output;
            if single && axes.is_empty() && i + 1 < counts.len() {
                outer += 1;
            } else {
                axes.push(axis);
            }
        }
        if axes.is_empty() {
            axes.push(Axis::single());
        }
        let geometry = Geometry {
            images: 1,
            image_stride: 0,
            channels: 1,
            channel_stride: 0,
            groups: 1,
            group_in: 1,
            group_out: 1,
            axes,
        };
        let first = Offsets::new(&x.dims[..outer], &x.strides[..outer]);
        Ok(Planes { count: x.dims[..outer].iter().product(), first, geometry })
    }

    /// Planes that are worked on at once.
    fn at_once(&self, plane: usize) -> usize {
        (ROUND / plane.max(1)).clamp(8, 8.max(self.count))
    }
}

/// Planes of a task.
fn grain(work: usize) -> usize {
    (32 * 1024 / work.max(1)).max(1)
}

struct Reduction<T, O> {
    op: ReduceWindow,
    rows: Rows<T, O>,
    expand: Expand<T>,
}

impl<T: Plain + Less + Default, O: Narrowed<T>> Kernel for Reduction<T, O> {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let op = &self.op;
        let attributes = Attributes {
            window: &op.window,
            strides: &op.strides,
            dilations: &op.dilations,
            padding: &op.padding,
        };
        let planes = Planes::new(&attributes, &cx.operands[0], &cx.results[0].dims, cx.bindings)?;
        let expanded = planes.geometry.expanded();
        Ok(Box::new(BoundReduction {
            windows: planes.geometry.in_expanded(&expanded),
            at_once: planes.at_once(expanded.plane),
            one: Line::new(1),
            rows: self.rows,
            expand: self.expand,
            planes,
            expanded,
        }))
    }
}

struct BoundReduction<T, O> {
    planes: Planes,
    expanded: Expanded,
    windows: Windows,
    at_once: usize,
    one: Line,
    rows: Rows<T, O>,
    expand: Expand<T>,
}

/// Memory that tasks write parts of their own of.
struct Slots<T>(*mut T);
// SAFETY: each slot is used by one task at a time.
unsafe impl<T> Sync for Slots<T> {}

impl<T: Plain + Less + Default, O: Narrowed<T>> BoundReduction<T, O> {
    fn slot(&self) -> usize {
        self.expanded.plane + LANES
    }
}

impl<T: Plain + Less + Default, O: Narrowed<T>> Bound for BoundReduction<T, O> {
    fn scratch(&self) -> usize {
        self.at_once * self.slot() * size_of::<T>()
    }

    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let (x, padding, out) = (arguments.operand(0), arguments.operand(1), arguments.result(0));
        if out.layout().count() == 0 {
            return Ok(());
        }
        let g = &self.planes.geometry;
        let (positions, row) = (g.positions(), g.axes[g.axes.len() - 1].output);
        let padding = self.one.only(&padding, self.expand);
        let filling = Filling { padding, zero_point: T::default() };
        let slots = Slots(cx.scratch.cast::<T>());
        let slots = &slots;
        let this = &*self;
        for first in (0..this.planes.count).step_by(this.at_once) {
            let count = this.at_once.min(this.planes.count - first);
            cx.pool.for_ranges(
                count,
                grain(this.expanded.plane + positions * this.windows.taps.len()),
                |range| {
                    for slot in range {
                        let plane = first + slot;
                        let at = this.planes.first.at(plane) * width(x.dtype()) as isize;
                        // SAFETY: the slot is this task's; the geometry is that of the operand.
                        unsafe {
                            let memory =
                                std::slice::from_raw_parts_mut(slots.0.add(slot * this.slot()), this.slot());
                            let (memory, behind) = memory.split_at_mut(this.expanded.plane);
                            behind.fill(T::default());
                            (this.expand)(
                                g,
                                &this.expanded,
                                x.pointer().wrapping_offset(at),
                                memory,
                                filling,
                            );
                            let out = out.slice_at::<O>(plane * positions, positions);
                            (this.rows)(slots.0.add(slot * this.slot()), &this.windows, row, out);
                        }
                    }
                },
            );
        }
        Ok(())
    }
}

/// What a plane's gradient is computed from.
struct GradientPlane<'a> {
    geometry: &'a Geometry,
    op: WindowGradOp,
    plane: usize,
}

struct Gradient {
    op: ReduceWindowGrad,
    plane: fn(&GradientPlane<'_>, &In<'_>, &In<'_>, &Out<'_>, *mut u8),
}

impl Kernel for Gradient {
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let op = &self.op;
        let attributes = Attributes {
            window: &op.window,
            strides: &op.strides,
            dilations: &op.dilations,
            padding: &op.padding,
        };
        let planes = Planes::new(&attributes, &cx.operands[0], &cx.operands[1].dims, cx.bindings)?;
        let elements: usize = planes.geometry.axes.iter().map(|a| a.input).product();
        Ok(Box::new(BoundGradient {
            op: op.op,
            at_once: planes.at_once(elements),
            planes,
            elements,
            plane: self.plane,
        }))
    }
}

struct BoundGradient {
    op: WindowGradOp,
    planes: Planes,
    elements: usize,
    at_once: usize,
    plane: fn(&GradientPlane<'_>, &In<'_>, &In<'_>, &Out<'_>, *mut u8),
}

impl Bound for BoundGradient {
    fn scratch(&self) -> usize {
        // Sums are at most 8 bytes.
        self.at_once * self.elements * 8
    }

    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let (x, dy, out) = (arguments.operand(0), arguments.operand(1), arguments.result(0));
        let slots = Slots(cx.scratch);
        let slots = &slots;
        let this = &*self;
        let g = &this.planes.geometry;
        for first in (0..this.planes.count).step_by(this.at_once) {
            let count = this.at_once.min(this.planes.count - first);
            cx.pool.for_ranges(count, grain(this.elements + g.positions() * g.taps()), |range| {
                for slot in range {
                    let plane = GradientPlane { geometry: g, op: this.op, plane: first + slot };
                    let sums = slots.0.wrapping_add(slot * this.elements * 8);
                    (this.plane)(&plane, &x, &dy, &out, sums);
                }
            });
        }
        Ok(())
    }
}

/// Numbers that gradients are summed in.
trait Carrier<T>: Narrowed<T> {
    fn carried(self) -> T;
}

macro_rules! carriers {
    ($($from:ty => $to:ty),*) => {$(
        impl Carrier<$to> for $from {
            fn carried(self) -> $to {
                self.into()
            }
        }
    )*};
}
carriers!(f64 => f64, f32 => f32, f16 => f32, bf16 => f32);

/// Adds each window's element of dy to the first extreme element of the window; operands are packed.
fn gradient<T, E>(p: &GradientPlane<'_>, x: &In<'_>, dy: &In<'_>, out: &Out<'_>, sums: *mut u8)
where
    T: Plain + Default + PartialOrd + std::ops::Add<Output = T>,
    E: Carrier<T>,
{
    let axes = &p.geometry.axes;
    let (positions, elements) = (p.geometry.positions(), axes.iter().map(|a| a.input).product::<usize>());
    let x = &x.slice::<E>()[p.plane * elements..][..elements];
    let dy = &dy.slice::<E>()[p.plane * positions..][..positions];
    if elements == 0 {
        return;
    }
    // SAFETY: a slot holds `elements` sums of at most 8 bytes, aligned, for this task alone.
    let sums = unsafe { std::slice::from_raw_parts_mut(sums.cast::<T>(), elements) };
    sums.fill(T::default());
    let is_nan = |x: T| x.partial_cmp(&x).is_none();
    for (position, dy) in dy.iter().enumerate() {
        let mut best: Option<(usize, T)> = None;
        for tap in 0..p.geometry.taps() {
            let Some(at) = element(axes, position, tap) else { continue };
            let new = x[at].carried();
            let better = best.is_none_or(|(_, old)| {
                let extreme = match p.op {
                    WindowGradOp::Max => new > old,
                    WindowGradOp::Min => new < old,
                };
                extreme || (is_nan(new) && !is_nan(old))
            });
            if better {
                best = Some((at, new));
            }
        }
        if let Some((at, _)) = best {
            sums[at] = sums[at] + dy.carried();
        }
    }
    let out = out.slice_at::<E>(p.plane * elements, elements);
    for (to, sum) in out.iter_mut().zip(sums) {
        *to = E::narrowed(*sum);
    }
}

/// The element that a window reaches through a tap; `None` in the padding.
fn element(axes: &[Axis], mut position: usize, mut tap: usize) -> Option<usize> {
    let (mut at, mut step) = (0usize, 1usize);
    for axis in axes.iter().rev() {
        let (o, k) = (position % axis.output, tap % axis.kernel);
        position /= axis.output;
        tap /= axis.kernel;
        let i = (o * axis.stride + k * axis.rhs_dilation) as isize - axis.low;
        if !(0..axis.input as isize).contains(&i) {
            return None;
        }
        at += i as usize * step;
        step *= axis.input;
    }
    Some(at)
}
