//! Resize and its predecessor Upsample.

use rlx_ir::op::Real;
use rlx_ir::op::elementwise::UnaryOp;
use rlx_ir::op::resize::{Coordinates, Interpolation, NearestRounding, Resize};
use rlx_ir::{DType, Dim, Value};

use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Resize", &[10, 11, 13, 18, 19], resize),
    // Deprecated in opset 10 without another meaning.
    onnx("Upsample", &[7, 9, 10], upsample),
];

/// What becomes of one axis.
struct AxisSize {
    axis: usize,
    size: Dim,
    /// Absent: result / operand.
    scale: Option<f64>,
}

fn upsample(cx: &mut NodeContext<'_, '_>) -> Handled {
    let scales = match cx.floats("scales")? {
        Some(scales) => scales,
        None if cx.since() < 9 => return Err(NodeProblem::MissingAttribute { name: "scales".to_owned() }),
        None => cx.constant_floats(1, "the sizes")?,
    };
    by_scale_alone(cx, scales)
}

/// The first form of Resize: coordinates are index / scale, and the nearest element is the one before when an axis grows,
/// the one after when it shrinks.
fn by_scale_alone(cx: &mut NodeContext<'_, '_>, scales: Vec<f64>) -> Handled {
    let mut x = cx.input(0)?;
    let mode = mode(cx)?;
    let rank = cx.rank(x);
    let axes = scaled(cx, x, (0..rank).collect(), scales)?;
    let (shrinking, growing): (Vec<_>, Vec<_>) =
        axes.into_iter().partition(|a| a.scale.is_some_and(|scale| scale < 1.0));
    for (axes, rounding) in [(shrinking, NearestRounding::Ceil), (growing, NearestRounding::Floor)] {
        let op = Resize { coordinates: Coordinates::Asymmetric, rounding, ..of_axes(axes, mode) };
        x = resized(cx, x, op, None)?;
    }
    Ok(x.into())
}

fn mode(cx: &NodeContext<'_, '_>) -> Result<Interpolation, NodeProblem> {
    match cx.string("mode", "nearest")?.as_str() {
        "nearest" => Ok(Interpolation::Nearest),
        "linear" | "bilinear" => Ok(Interpolation::Linear),
        "cubic" if cx.since() >= 11 => Ok(Interpolation::Cubic),
        other => Err(cx.bad_attribute("mode", "nearest, linear or (since opset 11) cubic", other)),
    }
}

fn coordinates(cx: &NodeContext<'_, '_>) -> Result<Coordinates, NodeProblem> {
    match cx.string("coordinate_transformation_mode", "half_pixel")?.as_str() {
        "half_pixel" => Ok(Coordinates::HalfPixel),
        "half_pixel_symmetric" => Ok(Coordinates::HalfPixelSymmetric),
        "pytorch_half_pixel" => Ok(Coordinates::PytorchHalfPixel),
        "align_corners" => Ok(Coordinates::AlignCorners),
        "asymmetric" => Ok(Coordinates::Asymmetric),
        "tf_half_pixel_for_nn" => Ok(Coordinates::HalfPixelForNearest),
        "tf_crop_and_resize" => Ok(Coordinates::CropAndResize),
        other => Err(cx.bad_attribute("coordinate_transformation_mode", "a mode of Resize", other)),
    }
}

fn rounding(cx: &NodeContext<'_, '_>) -> Result<NearestRounding, NodeProblem> {
    let name = cx.string("nearest_mode", "round_prefer_floor")?;
    NearestRounding::from_name(&name).ok_or_else(|| {
        cx.bad_attribute("nearest_mode", "round_prefer_floor, round_prefer_ceil, floor or ceil", name)
    })
}

/// The axes of a resize, in increasing order.
fn of_axes(mut axes: Vec<AxisSize>, mode: Interpolation) -> Resize {
    axes.sort_by_key(|a| a.axis);
    let scales = if axes.iter().all(|a| a.scale.is_some()) {
        axes.iter().filter_map(|a| a.scale).map(Real::new).collect()
    } else {
        Vec::new()
    };
    let (axes, sizes) = axes.into_iter().map(|a| (a.axis, a.size)).unzip();
    Resize { scales, ..Resize::new(axes, sizes, mode) }
}

