//! The attributes that place windows over the spatial axes of `[n, c, s…]`: convolutions and pools have them alike.

use rlx_ir::Dim;

use crate::error::NodeProblem;
use crate::node::NodeContext;

/// Where windows lie, one entry a spatial axis.
pub(super) struct Windows {
    /// Distance of windows.
    pub(super) strides: Vec<i64>,
    /// Distance of neighbours in a window.
    pub(super) dilations: Vec<i64>,
    /// Elements added before and after.
    pub(super) padding: Vec<(Dim, Dim)>,
    /// Whether the padding is explicit; else `auto_pad` chose it.
    pub(super) explicit: bool,
}

/// How padding is found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AutoPad {
    /// It is given.
    NotSet,
    /// As much as keeps size / stride, an odd rest at the end.
    SameUpper,
    /// The same, an odd rest at the beginning.
    SameLower,
    /// None.
    Valid,
}

/// The attribute `auto_pad`.
pub(super) fn auto_pad(cx: &NodeContext<'_, '_>) -> Result<AutoPad, NodeProblem> {
    match cx.string("auto_pad", "NOTSET")?.as_str() {
        "" | "NOTSET" => Ok(AutoPad::NotSet),
        "SAME_UPPER" => Ok(AutoPad::SameUpper),
        "SAME_LOWER" => Ok(AutoPad::SameLower),
        "VALID" => Ok(AutoPad::Valid),
        other => Err(cx.bad_attribute("auto_pad", "NOTSET, SAME_UPPER, SAME_LOWER or VALID", other)),
    }
}

/// A list with one integer, at least `least`, for each of `count` entries; `default` each where it is absent.
pub(super) fn list(
    cx: &NodeContext<'_, '_>,
    name: &str,
    count: usize,
    least: i64,
    default: i64,
) -> Result<Vec<i64>, NodeProblem> {
    let list = match cx.ints(name)? {
        None => return Ok(vec![default; count]),
        Some(list) => list,
    };
    if list.len() != count || list.iter().any(|n| *n < least) {
        return Err(cx.bad_attribute(
            name,
            format!("{count} integers of at least {least}"),
            format!("{list:?}"),
        ));
    }
    Ok(list)
}

/// The attribute `pads`: all beginnings, then all ends.
pub(super) fn pads(cx: &NodeContext<'_, '_>, spatial: usize) -> Result<Vec<(Dim, Dim)>, NodeProblem> {
    let pads = list(cx, "pads", 2 * spatial, 0, 0)?;
    Ok((0..spatial).map(|i| (pads[i].into(), pads[spatial + i].into())).collect())
}

/// Padding of this sum, split as the attribute says.
pub(super) fn split_padding(total: &Dim, auto: AutoPad) -> (Dim, Dim) {
    let half = total.floor_div(&Dim::constant(2));
    let rest = total - &half;
    if auto == AutoPad::SameUpper { (half, rest) } else { (rest, half) }
}

/// The windows of this size over spatial axes of these sizes.
pub(super) fn windows(
    cx: &NodeContext<'_, '_>,
    sizes: &[Dim],
    window: &[Dim],
) -> Result<Windows, NodeProblem> {
    let spatial = sizes.len();
    let strides = list(cx, "strides", spatial, 1, 1)?;
    let dilations = list(cx, "dilations", spatial, 1, 1)?;
    let auto = auto_pad(cx)?;
    let padding = match auto {
        AutoPad::NotSet => pads(cx, spatial)?,
        AutoPad::Valid => vec![(Dim::ZERO, Dim::ZERO); spatial],
        AutoPad::SameUpper | AutoPad::SameLower => (0..spatial)
            .map(|i| {
                let reach = (&window[i] - 1) * dilations[i] + 1;
                let count = sizes[i].ceil_div(&strides[i].into());
                let total = (count - 1) * strides[i] + reach - &sizes[i];
                split_padding(&total.max(&Dim::ZERO), auto)
            })
            .collect(),
    };
    Ok(Windows { strides, dilations, padding, explicit: auto == AutoPad::NotSet })
}

/// The spatial sizes of input 0, which has a batch axis and a channel axis before them.
pub(super) fn spatial_sizes(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Dim>, NodeProblem> {
    let x = cx.input(0)?;
    let dims = cx.shape(x);
    if dims.rank() < 2 {
        return Err(cx.bad_input(0, "number of axes", "at least 2", dims.rank()));
    }
    Ok(dims[2..].to_vec())
}

/// The required attribute `kernel_shape`, one size of at least 1 for each spatial axis.
pub(super) fn kernel_shape(cx: &NodeContext<'_, '_>, spatial: usize) -> Result<Vec<Dim>, NodeProblem> {
    if cx.attribute("kernel_shape").is_none() {
        return Err(NodeProblem::MissingAttribute { name: "kernel_shape".to_owned() });
    }
    Ok(list(cx, "kernel_shape", spatial, 1, 1)?.into_iter().map(Dim::constant).collect())
}
