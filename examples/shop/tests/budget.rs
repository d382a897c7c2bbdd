//! What a search may allocate.
#[global_allocator]
static HEAP: quern_heap::Heap = quern_heap::Heap::system();

#[test]
fn a_search_does_not_allocate() {
    let shop = shop::Shop::new(10);
    quern_heap::Budget::new("search").blocks(0).run(|| shop.search("7"));
}
