//! Convolutions: plain, transposed and deformable.

use rlx_ir::op::contract::Conv;
use rlx_ir::op::convolution::{ConvBias, ConvTranspose};
use rlx_ir::op::vision::DeformConv;
use rlx_ir::{Dim, Value};

use super::window::{self, AutoPad};
use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("Conv", &[1, 11, 22], conv),
    onnx("ConvTranspose", &[1, 11, 22], conv_transpose),
    onnx("DeformConv", &[19, 22], deform_conv),
];

fn conv(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, w, bias) = (cx.input(0)?, cx.input(1)?, cx.optional(2)?);
    Ok(convolved(cx, x, w, bias)?.into())
}

/// The convolution of x \[n, c, s…\] with w \[o, c/group, k…\] plus a bias \[o\], placed by the node's attributes.
pub(super) fn convolved(
    cx: &mut NodeContext<'_, '_>,
    x: Value,
    w: Value,
    bias: Option<Value>,
) -> Result<Value, NodeProblem> {
    let (dims, kernel) = (cx.shape(x), kernel_sizes(cx, x, w)?);
    let windows = window::windows(cx, &dims[2..], &kernel)?;
    let groups = positive(cx, "group")?;
    let b = cx.builder();
    Ok(match bias {
        None => b.push1(
            Conv {
                lhs_dilation: vec![1; kernel.len()],
                strides: windows.strides,
                padding: windows.padding,
                rhs_dilation: windows.dilations,
                groups,
                accum: None,
                out: None,
            },
            &[x, w],
        )?,
        Some(bias) => b.push1(
            ConvBias {
                strides: windows.strides,
                padding: windows.padding,
                dilations: windows.dilations,
                groups,
            },
            &[x, w, bias],
        )?,
    })
}

/// The spatial sizes of the kernel w, which must have as many axes as x and be of the attribute's sizes, if there is one.
pub(super) fn kernel_sizes(
    cx: &mut NodeContext<'_, '_>,
    x: Value,
    w: Value,
) -> Result<Vec<Dim>, NodeProblem> {
    let (dims, kernel) = (cx.shape(x), cx.shape(w));
    if dims.rank() < 2 {
        return Err(cx.bad_input(0, "number of axes", "at least 2", dims.rank()));
    }
    if kernel.rank() != dims.rank() {
        return Err(cx.bad_input(1, "number of axes", dims.rank(), kernel.rank()));
    }
    let kernel = kernel[2..].to_vec();
    if let Some(named) = cx.ints("kernel_shape")? {
        let differs = |(named, own): (&i64, &Dim)| own.as_const().is_some_and(|own| own != *named);
        if named.len() != kernel.len() || named.iter().zip(&kernel).any(differs) {
            return Err(cx.bad_attribute("kernel_shape", format!("{kernel:?}"), format!("{named:?}")));
        }
    }
    Ok(kernel)
}

/// An integer attribute that counts something: at least 1, which is also the default.
pub(super) fn positive(cx: &NodeContext<'_, '_>, name: &str) -> Result<usize, NodeProblem> {
    let count = cx.int(name, 1)?;
    let size = usize::try_from(count).ok().filter(|n| *n >= 1);
    size.ok_or_else(|| cx.bad_attribute(name, "at least 1", count))
}

/// The size of the result decides the padding where it is given, or where `auto_pad` makes it size · stride.
fn conv_transpose(cx: &mut NodeContext<'_, '_>) -> Handled {
    let mut operands = vec![cx.input(0)?, cx.input(1)?];
    let kernel = kernel_sizes(cx, operands[0], operands[1])?;
    operands.extend(cx.optional(2)?);
    let spatial = kernel.len();
    let sizes = cx.shape(operands[0])[2..].to_vec();
    let strides = window::list(cx, "strides", spatial, 1, 1)?;
    let dilations = window::list(cx, "dilations", spatial, 1, 1)?;
    let extra = window::list(cx, "output_padding", spatial, 0, 0)?;
    let mut output_padding: Vec<Dim> = extra.into_iter().map(Dim::constant).collect();
    let auto = window::auto_pad(cx)?;
    let groups = positive(cx, "group")?;
    let wanted: Option<Vec<Dim>> = match (cx.ints("output_shape")?, auto) {
        (Some(shape), _) => Some(output_shape(cx, shape, spatial)?),
        (None, AutoPad::SameUpper | AutoPad::SameLower) => {
            Some(sizes.iter().zip(&strides).map(|(size, stride)| size * *stride).collect())
        }
        (None, AutoPad::NotSet | AutoPad::Valid) => None,
    };
    let padding = match wanted {
        None if auto == AutoPad::Valid => vec![(Dim::ZERO, Dim::ZERO); spatial],
        None => window::pads(cx, spatial)?,
        Some(wanted) => (0..spatial)
            .map(|i| {
                let reach = (&kernel[i] - 1) * dilations[i] + 1;
                let full = (&sizes[i] - 1) * strides[i] + reach + &output_padding[i];
                let total = &full - &wanted[i];
                // Where even no padding gives less than is wanted, the rest is added at the end.
                output_padding[i] = &output_padding[i] + (-total.clone()).max(&Dim::ZERO);
                window::split_padding(&total.max(&Dim::ZERO), auto)
            })
            .collect(),
    };
    let op = ConvTranspose { strides, padding, output_padding, dilations, groups };
    Ok(cx.builder().push1(op, &operands)?.into())
}

/// The attribute's spatial sizes; some writers put batch and channels before them.
fn output_shape(cx: &NodeContext<'_, '_>, shape: Vec<i64>, spatial: usize) -> Result<Vec<Dim>, NodeProblem> {
    let skipped = shape.len().checked_sub(spatial).filter(|n| matches!(n, 0 | 2));
    match skipped {
        Some(skipped) if shape.iter().all(|n| *n >= 0) => {
            Ok(shape[skipped..].iter().map(|n| Dim::constant(*n)).collect())
        }
        _ => Err(cx.bad_attribute("output_shape", format!("{spatial} sizes"), format!("{shape:?}"))),
    }
}

fn deform_conv(cx: &mut NodeContext<'_, '_>) -> Handled {
    let mut operands = vec![cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let (bias, mask) = (cx.optional(3)?, cx.optional(4)?);
    let kernel = kernel_sizes(cx, operands[0], operands[1])?;
    let spatial = kernel.len();
    let op = DeformConv {
        strides: window::list(cx, "strides", spatial, 1, 1)?,
        padding: window::pads(cx, spatial)?,
        dilations: window::list(cx, "dilations", spatial, 1, 1)?,
        groups: positive(cx, "group")?,
        offset_groups: positive(cx, "offset_group")?,
        bias: bias.is_some(),
        mask: mask.is_some(),
    };
    operands.extend(bias.into_iter().chain(mask));
    Ok(cx.builder().push1(op, &operands)?.into())
}
