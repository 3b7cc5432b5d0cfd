//! Tests of a guard inside a retry layer, and of one outside it: the effect of a refusal on the call and on every
//! counter.

use std::error::Error;

use reattempt::guard::contract::GuardKind;
use reattempt::guard::{CircuitBreaker, GuardLayer, Reason, Refused};
use reattempt::{CallOptions, Deadline, Http, RetryLayer, RetryPolicy, Verdict};
use reattempt_schedule_fixed::Constant;
use reattempt_testing_layers::calls::{Body, Log, Server, With, get, ms, policy, tokens};
use reattempt_testing_layers::guard::{Recorder, refused, timeless};
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

/// Returns a breaker that opens for a second after five consecutive failures.
fn breaker() -> CircuitBreaker {
    timeless().consecutive_failures(5).open_time(ms(1_000)).spread(0)
}

fn after(wait: u64) -> Refused {
    refused().after(ms(wait))
}

fn is_refusal(error: &BoxError) -> bool {
    let error: &(dyn Error + 'static) = &**error;
    std::iter::successors(Some(error), |&error| error.source()).any(|error| error.is::<Refused>())
}

fn client<G: reattempt::guard::contract::Guard>(
    policy: RetryPolicy<Http, Constant>,
    guard: G,
    server: &Server,
) -> impl Service<http::Request<Body>, Response: std::fmt::Debug + Send, Error = BoxError, Future: Send> + Clone + use<G>
{
    ServiceBuilder::new()
        .layer(RetryLayer::new(policy.boxed_errors()))
        .layer(GuardLayer::http(guard))
        .service(server.clone())
}

// G-7
#[tokio::test(start_paused = true)]
async fn open_breaker_ends_the_call_at_once() {
    let server = Server::statuses([503]);
    let log = Log::default();
    let policy = policy().max_attempts(4).max_elapsed(ms(800)).observe_with(log.clone());
    let client = client(policy, breaker(), &server);
    client.clone().oneshot(get()).await.unwrap();
    let began = Instant::now();
    let error = client.clone().oneshot(get()).await.unwrap_err();
    assert!(is_refusal(&error));
    // The fifth attempt opened it, the sixth was refused, and a wait of a second does not fit.
    assert_eq!((server.count(), began.elapsed()), (5, ms(100)));
    assert_eq!(log.lines().last().unwrap(), "one.example: gave up after 2 attempts: a guard refused the attempt");
    let began = Instant::now();
    assert!(is_refusal(&client.oneshot(get()).await.unwrap_err()));
    assert_eq!((server.count(), began.elapsed()), (5, ms(0)));
}

// G-7
#[tokio::test(start_paused = true)]
async fn known_wait_that_fits_is_waited_for() {
    let server = Server::statuses([503, 503, 503, 503, 503, 200]);
    let client = client(policy().max_attempts(4), breaker(), &server);
    client.clone().oneshot(get()).await.unwrap();
    client.oneshot(get()).await.unwrap();
    let times = server.times();
    assert_eq!(times[..5], [0, 100, 200, 300, 300]);
    // A second after the breaker opened, plus up to a tenth of the remaining time.
    assert!((1_300..=1_390).contains(&times[5]), "{times:?}");
    let numbers: Vec<_> = server.seen().iter().map(|seen| seen.number()).collect();
    assert_eq!(numbers[4..], [None, Some(2)], "a refused attempt keeps its number");
}

// G-7
#[tokio::test(start_paused = true)]
async fn refusals_are_resent_max_attempts_times() {
    let recorder = Recorder::default();
    recorder.refuse(after(10));
    let server = Server::statuses([200]);
    let client = client(policy().max_attempts(3), recorder.clone(), &server);
    assert!(is_refusal(&client.oneshot(get()).await.unwrap_err()));
    assert_eq!((recorder.log().len(), server.count()), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn wait_past_the_deadline_is_not_begun() {
    let recorder = Recorder::default();
    recorder.refuse(after(500));
    let server = Server::statuses([200]);
    let client = client(policy(), recorder.clone(), &server);
    let began = Instant::now();
    for deadline in [100, 500] {
        let request = get().with(Deadline::after(ms(deadline)));
        assert!(is_refusal(&client.clone().oneshot(request).await.unwrap_err()));
    }
    let never = get().with(CallOptions::new().never_retry());
    assert!(is_refusal(&client.clone().oneshot(never).await.unwrap_err()));
    recorder.refuse(refused());
    assert!(is_refusal(&client.oneshot(get()).await.unwrap_err()));
    assert_eq!((began.elapsed(), recorder.log().len()), (ms(0), 4));
}

// G-22
#[tokio::test(start_paused = true)]
async fn refusal_moves_no_budget() {
    let server = Server::statuses([503, 503, 503, 503, 503, 200]);
    let budget = tokens(10.0);
    let policy = policy().max_attempts(2).max_elapsed(ms(800)).budget(budget.clone());
    let client = client(policy, breaker(), &server);
    for _ in 0..2 {
        client.clone().oneshot(get()).await.unwrap();
    }
    assert_eq!(budget.balance("one.example"), 8.0);
    // Its first attempt opens the breaker, and the retry is refused, so the retry's token is returned.
    client.clone().oneshot(get()).await.unwrap_err();
    assert_eq!(budget.balance("one.example"), 8.0);
    for _ in 0..3 {
        client.clone().oneshot(get()).await.unwrap_err();
    }
    assert_eq!((budget.balance("one.example"), server.count()), (8.0, 5));
}

// G-22
#[tokio::test(start_paused = true)]
async fn resent_retry_pays_once() {
    let server = Server::statuses([503, 200]);
    let recorder = Recorder::default();
    let budget = tokens(10.0);
    let client = client(policy().budget(budget.clone()), recorder.clone(), &server);
    let call = tokio::spawn(client.oneshot(get()));
    tokio::time::sleep(ms(50)).await;
    recorder.refuse(after(100));
    tokio::time::sleep(ms(100)).await;
    assert_eq!(budget.balance("one.example"), 9.0);
    recorder.admit();
    call.await.unwrap().unwrap();
    assert!((budget.balance("one.example") - 9.1).abs() < 1e-9);
    assert_eq!(server.count(), 2);
}

// G-8
#[tokio::test(start_paused = true)]
async fn no_classifier_sees_a_refusal() {
    let recorder = Recorder::default();
    recorder.refuse(refused());
    let http = Http::new().classify(|_| -> Option<Verdict> { panic!("asked about a refusal") });
    let server = Server::statuses([200]);
    let client = client(policy().protocol(|_| http), recorder, &server);
    assert!(is_refusal(&client.oneshot(get()).await.unwrap_err()));
}

// G-8, G-23
#[tokio::test(start_paused = true)]
async fn guard_outside_counts_no_refusal_inside() {
    let (outer, inner) = (Recorder::default(), Recorder::default());
    inner.refuse(Refused::new(GuardKind::RATE_LIMIT, Reason::RateExceeded));
    let client = ServiceBuilder::new()
        .layer(GuardLayer::http(outer.clone()))
        .layer(RetryLayer::new(policy().boxed_errors()))
        .layer(GuardLayer::http(inner))
        .service(Server::statuses([200]));
    assert!(is_refusal(&client.oneshot(get()).await.unwrap_err()));
    assert_eq!(outer.log(), ["admitted", "unsent"]);
}

#[tokio::test(start_paused = true)]
async fn guard_outside_sees_the_call_once() {
    let outer = Recorder::holding();
    let client = ServiceBuilder::new()
        .layer(GuardLayer::http(outer.clone()))
        .layer(RetryLayer::new(policy()))
        .service(Server::statuses([503, 503, 200]));
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(outer.log(), ["admitted", "Served", "Complete"]);
}
