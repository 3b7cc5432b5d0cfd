//! The server behind the wire rows: a process that answers every PUT.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;

use super::runtime;
use crate::requests::kilobyte;

/// The path that is answered with 200.
pub(super) const STEADY: &str = "orders";
/// The path that is answered with 503 and 200 by turns.
pub(super) const FLAKY: &str = "flaky";

/// The body of every answer.
pub(super) const ANSWER: &[u8] = b"carried out";

/// A running server: this program in another process, which ends when this value is dropped.
pub(super) struct Server {
    process: Child,
    port: u16,
}

impl Server {
    pub(super) fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut process = command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, port: port.trim().parse().unwrap() }
    }

    pub(super) fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process ends when its standard input does.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Serves until the standard input ends; the port is the first line of the standard output.
pub fn serve() {
    std::thread::spawn(|| {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut output = std::io::stdout();
        writeln!(output, "{}", listener.local_addr().unwrap().port()).unwrap();
        output.flush().unwrap();
        runtime().block_on(accept(listener));
    });
    // The input has no data: it ends together with the process that started this one.
    let _ = std::io::stdin().read(&mut [0]);
}

/// The number of requests to [`FLAKY`].
static TURN: AtomicU64 = AtomicU64::new(0);

async fn accept(listener: std::net::TcpListener) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::spawn(async move {
            let service = service_fn(|request: Request<hyper::body::Incoming>| {
                let flaky = request.uri().path().strip_prefix('/') == Some(FLAKY);
                let status = match flaky && TURN.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                    true => StatusCode::SERVICE_UNAVAILABLE,
                    false => StatusCode::OK,
                };
                async move {
                    let sent = request.into_body().collect().await?.to_bytes();
                    assert_eq!(sent, kilobyte());
                    let mut answer = Response::new(Full::new(Bytes::from_static(ANSWER)));
                    *answer.status_mut() = status;
                    Ok::<_, hyper::Error>(answer)
                }
            });
            let mut connection = auto::Builder::new(TokioExecutor::new());
            // The rows with many calls in flight send up to this many on one connection.
            connection.http2().max_concurrent_streams(1024);
            // A client that disconnects is no error of the server.
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
