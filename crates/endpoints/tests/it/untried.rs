//! Tests of the pick through the retry layer, against a plain model: an attempt goes to an untried endpoint while one
//! is in service, and only then is it sent at once after no answer.

use std::collections::HashSet;
use std::future::ready;
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use proptest::prelude::*;
use reattempt::endpoints::{Endpoints, EndpointsHandle, seed_picks};
use reattempt::{RetryBudget, RetryLayer};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Body, Does, WELL, get, policy};
use tokio::time::{Instant, sleep};
use tower::{Layer, Service};

/// The servers of a run.
struct World {
    does: Vec<Does>,
    handle: Mutex<Option<EndpointsHandle<Member>>>,
    seen: Mutex<Vec<Attempt>>,
}

/// An attempt, and the endpoints that were in service when it was sent.
struct Attempt {
    at: Instant,
    to: usize,
    in_service: Vec<usize>,
}

#[derive(Clone)]
struct Member {
    number: usize,
    world: Arc<World>,
}

impl<B> Service<Request<B>> for Member {
    type Response = Response<Body>;
    type Error = Error;
    type Future = std::future::Ready<Result<Response<Body>, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        let view = self.world.handle.lock().unwrap().as_ref().unwrap().view();
        let in_service = view.iter().filter(|view| view.out.is_none()).map(|view| view.name.parse().unwrap());
        let attempt = Attempt { at: Instant::now(), to: self.number, in_service: in_service.collect() };
        self.world.seen.lock().unwrap().push(attempt);
        ready(match self.world.does[self.number] {
            Does::Refuse => Err(ErrorKind::ConnectionRefused.into()),
            Does::Status(status) => Ok(Response::builder().status(status).body(Body::default()).unwrap()),
            _ => Ok(Response::default()),
        })
    }
}

/// Makes calls of up to `attempts` attempts, with these pauses between them.
async fn run(does: Vec<Does>, attempts: u32, pauses: &[Duration]) {
    let servers = does.len();
    let world = Arc::new(World { does, handle: Mutex::default(), seen: Mutex::default() });
    let made = Arc::clone(&world);
    let connect = move |number| Member { number, world: Arc::clone(&made) };
    let balanced = Endpoints::list(0..servers).unwrap().connect(connect).http();
    *world.handle.lock().unwrap() = Some(balanced.endpoints());
    let client = RetryLayer::new(policy(attempts).budget(RetryBudget::unlimited())).layer(balanced);
    for pause in pauses {
        sleep(*pause).await;
        let _outcome = client.send(get()).await;
        judge(&world.does, &std::mem::take(&mut *world.seen.lock().unwrap()));
    }
    // The handle keeps the set, whose clients keep the handle.
    world.handle.lock().unwrap().take();
}

/// Checks the attempts of a call.
fn judge(does: &[Does], attempts: &[Attempt]) {
    let mut tried = HashSet::new();
    let mut before: Option<(&Attempt, bool)> = None;
    for attempt in attempts {
        let is_tried = !tried.insert(attempt.to);
        let elsewhere = attempt.in_service.iter().any(|number| !tried.contains(number));
        assert!(!is_tried || !elsewhere, "{} was tried, and others were in service", attempt.to);
        if let Some((before, elsewhere)) = before {
            let is_at_once = elsewhere && does[before.to] == Does::Refuse;
            let expected = if is_at_once { Duration::ZERO } else { secs(1) };
            assert_eq!(attempt.at - before.at, expected, "after {}", before.to);
        }
        before = Some((attempt, elsewhere));
    }
}

fn in_virtual_time(run: impl Future<Output = ()>) {
    seed_picks(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run);
}

/// A status that does not change the price, so that the trail alone decides.
const NEUTRAL: Does = Does::Status(408);

/// Returns what the servers do. A share of them, or all, fail: with or without an answer.
fn failing(most: usize) -> impl Strategy<Value = Vec<Does>> {
    (2..=most, 1..=4_u32).prop_flat_map(|(servers, quarters)| {
        let fails = prop_oneof![Just(Does::Refuse), Just(NEUTRAL)];
        let does = prop_oneof![4 - quarters => Just(WELL), quarters => fails];
        proptest::collection::vec(does, servers)
    })
}

/// Returns pauses from none up to the longest ejections.
fn pauses() -> impl Strategy<Value = Vec<Duration>> {
    let pause = prop_oneof![Just(Duration::ZERO), (0..40_000_u64).prop_map(ms)];
    proptest::collection::vec(pause, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    // E-1, E-18
    #[test]
    fn small_sets_are_tried_in_full(does in failing(12), attempts in 2..=8_u32, pauses in pauses()) {
        in_virtual_time(run(does, attempts, &pauses));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    // E-1, E-18
    #[test]
    fn large_sets_are_tried_elsewhere(does in failing(1_000), attempts in 2..=8_u32, pauses in pauses()) {
        in_virtual_time(run(does, attempts, &pauses));
    }
}

/// Of a thousand servers that do not serve, each attempt of a call goes to another one.
// E-1
#[test]
fn thousand_servers_are_tried_once() {
    in_virtual_time(run(vec![NEUTRAL; 1_000], 8, &[Duration::ZERO; 200]));
}
