//! Convolutions as products: the kernel's channels are rows, the windows are columns that are gathered block by block
//! into the panels of the product, never written out whole. Channels that do not mix have their own loops.
//!
//! Where windows leave the input, or elements have another type, each image is first expanded: converted, its gaps and
//! padding filled in. After that no window needs a test.
#![allow(unsafe_code)]

pub mod bytes;
pub mod columns;
pub mod depthwise;
pub mod expand;
pub mod geometry;

use crate::array::{In, Out, width};
use crate::error::RunError;
use crate::kernel::{Arguments, BindContext, Bound, Kernel, RunContext};
use crate::kernels::gemm::finish::{Finish, Stored, Wrap};
use crate::kernels::gemm::panels::{Fill, Left, MOST_LANES, Offsets, Panels, Right, Source, Strided, Takes};
use crate::kernels::gemm::product::{Operand, Product, Sums};
use crate::kernels::gemm::{Arithmetic, Shared, Types, direct, unsupported, with_arithmetic};
use crate::load::PrepareContext;
use bytes::{Line, ZeroPoints};
use columns::Columns;
use expand::{Expand, Expands, Filling, Less};
use geometry::{Expanded, Geometry, Windows};
use rlx_eval::Fault;
use rlx_ir::op::contract::Conv;
use rlx_ir::{Composite, DType, Op, Primitive, TensorType};
use rlx_opt::program::Layout;
use std::marker::PhantomData;
use std::ops::Range;

fn types_of(op: &Conv, operands: &[&TensorType]) -> Option<Types> {
    Types::new(operands.first()?.dtype, op.accum, op.out)
}

/// Why a convolution runs here; `None` if it does not.
pub(crate) fn route(op: &Conv, operands: &[&TensorType]) -> Option<String> {
    let types = types_of(op, operands)?;
    let one = rlx_ir::Dim::ONE;
    let apart = operands.get(1).is_some_and(|w| w.shape.get(1) == Some(&one));
    Some(match types.arithmetic {
        Arithmetic::F32 if apart && operands[1].dtype == DType::F32 => "channels apart, f32 sums".into(),
        Arithmetic::F32 => "windows as columns of a blocked product, f32 sums".into(),
        Arithmetic::F64 => "windows as columns of a blocked product, f64 sums".into(),
        _ => "windows as columns of a blocked product of integers, which wraps".into(),
    })
}

/// Why a convolution of bytes runs here; `None` if it does not.
pub(crate) fn route_bytes(operands: &[&TensorType]) -> Option<String> {
    bytes::supports(operands).then(|| "windows as columns of a blocked product of bytes, exact in i32".into())
}

/// The kernel of a convolution.
pub(crate) fn prepare(op: &Op, cx: &PrepareContext<'_>) -> Result<Box<dyn Kernel>, RunError> {
    let operands: Vec<&TensorType> = cx.step.operand_types.iter().collect();
    match op {
        Op::Primitive(Primitive::Conv(conv)) => {
            let types = types_of(conv, &operands).ok_or_else(|| unsupported(op, "these types"))?;
            with_arithmetic!(types.arithmetic, prepare_as(op, conv, types, None, cx))
        }
        Op::Composite(Composite::ConvInteger(conv)) => {
            let (points, types) = (Some(ZeroPoints::of(conv)), Types::bytes());
            with_arithmetic!(types.arithmetic, prepare_as(op, &bytes::as_conv(conv), types, points, cx))
        }
        _ => Err(unsupported(op, "no convolution")),
    }
}

fn prepare_as<G: Takes>(
    op: &Op,
    conv: &Conv,
    types: Types,
    points: Option<ZeroPoints>,
    cx: &PrepareContext<'_>,
) -> Result<Box<dyn Kernel>, RunError>
where
    G::Sum: Stored,
    G::Element: Expands + Less,
{
    let [dtype, kernel_dtype] = [0, 1].map(|i| cx.step.operand_types[i].dtype);
    let functions = (
        G::fill_of::<Left>(kernel_dtype),
        G::fill_of::<Right>(dtype),
        G::Element::expand_of(dtype),
        G::Sum::finish_of(types.out),
    );
    let (Some(kernel_fill), Some(input_fill), Some(expand), Some(finish)) = functions else {
        return Err(unsupported(op, &dtype.to_string()));
    };
    Ok(Box::new(Convolution::<G> {
        op: conv.clone(),
        panels: match points {
            Some(points) => byte_panels::<G>(conv, points, cx)?,
            None => constant_panels::<G>(conv, kernel_fill, cx)?,
        },
        points,
        functions: Functions { kernel_fill, input_fill, expand, finish },
        wrap: types.wrap,
        direct: direct::<G>(types),
        apart: types.arithmetic == Arithmetic::F32 && dtype == DType::F32,
    }))
}

