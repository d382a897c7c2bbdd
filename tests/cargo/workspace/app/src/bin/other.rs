fn main() {
    println!("other {}", tally::sum(&[20, 22]));
}
