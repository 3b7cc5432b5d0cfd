//! The layer inside guards, endpoints, hedges, time limits and downloads.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Response;
use http_body_util::BodyExt;
use reattempt::classify::{self, Outcome};
use reattempt::endpoints::Endpoints;
use reattempt::guard::handle::{BreakerState, CircuitBreakerExt};
use reattempt::guard::{CircuitBreaker, GuardLayer};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::observe::Event;
use reattempt::resume::ResumeLayer;
use reattempt::schedule::Constant;
use reattempt::standard::StandardLayer;
use reattempt::{CallOptions, PeekBodyLayer, Report, RetryLayer, RetryPolicy, Verdict};
use reattempt_control::RetryBudget;
use reattempt_testing_layers::guard::Recorder;
use tokio::time::Instant;
use tower::{Layer, ServiceBuilder, ServiceExt};

use super::support::{Origin, Scripted, Step, body, data, get, request, response, retries};

const MS: Duration = Duration::from_millis(1);

type Make = fn() -> Response<Scripted>;

fn dying() -> Response<Scripted> {
    response(200, body(Some(9), [data("four"), Step::Break]))
}

fn well() -> Response<Scripted> {
    response(200, body(Some(4), [data("well")]))
}

/// 60 dying bodies open a breaker outside the layer. Without the layer, the breaker sees 60 successes.
// B-5
#[tokio::test(start_paused = true)]
async fn dying_bodies_open_the_breaker() {
    let origin = Origin::new(|_| dying());
    let breaker = CircuitBreaker::rate();
    let client = ServiceBuilder::new()
        .layer(GuardLayer::http(breaker.clone()))
        .layer(PeekBodyLayer::new())
        .service(origin.clone());
    for _ in 0..60 {
        let _ = client.clone().oneshot(get()).await.map(drop);
        tokio::time::advance(50 * MS).await;
    }
    assert_eq!(breaker.state("one.example"), BreakerState::Open);
    assert!(origin.count() < 60);
}

