// Stands in for an executor: a crate of that name, with functions between the program's own.
use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

struct Silent;
impl Wake for Silent {
    fn wake(self: Arc<Self>) {}
}

#[inline(never)]
fn poll_task<T>(future: Pin<&mut dyn Future<Output = T>>, context: &mut Context) -> Poll<T> {
    std::hint::black_box(future.poll(context))
}

#[inline(never)]
fn enter<T>(future: Pin<&mut dyn Future<Output = T>>) -> T {
    let waker = Waker::from(Arc::new(Silent));
    let mut context = Context::from_waker(&waker);
    let mut future = future;
    loop {
        if let Poll::Ready(value) = poll_task(future.as_mut(), &mut context) {
            return std::hint::black_box(value);
        }
    }
}

#[inline(never)]
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    std::hint::black_box(enter(pin!(future)))
}

/// A future that is polled through a function of its own.
pub struct Instrumented<F>(pub Pin<Box<F>>);
impl<F: Future> Future for Instrumented<F> {
    type Output = F::Output;
    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<F::Output> {
        std::hint::black_box(self.0.as_mut().poll(context))
    }
}
