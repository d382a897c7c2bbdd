mod deep {
    pub struct Thing;
    impl Thing {
        #[inline(never)]
        pub fn look(&self, at: *mut u32) -> u32 {
            unsafe {
                if *at.add(1) > 3 {
                    *at.add(4)
                } else {
                    *at.add(5) = 1;
                    2
                }
            }
        }
    }
}

fn main() {
    let mut numbers = std::mem::ManuallyDrop::new(Vec::<u32>::with_capacity(4));
    std::hint::black_box(deep::Thing.look(numbers.as_mut_ptr()));
    std::mem::forget(vec![1u8; 100]);
    let thread = std::thread::spawn(|| Box::leak(Box::new([0u64; 5]))[2]);
    std::hint::black_box(thread.join().unwrap());
}
