//! Budgets for tests.

use crate::stats::{stats, Source};

/// What a thread has allocated, whatever it freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Allocations and resizes.
    pub blocks: usize,
    /// Bytes of the allocations, and what resizes have added.
    pub bytes: usize,
}

/// Calls the function. Returns its result and what this thread has allocated in it; `None`: nobody
/// counts ([`Source::Nobody`]).
pub fn measure<T>(function: impl FnOnce() -> T) -> (T, Option<Used>) {
    let before = stats();
    let result = function();
    let after = stats();
    let is_counted = before.source != Source::Nobody && before.source == after.source;
    let used = is_counted.then(|| Used {
        blocks: after.thread_blocks.wrapping_sub(before.thread_blocks),
        bytes: after.thread_bytes.wrapping_sub(before.thread_bytes),
    });
    (result, used)
}

/// Whether a budget was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The thread allocated no more than allowed.
    Kept(Used),
    /// The thread allocated more than allowed.
    Exceeded(Used),
    /// Nobody counts: [`Heap`](crate::Heap) is not the global allocator, and no recorder listens.
    NotCounted,
}

/// The number of blocks and bytes that a part of a test may allocate. Allocations and resizes of
/// the calling thread count, whatever it frees; other tests of the same program do not disturb it.
#[derive(Clone, Debug)]
#[must_use = "a budget does nothing until it is run"]
pub struct Budget<'a> {
    name: &'a str,
    blocks: usize,
    bytes: usize,
}

impl<'a> Budget<'a> {
    /// A budget without limits.
    pub const fn new(name: &'a str) -> Budget<'a> {
        Budget { name, blocks: usize::MAX, bytes: usize::MAX }
    }

    /// Allows this many allocations and resizes.
    pub const fn blocks(mut self, blocks: usize) -> Budget<'a> {
        self.blocks = blocks;
        self
    }

    /// Allows this many bytes.
    pub const fn bytes(mut self, bytes: usize) -> Budget<'a> {
        self.bytes = bytes;
        self
    }

    /// Calls the function. Returns its result, and whether it kept the budget.
    pub fn check<T>(&self, function: impl FnOnce() -> T) -> (T, Verdict) {
        let (result, used) = measure(function);
        let verdict = match used {
            None => Verdict::NotCounted,
            Some(used) if used.blocks > self.blocks || used.bytes > self.bytes => Verdict::Exceeded(used),
            Some(used) => Verdict::Kept(used),
        };
        (result, verdict)
    }

    /// Calls the function and returns its result.
    ///
    /// # Panics
    ///
    /// If the function exceeds the budget, or if nobody counts: a test must not pass for that.
    #[track_caller]
    pub fn run<T>(&self, function: impl FnOnce() -> T) -> T {
        let (result, verdict) = self.check(function);
        match verdict {
            Verdict::Kept(_) => result,
            Verdict::Exceeded(used) => panic!("{}", self.complaint(used)),
            Verdict::NotCounted => panic!(
                "budget '{}': nobody counts; make quern_heap::Heap the global allocator, or run \
                 the test under quern --tool=heap",
                self.name
            ),
        }
    }

    fn complaint(&self, used: Used) -> String {
        let mut text =
            format!("budget '{}' exceeded: {} allocations of {} bytes", self.name, used.blocks, used.bytes);
        if used.blocks > self.blocks {
            text += &format!(", {} allocations allowed", self.blocks);
        }
        if used.bytes > self.bytes {
            text += &format!(", {} bytes allowed", self.bytes);
        }
        text
    }
}
