//! Leaves at exit what std leaves: the handle of the main thread, and a thread that still runs.
use std::sync::{Arc, Barrier};

#[inline(never)]
fn scrub(depth: usize) -> usize {
    let words = std::hint::black_box([depth; 512]);
    if depth == 0 { words[0] } else { scrub(depth - 1) + words[1] }
}

fn main() {
    println!("{:?}", std::thread::current().id());
    let begun = Arc::new(Barrier::new(2));
    std::thread::spawn({
        let begun = begun.clone();
        move || {
            begun.wait();
            loop {
                std::thread::park();
            }
        }
    });
    begun.wait();
    std::hint::black_box(scrub(20));
}
