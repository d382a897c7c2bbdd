//! jemalloc as the global allocator, called as the crates for it do: by its own functions, which know
//! the alignment, not by those of C.
use std::alloc::{GlobalAlloc, Layout};

#[link(name = "jemalloc_pic", kind = "static")]
extern "C" {
    fn mallocx(size: usize, flags: i32) -> *mut u8;
    fn rallocx(block: *mut u8, size: usize, flags: i32) -> *mut u8;
    fn sdallocx(block: *mut u8, size: usize, flags: i32);
}

#[link(name = "stdc++")]
extern "C" {}

const ZERO: i32 = 0x40;

struct Jemalloc;

/// Flags that ask for this alignment.
fn aligned(layout: &Layout) -> i32 {
    layout.align().trailing_zeros() as i32
}

unsafe impl GlobalAlloc for Jemalloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        mallocx(layout.size(), aligned(&layout))
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        mallocx(layout.size(), aligned(&layout) | ZERO)
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        rallocx(block, size, aligned(&layout))
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        sdallocx(block, layout.size(), aligned(&layout))
    }
}

#[global_allocator]
static GLOBAL: Jemalloc = Jemalloc;
