// rust CASE: what the collections of Rust's library allocate, in one thread and in several that follow
// each other. Without a case: their names.
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{mpsc, Arc, Mutex};

trait Shape {
    fn area(&self) -> u64;
}

struct Square(u64);
struct Heap(Vec<u64>);

impl Shape for Square {
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}

impl Shape for Heap {
    fn area(&self) -> u64 {
        self.0.iter().sum()
    }
}

#[inline(never)]
fn shapes(count: u64) -> Vec<Box<dyn Shape>> {
    let mut all: Vec<Box<dyn Shape>> = Vec::new();
    for i in 0..count {
        if i % 3 == 0 {
            all.push(Box::new(Square(i)));
        } else {
            all.push(Box::new(Heap((0..i).collect())));
        }
    }
    all
}

#[inline(never)]
fn words(count: usize) -> HashMap<String, usize> {
    let mut found = HashMap::new();
    for i in 0..count {
        *found.entry(format!("word {}", i % 37)).or_insert(0) += i;
    }
    found
}

#[inline(never)]
fn collections() -> u64 {
    let mut sum: u64 = shapes(60).iter().map(|shape| shape.area()).sum();
    sum += words(500).values().sum::<usize>() as u64;
    let tree: BTreeMap<u64, String> = (0..200).map(|i| (i * 7 % 200, i.to_string())).collect();
    let mut queue = VecDeque::with_capacity(4);
    for (key, text) in &tree {
        queue.push_back(text.clone());
        if key % 5 == 0 {
            sum += queue.pop_front().unwrap().len() as u64;
        }
    }
    std::mem::forget(Rc::new([sum; 9]));
    sum
}

#[inline(never)]
fn threads() -> u64 {
    let total = Arc::new(Mutex::new(Vec::new()));
    for number in 0..4u64 {
        let shared = Arc::clone(&total);
        std::thread::spawn(move || {
            let own: Vec<u64> = (0..100 * number).collect();
            shared.lock().unwrap().push(own.iter().sum::<u64>());
        })
        .join()
        .unwrap();
    }
    let (sender, receiver) = mpsc::channel();
    for i in 0..200u64 {
        sender.send(Box::new(i)).unwrap();
    }
    drop(sender);
    let sent: u64 = receiver.iter().map(|number| *number).sum();
    let sum: u64 = total.lock().unwrap().iter().sum();
    sum + sent
}

fn main() {
    let sum = match std::env::args().nth(1).as_deref() {
        Some("collections") => collections(),
        Some("threads") => threads(),
        _ => {
            println!("collections threads");
            return;
        }
    };
    std::process::exit(if sum > 0 { 0 } else { 1 });
}
