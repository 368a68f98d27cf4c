//! The independent check of a plan.

use super::{Limits, Plan, Request};

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanFault {
    /// Not one offset for each request.
    #[error("{requests} requests have {offsets} offsets")]
    Count {
        /// Requests.
        requests: usize,
        /// Offsets.
        offsets: usize,
    },
    /// An offset between the units.
    #[error("request {request} lies at {offset}, which is no multiple of {align}")]
    Unaligned {
        /// Which.
        request: usize,
        /// Where.
        offset: usize,
        /// What it should be a multiple of.
        align: usize,
    },
    /// A request that begins in one buffer of the device and ends in another.
    #[error("request {request} crosses the end of a buffer of {largest} bytes")]
    Crossing {
        /// Which.
        request: usize,
        /// The size of a buffer.
        largest: usize,
    },
    /// A request that ends beyond the arena.
    #[error("request {request} ends at {end}, the arena at {peak}")]
    Outside {
        /// Which.
        request: usize,
        /// Its end.
        end: usize,
        /// The arena's end.
        peak: usize,
    },
    /// Two requests that are live together and share bytes.
    #[error("requests {first} and {second} are live together and share bytes")]
    Shared {
        /// One.
        first: usize,
        /// The other.
        second: usize,
    },
}

/// Finds a fault of `plan`, by comparing all pairs.
///
/// # Errors
/// The first fault.
pub fn check(requests: &[Request], plan: &Plan, limits: &Limits) -> Result<(), PlanFault> {
    if requests.len() != plan.offsets.len() {
        return Err(PlanFault::Count { requests: requests.len(), offsets: plan.offsets.len() });
    }
    for (i, (request, offset)) in requests.iter().zip(&plan.offsets).enumerate() {
        if offset % limits.align != 0 {
            return Err(PlanFault::Unaligned { request: i, offset: *offset, align: limits.align });
        }
        if request.bytes > 0 && offset / limits.largest != (offset + request.bytes - 1) / limits.largest {
            return Err(PlanFault::Crossing { request: i, largest: limits.largest });
        }
        let end = offset + request.bytes;
        if end > plan.peak {
            return Err(PlanFault::Outside { request: i, end, peak: plan.peak });
        }
        for (j, (other, at)) in requests.iter().zip(&plan.offsets).enumerate().take(i) {
            let apart = end <= *at || at + other.bytes <= *offset;
            if request.bytes > 0 && other.bytes > 0 && request.overlaps(other) && !apart {
                return Err(PlanFault::Shared { first: j, second: i });
            }
        }
    }
    Ok(())
}
