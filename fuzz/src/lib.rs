//! What all fuzz targets share: a global allocator that holds them to a memory budget.
//!
//! libFuzzer's own `-malloc_limit_mb` hooks into AddressSanitizer's allocator, which a stable
//! toolchain does not build, so without this a file of 20 bytes that makes a reader reserve 100 GiB
//! would pass: the pages are never touched and `-rss_limit_mb` sees nothing. Here every request is
//! counted. One that goes past the budget aborts the process, and libFuzzer writes the input that
//! did it.
//!
//! A target uses it by naming this crate (`use rlx_fuzz as _;`).

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest single request, in bytes: no input of a few KiB has a use for more.
const REQUEST_LIMIT: usize = 256 << 20;

/// The most bytes alive at once.
const LIVE_LIMIT: usize = 1 << 30;

static LIVE: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: BudgetedAllocator = BudgetedAllocator;

/// The system's allocator, aborting on a request past [`REQUEST_LIMIT`] or [`LIVE_LIMIT`].
struct BudgetedAllocator;

impl BudgetedAllocator {
    /// Counts a request of `size` bytes that replaces `released` live ones.
    fn charge(size: usize, released: usize) {
        let live = LIVE.fetch_add(size, Ordering::Relaxed).saturating_add(size).saturating_sub(released);
        LIVE.fetch_sub(released, Ordering::Relaxed);
        if size > REQUEST_LIMIT || live > LIVE_LIMIT {
            // Not a panic: its message would allocate.
            let _ = std::io::stderr().write_all(b"memory budget exceeded by the fuzzed code\n");
            std::process::abort();
        }
    }
}

// SAFETY: every call is handed to `System` unchanged, and the counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for BudgetedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::charge(layout.size(), 0);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::charge(layout.size(), 0);
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Self::charge(new_size, layout.size());
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}
