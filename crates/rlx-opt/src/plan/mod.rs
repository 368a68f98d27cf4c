//! The memory plan: where each temporary lies in the arena, given sizes and lifetimes.
//!
//! Placing is a packing of rectangles (bytes × time). Two heuristics of best fit run, by size and by time, and the
//! better one counts; the lower bound is the largest sum of what is live at once. [`check()`] knows nothing of either.

mod check;
mod place;

pub use check::{PlanFault, check};
pub use place::{TooLarge, place};

/// What a target's memory asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// Bytes that every offset is a multiple of.
    pub align: usize,
    /// The most bytes of one buffer of the device. An arena that needs more is split in several.
    pub largest: usize,
}

impl Limits {
    /// Those of the host's memory: a cache line, which is also the widest vector; buffers of any size.
    pub const HOST: Limits = Limits { align: 64, largest: usize::MAX };

    /// `bytes` in whole units of [`Self::align`].
    pub fn aligned(&self, bytes: usize) -> usize {
        bytes.next_multiple_of(self.align)
    }
}

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
}

/// Where each request lies.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The offset of each request, in their order. Where the target's buffers have a limit, the arena is a row of
    /// buffers of that size, and no request crosses from one to the next.
    pub offsets: Vec<usize>,
    /// The arena's size.
    pub peak: usize,
    /// The largest sum of what is live at once: no plan is smaller.
    pub lower_bound: usize,
}

impl Plan {
    /// The buffers that the arena is made of: their sizes, in order.
    pub fn buffers(&self, limits: &Limits) -> Vec<usize> {
        let whole = self.peak / limits.largest;
        let rest = self.peak % limits.largest;
        std::iter::repeat_n(limits.largest, whole).chain((rest > 0).then_some(rest)).collect()
    }

    /// The peak over the lower bound; 1 where nothing is needed.
    pub fn ratio(&self) -> f64 {
        if self.lower_bound == 0 { 1.0 } else { self.peak as f64 / self.lower_bound as f64 }
    }
}
