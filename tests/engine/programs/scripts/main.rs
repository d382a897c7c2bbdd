use std::collections::HashMap;
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

fn main() {
    let total = Arc::new(Mutex::new(0u64));
    let (tx, rx) = mpsc::channel();
    let hs: Vec<_> = (0..8u64)
        .map(|i| {
            let (total, tx) = (total.clone(), tx.clone());
            thread::spawn(move || {
                let s = (0..50000u64).fold(i, |h, k| h.wrapping_mul(31).wrapping_add(k));
                *total.lock().unwrap() ^= s;
                tx.send(i).unwrap();
            })
        })
        .collect();
    for h in hs {
        h.join().unwrap();
    }
    drop(tx);
    println!("{:x} {}", *total.lock().unwrap(), rx.iter().sum::<u64>());
    let mut m = HashMap::new();
    for i in 0..50000u32 {
        *m.entry(i % 977).or_insert(0u32) += i;
    }
    println!("{} {}", m.len(), m[&5]);
    std::panic::set_hook(Box::new(|_| {}));
    println!("{}", std::panic::catch_unwind(|| { let v: Vec<i32> = vec![]; v[3] }).is_err());
    let out = std::process::Command::new("echo").arg("child").output().unwrap();
    print!("{}", String::from_utf8_lossy(&out.stdout));
    std::process::exit(7);
}
