//! A service that serves two versions of a file by a script, and records the requests.

use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{self, Either, Ready};
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use reattempt::RetryBudget;
use reattempt::resume::{Mismatch, NotContinued, Resume, ResumeLayer};
use reattempt::schedule::Constant;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// The length of every version.
pub(super) const LENGTH: usize = 1000;

/// Returns the content of a version. No version has the byte of another at any position.
pub(super) fn content(version: u8) -> Bytes {
    (0..LENGTH).map(|at| u8::try_from(at % 83).unwrap() * 3 + version).collect()
}

/// A part of an answer's body.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
    Error(io::ErrorKind),
    /// An error of a type that no rule knows.
    Unknown,
    /// Nothing more comes.
    Stall,
}

/// A scripted body.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pieces: VecDeque<Piece>,
    exact: Option<u64>,
    _open: Option<Arc<()>>,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(Piece::Stall) = self.pieces.front() {
            return Poll::Pending;
        }
        Poll::Ready(match self.pieces.pop_front() {
            Some(Piece::Data(data)) => Some(Ok(Frame::data(data))),
            Some(Piece::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
            Some(Piece::Error(kind)) => Some(Err(io::Error::from(kind).into())),
            Some(Piece::Unknown) => Some(Err("a checksum differs".into())),
            Some(Piece::Stall) | None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.exact.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// An answer of the script.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) pieces: Vec<Piece>,
    pub(super) exact: Option<u64>,
    pub(super) fails: Option<io::ErrorKind>,
    pub(super) never: bool,
}

impl Answer {
    pub(super) fn status(status: u16) -> Self {
        let (fields, pieces) = (Vec::new(), Vec::new());
        Self { status, fields, pieces, exact: None, fails: None, never: false }
    }

    /// Returns an answer with a version's bytes up to `end`, then `last`.
    fn of(version: u8, status: u16, range: std::ops::Range<usize>, last: impl Into<Option<Piece>>) -> Self {
        let data = content(version).slice(range);
        // In two frames, because a frame's end is no break.
        let half = data.len() / 2;
        let pieces = [data.slice(..half), data.slice(half..)].map(Piece::Data).into_iter().chain(last.into()).collect();
        let fields = vec![("etag", format!("\"{version}\""))];
        Self { status, fields, pieces, exact: None, fails: None, never: false }
    }

    /// Returns the first bytes of a version, then a lost connection.
    pub(super) fn whole(version: u8, end: usize) -> Self {
        let last = (end < LENGTH).then_some(Piece::Error(io::ErrorKind::ConnectionReset));
        Self::of(version, 200, 0..end, last).with("content-length", LENGTH)
    }

    /// Returns the rest of a version up to `end`, then a lost connection.
    pub(super) fn rest(version: u8, start: usize, end: usize) -> Self {
        let last = (end < LENGTH).then_some(Piece::Error(io::ErrorKind::ConnectionReset));
        let range = format!("bytes {start}-{}/{LENGTH}", LENGTH - 1);
        Self::of(version, 206, start..end, last).with("content-range", range)
    }

    pub(super) fn failing(kind: io::ErrorKind) -> Self {
        Self { fails: Some(kind), ..Self::status(200) }
    }

    pub(super) fn never() -> Self {
        Self { never: true, ..Self::status(200) }
    }

    /// Replaces a field; an empty value removes it.
    pub(super) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        let value = value.to_string();
        self.fields.retain(|(other, _)| *other != name);
        if !value.is_empty() {
            self.fields.push((name, value));
        }
        self
    }

    /// Replaces what follows the data.
    pub(super) fn ending(mut self, last: impl Into<Option<Piece>>) -> Self {
        self.pieces.retain(|piece| matches!(piece, Piece::Data(_)));
        self.pieces.extend(last.into());
        self
    }

    pub(super) fn exact(mut self, bytes: u64) -> Self {
        self.exact = Some(bytes);
        self
    }

    fn response(self, open: &Arc<()>) -> Response<Pieces> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.fields {
            response = response.header(name, value);
        }
        let open = Some(Arc::clone(open));
        response.body(Pieces { pieces: self.pieces.into(), exact: self.exact, _open: open }).unwrap()
    }
}

/// The requests that arrived, with their times.
type Seen = Arc<Mutex<Vec<(Request<()>, Duration)>>>;

/// A service that answers by a script. An answer without a script is 410.
#[derive(Debug, Clone)]
pub(super) struct Server {
    script: Arc<Mutex<VecDeque<Answer>>>,
    seen: Seen,
    began: Instant,
    open: Arc<()>,
}

