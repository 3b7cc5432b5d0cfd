//! An HTTP/2 server that follows a script on each stream, down to single frames.
//!
//! Input: scripts, one for each stream in the order of arrival. After the last script, every call
//! is answered with its own message and OK. Output: the heads of the attempts, and their results.
//! The server stops with all its connections when it is dropped.
//!
//! Each step is sent in frames of its own before the next begins, so a reset does not overtake the
//! headers before it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::{Either, select};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tonic::transport::{Channel, Endpoint};

use super::tap::{Tap, Valve};

/// One step on a stream.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// The request is read to its end.
    Read,
    /// HEADERS, with more frames to follow.
    Head(Response<()>),
    /// HEADERS that end the stream.
    Only(Response<()>),
    /// DATA.
    Data(Bytes),
    /// DATA: the message that has been read.
    Echo,
    /// An empty DATA frame that ends the stream.
    End,
    /// HEADERS that end the stream, after others.
    Trailers(HeaderMap),
    /// RST_STREAM.
    Reset(Reason),
    /// GOAWAY that still accepts this stream.
    GoAwayAbove(Reason),
    /// GOAWAY that excludes this stream.
    GoAwayBelow(Reason),
    /// The connection is cut after all earlier frames.
    Cut,
    /// The server waits until the client abandons the stream.
    Hang,
    /// The server waits for the test's notification.
    Wait(Arc<Notify>),
}

/// An attempt as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    /// The number of its connection, from 1.
    pub(crate) connection: usize,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// The request, once it has been read to its end.
    pub(crate) body: Option<Vec<u8>>,
    /// `true` if the client abandoned the stream, in a script that waited for that.
    pub(crate) given_up: bool,
    /// The reason with which it did so.
    pub(crate) reset: Option<Reason>,
}

#[derive(Debug, Default)]
struct Book {
    most_streams: Mutex<Option<u32>>,
    scripts: Mutex<VecDeque<Vec<Step>>>,
    arrivals: watch::Sender<Vec<Arrival>>,
}

/// The server.
#[derive(Debug)]
pub(crate) struct Server {
    book: Arc<Book>,
    dial: Dial,
    task: JoinHandle<()>,
}

/// The transport to the server.
#[derive(Debug)]
enum Dial {
    Loopback(SocketAddr),
    /// Pipes in memory, which a paused clock does not outrun.
    Pipes(mpsc::UnboundedSender<DuplexStream>),
}