/// The panels of a constant kernel, one matrix a group.
fn constant_panels<G: Takes>(
    op: &Conv,
    fill: Fill<G>,
    cx: &PrepareContext<'_>,
) -> Result<Option<Shared<G>>, RunError> {
    let Some(view) = cx.constant_view(1) else { return Ok(None) };
    let Some(dims) = view.dims.iter().copied().collect::<Option<Vec<usize>>>() else { return Ok(None) };
    let dtype = cx.step.operand_types[1].dtype;
    let layout = Layout { dtype, dims: dims.as_slice().into(), strides: view.strides.as_slice().into() };
    let mut source = kernel_matrices::<G>(&layout, op.groups, 1, fill);
    source.pointer = view.pointer;
    let name = format!("{} conv {dtype} {} {dims:?} {} {:?}", G::NAME, op.groups, view.offset, view.strides);
    let (rows, depth) = (dims[0] / op.groups, dims[1..].iter().product());
    let make = || {
        let panels = Panels::new::<Left>(&source, op.groups, rows, depth)?;
        let bytes = panels.bytes();
        Ok((panels, bytes))
    };
    cx.store.packed(&view.source, &name, make).map(Some)
}

/// The panels of a constant kernel of bytes.
fn byte_panels<G: Takes>(
    op: &Conv,
    points: ZeroPoints,
    cx: &PrepareContext<'_>,
) -> Result<Option<Shared<G>>, RunError>
where
    G::Element: Expands + Less,
{
    let (Some(kernel), Some(source)) = (bytes::constant(points, cx), cx.constant(1)) else { return Ok(None) };
    let name = format!("{} conv {} {} less {:?}", G::NAME, kernel.dtype, op.groups, kernel.zero_points);
    let (rows, depth) = (kernel.rows / op.groups, kernel.count() / kernel.rows.max(1));
    let make = || {
        let mut wide = vec![G::Element::default(); kernel.count()];
        kernel.widened(&mut wide, [&Line::new(1), &Line::new(depth)]);
        let matrices = WideKernel::<G> { first: wide.as_ptr(), groups: op.groups, rows, depth };
        let panels = Panels::new::<Left>(&matrices, op.groups, rows, depth)?;
        let bytes = panels.bytes();
        Ok((panels, bytes))
    };
    cx.store.packed(source, &name, make).map(Some)
}

/// A kernel of elements as panels hold them, row after row.
struct WideKernel<G: Takes> {
    first: *const G::Element,
    groups: usize,
    rows: usize,
    depth: usize,
}

// SAFETY: the elements are only read.
unsafe impl<G: Takes> Sync for WideKernel<G> {}

impl<G: Takes> Source<G> for WideKernel<G> {
    unsafe fn fill(&self, batch: usize, lanes: Range<usize>, depth: Range<usize>, panels: *mut G::Element) {
        let length = depth.len().next_multiple_of(G::GROUP);
        for row in lanes.clone() {
            let at = row - lanes.start;
            let panel = panels.wrapping_add(at / G::ROWS * G::ROWS * length);
            for i in 0..length {
                let place = i / G::GROUP * G::ROWS * G::GROUP + at % G::ROWS * G::GROUP + i % G::GROUP;
                // SAFETY: an element of the kernel to a place in its panel.
                unsafe {
                    let element = if i < depth.len() {
                        *self
                            .first
                            .add((batch % self.groups * self.rows + row) * self.depth + depth.start + i)
                    } else {
                        G::Element::default()
                    };
                    *panel.add(place) = element;
                }
            }
        }
    }
}

