//! Statistics of the heap.

use crate::{counter, listener};

/// Who has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody: all figures are 0.
    Nobody,
    /// [`Heap`](crate::Heap), as the global allocator.
    Counted,
    /// Quern's recorder. It also knows what C code in the program allocates.
    Recorded,
}

/// Figures of the heap at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Who has counted.
    pub source: Source,
    /// Bytes that are allocated now.
    pub live_bytes: usize,
    /// Blocks that are allocated now.
    pub live_blocks: usize,
    /// The maximum of `live_bytes` so far.
    pub peak_bytes: usize,
    /// Bytes ever allocated. A resize counts for what it adds.
    pub total_bytes: usize,
    /// Blocks ever allocated.
    pub total_blocks: usize,
    /// Blocks ever freed.
    pub releases: usize,
    /// Bytes that this thread has ever allocated.
    pub thread_bytes: usize,
    /// Blocks that this thread has ever allocated. A resize counts as one.
    pub thread_blocks: usize,
}

const WORDS: usize = 8;

/// The heap at this moment. [`Heap`](crate::Heap) answers if it is the global allocator; otherwise
/// Quern's recorder does, which takes up to some ten milliseconds.
pub fn stats() -> Stats {
    counter::counted().unwrap_or_else(recorded)
}

fn recorded() -> Stats {
    let mut words = [0usize; WORDS];
    let answered = listener::tell(listener::ASK, [words.as_mut_ptr() as usize, 0, 0]) != 0;
    let [live_bytes, live_blocks, peak_bytes, total_bytes, total_blocks, releases, thread_bytes, thread_blocks] =
        if answered { words } else { [0; WORDS] };
    Stats {
        source: if answered { Source::Recorded } else { Source::Nobody },
        live_bytes,
        live_blocks,
        peak_bytes,
        total_bytes,
        total_blocks,
        releases,
        thread_bytes,
        thread_blocks,
    }
}
