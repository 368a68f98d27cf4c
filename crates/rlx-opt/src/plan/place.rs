//! Placing by best fit.

use super::{Plan, Request};

/// The most that a plan may exceed the lower bound by before other orders are tried, in percent.
const ENOUGH: usize = 1;

/// Places `requests` in an arena: by several orders of best fit until one is near the lower bound; the smallest counts.
pub fn place(requests: &[Request]) -> Plan {
    let lower_bound = lower_bound(requests);
    let mut best: Option<Plan> = None;
    for order in ORDERS {
        let mut indices: Vec<usize> = (0..requests.len()).filter(|i| requests[*i].bytes > 0).collect();
        indices.sort_by_key(|i| (order(&requests[*i]), *i));
        let plan = in_order(requests, &indices, lower_bound);
        let near = plan.peak <= lower_bound + lower_bound / 100 * ENOUGH;
        if best.as_ref().is_none_or(|b| plan.peak < b.peak) {
            best = Some(plan);
        }
        if near {
            break;
        }
    }
    best.unwrap_or_default()
}

type Order = fn(&Request) -> (usize, usize);

/// Least first.
const ORDERS: [Order; 4] = [
    // The largest first, and of equal ones the longest lived.
    |r| (usize::MAX - r.aligned(), usize::MAX - (r.last - r.first)),
    // The largest area first.
    |r| (usize::MAX - r.aligned().saturating_mul(r.last - r.first + 1), r.first),
    // The longest lived first.
    |r| (usize::MAX - (r.last - r.first), usize::MAX - r.aligned()),
    // In the order of time.
    |r| (r.first, usize::MAX - r.aligned()),
];

/// The largest sum of sizes that are live at one moment.
fn lower_bound(requests: &[Request]) -> usize {
    let mut events: Vec<(usize, isize)> = Vec::with_capacity(requests.len() * 2);
    for r in requests {
        events.push((r.first, r.aligned() as isize));
        events.push((r.last.saturating_add(1), -(r.aligned() as isize)));
    }
    // What ends at a moment ends before what begins there.
    events.sort_unstable();
    let (mut live, mut most) = (0isize, 0isize);
    for (_, change) in events {
        live += change;
        most = most.max(live);
    }
    most as usize
}

/// Each request, in this order, goes to the smallest gap that holds it between those placed that live at its time; of
/// equal gaps to the lowest; where no gap holds it, behind the last.
fn in_order(requests: &[Request], order: &[usize], lower_bound: usize) -> Plan {
    let mut offsets = vec![0; requests.len()];
    // Placed requests by offset.
    let mut placed: Vec<(usize, usize)> = Vec::with_capacity(order.len());
    let mut peak = 0;
    for index in order {
        let request = &requests[*index];
        let bytes = request.aligned();
        let (mut end, mut best) = (0usize, None::<(usize, usize)>);
        for (offset, other) in &placed {
            let other = &requests[*other];
            if !request.overlaps(other) {
                continue;
            }
            if *offset > end {
                let gap = offset - end;
                if gap >= bytes && best.is_none_or(|(smallest, _)| gap < smallest) {
                    best = Some((gap, end));
                }
            }
            end = end.max(offset + other.aligned());
        }
        let offset = best.map_or(end, |(_, at)| at);
        offsets[*index] = offset;
        peak = peak.max(offset + bytes);
        let position = placed.partition_point(|p| *p < (offset, *index));
        placed.insert(position, (offset, *index));
    }
    Plan { offsets, peak, lower_bound }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::check;
    use proptest::prelude::*;

    fn request(bytes: usize, first: usize, last: usize) -> Request {
        Request { bytes, first, last }
    }

    #[test]
    fn what_never_lives_together_shares_bytes() {
        let plan = place(&[request(64, 0, 1), request(64, 2, 3), request(64, 1, 2)]);
        assert_eq!((plan.peak, plan.lower_bound), (128, 128));
    }

    #[test]
    fn nothing_needs_nothing() {
        assert_eq!(place(&[]), Plan::default());
        assert_eq!(place(&[request(0, 0, 5)]).peak, 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn random_schedules_are_placed_without_overlap(
            raw in prop::collection::vec((0usize..5000, 0usize..60, 0usize..20), 0..80)
        ) {
            let requests: Vec<Request> =
                raw.into_iter().map(|(bytes, first, span)| request(bytes, first, first + span)).collect();
            let plan = place(&requests);
            prop_assert_eq!(check(&requests, &plan), Ok(()));
            prop_assert!(plan.peak >= plan.lower_bound);
        }
    }
}