/// A kernel as left matrices, one a group, the same for all images.
fn kernel_matrices<G: Takes>(w: &Layout, groups: usize, images: usize, fill: Fill<G>) -> Strided<G, Left> {
    let group = (w.dims[0] / groups.max(1)) as isize * w.strides[0];
    Strided {
        pointer: std::ptr::null(),
        width: width(w.dtype),
        batch: Offsets::new(&[images, groups], &[0, group]),
        free: Offsets::Even(w.strides[0]),
        depth: Offsets::new(&w.dims[1..], &w.strides[1..]),
        fill,
        side: PhantomData,
    }
}

struct Functions<G: Takes> {
    kernel_fill: Fill<G>,
    input_fill: Fill<G>,
    expand: Expand<G::Element>,
    finish: Finish<G::Sum>,
}

impl<G: Takes> Clone for Functions<G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G: Takes> Copy for Functions<G> {}

struct Convolution<G: Takes> {
    op: Conv,
    /// The zero points of bytes.
    points: Option<ZeroPoints>,
    panels: Option<Shared<G>>,
    functions: Functions<G>,
    wrap: Wrap,
    /// Whether sums are written straight to the result.
    direct: bool,
    /// Whether channels that do not mix have their own loops.
    apart: bool,
}

/// The most elements of images that are expanded at once.
const EXPANDED: usize = 4 << 20;

/// Elements that a task expands.
const EXPAND_GRAIN: usize = 32 * 1024;

impl<G: Takes> Kernel for Convolution<G>
where
    G::Sum: Stored,
    G::Element: Expands + Less,
{
    fn bind(&self, cx: &BindContext<'_>) -> Result<Box<dyn Bound>, Fault> {
        let (x, w) = (&cx.operands[0], &cx.operands[1]);
        let geometry = Geometry::new(&self.op, x, w, &cx.results[0], cx.bindings)?;
        let apart = self.apart && geometry.group_in == 1 && self.direct && w.is_packed();
        let same = width(x.dtype) == size_of::<G::Element>();
        let input = if !apart && same && self.points.is_none() && geometry.is_plain() {
            let windows = geometry.in_place();
            let columns = Strided {
                pointer: std::ptr::null(),
                width: width(x.dtype),
                batch: windows.batch(geometry.images, geometry.groups),
                free: windows.positions,
                depth: windows.depth,
                fill: self.functions.input_fill,
                side: PhantomData,
            };
            Input::InPlace { first: windows.first * width(x.dtype) as isize, columns }
        } else {
            let expanded = geometry.expanded();
            let image = (expanded.plane * geometry.channels).max(1);
            let at_once = (EXPANDED / image).clamp(1, geometry.images.max(1));
            Input::Expanded { windows: geometry.in_expanded(&expanded), expanded, at_once }
        };
        let at_once = match &input {
            Input::InPlace { .. } => geometry.images,
            Input::Expanded { at_once, .. } => *at_once,
        };
        Ok(Box::new(BoundConvolution::<G> {
            points: self.points,
            lines: [1, geometry.group_in * geometry.taps()].map(Line::new),
            panels: self.panels.clone(),
            kernel: kernel_matrices(w, geometry.groups, at_once.max(1), self.functions.kernel_fill),
            functions: self.functions,
            wrap: self.wrap,
            direct: self.direct,
            apart: apart.then(depthwise::function),
            geometry,
            input,
        }))
    }
}

enum Input<G: Takes> {
    /// From the operand's first element to the first window's, in bytes, and the windows.
    InPlace { first: isize, columns: Strided<G, Right> },
    /// Images are expanded, some at once.
    Expanded { expanded: Expanded, windows: Windows, at_once: usize },
}

struct BoundConvolution<G: Takes> {
    points: Option<ZeroPoints>,
    /// One element, and those of a channel of the kernel.
    lines: [Line; 2],
    panels: Option<Shared<G>>,
    kernel: Strided<G, Left>,
    functions: Functions<G>,
    wrap: Wrap,
    direct: bool,
    apart: Option<depthwise::Function>,
    geometry: Geometry,
    input: Input<G>,
}