impl Server {
    /// Starts the server on a loopback port.
    pub(crate) async fn start(scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let book = Book::of(scripts);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dial = Dial::Loopback(listener.local_addr().unwrap());
        let serving = Arc::clone(&book);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                connections.spawn(serve(stream, connections.len() + 1, Arc::clone(&serving)));
            }
        });
        Self { book, dial, task }
    }

    /// Starts the server in memory, for tests of time.
    pub(crate) fn in_memory(scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let book = Book::of(scripts);
        let (dial, mut dialled) = mpsc::unbounded_channel();
        let serving = Arc::clone(&book);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Some(stream) = dialled.recv().await {
                connections.spawn(serve(stream, connections.len() + 1, Arc::clone(&serving)));
            }
        });
        Self { book, dial: Dial::Pipes(dial), task }
    }

    /// Returns a channel to the server, which connects with its first call.
    pub(crate) fn channel(&self) -> Channel {
        match &self.dial {
            Dial::Loopback(address) => Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy(),
            Dial::Pipes(dial) => {
                let dial = dial.clone();
                let connector = tower::service_fn(move |_: Uri| {
                    let (near, far) = tokio::io::duplex(1024 * 1024);
                    let dialled = dial.send(far).map_err(|_| std::io::Error::other("stopped"));
                    std::future::ready(dialled.map(|()| TokioIo::new(near)))
                });
                Endpoint::from_static("http://in.memory").connect_with_connector_lazy(connector)
            }
        }
    }

    /// Limits the concurrent streams of later connections.
    pub(crate) fn allow(&self, streams: u32) {
        *self.book.most_streams.lock().unwrap() = Some(streams);
    }

    /// Returns all arrivals.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.book.arrivals.borrow().clone()
    }

    /// Returns the number of attempts that have arrived.
    pub(crate) fn calls(&self) -> usize {
        self.book.arrivals.borrow().len()
    }

    /// Returns one field of each attempt.
    pub(crate) fn fields(&self, name: &str) -> Vec<Option<String>> {
        let text = |arrival: &Arrival| {
            let value = arrival.headers.get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        self.book.arrivals.borrow().iter().map(text).collect()
    }

    /// Waits until the arrivals fulfil a condition.
    pub(crate) async fn until(&self, is: impl FnMut(&Vec<Arrival>) -> bool) {
        self.book.arrivals.subscribe().wait_for(is).await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Book {
    fn of(scripts: impl IntoIterator<Item = Vec<Step>>) -> Arc<Self> {
        let scripts = Mutex::new(scripts.into_iter().collect());
        Arc::new(Self { scripts, ..Self::default() })
    }

    fn note(&self, index: usize, change: impl FnOnce(&mut Arrival)) {
        self.arrivals.send_modify(|arrivals| change(&mut arrivals[index]));
    }
}

/// Accepts the streams of a connection until the client closes it.
async fn serve(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, connection: usize, book: Arc<Book>) {
    let (tap, valve) = Tap::new(io);
    // The client may end the connection in any way.
    let mut h2 = h2::server::Builder::new();
    if let Some(most) = *book.most_streams.lock().unwrap() {
        h2.max_concurrent_streams(most);
    }
    let Ok(mut h2) = h2.handshake(tap).await else { return };
    let (flushing, mut flushes) = mpsc::unbounded_channel::<watch::Sender<()>>();
    let mut streams = JoinSet::new();
    loop {
        let flush = {
            // The connection is polled first, because it sends the frames of the streams.
            match select(Box::pin(h2.accept()), Box::pin(flushes.recv())).await {
                Either::Left((Some(Ok((request, answer))), _)) => {
                    let (valve, flushing) = (valve.clone(), flushing.clone());
                    let stream = Stream { book: Arc::clone(&book), valve, flushing, index: 0 };
                    streams.spawn(stream.play(connection, request, answer));
                    None
                }
                Either::Left(_) => return,
                Either::Right((flush, _)) => flush,
            }
        };
        // Dropped once the connection has been polled with all that was asked before.
        drop(flush);
    }
}

struct Stream {
    book: Arc<Book>,
    valve: Valve,
    flushing: mpsc::UnboundedSender<watch::Sender<()>>,
    index: usize,
}

impl Stream {
    async fn play(mut self, connection: usize, request: Request<RecvStream>, mut answer: SendResponse<Bytes>) {
        let (head, mut body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let headers = head.headers;
        let arrival = Arrival { connection, path, headers, body: None, given_up: false, reset: None };
        let script = self.book.scripts.lock().unwrap().pop_front();
        self.index = self.book.arrivals.borrow().len();
        self.book.arrivals.send_modify(|arrivals| arrivals.push(arrival));
        let id = answer.stream_id().as_u32();
        let mut begun: Option<SendStream<Bytes>> = None;
        let mut over = false;
        for step in script.unwrap_or_else(echo) {
            over |= matches!(step, Step::Only(_) | Step::End | Step::Trailers(_) | Step::Reset(_));
            match step {
                Step::Read => self.read(&mut body).await,
                Step::Head(head) => begun = Some(answer.send_response(head, false).unwrap()),
                Step::Only(head) => drop(answer.send_response(head, true).unwrap()),
                Step::Data(data) => begun.as_mut().unwrap().send_data(data, false).unwrap(),
                Step::Echo => begun.as_mut().unwrap().send_data(self.message(), false).unwrap(),
                Step::End => begun.as_mut().unwrap().send_data(Bytes::new(), true).unwrap(),
                Step::Trailers(fields) => begun.as_mut().unwrap().send_trailers(fields).unwrap(),
                Step::Reset(reason) => match &mut begun {
                    Some(begun) => begun.send_reset(reason),
                    None => answer.send_reset(reason),
                },
                Step::GoAwayAbove(reason) => self.valve.go_away(id, reason),
                Step::GoAwayBelow(reason) => self.valve.go_away(id.saturating_sub(2), reason),
                Step::Cut => self.valve.cut(),
                Step::Wait(signal) => signal.notified().await,
                Step::Hang => self.hang(&mut answer, begun.as_mut()).await,
            }
            self.flush().await;
        }
        if !over {
            // Dropped, it would be reset.
            self.hang(&mut answer, begun.as_mut()).await;
        }
    }

    async fn read(&self, body: &mut RecvStream) {
        let mut read = Vec::new();
        while let Some(data) = body.data().await {
            let Ok(data) = data else { return };
            let _ = body.flow_control().release_capacity(data.len());
            read.extend_from_slice(&data);
        }
        self.book.note(self.index, |arrival| arrival.body = Some(read));
    }

    /// Returns the message that was read.
    fn message(&self) -> Bytes {
        self.book.arrivals.borrow()[self.index].body.clone().unwrap_or_default().into()
    }

    async fn hang(&self, answer: &mut SendResponse<Bytes>, begun: Option<&mut SendStream<Bytes>>) {
        let reset = match begun {
            Some(begun) => std::future::poll_fn(|cx| begun.poll_reset(cx)).await,
            None => std::future::poll_fn(|cx| answer.poll_reset(cx)).await,
        };
        self.book.note(self.index, |arrival| {
            (arrival.given_up, arrival.reset) = (true, reset.ok());
        });
    }

    /// Waits until all frames of the stream so far are sent.
    async fn flush(&self) {
        let (asked, mut done) = watch::channel(());
        if self.flushing.send(asked).is_ok() {
            let _ = done.changed().await;
        }
    }
}

/// Returns the script of a call that succeeds.
pub(crate) fn echo() -> Vec<Step> {
    vec![Step::Read, Step::Head(super::head(&[])), Step::Echo, Step::Trailers(super::fields(&[("grpc-status", b"0")]))]
}
