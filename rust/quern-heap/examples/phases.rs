//! Marks, scopes, and an allocator of the program's own: look at it with
//! `cargo quern heap --example phases`.
use std::hint::black_box;

fn main() {
    println!("{:?}", quern_heap::listener());
    quern_heap::mark("begin");
    let kept: Vec<Vec<u8>> = {
        let _scope = quern_heap::Scope::new("load");
        (0..10).map(|_| black_box(Vec::with_capacity(1000))).collect()
    };
    {
        let _scope = quern_heap::Scope::new("work");
        drop(black_box(Vec::<u8>::with_capacity(5000)));
    }
    quern_heap::snapshot("loaded");

    let memory = black_box(Vec::<u8>::with_capacity(4096));
    let part = |at: usize| unsafe { memory.as_ptr().add(at) };
    quern_heap::chunk(part(0), 4096);
    quern_heap::allocated(part(0), 50);
    quern_heap::allocated(part(64), 70);
    quern_heap::resized(part(64), 70, part(64), 80);
    quern_heap::freed(part(0));
    println!("{} live bytes", quern_heap::stats().live_bytes);
    if std::env::args().nth(1).as_deref() == Some("wrong") {
        // A block that was given back: memcheck reports this.
        black_box(unsafe { std::ptr::read_volatile(part(0)) });
    }
    drop(kept);
}
