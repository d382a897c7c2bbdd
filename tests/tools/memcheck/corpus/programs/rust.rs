// Rust: leaks that safe code can make, and what unsafe code can do.
//
// case rust_forget env:WAY=forget
// case rust_rc_cycle env:WAY=rc_cycle
// case rust_use_after_free env:WAY=use_after_free
// case rust_double_free env:WAY=double_free
// case rust_uninitialised env:WAY=uninitialised
// case rust_out_of_bounds env:WAY=out_of_bounds
// case rust_box_held env:WAY=box_held
// case rust_thread env:WAY=thread
// case rust_write_uninitialised env:WAY=write_uninitialised
// case rust_vector_grown env:WAY=vector_grown
// case rust_generic env:WAY=generic
// case rust_closure env:WAY=closure
// case rust_map_forgotten env:WAY=map_forgotten
// case rust_string_over env:WAY=string_over
// case rust_zeroed env:WAY=zeroed --show-leak-kinds=definite,possible clean
// case rust_collections env:WAY=collections --show-leak-kinds=definite,possible clean
// case rust_panic_caught env:WAY=panic_caught --show-leak-kinds=definite,possible clean
// case rust_forget_optimised -Copt-level=2 env:WAY=forget
// case rust_rc_cycle_optimised -Copt-level=2 env:WAY=rc_cycle
// case rust_out_of_bounds_optimised -Copt-level=2 env:WAY=out_of_bounds
// case rust_uninitialised_optimised -Copt-level=2 env:WAY=uninitialised
// case rust_collections_optimised -Copt-level=3 env:WAY=collections --show-leak-kinds=definite,possible clean
// case rust_v0_names -Csymbol-mangling-version=v0 env:WAY=generic
// case rust_legacy_names_mangled env:WAY=generic --demangle=no
// case rust_v0_names_mangled -Csymbol-mangling-version=v0 env:WAY=generic --demangle=no
// case rust_origins env:WAY=uninitialised --track-origins=yes
// case rust_leak_xml env:WAY=rc_cycle xml
// case roundtrip_rust_cycle env:WAY=rc_cycle roundtrip
// case roundtrip_rust_generic env:WAY=generic roundtrip
// case roundtrip_rust_v0 -Csymbol-mangling-version=v0 env:WAY=generic roundtrip
// case roundtrip_rust_thread env:WAY=thread roundtrip
use std::alloc::{alloc, dealloc, Layout};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::rc::Rc;

struct Node {
    other: RefCell<Option<Rc<Node>>>,
    value: u64,
}

trait Shape {
    fn area(&self, at: usize) -> u32;
}

struct Cells<T> {
    cells: *mut T,
}

impl<T: Copy + Into<u32>> Shape for Cells<T> {
    #[inline(never)]
    fn area(&self, at: usize) -> u32 {
        unsafe { (*self.cells.add(at)).into() } // bug
    }
}

#[inline(never)]
fn forget() {
    std::mem::forget(black_box(vec![1u64, 2, 3])); // leak
    std::mem::forget(black_box(String::from("a forgotten text"))); // leak
}

#[inline(never)]
fn rc_cycle() {
    let one = Rc::new(Node { other: RefCell::new(None), value: 1 }); // leak
    let two = Rc::new(Node { other: RefCell::new(Some(one.clone())), value: 2 }); // leak
    *one.other.borrow_mut() = Some(two.clone());
    black_box(one.value + two.value);
}

#[inline(never)]
fn use_after_free() {
    let boxed = Box::new(42u32);
    let raw = Box::into_raw(boxed);
    unsafe {
        drop(Box::from_raw(raw));
        black_box(std::ptr::read_volatile(raw)); // bug
    }
}

#[inline(never)]
fn double_free() {
    let raw = Box::into_raw(Box::new([0u8; 24]));
    unsafe {
        drop(Box::from_raw(black_box(raw)));
        drop(Box::from_raw(black_box(raw))); // bug
    }
}

#[inline(never)]
fn undefined_byte() -> u8 {
    let layout = Layout::from_size_align(64, 8).unwrap();
    unsafe {
        let block = alloc(layout);
        let value = std::ptr::read_volatile(block.add(9));
        dealloc(block, layout);
        value
    }
}

#[inline(never)]
fn uninitialised() {
    if black_box(undefined_byte()) > 7 { // bug
        black_box(1);
    }
}

#[inline(never)]
fn out_of_bounds() {
    let numbers = black_box(vec![1u32; 10]);
    unsafe {
        black_box(std::ptr::read_volatile(numbers.as_ptr().add(10))); // bug
        let start = numbers.as_ptr() as *mut u8;
        std::ptr::write_volatile(start.offset(-1), 1); // bug
    }
}

