// Generic and closure names, and a type with a semicolon in it.
#[inline(never)]
fn grind<T: Copy + Into<u64>>(items: &[T; 4], rounds: u64) -> u64 {
    let mut sum = 0u64;
    for i in 0..rounds {
        sum = std::hint::black_box(sum.wrapping_add(items[(i % 4) as usize].into() ^ i));
    }
    sum
}

fn main() {
    let work = |rounds: u64| grind(&[1u32, 2, 3, 4], rounds);
    std::process::exit((std::hint::black_box(work)(300_000_000) == 0) as i32);
}
