//! A small shop: an HTTP server without dependencies, with one mistake behind each page. The guides in
//! docs/guides find them; `--features fixed` mends them.
//!
//!     shop PORT
use shop::Shop;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

fn answer(shop: &Shop, stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(&stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or("/").to_string();
    while reader.read_line(&mut line)? > 2 {} // the headers
    let body = shop.answer(&path);
    let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
    let body = body.unwrap_or_default();
    write!(&stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).expect("usage: shop PORT");
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))?;
    let shop = Arc::new(Shop::new(2000));
    println!("listening on {port}");
    for stream in listener.incoming() {
        let (shop, stream) = (shop.clone(), stream?);
        std::thread::spawn(move || answer(&shop, stream));
    }
    Ok(())
}
