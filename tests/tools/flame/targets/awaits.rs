// Asynchronous functions that await each other, run by an executor.
use std::hint::black_box;

#[inline(never)]
fn spin(turns: u64) -> u64 {
    let mut sum = 0u64;
    for turn in 0..turns {
        sum = black_box(sum.wrapping_mul(31) ^ turn);
    }
    black_box(sum)
}

#[inline(never)]
async fn handle(turns: u64) -> u64 {
    black_box(spin(turns))
}

async fn serve(turns: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..100 {
        sum ^= tokio::Instrumented(Box::pin(handle(turns))).await;
    }
    sum
}

fn main() {
    println!("{}", tokio::block_on(async { serve(3_000_000).await }));
}
