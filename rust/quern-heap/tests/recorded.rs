//! Without the allocator of the crate, Quern's recorder counts, if there is one.
use quern_heap::{listener, measure, stats, Budget, Listener, Source, Used, Verdict};

#[test]
fn the_recorder_or_nobody() {
    let (_, used) = measure(|| std::hint::black_box(Vec::<u8>::with_capacity(100)));
    let (_, verdict) = Budget::new("one").blocks(1).check(|| std::hint::black_box(Box::new(1)));
    match listener() {
        Listener::Recorder => {
            assert_eq!(used, Some(Used { blocks: 1, bytes: 100 }));
            assert_eq!(verdict, Verdict::Kept(Used { blocks: 1, bytes: 4 }));
            assert_eq!(stats().source, Source::Recorded);
            println!("counted by the recorder");
        }
        _ => {
            assert_eq!((used, verdict), (None, Verdict::NotCounted));
            assert_eq!(stats().source, Source::Nobody);
            println!("counted by nobody");
        }
    }
}

#[test]
fn a_budget_that_nobody_counts_panics() {
    let result = std::panic::catch_unwind(|| Budget::new("any").run(|| ()));
    assert_eq!(result.is_ok(), listener() == Listener::Recorder);
}
