//! Tables of policies: the choice for each call, and tables that are replaced.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use reattempt::policies::{PolicyHandle, PolicyStack, PolicyTable, TableBudget};
use reattempt::{Http, ReplayBody, RetryBudget};
use tower::{Layer, Service, ServiceExt};

/// A server that fails, and a client of it that must be readied before each call.
#[derive(Default)]
struct Strict {
    is_ready: bool,
    calls: Arc<AtomicUsize>,
    clones: Arc<AtomicUsize>,
    status: StatusCode,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        self.clones.fetch_add(1, Ordering::Relaxed);
        let (calls, clones) = (Arc::clone(&self.calls), Arc::clone(&self.clones));
        Self { is_ready: false, calls, clones, status: self.status }
    }
}

impl Service<Request<ReplayBody<Full<Bytes>>>> for Strict {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<ReplayBody<Full<Bytes>>>) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready), "called before it was readied");
        self.calls.fetch_add(1, Ordering::Relaxed);
        let response = Response::builder().status(self.status).body(Full::default());
        ready(Ok(response.expect("a response")))
    }
}

/// Returns a policy with that many attempts and without a budget.
fn attempts(most: u32) -> PolicyStack<Http> {
    let unlimited = Arc::new(RetryBudget::unlimited()) as TableBudget;
    PolicyStack::new(Http::new()).retries(|policy| policy.max_attempts(most).budget(unlimited))
}

fn table() -> PolicyTable<Http> {
    PolicyTable::new(attempts(1)).or(attempts(2), |request| request.path() == "/two")
}

fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(format!("http://a{path}")).body(Full::default()).expect("a request")
}

/// The readied instance sends the first attempt, whichever policy the request gets, and nothing is cloned for that.
// trap 09
#[tokio::test(start_paused = true)]
async fn choice_keeps_the_readied_instance() {
    let server = Strict::default();
    let (calls, clones) = (Arc::clone(&server.calls), Arc::clone(&server.clones));
    let mut client = PolicyHandle::new(table()).layer().layer(server);
    clones.store(0, Ordering::Relaxed);
    for path in ["/one", "/two", "/two", "/one", "/two"] {
        client.ready().await.unwrap().call(get(path)).await.unwrap();
    }
    assert_eq!((calls.load(Ordering::Relaxed), clones.load(Ordering::Relaxed)), (5, 0));
}

/// A replaced table applies to the next call of each clone. A client prepares once, with a clone for each policy.
#[tokio::test(start_paused = true)]
async fn replaced_table_applies_to_clones() {
    let server = Strict { status: StatusCode::SERVICE_UNAVAILABLE, ..Strict::default() };
    let (calls, clones) = (Arc::clone(&server.calls), Arc::clone(&server.clones));
    let handle = PolicyHandle::new(table());
    let client = handle.layer().layer(server);
    let made = async |path: &str| {
        client.send(get(path)).await.unwrap();
        calls.swap(0, Ordering::Relaxed)
    };
    assert_eq!((made("/one").await, made("/two").await), (1, 2));

    handle.replace(PolicyTable::new(attempts(3)));
    assert_eq!((made("/one").await, made("/two").await), (3, 3));
    handle.replace(PolicyTable::new(attempts(1)).or(attempts(4), |_| false).or_if(|request| request.path() == "/four"));
    clones.store(0, Ordering::Relaxed);
    assert_eq!(made("/one").await, 1);
    let prepared = clones.swap(0, Ordering::Relaxed);
    assert_eq!(made("/one").await, 1);
    assert_eq!(prepared - clones.load(Ordering::Relaxed), 2, "a spare instance for each policy");
    assert_eq!(made("/four").await, 4);
}

/// The owner of a table lives as long as clients use the table, and no longer.
#[tokio::test(start_paused = true)]
async fn owner_lives_with_its_clients() {
    let owner = Arc::new(());
    let weak = Arc::downgrade(&owner);
    let handle = PolicyHandle::new(table().owned_by(owner));
    let client = handle.layer().layer(Strict::default());
    let former = handle.downgrade();
    drop(handle);
    assert!(weak.upgrade().is_some() && former.upgrade().is_some());
    drop(client);
    assert!(weak.upgrade().is_none() && former.upgrade().is_none());
}
