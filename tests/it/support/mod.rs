//! A server on a loopback port that follows a script and records the requests.
//!
//! Input: a list of answers, one for each request in the order of arrival; later requests are
//! answered with 200. Output: the heads, whole bodies and connections of the requests. The server
//! stops with all its connections when it is dropped.

pub(crate) mod echo;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use reattempt::schedule::Constant;
use reattempt::{Http, RetryBudget, RetryPolicy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Returns the default policy with two changes. The delay is long enough for a connection to return to its pool, and
/// too short to be noticed. The budget stays open after many failures.
pub(crate) fn quick() -> RetryPolicy<Http, Constant> {
    RetryPolicy::http().backoff(Constant::new(Duration::from_millis(10))).budget(RetryBudget::percent(10))
}

/// The server's treatment of one request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The request is read to its end and then answered.
    Reply(Response<Full<Bytes>>),
    /// The request is read to its end, and answered with this status and a body in chunks.
    Chunked(u16, &'static [&'static str]),
    /// The request is answered after its head; its body is read as well.
    Early(Response<Full<Bytes>>),
    /// The request is read to its end, and its connection (on HTTP/2: its stream) is reset.
    Reset,
}

/// Returns an answer with this status and a short body.
pub(crate) fn status(code: u16) -> Answer {
    Answer::Reply(response(code, "short"))
}

pub(crate) fn response(code: u16, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    Response::builder().status(code).body(Full::new(body.into())).unwrap()
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The number of its connection, from 1.
    pub(crate) connection: usize,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// The body; `None` if it was incomplete.
    pub(crate) body: Option<Bytes>,
}

#[derive(Debug)]
struct Book {
    script: Mutex<VecDeque<Answer>>,
    seen: Mutex<Vec<Seen>>,
    arrivals: watch::Sender<usize>,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    book: Arc<Book>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts a server of HTTP/1.
    pub(crate) async fn http1(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::start(false, script).await
    }

    /// Starts a server of HTTP/2 alone.
    pub(crate) async fn http2(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::start(true, script).await
    }

    async fn start(http2: bool, script: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let book = Arc::new(Book {
            script: Mutex::new(script.into_iter().collect()),
            seen: Mutex::default(),
            arrivals: watch::Sender::new(0),
        });
        let task = tokio::spawn(accept(listener, http2, Arc::clone(&book)));
        Self { address, book, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns all requests.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.book.seen.lock().unwrap().clone()
    }

    /// Returns the bodies as text.
    pub(crate) fn bodies(&self) -> Vec<String> {
        let text = |body: Bytes| String::from_utf8(body.to_vec()).unwrap();
        self.seen().into_iter().filter_map(|seen| seen.body).map(text).collect()
    }

    /// Waits until the head of request `number`, from 1, has arrived.
    pub(crate) async fn arrived(&self, number: usize) {
        self.book.arrivals.subscribe().wait_for(|arrivals| *arrivals >= number).await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, http2: bool, book: Arc<Book>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        if book.script.lock().unwrap().iter().any(|answer| matches!(answer, Answer::Reset)) {
            // Closing then sends a reset.
            stream.set_zero_linger().unwrap();
        }
        connections.spawn(serve(stream, connections.len() + 1, http2, Arc::clone(&book)));
    }
}

async fn serve(stream: TcpStream, connection: usize, http2: bool, book: Arc<Book>) {
    let service = service_fn(|request| answer(request, connection, Arc::clone(&book)));
    let io = TokioIo::new(stream);
    // The client may end the connection in any way.
    let _ = if http2 {
        http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await
    } else {
        http1::Builder::new().serve_connection(io, service).await
    };
}

async fn answer(
    request: Request<Incoming>,
    connection: usize,
    book: Arc<Book>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, &'static str> {
    let (head, body) = request.into_parts();
    let answer = book.script.lock().unwrap().pop_front().unwrap_or_else(|| status(200));
    let index = {
        let mut seen = book.seen.lock().unwrap();
        let path = head.uri.path().to_owned();
        seen.push(Seen { connection, method: head.method, path, headers: head.headers, body: None });
        seen.len() - 1
    };
    book.arrivals.send_modify(|arrivals| *arrivals += 1);
    let read = async move {
        if let Ok(body) = body.collect().await {
            book.seen.lock().unwrap()[index].body = Some(body.to_bytes());
        }
    };
    match answer {
        Answer::Reply(response) => {
            read.await;
            Ok(response.map(Full::boxed_unsync))
        }
        Answer::Chunked(code, chunks) => {
            read.await;
            let frames = chunks.iter().map(|chunk| Ok(Frame::data(Bytes::from(*chunk))));
            let body = StreamBody::new(stream::iter(frames)).boxed_unsync();
            Ok(Response::builder().status(code).body(body).unwrap())
        }
        Answer::Early(response) => {
            tokio::spawn(read);
            Ok(response.map(Full::boxed_unsync))
        }
        Answer::Reset => {
            read.await;
            Err("reset, as the script has it")
        }
    }
}
