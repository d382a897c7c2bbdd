//! The heap of a program, as it sees its own: statistics, markers and named scopes for
//! [Quern](https://example.org/quern)'s recorder, budgets for tests, and words about allocators of
//! the program's own. This is `quern/heap.h` for Rust.
//!
//! # Budgets
//!
//! A budget limits what a part of a test allocates. Install [`Heap`] as the global allocator, so
//! that the program itself counts; `cargo test` is enough then:
//!
//! ```
//! #[global_allocator]
//! static HEAP: quern_heap::Heap = quern_heap::Heap::system();
//!
//! fn main() {
//!     let words = vec!["a", "b"];
//!     let found = quern_heap::Budget::new("lookup").blocks(0).run(|| words.contains(&"b"));
//!     assert!(found);
//!
//!     let (text, used) = quern_heap::measure(|| words.join("-"));
//!     assert_eq!(text, "a-b");
//!     assert_eq!(used.expect("counted").blocks, 1);
//! }
//! ```
//!
//! Without [`Heap`], Quern's recorder counts, if the program runs under it
//! (`cargo quern heap test`).
//!
//! # Markers and scopes
//!
//! [`mark`] is a point on the timeline of a recording. A [`Scope`] sums up what its thread allocates
//! between its begin and its end. Both cost a load and a branch when no recorder listens.
//!
//! ```
//! quern_heap::mark("configuration read");
//! {
//!     let _scope = quern_heap::Scope::new("parse");
//!     drop(String::from("parsed"));
//! }
//! ```
//!
//! Calls reach the recorder on x86-64 Linux only. On other systems the statistics, the budgets and
//! the global allocator work; the rest does nothing.
#![warn(missing_docs)]

mod budget;
mod counter;
mod listener;
mod marks;
mod own;
mod stats;

pub use budget::{measure, Budget, Used, Verdict};
pub use counter::Heap;
pub use listener::{listener, Listener};
pub use marks::{mark, snapshot, Scope};
pub use own::{allocated, chunk, freed, resized};
pub use stats::{stats, Source, Stats};