/// Truth values, which only the nearest mode takes, travel as bytes.
fn resized(
    cx: &mut NodeContext<'_, '_>,
    x: Value,
    op: Resize,
    region: Option<Value>,
) -> Result<Value, NodeProblem> {
    let nearest = op.mode == Interpolation::Nearest;
    let b = cx.builder();
    let dtype = b.dtype(x);
    let mut operands = vec![if dtype == DType::Bool && nearest { b.cast(x, DType::U8)? } else { x }];
    operands.extend(region);
    let y = b.push1(op, &operands)?;
    Ok(b.cast(y, dtype)?)
}

fn resize(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    if cx.since() < 11 {
        let scales = cx.constant_floats(1, "the sizes")?;
        return by_scale_alone(cx, scales);
    }
    let (mode, coordinates) = (mode(cx)?, coordinates(cx)?);
    let rank = cx.rank(x);
    let axes = match cx.ints("axes")? {
        Some(axes) => axes.iter().map(|a| cx.axis(*a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    let crops = coordinates == Coordinates::CropAndResize;
    let region = if crops { Some(region(cx, &axes)?) } else { None };
    let sizes = match (non_empty(cx, 2)?, non_empty(cx, 3)?) {
        (false, false) => return Err(NodeProblem::MissingInput { operand: 2 }),
        (true, true) => {
            return Err(NodeProblem::Unsupported("Resize with both scales and sizes".to_owned()));
        }
        (true, false) if crops => {
            // The specification multiplies the region's extent in, implementations do not.
            return Err(NodeProblem::Unsupported("tf_crop_and_resize with scales; give sizes".to_owned()));
        }
        (true, false) => {
            let scales = cx.constant_floats(2, "the sizes")?;
            scaled(cx, x, axes, scales)?
        }
        (false, true) => sized(cx, x, axes)?,
    };
    let interpolates = mode != Interpolation::Nearest;
    let op = Resize {
        coordinates,
        rounding: rounding(cx)?,
        cubic_coefficient: cx.float("cubic_coeff_a", -0.75)?.into(),
        exclude_outside: interpolates && cx.flag("exclude_outside", false)?,
        antialias: interpolates && cx.flag("antialias", false)?,
        extrapolation: cx.float("extrapolation_value", 0.0)?.into(),
        ..of_axes(sizes, mode)
    };
    Ok(resized(cx, x, op, region)?.into())
}

/// Whether input `i` is there with elements: before opset 13 an input that is not meant is an empty tensor.
fn non_empty(cx: &mut NodeContext<'_, '_>, i: usize) -> Result<bool, NodeProblem> {
    let Some(value) = cx.optional(i)? else { return Ok(false) };
    Ok(cx.shape(value).first().and_then(Dim::as_const) != Some(0))
}

/// The region of interest: starts, then ends, in increasing order of axes.
fn region(cx: &mut NodeContext<'_, '_>, axes: &[usize]) -> Result<Value, NodeProblem> {
    let roi = cx.input(1)?;
    let mut order: Vec<usize> = (0..axes.len()).collect();
    order.sort_by_key(|i| axes[*i]);
    let b = cx.builder();
    let roi = if b.dtype(roi) == DType::F64 { roi } else { b.cast(roi, DType::F32)? };
    if order.is_sorted() {
        return Ok(roi);
    }
    let ends = order.iter().map(|i| i + axes.len());
    let places: Vec<i64> = order.iter().copied().chain(ends).map(|i| i as i64).collect();
    let places = b.vector(&places);
    Ok(b.take(roi, places, 0)?)
}

fn one_each(
    cx: &NodeContext<'_, '_>,
    operand: usize,
    axes: &[usize],
    found: usize,
) -> Result<(), NodeProblem> {
    if found == axes.len() {
        return Ok(());
    }
    Err(cx.bad_input(operand, "number of elements", axes.len(), found))
}

/// ⌊size · scale⌋ of each axis.
fn scaled(
    cx: &mut NodeContext<'_, '_>,
    x: Value,
    axes: Vec<usize>,
    scales: Vec<f64>,
) -> Result<Vec<AxisSize>, NodeProblem> {
    one_each(cx, if cx.since() < 11 { 1 } else { 2 }, &axes, scales.len())?;
    let dims = cx.shape(x);
    axes.into_iter()
        .zip(scales)
        .map(|(axis, scale)| {
            if !(scale > 0.0 && scale.is_finite()) {
                return Err(cx.bad_input(2, "scale", "above 0", scale));
            }
            let size = scaled_size(cx, &dims[axis], scale as f32)?;
            Ok(AxisSize { axis, size, scale: Some(scale) })
        })
        .collect()
}

/// ⌊size · scale⌋, the product rounded to f32 as in ONNX's own shape inference.
fn scaled_size(cx: &mut NodeContext<'_, '_>, size: &Dim, scale: f32) -> Result<Dim, NodeProblem> {
    /// A scale of n / DENOMINATOR with n this small has exact products with all sizes up to 2¹⁶.
    const DENOMINATOR: i64 = 16;
    const GREATEST: f32 = 256.0;
    if let Some(size) = size.as_const() {
        return Ok(Dim::constant((size as f32 * scale).floor() as i64));
    }
    let parts = scale * DENOMINATOR as f32;
    if parts.fract() == 0.0 && parts <= GREATEST {
        let product = size * (parts as i64);
        let denominator = Dim::constant(DENOMINATOR);
        return Ok(product.exact_div(&denominator).unwrap_or_else(|| product.floor_div(&denominator)));
    }
    let b = cx.builder();
    let size = b.dim_as(size, DType::F32)?;
    let product = b.mul_scalar(size, f64::from(scale))?;
    let floor = b.unary(UnaryOp::Floor, product)?;
    let floor = b.cast(floor, DType::I64)?;
    Ok(b.bind_dim(floor, "resized", 0)?)
}

/// The sizes asked for, or (where they are known at import) those nearest that keep the ratios of the axes.
fn sized(cx: &mut NodeContext<'_, '_>, x: Value, axes: Vec<usize>) -> Result<Vec<AxisSize>, NodeProblem> {
    let policy = cx.string("keep_aspect_ratio_policy", "stretch")?;
    let choose: fn(f64, f64) -> f64 = match policy.as_str() {
        "stretch" => {
            let sizes = cx.dims(3, "resized")?;
            one_each(cx, 3, &axes, sizes.len())?;
            let each = axes.into_iter().zip(sizes);
            return Ok(each.map(|(axis, size)| AxisSize { axis, size, scale: None }).collect());
        }
        "not_larger" => f64::min,
        "not_smaller" => f64::max,
        other => {
            let expected = "stretch, not_larger or not_smaller";
            return Err(cx.bad_attribute("keep_aspect_ratio_policy", expected, other));
        }
    };
    let sizes = cx.constant_ints(3, "the scale that all axes share")?;
    one_each(cx, 3, &axes, sizes.len())?;
    let dims = cx.shape(x);
    let from = axes.iter().map(|axis| dims[*axis].as_const());
    let Some(from) = from.collect::<Option<Vec<i64>>>() else {
        let what = format!("keep_aspect_ratio_policy {policy} of the sizes {dims}, of which some are open");
        return Err(NodeProblem::Unsupported(what));
    };
    let ratios = sizes.iter().zip(&from).map(|(to, from)| *to as f64 / *from as f64);
    let Some(scale) = ratios.reduce(choose).filter(|scale| *scale > 0.0 && scale.is_finite()) else {
        return Err(cx.bad_input(3, "sizes", "above 0, of axes above 0", format!("{sizes:?}")));
    };
    let each = axes.into_iter().zip(from);
    Ok(each
        .map(|(axis, from)| {
            let size = (scale * from as f64 + 0.5).floor() as i64;
            AxisSize { axis, size: size.into(), scale: Some(scale) }
        })
        .collect())
}
