// Generics, closures, traits and inlining for the symbol tests.
use std::collections::HashMap;

trait Area {
    fn area(&self) -> u64;
}

struct Square<T>(T);

impl<T: Copy + Into<u64>> Area for Square<T> {
    fn area(&self) -> u64 {
        let twice = |x: u64| x * 2 + self.0.into();
        twice(4)
    }
}

#[inline(never)]
fn count(words: &mut HashMap<String, Vec<u32>>, most: u32) -> usize {
    for i in 0..most {
        words.entry(format!("word{}", i % 7)).or_default().push(i);
    }
    words.values().map(|v| v.iter().filter(|x| **x % 3 == 0).count()).sum()
}

fn main() {
    let mut words = HashMap::new();
    let areas: Vec<Box<dyn Area>> = vec![Box::new(Square(4u32)), Box::new(Square(3u8))];
    let total: u64 = areas.iter().map(|a| a.area()).sum();
    println!("{} {}", count(&mut words, 100), total);
}
