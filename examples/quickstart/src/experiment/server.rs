//! The faulty server: a hyper server that follows the script for each attempt.
//!
//! Input: requests for `/client/call`. Output: answers, resets, or no answer. Each arrival is
//! recorded before it is answered, so the journal is complete once the clients are done.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use super::ATTEMPT_TIMEOUT;
use super::journal::{Arrival, Journal, Sender};
use super::script::{Reply, Script, Step, Wait};
use super::upload::Upload;

/// Far more than the clients open, and well below the limit of a process.
const MAX_CONNECTIONS: usize = 256;

/// Long enough for the head of a response, and half of its body, to be read before the reset.
const BEFORE_BREAKING_OFF: Duration = Duration::from_millis(30);

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    /// A bound port without a listener: connections to it are refused.
    refusing: TcpSocket,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts on free loopback ports.
    pub(crate) async fn start(script: Arc<Script>, journal: Arc<Journal>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let refusing = TcpSocket::new_v4()?;
        refusing.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let accepting = tokio::spawn(accept(listener, script, journal));
        Ok(Self { address, refusing, accepting })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address at which connections are refused.
    pub(crate) fn refusing_address(&self) -> io::Result<SocketAddr> {
        self.refusing.local_addr()
    }

    /// Closes every connection and both ports.
    pub(crate) async fn stop(self) {
        self.accepting.abort();
        // The only possible error is that the task was aborted.
        let _ = self.accepting.await;
    }
}

async fn accept(listener: TcpListener, script: Arc<Script>, journal: Arc<Journal>) {
    // Owns the connections, which end with it.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, Arc::clone(&script), Arc::clone(&journal)));
            }
            // Probably too many open files; some will be closed soon.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, script: Arc<Script>, journal: Arc<Journal>) {
    // However hyper closes the connection, it is a reset.
    if stream.set_zero_linger().is_err() {
        return;
    }
    let service = service_fn(|request| respond(request, &script, &journal));
    // Errors are expected: the script causes them.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// An error that makes hyper drop the connection.
#[derive(Debug)]
struct GiveUp;

type Answer = Response<UnsyncBoxBody<Bytes, GiveUp>>;

async fn respond(request: Request<Incoming>, script: &Script, journal: &Journal) -> Result<Answer, GiveUp> {
    let Some((sender, id)) = route(request.uri().path()) else {
        return Ok(status(StatusCode::NOT_FOUND));
    };
    let Some(call) = script.call(id) else {
        return Ok(status(StatusCode::NOT_FOUND));
    };
    let arrival = Arrival {
        sender,
        call: id,
        method: request.method().clone(),
        key: request.headers().contains_key("idempotency-key"),
    };
    let body = request.into_body().collect().await.map(|body| body.to_bytes());
    let whole = body.is_ok_and(|body| Upload::new(id, call.kind).equals(&body));
    let step = journal.record(arrival, |arrival| match whole {
        true => call.step(arrival),
        false => Step::GARBLED,
    });
    match step.reply {
        Reply::Status(code, wait) => Ok(refusal_or_success(code, wait)),
        Reply::Reset => Err(GiveUp),
        Reply::BreakOff => Ok(broken_off()),
        Reply::Slow => {
            // The client disconnects long before, and hyper drops this future.
            sleep(ATTEMPT_TIMEOUT * 10).await;
            Ok(status(StatusCode::OK))
        }
    }
}

/// Parses the client and the call of `/client/call`.
fn route(path: &str) -> Option<(Sender, u32)> {
    let (sender, id) = path.strip_prefix('/')?.split_once('/')?;
    Some((Sender::named(sender)?, id.parse().ok()?))
}

fn refusal_or_success(code: u16, wait: Wait) -> Answer {
    let mut answer = status(StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST));
    let headers = answer.headers_mut();
    match wait {
        Wait::Unsaid => None,
        Wait::Seconds(seconds) => headers.insert(header::RETRY_AFTER, seconds.into()),
        Wait::Millis(millis) => headers.insert(HeaderName::from_static("retry-after-ms"), millis.into()),
    };
    answer
}

fn status(status: StatusCode) -> Answer {
    let body = Full::from(format!("{status}\n")).map_err(|never| match never {});
    let mut answer = Response::new(body.boxed_unsync());
    *answer.status_mut() = status;
    answer
}

/// Returns a 200 that announces twice the bytes it sends.
fn broken_off() -> Answer {
    let half = Bytes::from_static(b"the first half of ");
    let length = half.len() * 2;
    let frames = stream::unfold(Some(half), |half| async {
        match half {
            Some(half) => Some((Ok(Frame::data(half)), None)),
            None => {
                sleep(BEFORE_BREAKING_OFF).await;
                Some((Err(GiveUp), None))
            }
        }
    });
    let mut answer = Response::new(StreamBody::new(frames).boxed_unsync());
    answer.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    answer
}

impl fmt::Display for GiveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script says so")
    }
}

impl std::error::Error for GiveUp {}
