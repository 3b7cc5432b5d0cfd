//! Servers that misbehave on command, on a free loopback port. They run on the test's own runtime and end with it.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Returns the address of a closed listener: connections to it are refused.
pub(crate) async fn refused() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// Passes each connection to `answer`, which drops it at its end.
pub(crate) async fn serve<F, Answer>(answer: F) -> SocketAddr
where
    F: Fn(TcpStream) -> Answer + Send + 'static,
    Answer: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (connection, _) = listener.accept().await.unwrap();
            tokio::spawn(answer(connection));
        }
    });
    address
}

/// Reads an HTTP/1 request up to the end of its head.
pub(crate) async fn read_head(connection: &mut (impl AsyncRead + Unpin)) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await.unwrap());
    }
}

/// Reads and discards until the client closes the connection.
pub(crate) async fn read_on(connection: &mut TcpStream) {
    let mut buffer = [0; 1024];
    while matches!(connection.read(&mut buffer).await, Ok(1..)) {}
}

/// Ends the connection with a TCP reset instead of an orderly close.
#[allow(deprecated, reason = "`set_zero_linger` is newer than the oldest tokio that is supported")]
pub(crate) fn reset(connection: TcpStream) {
    connection.set_linger(Some(Duration::ZERO)).unwrap();
}

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const GOAWAY: u8 = 7;

/// Writes one HTTP/2 frame, valid or not (RFC 9113 §4.1).
pub(crate) async fn write_frame(
    connection: &mut (impl AsyncWrite + Unpin),
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &[u8],
) {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    connection.write_all(&frame).await.unwrap();
}

/// Writes a GOAWAY frame with this last stream (RFC 9113 §6.8).
pub(crate) async fn write_goaway(connection: &mut TcpStream, last_stream: u32, code: u32) {
    let payload = [last_stream.to_be_bytes(), code.to_be_bytes()].concat();
    write_frame(connection, GOAWAY, 0, 0, &payload).await;
}

/// Performs the server's part of the HTTP/2 handshake, and reads up to the request's HEADERS.
pub(crate) async fn read_http2_headers(connection: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let mut preface = [0; 24];
    connection.read_exact(&mut preface).await.unwrap();
    write_frame(connection, SETTINGS, 0, 0, &[]).await;
    let mut head = [0; 9];
    while head[3] != HEADERS {
        connection.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        connection.read_exact(&mut payload).await.unwrap();
    }
}
