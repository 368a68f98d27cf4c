//! Placing by best fit.

use super::{Limits, Plan, Request};

/// The most that a plan may exceed the lower bound by before other orders are tried, in percent.
const ENOUGH: usize = 1;

/// The most comparisons of two requests that repairing an order may take: about ten milliseconds.
const REPAIR_COMPARISONS: usize = 4_000_000;

/// The most rounds of repair.
const REPAIR_ROUNDS: usize = 200;

/// A request that no buffer of the target can hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes are needed in one piece; a buffer holds {largest}")]
pub struct TooLarge {
    /// The bytes needed.
    pub bytes: usize,
    /// The most that a buffer holds.
    pub largest: usize,
}

/// Places `requests` in an arena: by several orders of best fit until one is near the lower bound; if none is, the orders
/// are repaired for a while. The smallest counts.
///
/// # Errors
/// If a request is larger than a buffer of the target may be.
pub fn place(requests: &[Request], limits: &Limits) -> Result<Plan, TooLarge> {
    if let Some(request) = requests.iter().find(|r| limits.aligned(r.bytes) > limits.largest) {
        return Err(TooLarge { bytes: request.bytes, largest: limits.largest });
    }
    let placing = Placing { requests, limits, lower_bound: lower_bound(requests, limits) };
    let mut best: Option<Plan> = None;
    let mut orders = Vec::with_capacity(ORDERS.len());
    for order in ORDERS {
        let mut indices: Vec<usize> = (0..requests.len()).filter(|i| requests[*i].bytes > 0).collect();
        indices.sort_by_key(|i| (order(&requests[*i]), *i));
        let plan = placing.in_order(&indices);
        let near = placing.is_near(&plan);
        orders.push((indices, plan.clone()));
        if best.as_ref().is_none_or(|b| plan.peak < b.peak) {
            best = Some(plan);
        }
        if near {
            return Ok(best.unwrap_or_default());
        }
    }
    let comparisons = requests.len().saturating_mul(requests.len()).max(1);
    let rounds = (REPAIR_COMPARISONS / comparisons).min(REPAIR_ROUNDS) / ORDERS.len();
    for (order, plan) in orders {
        let repaired = placing.repaired(order, plan, rounds);
        if best.as_ref().is_none_or(|b| repaired.peak < b.peak) {
            best = Some(repaired);
        }
        if best.as_ref().is_some_and(|b| placing.is_near(b)) {
            break;
        }
    }
    Ok(best.unwrap_or_default())
}

type Order = fn(&Request) -> (usize, usize);

/// Least first.
const ORDERS: [Order; 4] = [
    // The largest first, and of equal ones the longest lived.
    |r| (usize::MAX - r.bytes, usize::MAX - (r.last - r.first)),
    // The largest area first.
    |r| (usize::MAX - r.bytes.saturating_mul((r.last - r.first).saturating_add(1)), r.first),
    // The longest lived first.
    |r| (usize::MAX - (r.last - r.first), usize::MAX - r.bytes),
    // In the order of time.
    |r| (r.first, usize::MAX - r.bytes),
];

