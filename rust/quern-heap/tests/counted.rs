//! With the allocator of the crate, everything is known without a tool.
use quern_heap::{measure, stats, Budget, Heap, Source, Used, Verdict};
use std::hint::black_box;

#[global_allocator]
static HEAP: Heap = Heap::system();

fn allocate(size: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(size))
}

#[test]
fn blocks_and_bytes_of_the_thread() {
    let (block, used) = measure(|| allocate(100));
    assert_eq!(used, Some(Used { blocks: 1, bytes: 100 }));
    let (_, used) = measure(|| drop(block));
    assert_eq!(used, Some(Used { blocks: 0, bytes: 0 }));
}

#[test]
fn a_resize_counts_for_what_it_adds() {
    let mut block = allocate(100);
    let (_, used) = measure(|| block.reserve_exact(300));
    assert_eq!(used, Some(Used { blocks: 1, bytes: 200 }));
    let (_, used) = measure(|| block.shrink_to(10));
    assert_eq!(used, Some(Used { blocks: 1, bytes: 0 }));
}

#[test]
fn zeroed_memory_counts() {
    let (_, used) = measure(|| black_box(vec![0u8; 64]));
    assert_eq!(used, Some(Used { blocks: 1, bytes: 64 }));
}

#[test]
fn other_threads_do_not_count() {
    let waiting = std::sync::Arc::new(std::sync::Barrier::new(2));
    let other = std::thread::spawn({
        let waiting = waiting.clone();
        move || {
            waiting.wait();
            let blocks: Vec<Vec<u8>> = (0..100).map(|_| allocate(10)).collect();
            waiting.wait();
            blocks.len()
        }
    });
    let (_, used) = measure(|| {
        waiting.wait();
        waiting.wait();
    });
    assert_eq!(used, Some(Used { blocks: 0, bytes: 0 }));
    assert_eq!(other.join().unwrap(), 100);
}

#[test]
fn the_whole_heap() {
    let before = stats();
    let block = allocate(1 << 20);
    let after = stats();
    assert_eq!(after.source, Source::Counted);
    assert!(after.live_bytes >= 1 << 20 && after.peak_bytes >= after.live_bytes, "{:?}", after);
    assert!(after.total_bytes - before.total_bytes >= 1 << 20, "{:?}", after);
    assert!(after.total_blocks > before.total_blocks && after.live_blocks > 0, "{:?}", after);
    drop(block);
    assert!(stats().releases > after.releases);
    assert!(stats().peak_bytes >= 1 << 20);
}

#[test]
fn verdicts() {
    let one = Budget::new("one").blocks(1).bytes(100);
    assert_eq!(one.check(|| allocate(100)).1, Verdict::Kept(Used { blocks: 1, bytes: 100 }));
    assert_eq!(one.check(|| allocate(101)).1, Verdict::Exceeded(Used { blocks: 1, bytes: 101 }));
    let (_, verdict) = one.check(|| (allocate(1), allocate(1)));
    assert_eq!(verdict, Verdict::Exceeded(Used { blocks: 2, bytes: 2 }));
    assert_eq!(Budget::new("all").run(|| allocate(5).capacity()), 5);
}

#[test]
#[should_panic(expected = "budget 'none' exceeded: 1 allocations of 7 bytes, 0 allocations allowed")]
fn exceeded_blocks_panic() {
    Budget::new("none").blocks(0).run(|| allocate(7));
}

#[test]
#[should_panic(expected = "budget 'few' exceeded: 1 allocations of 7 bytes, 6 bytes allowed")]
fn exceeded_bytes_panic() {
    Budget::new("few").bytes(6).run(|| allocate(7));
}
