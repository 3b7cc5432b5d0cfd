//! Code of others inside a stack: observers and budgets that panic, a service that makes a call of its own, one that
//! answers without sending, and one that drops request bodies.

use std::mem::replace;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{Request, Response};
use reattempt::budget::{Budget, Permit, PermitIssuer};
use reattempt::schedule::Failure;
use reattempt::{RetryLayer, RetryPolicy};
use reattempt_schedule_fixed::Constant;
use reattempt_testing::ms;
use tower::{BoxError, Layer as _, Service, ServiceExt};

use super::cluster::{CALL, Cluster, Place, injected};
use super::erased::{AnyBody, Client, RequestBody, boxed, of_attempts};

/// The number of the first call that a [`Nested`] makes. A plan has fewer calls.
pub(crate) const FIRST_NESTED: usize = 1_000;

/// Returns an observer that panics when the plan says so.
pub(crate) fn observer(cluster: &Cluster) -> impl Fn() + Send + Sync + use<> {
    let cluster = cluster.clone();
    move || {
        if cluster.is_upset() {
            injected();
        }
    }
}

/// The number of permits in use.
pub(crate) struct Permits {
    out: AtomicUsize,
    cluster: Cluster,
}

impl Permits {
    pub(crate) fn new(cluster: &Cluster) -> Arc<Self> {
        Arc::new(Self { out: AtomicUsize::new(0), cluster: cluster.clone() })
    }

    pub(crate) fn out(&self) -> usize {
        self.out.load(Ordering::SeqCst)
    }

    fn end(&self) {
        self.out.fetch_sub(1, Ordering::SeqCst);
        self.panic_if_upset();
    }

    fn panic_if_upset(&self) {
        if self.cluster.is_upset() {
            injected();
        }
    }
}

impl PermitIssuer for Permits {
    fn give_back(&self, _: u32) {
        self.end();
    }

    fn on_retry_end(&self, _: u32, _: bool) {
        self.end();
    }
}

/// A budget that grants everything, counts its permits, and panics when the plan says so.
#[derive(Clone)]
pub(crate) struct PermitCount(pub(crate) Arc<Permits>);

impl Budget for PermitCount {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        self.0.panic_if_upset();
        self.0.out.fetch_add(1, Ordering::SeqCst);
        Some(Permit::new(Arc::clone(&self.0), 1))
    }

    fn on_success(&self, _: &str, _: u32) {
        self.0.panic_if_upset();
    }
}

/// A service that posts an order of its own in each `call`, through its own retries, before it passes the request on.
#[derive(Clone)]
pub(crate) struct Nested {
    client: Client,
    cluster: Cluster,
    inner: Client,
}

impl Nested {
    pub(crate) fn new(cluster: &Cluster, budget: PermitCount, seed: u64, inner: Client) -> Self {
        let policy = RetryPolicy::http().max_attempts(2).backoff(Constant::new(ms(10)));
        let layer = RetryLayer::new(policy.budget(budget).seed(seed).boxed_errors());
        let client = boxed(layer.layer(of_attempts(boxed(cluster.server(Place::Primary)))));
        Self { client, cluster: cluster.clone(), inner }
    }
}

impl Service<Request<RequestBody>> for Nested {
    type Response = Response<AnyBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<AnyBody>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let number = FIRST_NESTED + self.cluster.next_nested();
        let order = Request::post("http://one.example/orders").header(CALL, number);
        let mut order = Box::pin(self.client.clone().oneshot(order.body(RequestBody::default()).unwrap()));
        // Its first attempt is sent in here, like that of a service which is called and polled at once.
        let pending = order.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        let inner = self.inner.clone();
        let mut inner = replace(&mut self.inner, inner);
        Box::pin(async move {
            if pending {
                drop(order.await);
            }
            inner.call(request).await
        })
    }
}

/// Returns a client that answers some requests itself, without a look at their bodies.
pub(crate) fn answering(cluster: &Cluster, inner: Client) -> Client {
    let cluster = cluster.clone();
    boxed(tower::service_fn(move |request: Request<RequestBody>| {
        let (status, inner) = (cluster.own_answer(), inner.clone());
        async move {
            match status {
                Some(status) => Ok(Response::builder().status(status).body(AnyBody::default())?),
                None => inner.oneshot(request).await,
            }
        }
    }))
}

/// Returns a client that sends each request without its body, which it drops unread.
pub(crate) fn without_bodies(inner: Client) -> Client {
    boxed(inner.map_request(|request: Request<RequestBody>| request.map(|_| RequestBody::default())))
}

/// Returns `true` if a path is outside a prefix, by any server's reading of dots, slashes and escapes.
pub(crate) fn leaves(path: &str, prefix: &str) -> bool {
    let plain =
        path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace('\\', "/");
    !path.starts_with(prefix) || (prefix != "/" && plain.split('/').any(|segment| segment == ".."))
}
