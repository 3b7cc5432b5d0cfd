//! Tests of a `reqwest::Client`'s hedged calls over loopback: what the server sees of the loser, and what the caller
//! sees of the winner.

use std::io;
use std::pin::pin;
use std::time::Duration;

use reattempt::hedge::{Hedge, HedgeLayer, HedgePolicy};
use reattempt::{CallOptions, Report};
use reqwest::{Client, Method, Request};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tower::{Layer, Service, ServiceExt};

/// Returns a client that sends two attempts at once.
fn client() -> Hedge<Client> {
    let policy = HedgePolicy::http().delay(Duration::ZERO);
    HedgeLayer::new(policy).layer(Client::builder().no_proxy().build().unwrap())
}

/// Reads until the received text ends with `end`.
async fn read_to(stream: &TcpStream, end: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(end) {
        let part = read(stream).await.unwrap();
        assert!(!part.is_empty(), "closed after {text:?}");
        text.push_str(&part);
    }
    text
}

/// Returns the next readable bytes; empty at the end.
async fn read(stream: &TcpStream) -> io::Result<String> {
    loop {
        // So that a failing test does not hang.
        timeout(Duration::from_secs(20), stream.readable()).await??;
        let mut buffer = [0; 1024];
        match stream.try_read(&mut buffer) {
            Ok(length) => return Ok(String::from_utf8_lossy(&buffer[..length]).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns `true` if the client closes the connection, and nothing more can be read from it.
async fn is_closed(stream: &TcpStream) -> bool {
    match read(stream).await {
        Ok(rest) => rest.is_empty(),
        Err(error) => error.kind() != io::ErrorKind::TimedOut,
    }
}

async fn write(stream: &TcpStream, text: &str) {
    stream.writable().await.unwrap();
    assert_eq!(stream.try_write(text.as_bytes()).unwrap(), text.len());
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n";

// HG-3
#[tokio::test]
async fn losers_connection_closes_winner_streams() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let request = Request::new(Method::GET, url.parse().unwrap());
    let mut client = client();
    ServiceExt::<Request>::ready(&mut client).await.unwrap();
    let mut call = pin!(client.call(request));
    let server = async {
        let (one, _) = listener.accept().await.unwrap();
        let (other, _) = listener.accept().await.unwrap();
        read_to(&one, "\r\n\r\n").await;
        read_to(&other, "\r\n\r\n").await;
        write(&other, HEAD).await;
        (one, other)
    };
    let (response, (one, other)) = tokio::join!(call.as_mut(), server);
    let mut response = response.unwrap();
    // The response has not ended and the call is still held, but the loser is already gone.
    assert!(is_closed(&one).await);
    assert_eq!(response.extensions().get::<Report>().unwrap().retries() + 1, 2);
    for part in ["one", "two"] {
        write(&other, part).await;
        assert_eq!(response.chunk().await.unwrap().unwrap(), part);
    }
    assert!(response.chunk().await.unwrap().is_none());
}

// HG-10
#[tokio::test]
async fn every_attempt_sends_body_refusal_loses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut request = Request::new(Method::POST, url.parse().unwrap());
    *request.body_mut() = Some("hello".into());
    let client = client().with_options(CallOptions::new().repeatable(true));
    let call = tokio::spawn(client.oneshot(request));
    let (one, _) = listener.accept().await.unwrap();
    let (other, _) = listener.accept().await.unwrap();
    for stream in [&one, &other] {
        assert!(read_to(stream, "hello").await.starts_with("POST / HTTP/1.1\r\n"));
    }
    write(&one, "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    // Closed by the client, which has then read the refusal.
    assert!(is_closed(&one).await);
    write(&other, HEAD).await;
    write(&other, "answer").await;
    let response = call.await.unwrap().unwrap();
    assert_eq!((response.status().as_u16(), &*response.text().await.unwrap()), (200, "answer"));
}
