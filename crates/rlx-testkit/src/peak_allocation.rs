//! Measures what an action allocates at its peak.
//!
//! A test that bounds memory sets [`PeakAllocator`] as the global allocator of its own test binary and calls
//! [`peak`]. The counters belong to the process, so such a binary has one test, or runs its tests one at a time.

#![allow(unsafe_code, reason = "an allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with a count of the bytes in use.
#[derive(Debug, Default)]
pub struct PeakAllocator;

// SAFETY: every call goes to the system's allocator unchanged; the counters do not touch the memory. Growing goes
// through the default `realloc`, which makes the new block before it frees the old, and so counts both.
unsafe impl GlobalAlloc for PeakAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from `alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }
}

/// The result of `action`, and the bytes that it had in use at its peak beyond those in use before.
///
/// Zero unless [`PeakAllocator`] is the global allocator.
pub fn peak<R>(action: impl FnOnce() -> R) -> (R, usize) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = action();
    (result, PEAK.load(Ordering::Relaxed).saturating_sub(before))
}
