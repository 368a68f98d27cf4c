//! Sampling of images at coordinates and regions, and images from columns.

use rlx_ir::op::arrange::CenterCropPad;
use rlx_ir::op::region::{RoiAlign, RoiAlignMode};
use rlx_ir::op::resize::Interpolation;
use rlx_ir::op::unfold::Col2im;
use rlx_ir::op::vision::{AffineGrid, GridSample, Outside};
use rlx_ir::{DType, Dim};

use super::window;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("AffineGrid", &[20], affine_grid),
    onnx("CenterCropPad", &[18], center_crop_pad),
    onnx("Col2Im", &[18], col2im),
    onnx("GridSample", &[16, 20, 22], grid_sample),
    onnx("RoiAlign", &[10, 16, 22], roi_align),
];

fn affine_grid(cx: &mut NodeContext<'_, '_>) -> Handled {
    let theta = cx.input(0)?;
    let size = cx.dims(1, "grid")?;
    let align_corners = cx.flag("align_corners", false)?;
    if size.len() < 3 {
        return Err(cx.bad_input(1, "number of sizes", "4 or 5", size.len()));
    }
    let (sizes, batch) = (size[2..].to_vec(), size[0].clone());
    let b = cx.builder();
    // The batch is given twice; a broadcast checks that both agree.
    let mut dims = b.shape(theta).to_vec();
    if let Some(first) = dims.first_mut() {
        *first = batch;
    }
    let theta = b.broadcast_to(theta, &dims)?;
    Ok(b.push1(AffineGrid { sizes, align_corners }, &[theta])?.into())
}

fn center_crop_pad(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let sizes = cx.dims(1, "cropped")?;
    let rank = cx.rank(x);
    let axes = match cx.ints("axes")? {
        Some(axes) => axes.iter().map(|a| cx.axis(*a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    if axes.len() != sizes.len() {
        return Err(cx.bad_input(1, "number of sizes", axes.len(), sizes.len()));
    }
    let mut each: Vec<(usize, Dim)> = axes.into_iter().zip(sizes).collect();
    each.sort_by_key(|(axis, _)| *axis);
    let (axes, sizes) = each.into_iter().unzip();
    Ok(cx.builder().push1(CenterCropPad { axes, sizes }, &[x])?.into())
}

fn col2im(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let (dims, window) = (cx.dims(1, "image")?, cx.dims(2, "block")?);
    let spatial = dims.len();
    if window.len() != spatial {
        return Err(cx.bad_input(2, "number of sizes", spatial, window.len()));
    }
    let op = Col2im {
        strides: window::list(cx, "strides", spatial, 1, 1)?,
        dilations: window::list(cx, "dilations", spatial, 1, 1)?,
        padding: window::pads(cx, spatial)?,
        dims,
        window,
    };
    Ok(cx.builder().push1(op, &[x])?.into())
}

/// Integers are sampled in f32 (those of more than 16 bits in f64), and truncated at the end.
fn grid_sample(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, grid) = (cx.input(0)?, cx.input(1)?);
    let mode = match cx.string("mode", "linear")?.as_str() {
        "linear" | "bilinear" => Interpolation::Linear,
        "nearest" => Interpolation::Nearest,
        "cubic" | "bicubic" => Interpolation::Cubic,
        other => return Err(cx.bad_attribute("mode", "linear, nearest or cubic", other)),
    };
    let outside = cx.string("padding_mode", "zeros")?;
    let outside = Outside::from_name(&outside)
        .ok_or_else(|| cx.bad_attribute("padding_mode", "zeros, border or reflection", outside))?;
    let align_corners = cx.flag("align_corners", false)?;
    let op = GridSample { mode, outside, align_corners, neighbours_only: false };
    let b = cx.builder();
    let dtype = b.dtype(x);
    let sampled = match dtype {
        float if float.is_float() => float,
        wide if wide.bits().is_some_and(|bits| bits > 16) => DType::F64,
        _ => DType::F32,
    };
    let x = b.cast(x, sampled)?;
    let y = b.push1(op, &[x, grid])?;
    Ok(b.cast(y, dtype)?.into())
}

/// Before opset 16 regions are not shifted.
fn roi_align(cx: &mut NodeContext<'_, '_>) -> Handled {
    let operands = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let default = if cx.since() < 16 { "output_half_pixel" } else { "half_pixel" };
    let half_pixel = match cx.string("coordinate_transformation_mode", default)?.as_str() {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => {
            let expected = "half_pixel or output_half_pixel";
            return Err(cx.bad_attribute("coordinate_transformation_mode", expected, other));
        }
    };
    let mode = cx.string("mode", "avg")?;
    let mode = RoiAlignMode::from_name(&mode).ok_or_else(|| cx.bad_attribute("mode", "avg or max", mode))?;
    let op = RoiAlign {
        height: cx.int("output_height", 1)?.into(),
        width: cx.int("output_width", 1)?.into(),
        sampling_ratio: cx.int("sampling_ratio", 0)?,
        spatial_scale: cx.float("spatial_scale", 1.0)?.into(),
        half_pixel,
        mode,
    };
    Ok(cx.builder().push1(op, &operands)?.into())
}
