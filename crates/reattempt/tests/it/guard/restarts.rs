//! Tests of the standard stack while connections end and servers restart.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::guard::handle::{BreakerState, CircuitBreakerExt};
use reattempt::guard::{Bulkhead, CircuitBreaker};
use reattempt::standard::StandardLayer;
use reattempt::{ReplayBody, RetryPolicy};
use reattempt_faults::{Read, Reply, Script, Server, Step};
use reattempt_schedule_fixed::Constant;
use reattempt_testing::secs;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::calls::support::{Body, get, ms, request};

/// The time at which the servers of the scenes go down.
const DOWN: Duration = Duration::from_secs(1);
/// The time that a server takes for a call.
const SERVICE: Duration = Duration::from_millis(10);
/// The time that a worker takes between two calls.
const PAUSE: Duration = Duration::from_millis(40);
/// Reached only by a hanging test.
const HANGS: Duration = Duration::from_secs(20);

/// Changes of a breaker, with the time since the start of its scene.
type Changes = Arc<Mutex<Vec<(Duration, BreakerState, BreakerState)>>>;

/// Returns the stack's default breaker, and its changes.
fn noted() -> (CircuitBreaker, Changes) {
    let (changes, began) = (Changes::default(), Instant::now());
    let notes = Arc::clone(&changes);
    let note = move |change: &reattempt::guard::handle::StateChange| {
        notes.lock().unwrap().push((began.elapsed(), change.from, change.to));
    };
    (CircuitBreaker::rate().seed(1).on_state_change(note), changes)
}

/// Carries out a call as a server that is `down` for some time: it loses the calls that it is working on, and accepts
/// no connection until it is back.
async fn served(began: Instant, down: Range<Duration>) -> io::Result<Response<Empty<Bytes>>> {
    let now = began.elapsed();
    if down.contains(&now) {
        sleep(ms(1)).await;
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    if now < down.start && now + SERVICE > down.start {
        sleep_until(began + down.start).await;
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    sleep(SERVICE).await;
    Ok(Response::new(Empty::new()))
}

/// Lets workers call until `end`, one call after the other. Returns the calls that were served and those that failed.
async fn work<C, R>(client: C, workers: usize, end: Duration) -> [usize; 2]
where
    C: Service<Request<Body>, Response = Response<R>> + Clone,
{
    let began = Instant::now();
    let worker = |_| async {
        let (client, mut counts) = (client.clone(), [0, 0]);
        while began.elapsed() < end {
            let served = client.clone().oneshot(get()).await.is_ok();
            counts[usize::from(!served)] += 1;
            sleep(PAUSE).await;
        }
        counts
    };
    let counts = join_all((0..workers).map(worker)).await;
    counts.into_iter().fold([0, 0], |[served, failed], [more, lost]| [served + more, failed + lost])
}

/// Lets workers call a server that is down for this time, and is observed for `after` it. Returns the calls that were
/// served and those that failed, without and with the standard stack, and the changes of its breaker.
async fn restart(workers: usize, down: Duration, after: Duration) -> ([usize; 2], [usize; 2], Changes) {
    let (outage, end) = (DOWN..DOWN + down, DOWN + down + after);
    let (began, range) = (Instant::now(), outage.clone());
    let bare = work(service_fn(move |_: Request<Body>| served(began, range.clone())), workers, end).await;
    let (began, (breaker, changes)) = (Instant::now(), noted());
    let server = service_fn(move |_: Request<ReplayBody<Body>>| served(began, outage.clone()));
    let stack = StandardLayer::http().retry(RetryPolicy::http().seed(1).boxed_errors());
    let client = stack.limits(breaker, Bulkhead::new(64)).layer(server);
    (bare, work(client, workers, end).await, changes)
}

/// A server that restarts within a fifth of a second opens no breaker, and the stack loses no more calls than a client
/// without it.
// C-14, field 04
#[tokio::test(start_paused = true)]
async fn short_restart_opens_no_breaker() {
    for workers in [1, 8, 64] {
        let (bare, stack, changes) = restart(workers, ms(200), secs(3)).await;
        assert!(changes.lock().unwrap().is_empty(), "{workers} workers: {changes:?}");
        let [served, failed] = stack;
        assert!(failed <= bare[1] && served > 0 && bare[1] > 0, "{workers} workers: {stack:?}, {bare:?} without it");
    }
}

/// A restart of a second opens no breaker either. One of five seconds opens it once, and soon after the server is back,
/// a probe closes it.
// C-14
#[tokio::test(start_paused = true)]
async fn restart_of_seconds_opens_it_once() {
    for workers in [1, 8, 64] {
        let (_, _, changes) = restart(workers, secs(1), secs(3)).await;
        assert!(changes.lock().unwrap().is_empty(), "{workers} workers: {changes:?}");
        let (_, _, changes) = restart(workers, secs(5), secs(3)).await;
        let changes = changes.lock().unwrap();
        let openings = changes.iter().filter(|(_, from, _)| *from == BreakerState::Closed).count();
        let (closed, _, last) = changes.last().unwrap();
        assert_eq!((openings, *last), (1, BreakerState::Closed), "{workers} workers: {changes:?}");
        assert!(*closed < DOWN + secs(6), "{workers} workers: {changes:?}");
    }
}

/// A server that stays away opens the breaker within three seconds, and probes do not close it.
// C-14
#[tokio::test(start_paused = true)]
async fn dead_server_opens_breaker_in_3_seconds() {
    for workers in [8, 64] {
        let (_, _, changes) = restart(workers, secs(20), Duration::ZERO).await;
        let changes = changes.lock().unwrap();
        let (opened, _, to) = changes[0];
        assert!(to == BreakerState::Open && opened <= DOWN + secs(3), "{workers} workers: {changes:?}");
        assert!(changes.iter().all(|(_, _, to)| *to != BreakerState::Closed), "{workers} workers: {changes:?}");
    }
}

/// Of fifty calls on a connection that breaks, all are served by a second one. The breaker has seen one failure, and
/// sends the next call.
// C-4, C-5, C-6, field 03, trap 60
#[tokio::test]
async fn broken_connection_is_one_failure() {
    let on_first = |reply| Step::new(reply).connection(1);
    let last = on_first(Reply::reset().read(Read::Head)).always();
    let script = Script::new([on_first(Reply::stall()).times(49), last]).otherwise(Reply::status(StatusCode::OK));
    let server = Server::http2(script).await.unwrap();
    let url = server.url("/");
    let breaker = CircuitBreaker::rate();
    let policy = RetryPolicy::http().backoff(Constant::new(Duration::ZERO)).boxed_errors();
    let http = Client::builder(TokioExecutor::new()).http2_only(true).build_http::<ReplayBody<Body>>();
    let client = StandardLayer::http().retry(policy).limits(breaker.clone(), Bulkhead::new(64)).layer(http);
    let call = |_| client.clone().oneshot(request("GET", &url, ""));
    let results = timeout(HANGS, join_all((0..50).map(call))).await.unwrap();
    assert_eq!(results.iter().flatten().filter(|response| response.status() == 200).count(), 50);
    let destination = server.address().to_string();
    let counts = breaker.counts(&destination);
    assert_eq!((counts.total_failures, counts.total_exclusions, counts.total_successes), (1, 49, 50));
    assert_eq!(breaker.state(&destination), BreakerState::Closed);
    assert_eq!(call(50).await.unwrap().status(), 200);
    assert_eq!((server.ledger().connections(), server.ledger().arrivals().len()), (2, 101));
}
