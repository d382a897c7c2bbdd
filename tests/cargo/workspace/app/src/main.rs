//! Does what its first argument says.
use std::env;

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("exit") => std::process::exit(words[1].parse().unwrap()),
        Some("abort") => std::process::abort(),
        Some("lose") => tally::lose(1000),
        Some("environment") => env::vars_os().for_each(|(name, value)| println!("{name:?}={value:?}")),
        _ => println!("{words:?} in {}", env::current_dir().unwrap().display()),
    }
    if cfg!(feature = "loud") {
        println!("loud");
    }
}
