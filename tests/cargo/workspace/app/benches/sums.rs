//! A benchmark with a main of its own.
fn main() {
    let numbers: Vec<u64> = (0..1000).collect();
    let total: u64 = (0..20_000).map(|_| tally::sum(std::hint::black_box(&numbers))).sum();
    println!("bench {total} {:?}", std::env::args().skip(1).collect::<Vec<_>>());
}
