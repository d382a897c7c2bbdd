fn main() {
    println!("{}", itoa::Buffer::new().format(42));
}
