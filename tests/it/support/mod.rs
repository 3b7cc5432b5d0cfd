//! A server of the fault kit, and the policy of most tests.

pub(crate) mod echo;

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use reattempt::schedule::Constant;
use reattempt::{Http, RetryBudget, RetryPolicy};
use reattempt_faults::{Arrival, Reply, Script};
use tokio::net::TcpStream;

/// Returns the default policy with two changes. The delay is long enough for a connection to return to its pool, and
/// too short to be noticed. The budget stays open after many failures.
pub(crate) fn quick() -> RetryPolicy<Http, Constant> {
    RetryPolicy::http().backoff(Constant::new(Duration::from_millis(10))).budget(RetryBudget::percent(10))
}

/// Returns a reply with this status and a short body.
pub(crate) fn status(code: u16) -> Reply {
    reply(code, "short")
}

pub(crate) fn reply(code: u16, body: impl Into<Bytes>) -> Reply {
    Reply::status(StatusCode::from_u16(code).unwrap()).body(body)
}

/// Returns a reply with a body without a length.
pub(crate) fn chunked(code: u16, body: &'static str) -> Reply {
    reply(code, body).trailers(HeaderMap::new())
}

/// A server with a script that need not be used up. Later requests are answered with 200.
pub(crate) struct Server(reattempt_faults::Server);

impl Server {
    pub(crate) async fn http1(script: impl IntoIterator<Item = Reply>) -> Self {
        Self(reattempt_faults::Server::http1(Script::new(script).may_remain()).await.unwrap())
    }

    pub(crate) async fn http2(script: impl IntoIterator<Item = Reply>) -> Self {
        Self(reattempt_faults::Server::http2(Script::new(script).may_remain()).await.unwrap())
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.0.url(path)
    }

    /// Returns all requests.
    pub(crate) fn seen(&self) -> Vec<Arrival> {
        self.0.ledger().arrivals()
    }

    /// Returns the whole bodies as text.
    pub(crate) fn bodies(&self) -> Vec<String> {
        let whole = self.seen().into_iter().filter(|arrival| arrival.whole);
        whole.map(|arrival| String::from_utf8(arrival.body).unwrap()).collect()
    }

    /// Waits until this many requests have arrived.
    pub(crate) async fn arrived(&self, number: usize) {
        self.0.ledger().until(|arrivals| arrivals.len() >= number).await;
    }
}

/// Makes a connection end with a TCP reset when it is dropped.
#[allow(deprecated, reason = "`set_zero_linger` is newer than the oldest tokio that is supported")]
pub(crate) fn reset_when_dropped(connection: &TcpStream) -> io::Result<()> {
    connection.set_linger(Some(Duration::ZERO))
}