#[inline(never)]
fn box_held() {
    static mut HELD: Option<&'static mut u64> = None;
    unsafe {
        HELD = Some(Box::leak(Box::new(7))); // leak
    }
}

#[inline(never)]
fn thread() {
    std::thread::Builder::new()
        .name("rusty".into())
        .spawn(|| {
            let numbers = black_box(vec![0u16; 5]); // leak
            unsafe {
                black_box(std::ptr::read_volatile(numbers.as_ptr().add(5))); // bug
            }
            std::mem::forget(numbers);
        })
        .unwrap()
        .join()
        .unwrap();
}

#[inline(never)]
fn write_uninitialised() {
    use std::io::Write;
    let mut bytes: Vec<u8> = Vec::with_capacity(16);
    unsafe { bytes.set_len(16) };
    let mut file = std::fs::File::create("/dev/null").unwrap();
    file.write_all(&bytes).unwrap(); // bug
}

#[inline(never)]
fn vector_grown() {
    let mut numbers = vec![1u64; 4];
    let old = numbers.as_ptr();
    numbers.extend_from_slice(&[2; 1000]); // bug
    unsafe {
        black_box(std::ptr::read_volatile(old.add(1))); // bug
    }
}

#[inline(never)]
fn generic() {
    let mut bytes = vec![1u8; 9]; // bug
    let mut shorts = vec![1u16; 9]; // bug
    let shapes: [Box<dyn Shape>; 2] = [
        Box::new(Cells { cells: bytes.as_mut_ptr() }),
        Box::new(Cells { cells: shorts.as_mut_ptr() }),
    ];
    black_box(shapes[0].area(9) + shapes[1].area(9)); // bug
}

#[inline(never)]
fn closure() {
    let numbers = black_box(vec![3i64; 3]);
    let reader = move |at: usize| unsafe { std::ptr::read_volatile(numbers.as_ptr().add(at)) }; // bug
    black_box(reader(3)); // bug
}

#[inline(never)]
fn map_forgotten() {
    let mut map = BTreeMap::new();
    for i in 0..30u32 {
        map.insert(i, format!("value {i}")); // leak
    }
    std::mem::forget(map);
}

#[inline(never)]
fn string_over() {
    let text = black_box(String::from("no end"));
    unsafe {
        extern "C" {
            fn strlen(text: *const u8) -> usize;
        }
        black_box(strlen(text.as_ptr())); // bug
    }
}

#[inline(never)]
fn zeroed() {
    let layout = Layout::from_size_align(64, 8).unwrap();
    unsafe {
        let block = std::alloc::alloc_zeroed(layout);
        if *block.add(9) > 7 {
            black_box(1);
        }
        let larger = std::alloc::realloc(block, layout, 128);
        if *larger.add(63) > 7 {
            black_box(1);
        }
        dealloc(larger, Layout::from_size_align(128, 8).unwrap());
    }
}

#[inline(never)]
fn collections() {
    let mut map: HashMap<String, Vec<u32>> = HashMap::new();
    for i in 0..500u32 {
        map.entry(format!("key {}", i % 37)).or_default().push(i);
    }
    let mut sums: Vec<(u32, &String)> = map.iter().map(|(k, v)| (v.iter().sum(), k)).collect();
    sums.sort();
    println!("{:?}", sums[0]);
    let handles: Vec<_> = (0..3).map(|i| std::thread::spawn(move || vec![i; 1000].len())).collect();
    println!("{}", handles.into_iter().map(|h| h.join().unwrap()).sum::<usize>());
}

#[inline(never)]
fn panic_caught() {
    std::panic::set_hook(Box::new(|_| {}));
    let caught = std::panic::catch_unwind(|| {
        let numbers = black_box(vec![1, 2, 3]);
        numbers[black_box(5)]
    });
    println!("{}", caught.is_err());
    drop(std::panic::take_hook());
}

fn main() {
    match std::env::var("WAY").unwrap().as_str() {
        "forget" => forget(), // leak
        "rc_cycle" => rc_cycle(),
        "use_after_free" => use_after_free(),
        "double_free" => double_free(),
        "uninitialised" => uninitialised(),
        "out_of_bounds" => out_of_bounds(),
        "box_held" => box_held(),
        "thread" => thread(),
        "write_uninitialised" => write_uninitialised(),
        "vector_grown" => vector_grown(),
        "generic" => generic(),
        "closure" => closure(),
        "map_forgotten" => map_forgotten(),
        "string_over" => string_over(),
        "zeroed" => zeroed(),
        "collections" => collections(),
        "panic_caught" => panic_caught(),
        other => panic!("no way {other}"),
    }
}
