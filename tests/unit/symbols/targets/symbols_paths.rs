// Functions of one name in two modules, an async function and two closures, all inlined.
use std::future::Future;
use std::hint::black_box;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

mod a {
    #[inline(always)]
    pub fn work(n: u64) -> u64 {
        (0..n).map(|x| x ^ super::black_box(7)).sum()
    }
}

mod b {
    #[inline(always)]
    pub fn work(n: u64) -> u64 {
        (0..n).fold(super::black_box(3), |x, y| x * 31 + y)
    }
}

async fn serve(n: u64) -> u64 {
    a::work(n) + b::work(n)
}

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

fn main() {
    let waker = Arc::new(Nobody).into();
    let n = std::env::args().count() as u64;
    if let Poll::Ready(sum) = Box::pin(serve(n)).as_mut().poll(&mut Context::from_waker(&waker)) {
        println!("{sum}");
    }
}