impl<G: Takes> Bound for BoundConvolution<G>
where
    G::Sum: Stored,
    G::Element: Expands + Less,
{
    fn scratch(&self) -> usize {
        match &self.input {
            Input::InPlace { .. } => 0,
            Input::Expanded { expanded, at_once, .. } => {
                // Channels apart have free lanes behind each.
                let between = if self.apart.is_some() { MOST_LANES } else { 0 };
                let images = at_once * self.geometry.channels * (expanded.plane + between) + MOST_LANES;
                (images + self.wide_kernel()) * size_of::<G::Element>()
            }
        }
    }

    fn run(&mut self, cx: &RunContext<'_>, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let (x, w, out) = (arguments.operand(0), arguments.operand(1), arguments.result(0));
        self.kernel.pointer = w.pointer();
        if let Input::InPlace { first, columns } = &mut self.input {
            columns.pointer = x.pointer().wrapping_offset(*first);
        }
        let g = &self.geometry;
        if out.layout().count() == 0 {
            return Ok(());
        }
        match &self.input {
            Input::InPlace { columns, .. } => self.product(cx, columns, None, (0, g.images), &out),
            Input::Expanded { expanded, windows, at_once } => {
                let to = cx.scratch.cast::<G::Element>();
                let zero_point = match self.points.and_then(|points| points.input) {
                    Some(i) => self.lines[0].only(&arguments.operand(i), self.functions.expand),
                    None => G::Element::default(),
                };
                let filling = Filling { padding: G::Element::default(), zero_point };
                let wide = self
                    .widen(arguments, to.wrapping_add(at_once * g.channels * expanded.plane + MOST_LANES));
                for first in (0..g.images).step_by(*at_once) {
                    let images = (*at_once).min(g.images - first);
                    match self.apart {
                        Some(function) => {
                            let input = (expanded, windows);
                            self.channels_apart(cx, input, function, (first, images), (&x, &w, &out));
                        }
                        None => {
                            self.expand(cx, &x, expanded, filling, (first, images), to);
                            let columns = Columns::<G> {
                                first: to,
                                groups: g.groups,
                                image: windows.image,
                                group: windows.group,
                                positions: &windows.positions,
                                depth: &windows.depth,
                            };
                            self.product(cx, &columns, wide.as_ref(), (first, images), &out);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl<G: Takes> BoundConvolution<G>
where
    G::Sum: Stored,
    G::Element: Expands + Less,
{
    /// Elements of a kernel of bytes that is widened on each run.
    fn wide_kernel(&self) -> usize {
        let g = &self.geometry;
        let widened = self.points.is_some() && self.panels.is_none();
        if widened { g.groups * g.group_out * g.group_in * g.taps() } else { 0 }
    }

    /// The kernel of bytes less its zero points, if that is to be done on each run.
    fn widen(&self, arguments: &Arguments<'_>, to: *mut G::Element) -> Option<WideKernel<G>> {
        let points = self.points.filter(|_| self.panels.is_none())?;
        let g = &self.geometry;
        let (w, points) = (arguments.operand(1), points.kernel.map(|i| arguments.operand(i)));
        let kernel = bytes::Kernel {
            elements: w.bytes(),
            dtype: w.dtype(),
            zero_points: points.map_or(&[], |points| points.bytes()),
            rows: g.groups * g.group_out,
        };
        // SAFETY: the scratch has room for the kernel behind the images.
        let wide = unsafe { std::slice::from_raw_parts_mut(to, self.wide_kernel()) };
        kernel.widened(wide, [&self.lines[0], &self.lines[1]]);
        Some(WideKernel { first: to, groups: g.groups, rows: g.group_out, depth: g.group_in * g.taps() })
    }

    fn expand(
        &self,
        cx: &RunContext<'_>,
        x: &In<'_>,
        expanded: &Expanded,
        filling: Filling<G::Element>,
        (first, images): (usize, usize),
        to: *mut G::Element,
    ) {
        let g = &self.geometry;
        let channels = images * g.channels;
        let memory = Channels { from: x.pointer(), to };
        let memory = &memory;
        let grain = (EXPAND_GRAIN / expanded.plane.max(1)).max(1);
        cx.pool.for_ranges(channels, grain, move |range| {
            for index in range {
                let (image, channel) = (first + index / g.channels, index % g.channels);
                let at = image as isize * g.image_stride + channel as isize * g.channel_stride;
                let from = memory.from.wrapping_offset(at * width(x.dtype()) as isize);
                // SAFETY: the geometry is that of the operand; the scratch holds the expanded images, and each channel
                // is filled by one task.
                unsafe {
                    let to =
                        std::slice::from_raw_parts_mut(memory.to.add(index * expanded.plane), expanded.plane);
                    (self.functions.expand)(g, expanded, from, to, filling);
                }
            }
        });
        // SAFETY: behind the images is room for the lanes that may be read there.
        unsafe { std::slice::from_raw_parts_mut(to.add(channels * expanded.plane), MOST_LANES) }
            .fill(G::Element::default());
    }

    /// The product for `images` images from `first` on.
    fn product(
        &self,
        cx: &RunContext<'_>,
        columns: &dyn Source<G>,
        wide: Option<&WideKernel<G>>,
        (first, images): (usize, usize),
        out: &Out<'_>,
    ) {
        let g = &self.geometry;
        let place = first * g.groups * g.group_out * g.positions();
        let finish = |sums: &[G::Sum], at: usize| (self.functions.finish)(sums, out, place + at, self.wrap);
        let sums = if self.direct {
            Sums::To(out.pointer().cast::<G::Sum>().wrapping_add(place))
        } else {
            Sums::Through(&finish)
        };
        let lhs = match (&self.panels, wide) {
            (Some(panels), _) => Operand::Panels(panels.value.view().repeated(g.groups)),
            (None, Some(wide)) => Operand::Source(wide as &dyn Source<G>),
            (None, None) => Operand::Source(&self.kernel as &dyn Source<G>),
        };
        Product::<G> {
            batch: images * g.groups,
            rows: g.group_out,
            columns: g.positions(),
            depth: g.group_in * g.taps(),
            lhs,
            rhs: Operand::Source(columns),
            sums,
            tiles: G::tiles(),
        }
        .run(cx.pool);
    }

    /// Channels that do not mix, of `images` images from `first` on: each is expanded and, while it is in cache, seen
    /// through its kernels.
    fn channels_apart(
        &self,
        cx: &RunContext<'_>,
        (expanded, windows): (&Expanded, &Windows),
        function: depthwise::Function,
        (first, images): (usize, usize),
        (x, w, out): (&In<'_>, &In<'_>, &Out<'_>),
    ) {
        let g = &self.geometry;
        let (taps, positions) = (g.taps(), g.positions());
        let kernel = w.slice::<f32>();
        let row = g.axes[g.axes.len() - 1].output;
        let memory = Channels { from: x.pointer(), to: cx.scratch.cast::<G::Element>() };
        let memory = &memory;
        let filling = Filling { padding: G::Element::default(), zero_point: G::Element::default() };
        let slot = expanded.plane + MOST_LANES;
        let work = expanded.plane + g.group_out * positions * taps / 4;
        let grain = (EXPAND_GRAIN / work.max(1)).max(1);
        cx.pool.for_ranges(images * g.channels, grain, move |range| {
            for index in range {
                let (image, group) = (first + index / g.channels, index % g.channels);
                let at = image as isize * g.image_stride + group as isize * g.channel_stride;
                let from = memory.from.wrapping_offset(at * width(x.dtype()) as isize);
                let input = memory.to.wrapping_add(index * slot);
                // SAFETY: the geometry is that of the operand; the slot is this task's.
                unsafe {
                    let channel = std::slice::from_raw_parts_mut(input, slot);
                    let (channel, behind) = channel.split_at_mut(expanded.plane);
                    behind.fill(G::Element::default());
                    (self.functions.expand)(g, expanded, from, channel, filling);
                }
                for o in group * g.group_out..(group + 1) * g.group_out {
                    let taps = &kernel[o * taps..][..taps];
                    let channel = depthwise::Channel { input: input.cast::<f32>(), windows, taps, row };
                    let place = (image * g.groups * g.group_out + o) * positions;
                    // SAFETY: the windows are those of the expanded channel, behind which lanes are free; the elements
                    // are f32 where channels are apart.
                    unsafe { function(&channel, out.slice_at::<f32>(place, positions)) }
                }
            }
        });
    }
}

/// The channels of an operand and of the scratch.
struct Channels<E> {
    from: *const u8,
    to: *mut E,
}
// SAFETY: the operand is only read; tasks write channels of their own.
unsafe impl<E> Sync for Channels<E> {}
