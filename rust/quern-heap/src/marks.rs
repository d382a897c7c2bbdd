//! Markers, snapshots and scopes.

use crate::listener;
use std::marker::PhantomData;

const POINT: usize = 0;
const SCOPE_BEGAN: usize = 1;
const SCOPE_ENDED: usize = 2;
const SNAPSHOT: usize = 3;

/// The recorder cuts names after this many bytes.
const NAME_SIZE: usize = 64;

fn tell(kind: usize, name: &str) {
    if listener::listener() != listener::Listener::Recorder {
        return;
    }
    let mut bytes = [0u8; NAME_SIZE + 1];
    let size = name.len().min(NAME_SIZE);
    bytes[..size].copy_from_slice(&name.as_bytes()[..size]);
    listener::tell(listener::MARK, [kind, bytes.as_ptr() as usize, 0]);
}

/// Marks a point on the timeline; `quern print` shows how large the heap was there. Names are cut
/// after 64 bytes.
pub fn mark(name: &str) {
    tell(POINT, name)
}

/// Does the same; `--tool=massif` takes a detailed snapshot here.
pub fn snapshot(name: &str) {
    tell(SNAPSHOT, name)
}

/// What this thread allocates and frees until the value is dropped is summed up under the name.
/// Scopes may lie within each other.
#[must_use = "the scope ends when this value is dropped"]
pub struct Scope {
    /// Not `Send`: a scope belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl Scope {
    /// Begins a scope.
    pub fn new(name: &str) -> Scope {
        tell(SCOPE_BEGAN, name);
        Scope { _thread: PhantomData }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        tell(SCOPE_ENDED, "")
    }
}
