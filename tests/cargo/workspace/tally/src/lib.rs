//! A library with tests of its own.

/// The sum of the numbers.
pub fn sum(numbers: &[u64]) -> u64 {
    numbers.iter().sum()
}

/// Allocates a block that nobody frees.
#[inline(never)]
pub fn lose(size: usize) {
    let block = std::hint::black_box(vec![1u8; size]);
    std::mem::forget(block);
}

#[cfg(test)]
mod tests {
    #[test]
    fn sums() {
        assert_eq!(super::sum(&[1, 2]), 3);
    }

    #[test]
    #[ignore]
    fn reads_behind_a_block() {
        let block = std::hint::black_box(vec![1u8; 10]);
        let behind = unsafe { std::ptr::read_volatile(block.as_ptr().add(16)) };
        std::hint::black_box(behind);
    }
}
