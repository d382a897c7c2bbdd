// jemalloc as Rust's allocator, called as the crate jemallocator calls it.
use std::alloc::{GlobalAlloc, Layout};

extern "C" {
    fn _rjem_malloc(size: usize) -> *mut u8;
    fn _rjem_mallocx(size: usize, flags: i32) -> *mut u8;
    fn _rjem_calloc(count: usize, size: usize) -> *mut u8;
    fn _rjem_realloc(block: *mut u8, size: usize) -> *mut u8;
    fn _rjem_rallocx(block: *mut u8, size: usize, flags: i32) -> *mut u8;
    fn _rjem_sdallocx(block: *mut u8, size: usize, flags: i32);
}

struct Jemalloc;

fn flags(layout: &Layout) -> i32 {
    if layout.align() <= 16 && layout.align() <= layout.size() { 0 }
    else { layout.align().trailing_zeros() as i32 }
}

unsafe impl GlobalAlloc for Jemalloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match flags(&layout) {
            0 => _rjem_malloc(layout.size()),
            flags => _rjem_mallocx(layout.size(), flags),
        }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match flags(&layout) {
            0 => _rjem_calloc(1, layout.size()),
            flags => _rjem_mallocx(layout.size(), flags | 0x40),
        }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let new = Layout::from_size_align_unchecked(size, layout.align());
        match flags(&new) {
            0 => _rjem_realloc(block, size),
            flags => _rjem_rallocx(block, size, flags),
        }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        _rjem_sdallocx(block, layout.size(), flags(&layout))
    }
}

#[cfg(jemalloc)]
#[global_allocator]
static GLOBAL: Jemalloc = Jemalloc;

#[repr(align(64))]
#[derive(Clone)]
struct Wide([u8; 64]);

#[inline(never)]
fn forget() {
    std::mem::forget(vec![7u8; 5000]);
    std::mem::forget(vec![0u64; 300]);
    std::mem::forget(vec![Wide([1; 64]); 10]);
}

fn main() {
    let mut map = std::collections::HashMap::new();
    for i in 0..2000u32 {
        map.insert(i, format!("entry {i}"));
    }
    let mut wide = Vec::new();
    for i in 0..100 {
        wide.push(Wide([i; 64]));
        assert!(wide.as_ptr() as usize % 64 == 0);
    }
    let threads: Vec<_> = (0..4).map(|n| std::thread::spawn(move || {
        (0..5000usize).map(|i| vec![n as u8; i % 300]).map(|v| v.len()).sum::<usize>()
    })).collect();
    let sum: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    forget();
    println!("{} {} {}", map.len(), wide.len(), sum);
}
