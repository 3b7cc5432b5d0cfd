//! The ledger, which records every request that reached a server.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method};
use tokio::sync::watch;
use tokio::time::Instant;

/// The header that names a request's call, for [`Arrival::call`].
pub const CALL_HEADER: &str = "faults-call";

/// A record of every request that reached a server or a cluster, in order of arrival.
///
/// Clones share one ledger. [`Rule`](crate::Rule) lists the rules that a ledger can check. Your own test doubles can
/// write to a ledger with [`Ledger::arrive`].
#[derive(Debug, Clone)]
pub struct Ledger(Arc<Account>);

#[derive(Debug)]
struct Account {
    start: Instant,
    book: watch::Sender<Book>,
}

#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) connections: usize,
    pub(crate) open_connections: usize,
}

/// One request, as received by the server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Arrival {
    /// The time since the ledger was created, on tokio's clock.
    pub at: Duration,
    /// The server that the request reached.
    pub server: String,
    /// The number of the request's connection, counted from 1, or 0 for a request without a connection.
    pub connection: usize,
    /// The name of the request's call: the value of the header [`CALL_HEADER`]. A request without this header is named
    /// by its idempotency key or, if it has none, by its method and target.
    pub call: String,
    /// The method.
    pub method: Method,
    /// The path and query.
    pub target: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The part of the body that the server has read.
    pub body: Vec<u8>,
    /// `true` once the body has been read to its end.
    pub whole: bool,
    /// `true` once the request's effect may have been carried out.
    ///
    /// The effect is carried out when the server has read the whole request, or just the head if it responds early. An
    /// outcome that proves that nothing was carried out resets this to `false`: status 421, 425 or 429, a stream
    /// refused with REFUSED_STREAM or GOAWAY, or a refused connection.
    pub carried_out: bool,
    /// The server's response as text, or `None` until there is one.
    pub answer: Option<String>,
    /// `true` until the server has responded or the client has disconnected.
    pub open: bool,
    /// The code of the client's RST_STREAM, such as 8 for CANCEL, on HTTP/2 only. It is `None` unless the client reset
    /// the stream before the server's response ended.
    pub reset: Option<u32>,
}

impl Arrival {
    /// Returns the idempotency key.
    pub fn key(&self) -> Option<&str> {
        self.headers.get("idempotency-key").and_then(|key| key.to_str().ok())
    }

    /// Returns a checksum (64-bit FNV-1a) of the body read so far.
    pub fn checksum(&self) -> u64 {
        checksum(&self.body)
    }

    /// Marks the body as complete. The effect is then carried out, unless an early response has already decided that.
    fn has_ended(&mut self) {
        self.whole = true;
        self.carried_out |= self.answer.is_none();
    }

    /// Returns `true` if the request must not be carried out twice: its method is not idempotent, and it has no
    /// idempotency key.
    pub fn is_unsafe(&self) -> bool {
        !self.method.is_idempotent() && self.key().is_none()
    }
}

impl Ledger {
    /// Creates an empty ledger, whose clock starts now.
    pub fn new() -> Self {
        Self(Arc::new(Account { start: Instant::now(), book: watch::Sender::default() }))
    }

    /// Returns the time since the ledger was created.
    pub fn elapsed(&self) -> Duration {
        self.0.start.elapsed()
    }

    /// Returns all arrivals in order.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.0.book.borrow().arrivals.clone()
    }

    /// Returns the number of connections that clients have opened.
    pub fn connections(&self) -> usize {
        self.0.book.borrow().connections
    }

    /// Waits until the arrivals meet a condition. The wait has no time limit, so the test must set one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect on the ledger.
    pub async fn until(&self, mut is: impl FnMut(&[Arrival]) -> bool) {
        self.wait(|book| is(&book.arrivals)).await;
    }

    /// Waits until every exchange has ended and every connection is closed. The test must drop its client first, and
    /// set a time limit for the wait.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect on the ledger.
    pub async fn all_closed(&self) {
        self.wait(|book| book.open_connections == 0 && !book.arrivals.iter().any(|arrival| arrival.open)).await;
    }

    async fn wait(&self, is: impl FnMut(&Book) -> bool) {
        // The sender lives as long as this ledger, so the wait ends only when the condition is met.
        let _ = self.0.book.subscribe().wait_for(is).await;
    }

    /// Records a request that arrived at a server. The exchange is open until the returned value is dropped.
    pub fn arrive<B>(&self, server: &str, connection: usize, request: &http::Request<B>) -> Exchange {
        let (method, uri) = (request.method().clone(), request.uri());
        let target = uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string);
        let headers = request.headers().clone();
        let named = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let call = named(CALL_HEADER).or_else(|| named("idempotency-key"));
        let call = call.map_or_else(|| format!("{method} {target}"), str::to_owned);
        let arrival = Arrival {
            at: self.elapsed(),
            server: server.to_owned(),
            connection,
            call,
            method,
            target,
            headers,
            body: Vec::new(),
            whole: false,
            carried_out: false,
            answer: None,
            open: true,
            reset: None,
        };
        let mut number = 0;
        self.0.book.send_modify(|book| {
            number = book.arrivals.len();
            book.arrivals.push(arrival);
        });
        Exchange { ledger: self.clone(), number }
    }

    /// Records a new connection and returns its number. The connection is open until the second value is dropped.
    pub(crate) fn connect(&self) -> (usize, OpenConnection) {
        let mut number = 0;
        self.0.book.send_modify(|book| {
            book.connections += 1;
            book.open_connections += 1;
            number = book.connections;
        });
        (number, OpenConnection(self.clone()))
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Book) -> T) -> T {
        read(&self.0.book.borrow())
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

/// A request that the server is still handling, with methods to complete the request's entry in the ledger.
#[derive(Debug)]
pub struct Exchange {
    ledger: Ledger,
    number: usize,
}

impl Exchange {
    fn note(&self, change: impl FnOnce(&mut Arrival)) {
        self.ledger.0.book.send_modify(|book| change(&mut book.arrivals[self.number]));
    }

    /// Returns the name of the request's call.
    pub fn call(&self) -> String {
        self.ledger.read(|book| book.arrivals[self.number].call.clone())
    }

    /// Records more of the body.
    pub fn read(&self, data: &[u8]) {
        self.note(|arrival| arrival.body.extend_from_slice(data));
    }

    /// Replaces the recorded body with everything that has arrived.
    pub(crate) fn has_read(&self, body: &[u8], whole: bool) {
        self.note(|arrival| {
            let known = arrival.body.len();
            arrival.body.extend_from_slice(body.get(known..).unwrap_or_default());
            if whole {
                arrival.has_ended();
            }
        });
    }

    /// Records the end of the body. If no response has been recorded yet, the effect then counts as carried out.
    pub fn read_whole(&self) {
        self.note(Arrival::has_ended);
    }

    /// Records whether the effect was carried out.
    pub fn carried_out(&self, carried_out: bool) {
        self.note(|arrival| arrival.carried_out = carried_out);
    }

    /// Records the code with which the client reset the stream.
    #[cfg(feature = "http2")]
    pub(crate) fn reset(&self, code: u32) {
        self.note(|arrival| arrival.reset = Some(code));
    }

    /// Records the response as text.
    pub fn answer(&self, answer: impl Into<String>) {
        self.note(|arrival| arrival.answer = Some(answer.into()));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.note(|arrival| arrival.open = false);
    }
}

/// A guard for a connection, which is open until the guard is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(Ledger);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.0.book.send_modify(|book| book.open_connections -= 1);
    }
}

/// Returns the 64-bit FNV-1a hash of `bytes`.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
