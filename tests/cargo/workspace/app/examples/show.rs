fn main() {
    println!("example {}", tally::sum(&[1, 2, 3]));
}
