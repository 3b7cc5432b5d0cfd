//! Tests of the end of a standard stack's total time, as the layers and services inside find it.

use std::convert::Infallible;
use std::error::Error;
use std::future::{Ready, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use http::{Extensions, Request, Response};
use reattempt::endpoints::Endpoints;
use reattempt::error::BoxedError;
use reattempt::guard::{GuardLayer, Limit, RateLimit, Reason, Refused};
use reattempt::hedge::HedgePolicy;
use reattempt::schedule::Constant;
use reattempt::standard::{StandardGuards, StandardLayer};
use reattempt::{Deadline, Http, ReplayBody, RetryBudget, RetryLayer, RetryPolicy, TimedOut, Verdict};
use tokio::time::{Instant, advance};
use tower::buffer::Buffer;
use tower::util::{MapRequest, MapRequestLayer};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

use super::support::Recorder;
use crate::calls::support::{Act, Body, Server, With, get, ms, options};

type Inner = Request<ReplayBody<Body>>;

/// The deadlines that a layer has found when it was called.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Vec<Found>>>);

#[derive(Debug)]
struct Found {
    by_function: Option<Deadline>,
    in_extensions: Option<Deadline>,
}

impl Seen {
    /// Returns a service that looks at each request before `inner` gets it.
    pub(super) fn before<S, B>(
        &self,
        inner: S,
    ) -> MapRequest<S, impl FnMut(Request<B>) -> Request<B> + Clone + use<S, B>> {
        let seen = self.0.clone();
        MapRequest::new(inner, move |request: Request<B>| {
            let extensions = request.extensions();
            let (by_function, in_extensions) = (Deadline::of(extensions), extensions.get().copied());
            seen.lock().unwrap().push(Found { by_function, in_extensions });
            request
        })
    }

    pub(super) fn found(&self) -> Vec<Option<Deadline>> {
        self.0.lock().unwrap().iter().map(|found| found.by_function).collect()
    }

    fn in_extensions(&self) -> Vec<Option<Deadline>> {
        self.0.lock().unwrap().iter().map(|found| found.in_extensions).collect()
    }
}

/// Returns a stack whose calls end after 5 s, with delays of 100 ms.
fn stack() -> StandardLayer<StandardGuards, RetryPolicy<Http, Constant, RetryBudget, BoxedError>> {
    let policy = RetryPolicy::http().backoff(Constant::new(ms(100))).seed(1).boxed_errors();
    StandardLayer::http().retry(policy).total_time(ms(5_000))
}

/// The rule of [`Deadline`]: every attempt has the deadline, and the extensions of the first have it only if there are
/// others.
#[tokio::test(start_paused = true)]
async fn every_attempt_finds_total_time() {
    let deadline = Some(Deadline::after(ms(5_000)));
    let seen = Seen::default();
    let client = stack().layer(seen.before(Server::statuses([503, 200])));
    client.send(get()).await.unwrap();
    assert_eq!(seen.found(), [deadline; 2]);
    assert_eq!(seen.in_extensions(), [None, deadline]);

    let deadline = Some(Deadline::after(ms(5_000)));
    let seen = Seen::default();
    let client = stack().layer(seen.before(Server::statuses([200])));
    client.send(get().with("an extension")).await.unwrap();
    assert_eq!((seen.found(), seen.in_extensions()), (vec![deadline], vec![deadline]));
}

/// A caller's earlier deadline precedes the total time, wherever it was set.
#[tokio::test(start_paused = true)]
async fn earlier_deadline_is_in_extensions() {
    let seen = Seen::default();
    let client = stack().layer(seen.before(Server::statuses([200])));
    let deadline = Deadline::after(ms(1_000));
    client.send(get().with(deadline)).await.unwrap();
    client.send(get().with(options().deadline(deadline))).await.unwrap();
    client.with_options(options().deadline(deadline)).send(get()).await.unwrap();
    assert_eq!(seen.in_extensions(), [Some(deadline); 3]);
    assert_eq!(seen.found(), [Some(deadline); 3]);
}

#[tokio::test(start_paused = true)]
async fn every_hedge_finds_total_time() {
    let seen = Seen::default();
    let server = Server::by(|_, _| Act::from(200).later(ms(150)));
    let policy = HedgePolicy::http().delay(ms(100)).boxed_errors();
    let client = StandardLayer::http().hedge(policy).total_time(ms(5_000)).layer(seen.before(server));
    let deadline = Some(Deadline::after(ms(5_000)));
    client.send(get()).await.unwrap();
    assert_eq!(seen.found(), [deadline; 2]);
}

/// Layers that know nothing of deadlines are between the guards.
#[tokio::test(start_paused = true)]
async fn inner_guard_knows_total_time() {
    // One token in 10 s.
    let limit = || RateLimit::new(Limit::every(ms(10_000)), 1);
    let inner = GuardLayer::http(limit()).layer(Server::statuses([200]));
    let client = stack().layer(MapRequest::new(inner, |request: Inner| request));
    client.send(get()).await.unwrap();
    let began = Instant::now();
    let refused = client.send(get()).await.unwrap_err();
    assert_eq!(refused.downcast_ref::<Refused>().unwrap().reason(), Reason::WaitTooLong);
    assert_eq!(began.elapsed(), ms(0), "the token comes too late");
}

/// A request that is no HTTP message has no extensions, and reqwest's are private.
#[tokio::test(start_paused = true)]
async fn guard_without_extensions_knows_deadline() {
    let judge = |outcome: Result<&u32, &(dyn Error + 'static)>| match outcome {
        Ok(_) => Verdict::Success,
        Err(_) => Verdict::Permanent,
    };
    let server = service_fn(async |request: u32| Ok::<_, TimedOut>(request));
    let guarded = GuardLayer::classified(judge, RateLimit::new(Limit::every(ms(10_000)), 1)).layer(server);
    let client = RetryLayer::new(RetryPolicy::cloned(judge).never_retry().boxed_errors()).layer(guarded);
    let client = client.with_options(options().deadline(Deadline::after(ms(5_000))));
    client.send(1).await.unwrap();
    let began = Instant::now();
    let refused = client.send(2).await.unwrap_err();
    assert_eq!(refused.downcast_ref::<Refused>().unwrap().reason(), Reason::WaitTooLong);
    assert_eq!(began.elapsed(), ms(0));
}

/// The attempt is sent after its frame was closed.
#[tokio::test(start_paused = true)]
async fn total_time_is_found_after_a_wait() {
    let (recorder, seen) = (Recorder::queueing(), Seen::default());
    let client = stack().guards(recorder.clone()).layer(seen.before(Server::statuses([200])));
    let deadline = Some(Deadline::after(ms(5_000)));
    let call = tokio::spawn(client.send(get()));
    tokio::time::sleep(ms(500)).await;
    assert_eq!(seen.found(), []);
    recorder.release();
    call.await.unwrap().unwrap();
    assert_eq!(seen.found(), [deadline]);
    assert_eq!(Deadline::of(&Extensions::new()), None);
}

/// An inner retry layer without any setting sends no retry after the total time of the stack around it.
#[tokio::test(start_paused = true)]
async fn inner_retries_end_with_total_time() {
    let server = Server::statuses([503]);
    let policy = RetryPolicy::http().backoff(Constant::new(ms(2_000))).max_attempts(9).boxed_errors();
    let inner = RetryLayer::new(policy).layer(server.clone());
    let outer = RetryPolicy::http().never_retry().boxed_errors();
    let layer = StandardLayer::http().retry(outer).total_time(ms(5_000)).attempt_timeout(ms(4_900));
    let client = layer.layer(inner);
    let began = Instant::now();
    assert_eq!(client.send(get()).await.unwrap().status(), 503);
    assert_eq!((server.times(), began.elapsed()), (vec![0, 2_000, 4_000], ms(4_000)));
}

/// Another task finds a deadline only in the extensions, into which a layer below the stack copies it.
#[tokio::test(start_paused = true)]
async fn copied_deadline_passes_a_buffer() {
    let copying = MapRequestLayer::new(|mut request: Inner| {
        if let Some(deadline) = Deadline::of(request.extensions()) {
            request.extensions_mut().insert(deadline);
        }
        request
    });
    let deadline = Some(Deadline::after(ms(5_000)));
    let (bare, copied) = (Seen::default(), Seen::default());
    let client = stack().layer(Buffer::new(bare.before(Server::statuses([200])), 8));
    client.send(get()).await.unwrap();
    let builder = ServiceBuilder::new().layer(stack()).layer(copying);
    let client = builder.service(Buffer::new(copied.before(Server::statuses([200])), 8));
    client.send(get()).await.unwrap();
    assert_eq!((bare.found(), copied.found()), (vec![None], vec![deadline]));
}

fn answers() -> Ready<Result<Response<Body>, TimedOut>> {
    ready(Ok(Response::new(Body::default())))
}

/// The thread has no deadline once the inner service has returned or panicked.
#[tokio::test(start_paused = true)]
async fn no_deadline_outlives_its_frame() {
    let found = || Deadline::of(&Extensions::new());
    let panics = || -> Ready<_> { panic!("a defect") };
    let mut client = stack().layer(service_fn(move |_: Inner| if found().is_some() { panics() } else { answers() }));
    client.ready().await.unwrap();
    catch_unwind(AssertUnwindSafe(|| client.call(get()))).unwrap_err();
    assert_eq!(found(), None);

    // A call inside the frame of another one.
    let inner = stack().total_time(ms(2_000)).layer(service_fn(|_: Inner| answers()));
    let deadline = Some(Deadline::after(ms(5_000)));
    let client = stack().layer(service_fn(move |_: Inner| {
        drop(inner.clone().call(get()));
        assert_eq!(found(), deadline);
        answers()
    }));
    client.send(get()).await.unwrap();
    assert_eq!(found(), None);
}

/// An endpoint's client is called when it is ready, after the layers above have returned.
#[tokio::test(start_paused = true)]
async fn client_of_an_endpoint_finds_total_time() {
    let seen = Seen::default();
    let servers = Endpoints::list(["one.example"]).unwrap();
    let (layers, server) = (seen.clone(), Server::statuses([200]));
    let client = stack().layer(servers.connect(move |_: &_| layers.before(server.clone())).http());
    let deadline = Some(Deadline::after(ms(5_000)));
    client.send(get()).await.unwrap();
    assert_eq!(seen.found(), [deadline]);
}

/// A service that calls another server passes the total time on.
#[tokio::test(start_paused = true)]
async fn propagate_copies_total_time() {
    let outbound = Arc::new(Mutex::new(Extensions::new()));
    let copied = Arc::clone(&outbound);
    let proxy = service_fn(move |request: Inner| {
        Deadline::propagate(request.extensions(), &mut copied.lock().unwrap());
        ready(Ok::<_, Infallible>(Response::new(String::new())))
    });
    let deadline = Some(Deadline::after(ms(5_000)));
    stack().layer(proxy).send(get()).await.unwrap();
    assert_eq!(outbound.lock().unwrap().get().copied(), deadline);
}

/// A retry of another client does not get the deadline of the call whose service happens to poll it.
#[tokio::test(start_paused = true)]
async fn poll_lends_no_deadline() {
    let seen = Seen::default();
    let server = Server::by(|arrival, _| Act::from(if arrival == 1 { 503 } else { 200 }).later(ms(10)));
    let policy = RetryPolicy::http().backoff(Constant::immediate()).seed(1).boxed_errors();
    let mut other = Box::pin(RetryLayer::new(policy).layer(seen.before(server)).oneshot(get()));
    assert!(other.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    advance(ms(11)).await;
    let other = Arc::new(Mutex::new(other));
    let polls = service_fn(move |_: Inner| {
        let polled = other.lock().unwrap().as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "the second response is late too");
        ready(Ok::<_, Infallible>(Response::new(String::new())))
    });
    stack().layer(polls).send(get()).await.unwrap();
    assert_eq!(seen.found(), [None, None]);
}