/// The ends that a guard records: a break is a lost connection, and a rule's final verdict on a 429 shows no overload.
// B-5
#[tokio::test(start_paused = true)]
async fn guards_record_the_body() {
    let cases: [(Make, &str); 4] = [
        (dying, "Lost"),
        (well, "Served"),
        (|| response(429, body(None, [data("{}")])), "Overloaded"),
        (|| response(429, body(None, [data(r#"{"error":{"type":"insufficient_quota"}}"#)])), "Served"),
    ];
    for (make, expected) in cases {
        let guard = Recorder::default();
        let layer = PeekBodyLayer::new().classify(classify::openai);
        let origin = Origin::new(move |_| make());
        let _ = GuardLayer::http(guard.clone()).layer(layer.layer(origin)).oneshot(get()).await;
        assert!(guard.log().iter().any(|line| line.contains(expected)), "{expected} {:?}", guard.log());
    }
}

/// Of two servers, one dies in each body. The retry goes to the other at once, so no call is lost.
// B-5
#[tokio::test(start_paused = true)]
async fn endpoints_avoid_dying_server() {
    let servers = [Origin::new(|_| well()), Origin::new(|_| dying())];
    let connect = servers.clone();
    let peek = PeekBodyLayer::new();
    let balanced =
        Endpoints::list(0..2).unwrap().connect(move |number: usize| peek.layer(connect[number].clone())).http();
    let policy = RetryPolicy::http().budget(RetryBudget::unlimited()).backoff(Constant::new(1000 * MS)).boxed_errors();
    let client = RetryLayer::new(policy).layer(balanced);
    for _ in 0..100 {
        let began = Instant::now();
        let answer = client.clone().oneshot(get()).await.unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "well");
        assert_eq!(began.elapsed(), Duration::ZERO, "the other server is tried at once");
    }
    assert!(servers[1].count() < 50, "{}", servers[1].count());
}

/// The first whole answer wins the hedge, also over one whose head came first.
#[tokio::test(start_paused = true)]
async fn first_whole_answer_wins_the_hedge() {
    let origin = Origin::new(|arrival| match arrival {
        1 => response(200, body(Some(8), [data("slow"), Step::Wait(5000 * MS), data("slow")])),
        _ => well(),
    });
    let policy = HedgePolicy::http().delay(20 * MS).budget(RetryBudget::unlimited());
    let client = HedgeLayer::new(policy).layer(PeekBodyLayer::new().layer(origin));
    let began = Instant::now();
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!(Report::of(&answer).and_then(Report::winner), Some(2));
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "well");
    assert!(began.elapsed() < 100 * MS);
}

/// A body that breaks does not end a hedged call while another attempt is in flight.
#[tokio::test(start_paused = true)]
async fn break_does_not_win_the_hedge() {
    let origin = Origin::new(|arrival| match arrival {
        1 => response(200, body(Some(8), [Step::Wait(40 * MS), Step::Break])),
        _ => response(200, body(Some(4), [Step::Wait(100 * MS), data("well")])),
    });
    let policy = HedgePolicy::http().delay(20 * MS).budget(RetryBudget::unlimited());
    let client = HedgeLayer::new(policy).layer(PeekBodyLayer::new().layer(origin));
    let answer = client.oneshot(get()).await.unwrap();
    let report = Report::of(&answer).unwrap().to_string();
    assert!(report.contains("attempt 1 at 40ms: network: connection reset"), "{report}");
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "well");
}

/// The limits on an attempt and on a call cover what is read.
// B-4
#[tokio::test(start_paused = true)]
async fn time_limits_cover_the_body() {
    let stalls = || response(200, body(Some(8), [data("four"), Step::Never]));
    let origin = Origin::new(move |arrival| if arrival == 1 { stalls() } else { well() });
    let policy = RetryPolicy::http().budget(RetryBudget::unlimited()).attempt_timeout(300 * MS);
    let client = RetryLayer::new(policy).layer(PeekBodyLayer::new().layer(origin.clone()));
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!((answer.into_body().collect().await.unwrap().to_bytes(), origin.count()), ("well".into(), 2));

    let origin = Origin::new(move |_| stalls());
    let client = retries_boxed().layer(PeekBodyLayer::new().layer(origin));
    let mut request = get();
    request.extensions_mut().insert(CallOptions::new().deadline(reattempt::Deadline::after(200 * MS)));
    let began = Instant::now();
    assert!(client.oneshot(request).await.is_err());
    assert!(began.elapsed() <= 202 * MS, "{:?}", began.elapsed());
}

fn retries_boxed() -> RetryLayer<RetryPolicy<reattempt::Http, Constant, RetryBudget, reattempt::error::BoxedError>> {
    let policy = RetryPolicy::http().budget(RetryBudget::unlimited()).backoff(Constant::new(Duration::ZERO));
    RetryLayer::new(policy.boxed_errors())
}

/// The standard stack sees bodies with one line below it, and its budget counts breaks.
// B-5
#[tokio::test(start_paused = true)]
async fn standard_stack_sees_bodies() {
    let origin = Origin::new(|arrival| if arrival == 1 { dying() } else { well() });
    let client = StandardLayer::http().layer(PeekBodyLayer::new().layer(origin.clone()));
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "well");
    assert_eq!(origin.count(), 2);

    let origin = Origin::new(|_| dying());
    let client = RetryLayer::http().layer(PeekBodyLayer::new().layer(origin.clone()));
    for _ in 0..40 {
        let _ = client.clone().oneshot(get()).await;
    }
    assert!((40..60).contains(&origin.count()), "the budget ends the retries: {}", origin.count());
}

/// A download breaks beyond the bound, and its continuation breaks within it. Both breaks are the resume layer's.
// B-10, trap 28
#[tokio::test(start_paused = true)]
async fn resume_goes_on_where_the_bound_ended() {
    let part = |range: std::ops::Range<usize>| Step::Data(range.map(|at| u8::try_from(at % 251).unwrap()).collect());
    let origin = Origin::new(move |arrival| {
        let from = [0, 100_000, 199_000][arrival - 1];
        let until = [100_000, 199_000, 200_000][arrival - 1];
        let steps = if until < 200_000 { vec![part(from..until), Step::Break] } else { vec![part(from..until)] };
        let mut response = response(if from == 0 { 200 } else { 206 }, body(Some(200_000 - from as u64), steps));
        let headers = response.headers_mut();
        headers.insert("content-length", (200_000 - from).into());
        headers.insert("etag", "\"1\"".parse().unwrap());
        if from > 0 {
            headers.insert("content-range", format!("bytes {from}-199999/200000").parse().unwrap());
        }
        response
    });
    let client = ServiceBuilder::new()
        .layer(ResumeLayer::http().budget(RetryBudget::unlimited()))
        .layer(retries())
        .layer(PeekBodyLayer::new().up_to(128 * 1024))
        .service(origin.clone());
    let answer = client.oneshot(get()).await.unwrap();
    let whole = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(whole.len() == 200_000 && whole.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at % 251));
    assert_eq!(origin.count(), 3, "no layer multiplies the resumes");
}

/// The own rule of a closure applies to guards as to retries.
// B-7
#[tokio::test(start_paused = true)]
async fn rule_counts_for_the_breaker() {
    let breaker = CircuitBreaker::rate();
    let rule = |outcome: Outcome<'_>| (outcome.body()? == b"down").then_some(Verdict::transient());
    let client = ServiceBuilder::new()
        .layer(GuardLayer::http(breaker.clone()))
        .layer(PeekBodyLayer::new().classify(rule))
        .service(Origin::new(|_| response(200, body(Some(4), [data("down")]))));
    for _ in 0..60 {
        let _ = client.clone().oneshot(request("POST", "http://one.example/")).await.map(drop);
        tokio::time::advance(50 * MS).await;
    }
    assert_eq!(breaker.state("one.example"), BreakerState::Open);
}

/// A break beyond the bound is the caller's: the call has succeeded for retries and events. Guards get the body's end.
// B-1, B-8
#[tokio::test(start_paused = true)]
async fn break_beyond_bound_is_the_callers() {
    let origin = Origin::new(|_| dying());
    let (guard, events) = (Recorder::holding(), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&events);
    let policy = RetryPolicy::http().observe(move |_: &str, event: &Event<'_>| {
        seen.lock().unwrap().push(event.to_string());
    });
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy.boxed_errors()))
        .layer(GuardLayer::http(guard.clone()))
        .layer(PeekBodyLayer::new().up_to(3))
        .service(origin.clone());
    let mut body = client.oneshot(get()).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "four");
    assert!(body.frame().await.unwrap().is_err());
    assert_eq!((origin.count(), &*guard.log()), (1, &["admitted", "Served", "Broken"].map(String::from)[..]));
    assert_eq!(*events.lock().unwrap(), ["succeeded on attempt 1"]);
}
