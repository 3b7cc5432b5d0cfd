//! Tests of attempts that move from endpoints that can serve nothing: they accept no connection, or ask for a wait.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use http::{Request, StatusCode};
use reattempt::budget::{Budget, Evidence, Permit};
use reattempt::endpoints::{EjectReason, Endpoints, EndpointsLayer, Place, seed_picks};
use reattempt::guard::{Reason, Refused};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::report::ReportSlot;
use reattempt::schedule::Failure;
use reattempt::{CallOptions, Http, Report, RetryBudget, RetryLayer, StopReason};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Body, Cluster, Does, Empty, WELL, get, policy, post};
use tokio::time::{Instant, sleep};
use tower::Layer;

/// A budget without tokens, which writes down what it is asked and permits moves as long as it is told to.
#[derive(Clone, Default)]
struct Asked {
    lines: Arc<Mutex<Vec<&'static str>>>,
    refuses: bool,
}

impl Budget for Asked {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        None
    }

    fn acquire_after_failure(&self, _: &str, _: &Evidence, _: Duration) -> Option<Permit> {
        self.lines.lock().unwrap().push("retry");
        None
    }

    fn on_failure(&self, _: &str, _: &Evidence, _: Duration) {
        self.lines.lock().unwrap().push("failure");
    }

    fn on_unprocessed(&self, _: &str, evidence: &Evidence, _: Duration) -> bool {
        assert_eq!(evidence.undone, None);
        self.lines.lock().unwrap().push("move");
        !self.refuses
    }
}

/// An attempt whose endpoint accepts no connection moves at once, three times per call at most, with the same number
/// and without a token or doubt. The endpoint bears the evidence, and the last one's failure is that of the service.
// C-3, CI-4, E-18
#[tokio::test(start_paused = true)]
async fn unreachable_endpoint_is_left_for_free() {
    for (servers, moves) in [(1, 0), (3, 2), (4, 3), (9, 3)] {
        let (cluster, budget, slot) =
            (Cluster::of(vec![Does::Refuse; servers]), Asked::default(), ReportSlot::default());
        let balanced = cluster.balanced();
        let handle = balanced.endpoints();
        let client = RetryLayer::new(policy(3).budget(budget.clone())).layer(balanced);
        let mut request = post();
        request.extensions_mut().insert(CallOptions::new().report_to(&slot));
        let began = Instant::now();
        client.send(request).await.unwrap_err();
        assert_eq!((cluster.seen().len(), began.elapsed()), (moves + 1, Duration::ZERO), "{servers}");
        let mut lines = vec!["move"; moves];
        lines.push("retry");
        assert_eq!(*budget.lines.lock().unwrap(), lines, "{servers}");
        let report = slot.take().unwrap();
        assert_eq!(report.stop_reason(), StopReason::BudgetExhausted);
        assert!(report.attempts().iter().all(|attempt| attempt.number == 1), "{report}");
        let failed = handle.view().iter().filter(|view| view.failing > 0.0).count();
        assert_eq!(failed, moves + 1, "{servers}");
    }
}

/// Once the budget has doubts, no attempt moves without a token.
// C-3, CI-4, E-18
#[tokio::test(start_paused = true)]
async fn doubt_ends_the_moves() {
    let (cluster, budget) = (Cluster::of([Does::Refuse; 4]), Asked { refuses: true, ..Asked::default() });
    let client = RetryLayer::new(policy(3).budget(budget.clone())).layer(cluster.balanced());
    client.send(post()).await.unwrap_err();
    assert_eq!((cluster.seen().len(), &**budget.lines.lock().unwrap()), (1, &["move", "retry"][..]));
    // With the default budget, the first call of an outage makes three moves and three attempts, and the others none.
    let cluster = Cluster::of([Does::Refuse; 20]);
    let client = RetryLayer::new(policy(3)).layer(cluster.list().without_ejections().http());
    let mut sent = Vec::new();
    for _ in 0..4 {
        client.send(post()).await.unwrap_err();
        sent.push(cluster.seen().len());
        sleep(ms(10)).await;
    }
    assert_eq!(sent, [6, 1, 1, 1]);
}

/// A whole first tier that refuses connections costs no call and no time, even for a POST without a key, and each is
/// processed once.
// C-3, E-2
#[tokio::test(start_paused = true)]
async fn dead_tier_costs_no_call() {
    for hedged in [false, true] {
        let cluster = Cluster::of([Does::Refuse, Does::Refuse, Does::Refuse, WELL, WELL]);
        let endpoints = Endpoints::urls(["http://0", "http://1", "http://2"]).unwrap();
        let endpoints = endpoints.or_else_urls(["http://3", "http://4"]).unwrap();
        let set = EndpointsLayer::with(Http::new(), endpoints).layer(cluster.client(""));
        let retried = RetryLayer::new(policy(3).budget(Empty)).layer(set.clone());
        let hedges = HedgePolicy::http().delay(secs(1)).budget(Empty).boxed_errors();
        let hedges = HedgeLayer::new(hedges).layer(set);
        let mut processed = 0;
        for call in 0..200 {
            // A hedge layer passes on what it must not repeat.
            let method = if hedged { "GET" } else { "POST" };
            let request = Request::builder().method(method).uri("http://0/").body(Body::from("once")).unwrap();
            let began = Instant::now();
            let response = if hedged { hedges.send(request).await } else { retried.send(request).await };
            assert_eq!(response.unwrap().status(), StatusCode::OK, "call {call}, hedged: {hedged}");
            assert_eq!(began.elapsed(), ms(10), "call {call}, hedged: {hedged}");
            processed += cluster.seen().iter().filter(|name| ["3", "4"].contains(&&***name)).count();
        }
        assert_eq!(processed, 200);
    }
}

