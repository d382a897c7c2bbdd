//! Words about an allocator of the program's own, one that divides memory itself. An allocator that
//! takes each block from malloc needs none of this.

use crate::listener::{self, request, tell, Listener};

fn is_checked() -> bool {
    listener::listener() == Listener::Checker
}

/// Announces memory from malloc that the program divides itself: its parts are the blocks from now
/// on. It no longer counts as a block, but as mapped memory, until it is freed. Memory from mmap
/// needs no announcement, except under memcheck.
pub fn chunk(memory: *const u8, size: usize) {
    if is_checked() {
        request(listener::MAKE_NOACCESS, [memory as usize, size, 0, 0]);
    } else {
        tell(listener::CHUNK, [memory as usize, size, 0]);
    }
}

/// The allocator gives out a part as a block.
pub fn allocated(block: *const u8, size: usize) {
    if is_checked() {
        request(listener::BLOCK_ALLOCATED, [block as usize, size, 0, 0]);
    } else {
        tell(listener::ALLOCATED, [block as usize, size, 0]);
    }
}

/// A block is given back.
pub fn freed(block: *const u8) {
    if is_checked() {
        request(listener::BLOCK_FREED, [block as usize, 0, 0, 0]);
    } else {
        tell(listener::FREED, [block as usize, 0, 0]);
    }
}

/// A block has another size now, perhaps at another address.
pub fn resized(from: *const u8, old_size: usize, to: *const u8, size: usize) {
    if !is_checked() {
        tell(listener::RESIZED, [from as usize, to as usize, size]);
    } else if from == to {
        request(listener::BLOCK_RESIZED, [to as usize, old_size, size, 0]);
    } else {
        freed(from);
        allocated(to, size);
        request(listener::MAKE_DEFINED, [to as usize, old_size.min(size), 0, 0]);
    }
}
