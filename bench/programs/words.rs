// Counts made-up words in maps, sorts them and folds them together: generic code, closures, boxed
// functions, growing vectors.
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;

struct Numbers(u64);

impl Iterator for Numbers {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        Some(self.0 >> 33)
    }
}

#[inline(never)]
fn make_word(number: u64) -> String {
    let mut left = number;
    let mut word = String::new();
    while left > 0 {
        word.push((b'a' + (left % 26) as u8) as char);
        left /= 26;
    }
    word
}

#[inline(never)]
fn count(numbers: &mut Numbers, size: usize, different: u64) -> HashMap<String, u64> {
    let mut counts = HashMap::new();
    for number in numbers.take(size) {
        *counts.entry(make_word(number % different)).or_insert(0) += 1;
    }
    counts
}

#[inline(never)]
fn rank(counts: &HashMap<String, u64>) -> Vec<(&String, u64)> {
    let mut ranked: Vec<_> = counts.iter().map(|(word, count)| (word, *count)).collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    ranked
}

#[inline(never)]
fn fold(ranked: &[(&String, u64)], steps: &[Box<dyn Fn(u64) -> u64>]) -> u64 {
    let mut by_length: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (word, count) in ranked {
        let value = steps.iter().fold(*count, |value, step| step(value));
        by_length.entry(word.len()).or_default().push(value);
    }
    by_length.values().flatten().fold(0, |sum, value| sum.rotate_left(5) ^ value)
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
}

fn seconds(clock: i32) -> f64 {
    let mut time = [0i64; 2];
    unsafe { clock_gettime(clock, &mut time) };
    time[0] as f64 + time[1] as f64 / 1e9
}

// Says when a piece of work is done, and the CPU time so far, for turns.py.
fn say_pace(out: &mut File) {
    const MONOTONIC: i32 = 1;
    const PROCESS_CPU_TIME: i32 = 2;
    writeln!(out, "{:.9} {:.9}", seconds(MONOTONIC), seconds(PROCESS_CPU_TIME)).expect("PACE");
}

fn main() {
    let mut given = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    let rounds: u64 = given.next().unwrap_or(10);
    let different: u64 = given.next().unwrap_or(20011);
    let steps: Vec<Box<dyn Fn(u64) -> u64>> = (1..8u64)
        .map(|n| -> Box<dyn Fn(u64) -> u64> { Box::new(move |value| (value ^ n).wrapping_mul(n | 1)) })
        .collect();
    let mut pace = std::env::var("PACE").ok().map(|path| File::create(path).expect("PACE"));
    if let Some(out) = &mut pace {
        writeln!(out, "{}", std::process::id()).expect("PACE");
    }
    let mut numbers = Numbers(42);
    let mut sum = 0u64;
    for _ in 0..rounds {
        let counts = count(&mut numbers, 60000, different);
        sum = sum.wrapping_add(fold(&rank(&counts), &steps));
        if let Some(out) = &mut pace {
            say_pace(out);
        }
    }
    println!("{sum}");
}
