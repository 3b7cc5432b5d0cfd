//! The state that the clients of one cell share, and the gate below their layers.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{HeaderMap, Request};
use reattempt_faults::CALL_HEADER;
use tokio::sync::watch;
use tower::Service;

use crate::cell::Cell;

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// By a whole response of the recovered server, or of one without a fault.
    Served,
    /// By a response whose body broke off.
    Broken,
    /// By a response whose body neither went on nor ended.
    Stalled,
    Failed(String),
}

/// One call, as its client saw it.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) attempts: usize,
    pub(crate) end: End,
}

#[derive(Debug)]
struct Progress {
    attempts: Vec<usize>,
    /// First attempts that are over.
    first_over: usize,
    running: usize,
    calls_over: usize,
    recovered: bool,
}

/// The progress of all calls of a cell.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) cell: Cell,
    progress: watch::Sender<Progress>,
}

impl Exchange {
    pub(crate) fn new(cell: Cell) -> Arc<Self> {
        let attempts = vec![0; cell.calls];
        let progress = Progress { attempts, first_over: 0, running: 0, calls_over: 0, recovered: false };
        Arc::new(Self { cell, progress: watch::Sender::new(progress) })
    }

    fn note(&self, change: impl FnOnce(&mut Progress)) {
        self.progress.send_modify(change);
    }

    async fn until(&self, met: impl FnMut(&Progress) -> bool) {
        // The sender lives as long as the exchange.
        let _ = self.progress.subscribe().wait_for(met).await;
    }

    /// Waits until all first attempts are over.
    pub(crate) async fn firsts_over(&self) {
        self.until(|progress| progress.first_over >= self.cell.calls).await;
    }

    pub(crate) fn number_of_firsts_over(&self) -> usize {
        self.progress.borrow().first_over
    }

    /// Waits until each call has an attempt under way, or is over.
    pub(crate) async fn all_running(&self) {
        let calls = self.cell.calls;
        self.until(|progress| progress.running + progress.calls_over >= calls && progress.calls_over < calls).await;
    }

    /// Records that the servers have recovered, so that later attempts begin.
    pub(crate) fn recover(&self) {
        self.note(|progress| progress.recovered = true);
    }

    pub(crate) fn call_over(&self) {
        self.note(|progress| progress.calls_over += 1);
    }

    pub(crate) fn attempts(&self, call: usize) -> usize {
        self.progress.borrow().attempts[call]
    }

    /// Starts an attempt. All but the first of a call wait until the servers have recovered, so that no result depends
    /// on speed.
    async fn begin(self: Arc<Self>, call: usize) -> Running {
        let mut number = 0;
        self.note(|progress| {
            progress.attempts[call] += 1;
            number = progress.attempts[call];
        });
        if number > 1 && !self.cell.is_stuck() {
            self.until(|progress| progress.recovered).await;
        }
        self.note(|progress| progress.running += 1);
        Running { is_first: number == 1, exchange: self }
    }
}

/// An attempt under way.
struct Running {
    exchange: Arc<Exchange>,
    is_first: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.exchange.note(|progress| {
            progress.running -= 1;
            progress.first_over += usize::from(self.is_first);
        });
    }
}

/// Counts the attempts below all layers, and holds those after the first.
#[derive(Debug, Clone)]
pub(crate) struct Gate<S> {
    pub(crate) inner: S,
    pub(crate) exchange: Arc<Exchange>,
}

/// A request that names its call.
pub(crate) trait Named {
    fn headers(&self) -> &HeaderMap;
}

impl<B> Named for Request<B> {
    fn headers(&self) -> &HeaderMap {
        Request::headers(self)
    }
}

impl Named for reqwest::Request {
    fn headers(&self) -> &HeaderMap {
        reqwest::Request::headers(self)
    }
}

impl<S, R> Service<R> for Gate<S>
where
    S: Service<R, Future: Send> + Clone + Send + 'static,
    R: Named + Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let call = request.headers().get(CALL_HEADER).and_then(|value| value.to_str().ok()?.parse().ok());
        let begin = Arc::clone(&self.exchange).begin(call.unwrap_or_default());
        Box::pin(async move {
            let _running = begin.await;
            inner.call(request).await
        })
    }
}