impl Server {
    pub(super) fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        let script = Arc::new(Mutex::new(script.into_iter().collect()));
        Self { script, seen: Arc::default(), began: Instant::now(), open: Arc::default() }
    }

    /// Returns the requests that arrived.
    pub(super) fn seen(&self) -> Vec<Request<()>> {
        self.seen.lock().unwrap().iter().map(|(request, _)| request.clone()).collect()
    }

    /// Returns the times at which they arrived, in milliseconds.
    pub(super) fn times(&self) -> Vec<u128> {
        self.seen.lock().unwrap().iter().map(|(_, time)| time.as_millis()).collect()
    }

    pub(super) fn ranges(&self) -> Vec<String> {
        let range = |request: &Request<()>| {
            request.headers().get("range").map_or(String::new(), |value| value.to_str().unwrap().to_owned())
        };
        self.seen().iter().map(range).collect()
    }

    /// Returns the number of response bodies that are not dropped.
    pub(super) fn open_bodies(&self) -> usize {
        Arc::strong_count(&self.open) - 1 - self.clones()
    }

    fn clones(&self) -> usize {
        // Each clone of the server holds one reference too.
        Arc::strong_count(&self.seen) - 1
    }
}

impl<B> Service<Request<B>> for Server {
    type Response = Response<Pieces>;
    type Error = BoxError;
    type Future =
        Either<Ready<Result<Response<Pieces>, BoxError>>, future::Pending<Result<Response<Pieces>, BoxError>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.seen.lock().unwrap().push((request.map(drop), self.began.elapsed()));
        let answer = self.script.lock().unwrap().pop_front().unwrap_or_else(|| Answer::status(410));
        if answer.never {
            return Either::Right(future::pending());
        }
        Either::Left(future::ready(match answer.fails {
            Some(kind) => Err(io::Error::from(kind).into()),
            None => Ok(answer.response(&self.open)),
        }))
    }
}

/// Returns a layer whose delays are 100 ms, and whose budget grants everything.
pub(super) fn layer() -> ResumeLayer<Constant, RetryBudget> {
    ResumeLayer::http().backoff(Constant::new(Duration::from_millis(100))).budget(RetryBudget::unlimited())
}

pub(super) type Client = Resume<Server, Constant, RetryBudget>;

pub(super) fn client(server: &Server) -> Client {
    layer().layer(server.clone())
}

pub(super) fn get() -> Request<String> {
    Request::get("http://one.example/file?a=b").body(String::new()).unwrap()
}

/// The bytes that the caller has read, and the error if there is one.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) data: Vec<u8>,
    pub(super) trailers: Option<HeaderMap>,
    pub(super) error: Option<BoxError>,
}

/// Reads a body to its end. Each size hint must be honest, and the body must stay ended.
pub(super) async fn read<B>(mut body: B) -> Read
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    let mut read = Read { data: Vec::new(), trailers: None, error: None };
    let mut hints = Vec::new();
    loop {
        hints.push((read.data.len(), body.size_hint()));
        if body.is_end_stream() {
            break;
        }
        match body.frame().await {
            None => break,
            Some(Err(error)) => {
                read.error = Some(error);
                break;
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => read.data.extend(data),
                Err(frame) => read.trailers = frame.into_trailers().ok(),
            },
        }
    }
    if read.error.is_none() {
        for (at, hint) in hints {
            let left = u64::try_from(read.data.len() - at).unwrap();
            assert!(hint.lower() <= left, "{hint:?} with {left} bytes left");
            assert!(hint.upper().is_none_or(|upper| left <= upper), "{hint:?} with {left} bytes left");
        }
    }
    assert!(body.frame().await.is_none(), "the body stays ended");
    read
}

/// Returns the reason why the body was not continued.
pub(super) fn mismatch(read: &Read) -> Option<Mismatch> {
    read.error.as_ref()?.downcast_ref::<NotContinued>().map(NotContinued::mismatch)
}

/// Sends a GET and reads the response.
pub(super) async fn download(server: &Server) -> Read {
    read(client(server).oneshot(get()).await.unwrap().into_body()).await
}

/// Fails unless `read` is a prefix of one version that ends with a lost connection after `bytes`.
pub(super) fn assert_broken(read: &Read, version: u8, bytes: usize) {
    assert_eq!(read.data, content(version)[..bytes]);
    let error = read.error.as_ref().expect("a prefix ends with an error");
    let error = error.source().unwrap_or(&**error);
    let error = error.downcast_ref::<io::Error>().expect("the error is the inner body's own");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}
