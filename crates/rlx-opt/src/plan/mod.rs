//! The memory plan: where each temporary lies in the arena, given sizes and lifetimes.
//!
//! Placing is a packing of rectangles (bytes × time). Two heuristics of best fit run, by size and by time, and the
//! better one counts; the lower bound is the largest sum of what is live at once. [`check()`] knows nothing of either.

mod check;
mod place;

pub use check::{PlanFault, check};
pub use place::place;

/// Bytes that every offset is a multiple of: a cache line, and the widest vector.
pub const ALIGN: usize = 64;

/// A piece of memory that is needed for a while.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// Its size.
    pub bytes: usize,
    /// The first moment (a step's index) at which it is needed.
    pub first: usize,
    /// The last moment, included.
    pub last: usize,
}

impl Request {
    /// Whether both are needed at one moment.
    pub fn overlaps(&self, other: &Request) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// The bytes it takes, in whole units of [`ALIGN`].
    pub fn aligned(&self) -> usize {
        self.bytes.next_multiple_of(ALIGN)
    }
}

/// Where each request lies.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The offset of each request, in their order.
    pub offsets: Vec<usize>,
    /// The arena's size.
    pub peak: usize,
    /// The largest sum of what is live at once: no plan is smaller.
    pub lower_bound: usize,
}

impl Plan {
    /// The peak over the lower bound; 1 where nothing is needed.
    pub fn ratio(&self) -> f64 {
        if self.lower_bound == 0 { 1.0 } else { self.peak as f64 / self.lower_bound as f64 }
    }
}
