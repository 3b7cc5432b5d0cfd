//! A helper server that follows a script and records the arrival times of calls.
//!
//! It panics if it is called without having been readied, and its clones are not ready until readied themselves.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use reattempt_schedule_responsive::Responsive;
use tokio::time::Instant;
use tower::{Service, ServiceExt};

pub(crate) use reattempt_testing::{ms, secs};

pub(crate) type Answer = Response<Empty<Bytes>>;

pub(crate) fn answer(status: u16) -> Answer {
    Response::builder().status(status).body(Empty::new()).unwrap()
}

struct State<T, E> {
    began: Option<Instant>,
    script: Box<dyn Fn(usize) -> Result<T, E> + Send + Sync>,
    arrivals: Mutex<Vec<Duration>>,
    clones: AtomicUsize,
    unused: AtomicUsize,
}

pub(crate) struct Server<T = Answer, E = Infallible> {
    state: Arc<State<T, E>>,
    ready: bool,
    outcome: PhantomData<fn() -> (T, E)>,
}

impl<T, E> Server<T, E> {
    /// Creates a server that ends each call as `script` decides from its number, starting at 1.
    pub(crate) fn by(script: impl Fn(usize) -> Result<T, E> + Send + Sync + 'static) -> Self {
        // A test without a runtime has no clock that could be paused.
        let began = tokio::runtime::Handle::try_current().ok().map(|_| Instant::now());
        let state = State {
            began,
            script: Box::new(script),
            arrivals: Mutex::default(),
            clones: AtomicUsize::new(0),
            unused: AtomicUsize::new(0),
        };
        Self { state: Arc::new(state), ready: false, outcome: PhantomData }
    }

    /// Returns the arrival times of calls since the server's start.
    pub(crate) fn arrivals(&self) -> Vec<Duration> {
        self.state.arrivals.lock().unwrap().clone()
    }

    pub(crate) fn clones(&self) -> usize {
        self.state.clones.load(Ordering::SeqCst)
    }

    /// Returns the number of instances that were readied and then dropped without a call.
    pub(crate) fn unused(&self) -> usize {
        self.state.unused.load(Ordering::SeqCst)
    }

    /// Returns another handle to the server, for the test.
    pub(crate) fn watch(&self) -> Self {
        Self { state: Arc::clone(&self.state), ready: false, outcome: PhantomData }
    }
}

impl Server {
    /// Creates a server that responds with these statuses in order, and repeats the last.
    pub(crate) fn statuses<const N: usize>(statuses: [u16; N]) -> Self {
        Self::by(move |number| Ok(answer(statuses[number.min(N) - 1])))
    }
}

impl<T, E> Clone for Server<T, E> {
    fn clone(&self) -> Self {
        self.state.clones.fetch_add(1, Ordering::SeqCst);
        self.watch()
    }
}

impl<T, E> Drop for Server<T, E> {
    fn drop(&mut self) {
        if self.ready {
            self.state.unused.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl<R, T, E> Service<R> for Server<T, E> {
    type Response = T;
    type Error = E;
    type Future = Ready<Result<T, E>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), E>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: R) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without having been readied");
        let mut arrivals = self.state.arrivals.lock().unwrap();
        arrivals.push(self.state.began.map(|began| began.elapsed()).unwrap_or_default());
        ready((self.state.script)(arrivals.len()))
    }
}

/// Returns an interval of 100 ms that a refusal doubles and two successes halve, without randomness.
pub(crate) fn pace() -> Responsive {
    let pace = Responsive::new().initial(ms(100)).randomisation(0.0);
    pace.up(2.0).down(0.5).threshold(2)
}

pub(crate) fn request() -> Request<Empty<Bytes>> {
    Request::get("http://one.example/").body(Empty::new()).unwrap()
}

/// Makes one call when the client is ready.
pub(crate) async fn call<S>(client: &mut S) -> Result<S::Response, S::Error>
where
    S: Service<Request<Empty<Bytes>>>,
{
    client.ready().await?.call(request()).await
}

/// Starts a call, and returns its future.
pub(crate) async fn begin<S>(client: &mut S) -> S::Future
where
    S: Service<Request<Empty<Bytes>>, Error: std::fmt::Debug>,
{
    client.ready().await.unwrap().call(request())
}
