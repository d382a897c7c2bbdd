//! A global allocator that counts.

use crate::stats::Stats;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);
static TOTAL_BYTES: AtomicUsize = AtomicUsize::new(0);
static TOTAL_BLOCKS: AtomicUsize = AtomicUsize::new(0);
static RELEASES: AtomicUsize = AtomicUsize::new(0);

// Without a destructor and with a constant to begin with, so that reaching them allocates nothing,
// also while a thread ends.
thread_local! {
    static THREAD_BYTES: Cell<usize> = const { Cell::new(0) };
    static THREAD_BLOCKS: Cell<usize> = const { Cell::new(0) };
}

/// A global allocator that counts what passes through it, and leaves the work to another allocator.
///
/// ```
/// #[global_allocator]
/// static HEAP: quern_heap::Heap = quern_heap::Heap::system();
///
/// fn main() {
///     let before = quern_heap::stats().total_blocks;
///     drop(vec![1, 2, 3]);
///     assert_eq!(quern_heap::stats().total_blocks, before + 1);
/// }
/// ```
pub struct Heap<A = System>(A);

impl Heap<System> {
    /// Counts what the system's allocator does.
    pub const fn system() -> Heap<System> {
        Heap(System)
    }
}

impl<A> Heap<A> {
    /// Counts what this allocator does.
    pub const fn new(allocator: A) -> Heap<A> {
        Heap(allocator)
    }
}

fn count_thread(bytes: usize) {
    // Fails only where a thread has no local memory any more.
    let _ = THREAD_BYTES.try_with(|count| count.set(count.get().wrapping_add(bytes)));
    let _ = THREAD_BLOCKS.try_with(|count| count.set(count.get().wrapping_add(1)));
}

fn grow(bytes: usize) {
    let live = LIVE_BYTES.fetch_add(bytes, Relaxed).wrapping_add(bytes);
    PEAK_BYTES.fetch_max(live, Relaxed);
    TOTAL_BYTES.fetch_add(bytes, Relaxed);
    count_thread(bytes);
}

fn count_allocated(size: usize) {
    TOTAL_BLOCKS.fetch_add(1, Relaxed);
    grow(size);
}

fn count_freed(size: usize) {
    RELEASES.fetch_add(1, Relaxed);
    LIVE_BYTES.fetch_sub(size, Relaxed);
}

/// A resize counts for what it adds, and for the thread as a block: as in Quern's recorder.
fn count_resized(old_size: usize, size: usize) {
    if size >= old_size {
        grow(size - old_size);
    } else {
        LIVE_BYTES.fetch_sub(old_size - size, Relaxed);
        count_thread(0);
    }
}

// SAFETY: all work is done by the allocator inside, with the arguments of the caller.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Heap<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = self.0.alloc(layout);
        if !block.is_null() {
            count_allocated(layout.size());
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let block = self.0.alloc_zeroed(layout);
        if !block.is_null() {
            count_allocated(layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_freed(layout.size());
        self.0.dealloc(block, layout)
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let resized = self.0.realloc(block, layout, size);
        if !resized.is_null() {
            count_resized(layout.size(), size);
        }
        resized
    }
}

/// What [`Heap`] has counted; `None`: it is not the global allocator. (Rust's runtime allocates
/// before `main`.)
pub(crate) fn counted() -> Option<Stats> {
    let total_blocks = TOTAL_BLOCKS.load(Relaxed);
    let releases = RELEASES.load(Relaxed);
    (total_blocks != 0).then(|| Stats {
        source: crate::Source::Counted,
        live_bytes: LIVE_BYTES.load(Relaxed),
        live_blocks: total_blocks.saturating_sub(releases),
        peak_bytes: PEAK_BYTES.load(Relaxed),
        total_bytes: TOTAL_BYTES.load(Relaxed),
        total_blocks,
        releases,
        thread_bytes: THREAD_BYTES.try_with(Cell::get).unwrap_or(0),
        thread_blocks: THREAD_BLOCKS.try_with(Cell::get).unwrap_or(0),
    })
}
