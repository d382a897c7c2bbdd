//! Where the time of a search goes: `cargo quern bench`.
fn main() {
    let shop = shop::Shop::new(2000);
    let found: usize = (0..500).map(|number| shop.search(&number.to_string())).sum();
    println!("{found} found");
}
