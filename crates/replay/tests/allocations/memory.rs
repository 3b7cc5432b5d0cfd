//! Tests of the memory that a kept body holds, and of the charge for it, behind real hyper servers.
//!
//! The allocator counts the bytes in use on this thread. A kept body holds as much as dropping it frees.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use reattempt_replay::{ReplayBody, ReplayLimits, ReplayMemory};
use reattempt_testing::bytes_in_use;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// The bytes of one kept body apart from its frames: the state that its readers share.
const STATE: usize = 1024;

/// A body that was read to its end by one reader, while the other was set aside.
type Saved = ReplayBody<Incoming>;

/// A server that keeps each body and reads it.
struct Server {
    address: std::net::SocketAddr,
    memory: ReplayMemory,
    /// The length of each frame as it is read; the server continues at once.
    read: mpsc::UnboundedReceiver<usize>,
    kept: mpsc::UnboundedReceiver<Option<Saved>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn start(per_call: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let memory = ReplayMemory::new(1 << 30);
        let limits = ReplayLimits::default().per_call(per_call).memory(memory.clone());
        let (read_sender, read) = mpsc::unbounded_channel();
        let (kept_sender, kept) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (limits, read, kept) = (limits.clone(), read_sender.clone(), kept_sender.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (limits, read, kept) = (limits.clone(), read.clone(), kept.clone());
                    async move {
                        let mut first = Box::pin(ReplayBody::new(request.into_body(), &limits));
                        let second = first.try_clone().unwrap();
                        while let Some(frame) = first.frame().await {
                            let _ = read.send(frame.unwrap().data_ref().map_or(0, Bytes::len));
                        }
                        drop(first);
                        let _ = kept.send(second.is_replayable().then_some(second));
                        Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
                    }
                });
                tokio::spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, memory, read, kept, task }
    }

    /// Waits until this many bytes of a body have been read.
    async fn has_read(&mut self, mut bytes: usize) {
        while bytes > 0 {
            bytes -= within(self.read.recv()).await.unwrap();
        }
    }

    async fn kept(&mut self) -> Option<Saved> {
        within(self.kept.recv()).await.unwrap()
    }

    /// Drops the bodies and checks that their charge was within a factor of 2 of their memory.
    #[track_caller]
    fn check(&self, kept: Vec<Saved>, title: &str) {
        let (charged, bodies) = (self.memory.used(), kept.len());
        assert!(charged > 0, "{title}: nothing is kept");
        let before = bytes_in_use();
        drop(kept);
        let held = usize::try_from(before - bytes_in_use()).unwrap();
        println!("{title}: held {held}, charged {charged}, {bodies} bodies");
        assert!(held <= 2 * charged + bodies * STATE, "{title}: held {held}, charged {charged}");
        assert_eq!(self.memory.used(), 0, "{title}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Fails the test if the future hangs.
async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it hangs")
}

/// The framing of a body over HTTP/1.
#[derive(Clone, Copy)]
enum Coding {
    Length,
    Chunked,
}

/// An HTTP/1 connection to the server.
struct Http1(TcpStream);

impl Http1 {
    async fn new(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Sends a body in pieces, each of which is read before the next is sent.
    async fn send(&mut self, server: &mut Server, coding: Coding, pieces: &[usize]) -> Option<Saved> {
        let total: usize = pieces.iter().sum();
        let field = match coding {
            Coding::Length => format!("content-length: {total}"),
            Coding::Chunked => "transfer-encoding: chunked".to_owned(),
        };
        let head = format!("POST / HTTP/1.1\r\nhost: a\r\n{field}\r\n\r\n");
        self.0.write_all(head.as_bytes()).await.unwrap();
        for &piece in pieces {
            let mut bytes = vec![7; piece];
            if let Coding::Chunked = coding {
                bytes.splice(0..0, format!("{piece:x}\r\n").into_bytes());
                bytes.extend(b"\r\n");
            }
            let ((), written) = tokio::join!(server.has_read(piece), self.0.write_all(&bytes));
            written.unwrap();
        }
        if let Coding::Chunked = coding {
            self.0.write_all(b"0\r\n\r\n").await.unwrap();
        }
        let kept = server.kept().await;
        let mut answer = [0; 17];
        within(self.0.read_exact(&mut answer)).await.unwrap();
        assert_eq!(&answer[..], b"HTTP/1.1 200 OK\r\n");
        // The rest of the head is small, and is read with the next response or not at all.
        let mut end = Vec::new();
        while !end.ends_with(b"\r\n\r\n") {
            end.push(within(self.0.read_u8()).await.unwrap());
        }
        kept
    }

    /// Makes the server's read buffer grow, with a body that is too large to be kept.
    async fn grow(&mut self, server: &mut Server) {
        for _ in 0..2 {
            assert!(self.send(server, Coding::Length, &[16 << 20]).await.is_none());
        }
    }
}

/// Returns this many bytes in pieces of this length.
fn pieces(total: usize, length: usize) -> Vec<usize> {
    vec![length; total / length]
}

// trap 33
#[tokio::test]
async fn held_bytes_behind_servers_are_charged() {
    for (coding, name) in [(Coding::Length, "length"), (Coding::Chunked, "chunked")] {
        for grown in [false, true] {
            let mut server = Server::start(64 * 1024).await;
            let mut client = Http1::new(&server).await;
            for length in [1, 9, 100, 1000, 1460, 4096, 6000, 8192, 12_000, 16_384, 30_000, 60_000] {
                if grown {
                    client.grow(&mut server).await;
                }
                let pieces = pieces(60_000.min(length * 2000), length);
                let kept = client.send(&mut server, coding, &pieces).await.unwrap();
                server.check(vec![kept], &format!("{name}, grown {grown}, pieces of {length}"));
            }
        }
    }
    frames_of_large_bodies().await;
    many_bodies().await;
    http2().await;
}

/// Large bodies are measured above the length from which frames are kept by reference.
async fn frames_of_large_bodies() {
    let mut server = Server::start(8 << 20).await;
    let mut client = Http1::new(&server).await;
    for length in [100_000, 200_000, 250_000, 260_000, 300_000, 400_000, 2_000_000] {
        client.grow(&mut server).await;
        let pieces = pieces(4_000_000, length);
        let kept = client.send(&mut server, Coding::Length, &pieces).await.unwrap();
        server.check(vec![kept], &format!("large, pieces of {length}"));
    }
}

/// Many bodies are measured on as many connections, and one after the other.
async fn many_bodies() {
    for grown in [false, true] {
        let mut server = Server::start(64 * 1024).await;
        let mut kept = Vec::new();
        for _ in 0..20 {
            let mut client = Http1::new(&server).await;
            if grown {
                client.grow(&mut server).await;
            }
            kept.extend(client.send(&mut server, Coding::Length, &[6 * 1024]).await);
        }
        server.check(kept, &format!("20 connections, grown {grown}"));
        let mut client = Http1::new(&server).await;
        let mut kept = Vec::new();
        for _ in 0..20 {
            kept.extend(client.send(&mut server, Coding::Length, &[6 * 1024]).await);
        }
        server.check(kept, "20 on one connection");
    }
}

/// Over HTTP/2, the frames of many bodies can share one buffer.
async fn http2() {
    let mut server = Server::start(64 * 1024).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    for length in [1, 100, 1000, 4096, 8192, 12_000, 16_384, 40_000] {
        let mut kept = Vec::new();
        for _ in 0..3 {
            let request = Request::builder().method(Method::POST).uri("http://a/").body(()).unwrap();
            let mut client = client.clone().ready().await.unwrap();
            let (response, mut upload) = client.send_request(request, false).unwrap();
            for piece in pieces(40_000.min(length * 1000), length.min(40_000)) {
                upload.send_data(vec![7; piece].into(), false).unwrap();
                server.has_read(piece).await;
            }
            let mut trailers = http::HeaderMap::new();
            for number in 0..10 {
                let name = http::HeaderName::try_from(format!("x-{number}")).unwrap();
                trailers.insert(name, "x".repeat(100).parse().unwrap());
            }
            upload.send_trailers(trailers).unwrap();
            kept.extend(server.kept().await);
            within(response).await.unwrap();
        }
        server.check(kept, &format!("HTTP/2, pieces of {length}"));
    }
    connection.abort();
}