/// A POST whose key keeps it in a tier that has since gone down is refused with that reason, and not as if the set were
/// empty.
// E-2
#[tokio::test(start_paused = true)]
async fn key_of_a_tier_that_is_down_is_named() {
    let cluster = Cluster::of([Does::Busy(9), Does::Busy(9), WELL]);
    let tier = |key: &String, place: Place| place.tier(usize::from(key == "2"));
    let client = RetryLayer::new(policy(2)).layer(cluster.list().placed(tier).http());
    let keyed = Request::post("http://service/").header("idempotency-key", "\"k\"");
    let mut call = Box::pin(client.send(keyed.body(Body::from("once")).unwrap()));
    assert!(call.as_mut().now_or_never().is_none());
    // Before its retry, other calls find that the rest of the tier is busy too.
    client.send(get()).await.unwrap();
    let error = call.await.unwrap_err();
    assert_eq!(error.downcast_ref::<Refused>().unwrap().reason(), Reason::TierDown, "{error}");
    assert!(error.to_string().ends_with("has nothing in service in the tier that may know the request's key"));
}

/// With 14 of 20 endpoints dead, the others serve the calls, and hardly an attempt goes to a dead one.
// C-3, C-9, E-18, E-22
#[tokio::test(start_paused = true)]
async fn dead_majority_costs_few_attempts() {
    seed_picks(7);
    let cluster = Cluster::of((0..20).map(|number| if number < 14 { Does::Refuse } else { WELL }));
    let client = RetryLayer::new(policy(3)).layer(cluster.balanced());
    let mut lost = 0;
    for call in 0..1000 {
        lost += u32::from(client.send(post()).await.is_err());
        if call == 20 {
            cluster.seen();
        }
    }
    assert!(lost <= 1, "{lost}");
    let seen = cluster.seen();
    let dead = seen.iter().filter(|name| name.parse::<u32>().unwrap() < 14).count();
    assert!(dead < 14 * 4, "each is tried after 1, 2 and 4 s: {dead} of {}", seen.len());
}

/// One of two servers drains, with a 503 that asks for two minutes. The other one responds to every call, and the
/// draining one gets none for a minute. With hedges too, and for a POST with a key.
// C-13, E-23, field 10, trap 64
#[tokio::test(start_paused = true)]
async fn draining_server_is_left_alone() {
    for hedged in [false, true] {
        seed_picks(1);
        let cluster = Cluster::of([Does::Busy(120), WELL]);
        let balanced = cluster.balanced();
        let handle = balanced.endpoints();
        let retried = RetryLayer::new(policy(2)).layer(balanced.clone());
        let hedges = HedgePolicy::http().delay(secs(1)).boxed_errors();
        let hedges = HedgeLayer::new(hedges).layer(balanced);
        for call in 0..1000 {
            let response = if hedged { hedges.send(get()).await } else { retried.send(get()).await };
            assert_eq!(response.unwrap().status(), StatusCode::OK, "call {call}, hedged: {hedged}");
        }
        assert_eq!(cluster.seen().iter().filter(|name| *name == "0").count(), 1, "hedged: {hedged}");
        let view = &handle.view()[0];
        assert_eq!(view.reason, Some(EjectReason::Asked), "hedged: {hedged}");
        assert!(view.out.unwrap() > secs(40), "hedged: {hedged}");
        // It is not ejected for longer than a client would wait.
        sleep(secs(72)).await;
        assert_eq!(handle.view()[0].out, None, "hedged: {hedged}");
    }
}

/// A wait that is too long for the call ends it only if no other endpoint is left. With one endpoint, the wait binds
/// the call.
// C-13, E-23
#[tokio::test(start_paused = true)]
async fn only_endpoint_binds_its_callers() {
    for (seconds, servers, attempts, status) in [(120, 1, 1, 503), (7, 1, 2, 503), (120, 2, 2, 503)] {
        let cluster = Cluster::of(vec![Does::Busy(seconds); servers]);
        let client = RetryLayer::new(policy(2).budget(RetryBudget::unlimited())).layer(cluster.balanced());
        let response = client.send(get()).await.unwrap();
        assert_eq!((response.status().as_u16(), cluster.times().len()), (status, attempts), "{seconds} s of {servers}");
        let report = Report::of(&response).unwrap();
        let expected = match (seconds, servers) {
            (120, 1) => StopReason::ServerDelayTooLong,
            _ => StopReason::AttemptsExhausted,
        };
        assert_eq!(report.stop_reason(), expected, "{report}");
    }
    let cluster = Cluster::of([Does::Busy(7)]);
    let client = RetryLayer::new(policy(2)).layer(cluster.balanced());
    client.send(get()).await.unwrap();
    let times = cluster.times();
    assert_eq!((times[1].1 - times[0].1).as_secs(), 7);
}

/// Hedged calls move at most three times, whatever their number of attempts, and pay for the attempt after that.
// C-3
#[tokio::test(start_paused = true)]
async fn hedged_calls_move_three_times() {
    for attempts in [2, 3, 5] {
        let cluster = Cluster::of([Does::Refuse; 9]);
        let hedges = HedgePolicy::http().delay(secs(1)).max_attempts(attempts).budget(Empty).boxed_errors();
        let client = HedgeLayer::new(hedges).layer(cluster.balanced());
        client.send(get()).await.unwrap_err();
        assert_eq!(cluster.seen().len(), 4, "{attempts}");
    }
}
