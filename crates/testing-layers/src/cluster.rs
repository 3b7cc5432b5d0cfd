//! A cluster of scripted servers in virtual time, and clients to it.

use std::collections::HashMap;
use std::future::{pending, ready};
use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use reattempt::budget::{Budget, Permit};
use reattempt::endpoints::{Balanced, Connected, Endpoints, List};
use reattempt::error::BoxedError;
use reattempt::schedule::{Constant, Failure};
use reattempt::{Http, RetryBudget, RetryPolicy};
use reattempt_testing::secs;
use tokio::time::{Instant, sleep};
use tower::Service;

pub type Body = Full<Bytes>;

/// A kind of server behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    Answer(Duration),
    Status(u16),
    /// A 503 with `Retry-After` in seconds.
    Busy(u32),
    /// A 429 with `Retry-After` in seconds.
    Limited(u32),
    Refuse,
    /// Processes the request and resets the connection.
    Reset,
    Hang,
    Panic,
    /// Never becomes ready.
    NeverReady,
    FailReady,
}

pub const WELL: Does = Does::Answer(Duration::from_millis(10));

/// The servers by name, and the attempts that they have received. Clones share the cluster.
#[derive(Clone, Default)]
pub struct Cluster(Arc<Mutex<ClusterState>>);

#[derive(Default)]
struct ClusterState {
    does: HashMap<String, Does>,
    seen: Vec<(String, Instant)>,
    /// The number of clients in use, without dropped ones.
    alive: usize,
}

impl Cluster {
    /// Creates servers of these kinds, named `0`, `1` and so on.
    pub fn of(kinds: impl IntoIterator<Item = Does>) -> Self {
        let this = Self::default();
        for (number, does) in kinds.into_iter().enumerate() {
            this.set(&number.to_string(), does);
        }
        this
    }

    pub fn set(&self, name: &str, does: Does) {
        self.0.lock().unwrap().does.insert(name.to_owned(), does);
    }

    pub fn does(&self, name: &str) -> Does {
        self.0.lock().unwrap().does.get(name).copied().unwrap_or(WELL)
    }

    /// Takes the names of the servers that have received an attempt, in order.
    pub fn seen(&self) -> Vec<String> {
        self.times().into_iter().map(|(name, _)| name).collect()
    }

    pub fn times(&self) -> Vec<(String, Instant)> {
        std::mem::take(&mut self.0.lock().unwrap().seen)
    }

    pub fn alive(&self) -> usize {
        self.0.lock().unwrap().alive
    }

    /// Returns a client of the server with this name.
    pub fn client(&self, name: impl ToString) -> Node {
        self.0.lock().unwrap().alive += 1;
        Node { name: name.to_string(), cluster: self.clone() }
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.0.lock().unwrap().does.keys().cloned().collect();
        names.sort();
        names
    }

    /// Returns a client of all servers.
    pub fn balanced(&self) -> Balanced<Node> {
        self.list().http()
    }

    /// Lists all servers.
    pub fn list(&self) -> Endpoints<Connected<List<String>, impl FnMut(String) -> Node + use<>>> {
        let cluster = self.clone();
        Endpoints::list(self.names()).unwrap().connect(move |name| cluster.client(name))
    }
}

/// The client of one server.
#[derive(Debug)]
pub struct Node {
    pub name: String,
    cluster: Cluster,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cluster")
    }
}

impl Clone for Node {
    fn clone(&self) -> Self {
        self.cluster.client(&self.name)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Ok(mut state) = self.cluster.0.lock() {
            state.alive -= 1;
        }
    }
}

type Answer = Result<Response<Body>, Error>;

impl<B> Service<Request<B>> for Node {
    type Response = Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self.cluster.does(&self.name) {
            Does::NeverReady => Poll::Pending,
            Does::FailReady => Poll::Ready(Err(ErrorKind::ConnectionReset.into())),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // A rewritten URL contains the server's name.
        let host = request.uri().host().filter(|_| self.name.is_empty());
        let name = host.unwrap_or(&self.name).to_owned();
        let does = self.cluster.does(&name);
        self.cluster.0.lock().unwrap().seen.push((name, Instant::now()));
        let status = |status: u16| Response::builder().status(status);
        match does {
            Does::Answer(after) => Box::pin(async move {
                sleep(after).await;
                Ok(status(200).body(Full::from("done")).unwrap())
            }),
            Does::Status(code) => Box::pin(ready(Ok(status(code).body(Full::default()).unwrap()))),
            Does::Busy(seconds) => {
                let busy = status(503).header("retry-after", seconds).body(Full::default());
                Box::pin(ready(Ok(busy.unwrap())))
            }
            Does::Limited(seconds) => {
                let limited = status(429).header("retry-after", seconds).body(Full::default());
                Box::pin(ready(Ok(limited.unwrap())))
            }
            Does::Refuse => Box::pin(ready(Err(ErrorKind::ConnectionRefused.into()))),
            Does::Reset => Box::pin(ready(Err(ErrorKind::ConnectionReset.into()))),
            Does::Hang | Does::NeverReady | Does::FailReady => Box::pin(pending()),
            Does::Panic => panic!("the client of {} panics", self.name),
        }
    }
}

pub type Policy = RetryPolicy<Http, Constant, RetryBudget, BoxedError>;

/// Returns a policy whose attempts are a second apart.
pub fn policy(attempts: u32) -> Policy {
    let policy = RetryPolicy::http().backoff(Constant::new(secs(1)));
    policy.max_attempts(attempts).boxed_errors()
}

/// A budget without tokens.
#[derive(Clone)]
pub struct Empty;

impl Budget for Empty {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        None
    }
}

pub fn get() -> Request<Body> {
    Request::get("http://service/").body(Full::default()).unwrap()
}

pub fn post() -> Request<Body> {
    Request::post("http://service/").body(Full::from("once")).unwrap()
}
