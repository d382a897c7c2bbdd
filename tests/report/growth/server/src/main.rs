//! A server with twelve ways to use memory: eight that grow with every request, four that do not.
//! Line numbers of interest are marked "grows: NAME" for the driver.
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use hyper::service::{make_service_fn, service_fn};
use hyper::{Body, Request, Response, Server};
use tokio::sync::mpsc;

#[cfg(feature = "jemalloc")]
mod jemalloc;

static COUNT: AtomicU64 = AtomicU64::new(0);

fn next() -> u64 {
    COUNT.fetch_add(1, Ordering::Relaxed)
}

struct State {
    cache: Mutex<HashMap<u64, Vec<u8>>>,
    listeners: Mutex<Vec<Box<dyn Fn(u64) -> u64 + Send>>>,
    buffer: Mutex<Vec<u8>>,
    channel: mpsc::UnboundedSender<Vec<u8>>,
    _receiver: Mutex<mpsc::UnboundedReceiver<Vec<u8>>>,
    bounded: Mutex<(HashMap<u64, Vec<u8>>, VecDeque<u64>)>,
    pool: Mutex<Vec<Vec<u8>>>,
    table: OnceLock<HashMap<u64, String>>,
    sessions: Mutex<Vec<Vec<u8>>>,
}

#[inline(never)]
fn grow_cache(state: &State) {
    let key = next();
    state.cache.lock().unwrap().insert(key, vec![1; 500]); // grows: cache
}

#[inline(never)]
fn subscribe(state: &State) {
    let captured = vec![next(); 60]; // grows: listeners
    state.listeners.lock().unwrap().push(Box::new(move |x| x + captured[0]));
}

struct Node {
    other: RefCell<Option<Rc<Node>>>,
    _data: Vec<u8>,
}

#[inline(never)]
fn make_cycle() {
    let a = Rc::new(Node { other: RefCell::new(None), _data: vec![2; 400] }); // grows: cycles
    let b = Rc::new(Node { other: RefCell::new(Some(a.clone())), _data: Vec::new() }); // grows: cycles
    *a.other.borrow_mut() = Some(b);
}

#[inline(never)]
fn append(state: &State) {
    state.buffer.lock().unwrap().extend_from_slice(&[3; 400]); // grows: buffers
}

thread_local! {
    static SEEN: RefCell<Vec<Vec<u8>>> = RefCell::new(Vec::new());
}

#[inline(never)]
fn note_on_thread() {
    SEEN.with(|seen| seen.borrow_mut().push(vec![4; 450])); // grows: threads
}

#[inline(never)]
fn send(state: &State) {
    let _ = state.channel.send(vec![5; 480]); // grows: channel
}

#[inline(never)]
fn detach() {
    let data = vec![6u8; 300];
    tokio::spawn(async move { // grows: tasks
        std::future::pending::<()>().await;
        drop(data);
    });
}

#[inline(never)]
fn forget_box() {
    std::mem::forget(std::hint::black_box(Box::new([7u8; 512]))); // grows: boxes
}

#[inline(never)]
fn keep_bounded(state: &State) {
    let mut cache = state.bounded.lock().unwrap();
    let key = next();
    cache.0.insert(key, vec![8; 500]);
    cache.1.push_back(key);
    if cache.1.len() > 200 {
        let old = cache.1.pop_front().unwrap();
        cache.0.remove(&old);
    }
}

#[inline(never)]
fn use_pool(state: &State) -> usize {
    let taken = state.pool.lock().unwrap().pop();
    let mut buffer = taken.unwrap_or_else(|| Vec::with_capacity(16384));
    buffer.clear();
    buffer.extend_from_slice(&[9; 1000]);
    let length = buffer.len();
    state.pool.lock().unwrap().push(buffer);
    length
}

#[inline(never)]
fn warm_up(state: &State) -> usize {
    let table = state.table.get_or_init(|| (0..2000).map(|i| (i, format!("entry {i} {i}"))).collect());
    let text: String = table[&(next() % 2000)].repeat(4);
    text.len()
}

/// Sessions of a load; `/stop` ends them all.
#[inline(never)]
fn open_session(state: &State) {
    state.sessions.lock().unwrap().push(vec![10; 700]);
}

#[inline(never)]
fn stop(state: &State) {
    *state.sessions.lock().unwrap() = Vec::new();
}

async fn answer(state: Arc<State>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let mut length = 0;
    match request.uri().path() {
        "/cache" => grow_cache(&state),
        "/listeners" => subscribe(&state),
        "/cycles" => make_cycle(),
        "/buffers" => append(&state),
        "/threads" => note_on_thread(),
        "/channel" => send(&state),
        "/tasks" => detach(),
        "/boxes" => forget_box(),
        "/bounded" => keep_bounded(&state),
        "/pool" => length = use_pool(&state),
        "/warmup" => length = warm_up(&state),
        "/load" => open_session(&state),
        "/stop" => stop(&state),
        _ => {}
    }
    Ok(Response::new(Body::from(format!("{} {length}\n", request.uri().path()))))
}

async fn serve() {
    let (channel, receiver) = mpsc::unbounded_channel();
    let state = Arc::new(State {
        cache: Default::default(),
        listeners: Default::default(),
        buffer: Default::default(),
        channel,
        _receiver: Mutex::new(receiver),
        bounded: Default::default(),
        pool: Default::default(),
        table: OnceLock::new(),
        sessions: Default::default(),
    });
    let make = make_service_fn(move |_| {
        let state = state.clone();
        async move {
            Ok::<_, Infallible>(service_fn(move |request| answer(state.clone(), request)))
        }
    });
    let server = Server::bind(&SocketAddr::from(([127, 0, 0, 1], 0))).serve(make);
    println!("{}", server.local_addr().port());
    let stopped = server.with_graceful_shutdown(async {
        let _ = tokio::signal::ctrl_c().await;
    });
    let _ = stopped.await;
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    runtime.block_on(serve());
}
