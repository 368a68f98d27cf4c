//! Lists of axes in the attributes of composites, and operands that broadcast.

use super::Axis;
use crate::dim::Dim;
use crate::error::TypeError;
use crate::infer::Infer;

/// The axes counted from the front, increasing. `label`: each is an axis of `rank`, and none occurs twice.
pub(crate) fn resolve_axes(
    cx: &Infer<'_>,
    label: &'static str,
    axes: &[Axis],
    rank: usize,
) -> Result<Vec<usize>, TypeError> {
    let mut all = axes.iter().map(|a| a.resolve(cx, label, rank)).collect::<Result<Vec<_>, _>>()?;
    all.sort_unstable();
    let distinct = all.windows(2).all(|pair| pair[0] != pair[1]);
    cx.ensure(distinct, label, None, "an axis occurs twice", "distinct axes", format!("{axes:?}"))?;
    Ok(all)
}

/// The axes counted from the front, increasing; for decompositions, whose type rule has accepted them.
pub(crate) fn axes_of_rank(axes: &[Axis], rank: usize) -> Vec<usize> {
    let mut all: Vec<usize> = axes.iter().filter_map(|a| a.of_rank(rank)).collect();
    all.sort_unstable();
    all
}

/// `label`: operand `i`, aligned at the last axis, broadcasts to these sizes.
pub(crate) fn broadcasts_to(
    cx: &Infer<'_>,
    label: &'static str,
    i: usize,
    dims: &[Dim],
) -> Result<(), TypeError> {
    let t = cx.operand(i)?;
    let Some(added) = dims.len().checked_sub(t.rank()) else {
        return Err(cx.error(label, Some(i), "number of axes", format!("at most {}", dims.len()), t.rank()));
    };
    for (from, to) in t.shape.iter().zip(&dims[added..]).filter(|(from, _)| from.as_const() != Some(1)) {
        // A known size above 1 must be the target's: bcast(3, n) is 3 whatever n is.
        let both = if from.as_const().is_some() { from.clone() } else { from.bcast(to) };
        cx.equal(label, Some(i), "size does not broadcast", to, &both)?;
    }
    Ok(())
}
