//! Pools: the elements of windows, or of whole channels, combined into one.

use rlx_ir::op::average_pool::AveragePool;
use rlx_ir::op::pool::{GlobalLpPool, GlobalPool, GlobalPoolOp, LpPool, MaxPool, MaxUnpool, StorageOrder};
use rlx_ir::op::region::MaxRoiPool;
use rlx_ir::{DType, Dim, Op};

use super::window;
use crate::error::NodeProblem;
use crate::node::NodeContext;
use crate::registry::{Handled, Operator, onnx};

/// The operators of this family.
pub(crate) const OPERATORS: &[Operator] = &[
    onnx("AveragePool", &[7, 10, 11, 19, 22], average_pool),
    onnx("GlobalAveragePool", &[1, 22], |cx| of_first(cx, GlobalPool { op: GlobalPoolOp::Average })),
    onnx("GlobalLpPool", &[2, 22], global_lp_pool),
    onnx("GlobalMaxPool", &[1, 22], |cx| of_first(cx, GlobalPool { op: GlobalPoolOp::Max })),
    onnx("LpPool", &[2, 11, 18, 22], lp_pool),
    onnx("MaxPool", &[1, 8, 10, 11, 12, 22], max_pool),
    onnx("MaxRoiPool", &[1, 22], max_roi_pool),
    onnx("MaxUnpool", &[9, 11, 22], max_unpool),
];

fn of_first(cx: &mut NodeContext<'_, '_>, op: impl Into<Op>) -> Handled {
    let x = cx.input(0)?;
    Ok(cx.builder().push1(op, &[x])?.into())
}

/// Windows of a pool.
struct Pool {
    window: Vec<Dim>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    padding: Vec<(Dim, Dim)>,
    ceil_mode: bool,
}

/// With `auto_pad` the number of windows is that without ceil mode, whatever the attribute says: SAME already rounds up,
/// and what VALID leaves over never holds a window, ⌈(size − reach + 1) / stride⌉ being ⌊(size − reach) / stride⌋ + 1.
/// onnxruntime deviates: with VALID and ceil mode it adds a window that reaches over the end.
fn pool(cx: &mut NodeContext<'_, '_>) -> Result<Pool, NodeProblem> {
    let sizes = window::spatial_sizes(cx)?;
    let kernel = window::kernel_shape(cx, sizes.len())?;
    let windows = window::windows(cx, &sizes, &kernel)?;
    Ok(Pool {
        window: kernel,
        strides: windows.strides,
        dilations: windows.dilations,
        padding: windows.padding,
        ceil_mode: windows.explicit && cx.flag("ceil_mode", false)?,
    })
}

fn average_pool(cx: &mut NodeContext<'_, '_>) -> Handled {
    let Pool { window, strides, dilations, padding, ceil_mode } = pool(cx)?;
    let count_include_pad = cx.flag("count_include_pad", false)?;
    of_first(cx, AveragePool { window, strides, dilations, padding, ceil_mode, count_include_pad })
}

fn max_pool(cx: &mut NodeContext<'_, '_>) -> Handled {
    let x = cx.input(0)?;
    let Pool { window, strides, dilations, padding, ceil_mode } = pool(cx)?;
    let order = match cx.int("storage_order", 0)? {
        0 => StorageOrder::RowMajor,
        1 => StorageOrder::ColumnMajor,
        other => return Err(cx.bad_attribute("storage_order", "0 or 1", other)),
    };
    let indices = cx.wanted(1).then_some(order);
    let op = MaxPool { window, strides, dilations, padding, ceil_mode, indices };
    Ok(cx.builder().push(op, &[x])?.into_iter().collect())
}

/// The attribute `p`, an integer in schemas from opset 2 on.
fn exponent(cx: &NodeContext<'_, '_>) -> Result<f64, NodeProblem> {
    match cx.int("p", 2)? {
        p if p >= 1 => Ok(p as f64),
        p => Err(cx.bad_attribute("p", "at least 1", p)),
    }
}

fn lp_pool(cx: &mut NodeContext<'_, '_>) -> Handled {
    let Pool { window, strides, dilations, padding, ceil_mode } = pool(cx)?;
    let p = exponent(cx)?.into();
    of_first(cx, LpPool { p, window, strides, dilations, padding, ceil_mode })
}

fn global_lp_pool(cx: &mut NodeContext<'_, '_>) -> Handled {
    let p = exponent(cx)?.into();
    of_first(cx, GlobalLpPool { p })
}

/// Indices count in the sizes that the pool's attributes give; an explicit larger shape adds zeros at the ends.
fn max_unpool(cx: &mut NodeContext<'_, '_>) -> Handled {
    let (x, indices) = (cx.input(0)?, cx.input(1)?);
    let sizes = window::spatial_sizes(cx)?;
    let kernel = window::kernel_shape(cx, sizes.len())?;
    let strides = window::list(cx, "strides", sizes.len(), 1, 1)?;
    let padding = window::pads(cx, sizes.len())?;
    let mut dims = cx.shape(x)[..2].to_vec();
    for (i, size) in sizes.iter().enumerate() {
        let (low, high) = &padding[i];
        dims.push((size - 1) * strides[i] + &kernel[i] - low - high);
    }
    let asked = if cx.has(2) { Some(cx.dims(2, "unpooled")?) } else { None };
    let b = cx.builder();
    let indices = b.cast(indices, DType::I64)?;
    let y = b.push1(MaxUnpool { dims: dims.clone() }, &[x, indices])?;
    let Some(asked) = asked.filter(|asked| *asked != dims) else { return Ok(y.into()) };
    if asked.len() != dims.len() {
        return Err(cx.bad_input(2, "number of sizes", dims.len(), asked.len()));
    }
    let high: Vec<Dim> = asked.iter().zip(&dims).map(|(asked, own)| asked - own).collect();
    Ok(b.pad(y, &vec![Dim::ZERO; dims.len()], &high, 0.0)?.into())
}

fn max_roi_pool(cx: &mut NodeContext<'_, '_>) -> Handled {
    let operands = [cx.input(0)?, cx.input(1)?];
    let shape = cx.ints("pooled_shape")?;
    let shape = shape.ok_or_else(|| NodeProblem::MissingAttribute { name: "pooled_shape".to_owned() })?;
    let [height, width] = shape[..] else {
        return Err(cx.bad_attribute("pooled_shape", "height and width", format!("{shape:?}")));
    };
    let spatial_scale = cx.float("spatial_scale", 1.0)?.into();
    let op = MaxRoiPool { height: height.into(), width: width.into(), spatial_scale };
    Ok(cx.builder().push1(op, &operands)?.into())
}
