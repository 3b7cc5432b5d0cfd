//! A counter of real sends, which detects whether a client inside a retry layer repeats the layer's attempts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::{HeaderMap, HeaderName, Request};
use tower_layer::Layer;
use tower_service::Service;

use crate::ledger::{CALL_HEADER, Ledger};

const CALL: HeaderName = HeaderName::from_static(CALL_HEADER);

/// The maximum number of calls whose counts are kept.
const CALLS: usize = 1024;

type Warn = dyn Fn(&Repeated) + Send + Sync;

/// A counter of attempts and of the requests that were really sent for them, for debugging.
///
/// A client may have its own retries, as reqwest, kube, octocrab and others do. Each attempt of a retry layer may then
/// become several requests. The counter has two parts:
///
/// - Put [`layer`](Self::layer) outside the retry layer, and again inside it. The outer layer adds a number to each
///   call in the header [`CALL_HEADER`]; the inner layer counts the call's attempts.
/// - [`connector`](Self::connector) counts the requests that are written to connections. For other clients, use a
///   [`Server`](crate::Server) of this kit, and pass its ledger to [`repeated_in`](Self::repeated_in).
///
/// The function passed to [`new`](Self::new) is called when the connector counts more requests than attempts for a
/// call. A program without these layers has no overhead.
///
/// ```
/// use http::{Request, StatusCode};
/// use reattempt_faults::{Reply, Sends, Server};
/// use reattempt::RetryPolicy;
/// use tower::{ServiceBuilder, ServiceExt};
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// # use hyper_util::client::legacy::{Client, connect::HttpConnector};
/// # use hyper_util::rt::TokioExecutor;
///
/// let server = Server::http1([Reply::status(StatusCode::SERVICE_UNAVAILABLE)]).await.unwrap();
/// let sends = Sends::new(|repeated| eprintln!("{repeated}"));
/// let client = ServiceBuilder::new()
///     .layer(sends.layer()) // numbers the calls
///     .layer(RetryPolicy::http())
///     .layer(sends.layer()) // counts the attempts
///     .service(Client::builder(TokioExecutor::new()).build_http());
/// client.oneshot(Request::get(server.url("/")).body(String::new()).unwrap()).await.unwrap();
/// assert_eq!(sends.repeated_in(server.ledger()), [], "two attempts, two requests");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Sends {
    book: Arc<Mutex<SendCounts>>,
    warn: Arc<Warn>,
}

#[derive(Debug, Default)]
struct SendCounts {
    last_call: u64,
    calls: BTreeMap<u64, Count>,
    /// The total of all calls, for requests whose headers cannot be read.
    all: Count,
}

#[derive(Debug, Default, Clone, Copy)]
struct Count {
    attempts: u64,
    sends: u64,
}

/// A call with more requests sent than attempts made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repeated {
    /// The number of the call. It is `None` on HTTP/2, where headers are compressed, so all calls are counted together.
    pub call: Option<u64>,
    /// The number of attempts by the retry layer.
    pub attempts: u64,
    /// The number of requests that were sent.
    pub sends: u64,
}

impl fmt::Display for Repeated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.call {
            Some(call) => write!(f, "call {call}: ")?,
            None => f.write_str("all calls: ")?,
        }
        let Self { attempts, sends, .. } = self;
        write!(f, "{sends} requests were sent for {attempts} attempts, so a client below the retry layer repeats them")
    }
}

impl Sends {
    /// Creates a counter. `warn` is called for each request that exceeds the number of attempts of its call.
    pub fn new(warn: impl Fn(&Repeated) + Send + Sync + 'static) -> Self {
        Self { book: Arc::default(), warn: Arc::new(warn) }
    }

    /// Returns the layer to put both outside and inside the retry layer.
    pub fn layer(&self) -> SendsLayer {
        SendsLayer(self.clone())
    }

    /// Adds the next call number to a request without a number. A request with a number is counted as an attempt of
    /// that call.
    ///
    /// The layer does this for `http::Request`. For other request types, such as reqwest's, call this method where the
    /// request is created and in the policy's `before_attempt` hook.
    pub fn mark(&self, headers: &mut HeaderMap) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = headers.get(CALL).and_then(|value| value.to_str().ok()?.parse().ok()) {
            book.count(call).attempts += 1;
            book.all.attempts += 1;
        } else {
            book.last_call += 1;
            headers.insert(CALL, book.last_call.into());
        }
    }

    /// Returns the calls with more arrivals in the ledger than attempts, sorted by call number.
    pub fn repeated_in(&self, ledger: &Ledger) -> Vec<Repeated> {
        let book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sends = BTreeMap::<u64, u64>::new();
        for call in ledger.arrivals().iter().filter_map(|arrival| arrival.call.parse().ok()) {
            *sends.entry(call).or_default() += 1;
        }
        let repeated =
            |(call, sends): (u64, u64)| Count { attempts: book.calls.get(&call)?.attempts, sends }.repeated(Some(call));
        sends.into_iter().filter_map(repeated).collect()
    }

    /// Counts a request on a connection. `call` is `None` if its headers cannot be read.
    pub(crate) fn sent(&self, call: Option<u64>) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let count = match call {
            // Newer calls may have displaced it.
            Some(call) => book.calls.get_mut(&call),
            None => Some(&mut book.all),
        };
        let repeated = count.and_then(|count| {
            count.sends += 1;
            count.repeated(call)
        });
        drop(book);
        if let Some(repeated) = repeated {
            (self.warn)(&repeated);
        }
    }
}

impl Count {
    fn repeated(self, call: Option<u64>) -> Option<Repeated> {
        let Self { attempts, sends } = self;
        (sends > attempts).then_some(Repeated { call, attempts, sends })
    }
}

impl SendCounts {
    /// Returns the count of a call. A new call may displace the oldest one.
    fn count(&mut self, call: u64) -> &mut Count {
        if self.calls.len() >= CALLS && !self.calls.contains_key(&call) {
            self.calls.pop_first();
        }
        self.calls.entry(call).or_default()
    }
}

impl fmt::Debug for Sends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sends").field("book", &self.book).finish_non_exhaustive()
    }
}

/// A layer that numbers calls or counts their attempts, created by [`Sends::layer`].
#[derive(Debug, Clone)]
pub struct SendsLayer(Sends);

impl<S> Layer<S> for SendsLayer {
    type Service = SendsService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        SendsService { inner, sends: self.0.clone() }
    }
}

/// The service of [`SendsLayer`].
#[derive(Debug, Clone)]
pub struct SendsService<S> {
    inner: S,
    sends: Sends,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for SendsService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        self.sends.mark(request.headers_mut());
        self.inner.call(request)
    }
}