/// The largest sum of sizes that are live at one moment.
fn lower_bound(requests: &[Request], limits: &Limits) -> usize {
    let mut events: Vec<(usize, isize)> = Vec::with_capacity(requests.len() * 2);
    for r in requests {
        let bytes = limits.aligned(r.bytes) as isize;
        events.push((r.first, bytes));
        events.push((r.last.saturating_add(1), -bytes));
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

struct Placing<'a> {
    requests: &'a [Request],
    limits: &'a Limits,
    lower_bound: usize,
}

impl Placing<'_> {
    /// Each request, in this order, goes to the smallest gap that holds it between those placed that live at its time;
    /// of equal gaps to the lowest; where no gap holds it, behind the last.
    fn in_order(&self, order: &[usize]) -> Plan {
        let mut offsets = vec![0; self.requests.len()];
        // Placed requests by offset.
        let mut placed: Vec<(usize, usize)> = Vec::with_capacity(order.len());
        let mut peak = 0;
        for index in order {
            let request = &self.requests[*index];
            let bytes = self.limits.aligned(request.bytes);
            let (mut end, mut best) = (0usize, None::<(usize, usize)>);
            for (offset, other) in &placed {
                let other = &self.requests[*other];
                if !request.overlaps(other) {
                    continue;
                }
                let start = self.start(end, bytes);
                if *offset >= start.saturating_add(bytes) {
                    let gap = offset - end;
                    if best.is_none_or(|(smallest, _)| gap < smallest) {
                        best = Some((gap, start));
                    }
                }
                end = end.max(offset + self.limits.aligned(other.bytes));
            }
            let offset = best.map_or_else(|| self.start(end, bytes), |(_, at)| at);
            offsets[*index] = offset;
            peak = peak.max(offset + bytes);
            let position = placed.partition_point(|p| *p < (offset, *index));
            placed.insert(position, (offset, *index));
        }
        Plan { offsets, peak, lower_bound: self.lower_bound }
    }

    /// Whether no other order is worth the time.
    fn is_near(&self, plan: &Plan) -> bool {
        plan.peak <= self.lower_bound + self.lower_bound / 100 * ENOUGH
    }

    /// The best plan of some rounds, each of which lets those that stick out highest go first.
    fn repaired(&self, mut order: Vec<usize>, mut plan: Plan, rounds: usize) -> Plan {
        let mut best = plan.clone();
        for _ in 0..rounds {
            let highest =
                |i: &usize| plan.offsets[*i] + self.limits.aligned(self.requests[*i].bytes) == plan.peak;
            let (mut first, rest): (Vec<usize>, Vec<usize>) = order.iter().partition(|i| highest(i));
            first.extend(rest);
            if first == order {
                break;
            }
            order = first;
            plan = self.in_order(&order);
            if plan.peak < best.peak {
                best = plan.clone();
            }
            if self.is_near(&best) {
                break;
            }
        }
        best
    }

    /// The first place from `end` on where `bytes` cross no end of a buffer.
    fn start(&self, end: usize, bytes: usize) -> usize {
        let room = self.limits.largest - end % self.limits.largest;
        if bytes <= room { end } else { end + room }
    }
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
        let plan = place(&[request(64, 0, 1), request(64, 2, 3), request(64, 1, 2)], &Limits::HOST).unwrap();
        assert_eq!((plan.peak, plan.lower_bound), (128, 128));
    }

    #[test]
    fn what_no_buffer_holds_is_refused_and_what_two_hold_is_split() {
        let small = Limits { align: 256, largest: 1024 };
        assert_eq!(place(&[request(1025, 0, 1)], &small), Err(TooLarge { bytes: 1025, largest: 1024 }));
        let plan = place(&[request(768, 0, 1), request(768, 0, 1)], &small).unwrap();
        assert_eq!(plan.offsets, [0, 1024]);
        assert_eq!(plan.buffers(&small), [1024, 768]);
    }

    #[test]
    fn nothing_needs_nothing() {
        assert_eq!(place(&[], &Limits::HOST), Ok(Plan::default()));
        assert_eq!(place(&[request(0, 0, 5)], &Limits::HOST).unwrap().peak, 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn random_schedules_are_placed_without_overlap(
            raw in prop::collection::vec((0usize..5000, 0usize..60, 0usize..20), 0..80)
        ) {
            let requests: Vec<Request> =
                raw.into_iter().map(|(bytes, first, span)| request(bytes, first, first + span)).collect();
            let plan = place(&requests, &Limits::HOST).unwrap();
            prop_assert_eq!(check(&requests, &plan, &Limits::HOST), Ok(()));
            prop_assert!(plan.peak >= plan.lower_bound);
            // A device with small buffers and coarse offsets.
            let small = Limits { align: 256, largest: 8192 };
            let plan = place(&requests, &small).unwrap();
            prop_assert_eq!(check(&requests, &plan, &small), Ok(()));
            prop_assert!(plan.buffers(&small).iter().all(|bytes| *bytes <= small.largest));
        }
    }
}
