//! Tests of a circuit breaker in front of a server: which outcomes open it, and for which callers.

use std::io::ErrorKind;

use reattempt::guard::contract::Health;
use reattempt::guard::handle::BreakerState;
use reattempt::guard::handle::CircuitBreakerExt;
use reattempt::guard::{CircuitBreaker, GuardLayer, Guarded, Reason, Refused};
use reattempt::{CallOptions, Http, Verdict};
use reattempt_testing_layers::calls::{Act, Body, Log, ONE, Server, TWO, With, failing, ms};
use reattempt_testing_layers::guard::{Recorder, attempt, refused, timeless};
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt};

fn guarded(server: &Server) -> Guarded<Server, CircuitBreaker> {
    GuardLayer::http(timeless().consecutive_failures(5)).layer(server.clone())
}

fn refusal(error: &BoxError) -> Refused {
    *error.downcast_ref::<Refused>().expect("a refusal")
}

// G-9
#[tokio::test(start_paused = true)]
async fn clones_and_handles_share_one_breaker() {
    let server = Server::statuses([500]);
    let layer = GuardLayer::http(timeless().consecutive_failures(5));
    for _ in 0..5 {
        // A service, and a clone of it for each call.
        let client = layer.clone().layer(server.clone()).clone();
        assert_eq!(client.oneshot(attempt(ONE)).await.unwrap().status(), 500);
    }
    let client = layer.layer(server.clone());
    let refused = refusal(&client.send(attempt(ONE)).await.unwrap_err());
    assert_eq!(refused.reason(), Reason::Open);
    assert!(refused.wait().is_some_and(|wait| wait > ms(8_900)));
    assert_eq!(server.count(), 5);
}

// G-9
#[tokio::test(start_paused = true)]
async fn breaker_opens_for_one_destination() {
    let server = Server::statuses([500]);
    let client = guarded(&server);
    for _ in 0..5 {
        client.send(attempt(ONE)).await.unwrap();
    }
    assert_eq!(client.guard().state("one.example"), BreakerState::Open);
    assert_eq!(client.send(attempt(TWO)).await.unwrap().status(), 500);
    assert!(client.send(attempt(ONE)).await.is_err());
}

// G-1
#[tokio::test(start_paused = true)]
async fn abandoned_probe_frees_its_place() {
    let server = Server::by(|number, _| match number {
        1..=5 => 500.into(),
        6 => Act::Hang,
        _ => 200.into(),
    });
    let client = guarded(&server);
    for _ in 0..5 {
        client.send(attempt(ONE)).await.unwrap();
    }
    tokio::time::sleep(ms(40_000)).await;
    let probe = tokio::time::timeout(ms(10), client.send(attempt(ONE))).await;
    assert!(probe.is_err(), "the probe hangs");
    assert_eq!(client.send(attempt(ONE)).await.unwrap().status(), 200);
    assert_eq!(client.guard().state("one.example"), BreakerState::Closed);
}

// G-24, trap 55
#[tokio::test(start_paused = true)]
async fn health_of_http_outcomes() {
    let cases: [(fn() -> Act, Health); 14] = [
        (|| 200.into(), Health::Served),
        (|| 304.into(), Health::Served),
        (|| 404.into(), Health::Served),
        (|| 408.into(), Health::Ignored),
        (|| 429.into(), Health::Overloaded),
        (|| 500.into(), Health::Failed),
        (|| 501.into(), Health::Served),
        (|| 503.into(), Health::Unavailable),
        (|| 505.into(), Health::Served),
        (|| ErrorKind::ConnectionReset.into(), Health::Lost),
        (|| ErrorKind::ConnectionRefused.into(), Health::NotConnected),
        (|| ErrorKind::AddrNotAvailable.into(), Health::Local),
        // rustls and native-tls report a refused certificate as an error of this kind, which no retry can fix.
        (|| ErrorKind::InvalidData.into(), Health::Failed),
        (|| ErrorKind::Other.into(), Health::Failed),
    ];
    for (number, (act, health)) in cases.into_iter().enumerate() {
        let recorder = Recorder::default();
        let server = Server::by(move |_, _| act());
        let client = GuardLayer::http(recorder.clone()).layer(server);
        let _ = client.send(attempt(ONE)).await;
        assert_eq!(recorder.log(), ["admitted".to_owned(), format!("{health:?}")], "case {number}");
    }
}

/// A status that the caller has made permanent still has its meaning for the server's health.
// G-24
#[tokio::test(start_paused = true)]
async fn health_of_permanent_statuses() {
    let expected = [
        (429, "Overloaded"),
        (503, "Unavailable"),
        (504, "Unavailable"),
        (500, "Failed"),
        (502, "Failed"),
        (408, "Served"),
        (501, "Served"),
        (505, "Served"),
        (404, "Served"),
    ];
    let mut judged = Vec::new();
    for (status, _) in expected {
        let recorder = Recorder::default();
        let code = http::StatusCode::from_u16(status).unwrap();
        let http = Http::new().on_status(code, Verdict::Permanent);
        let client = GuardLayer::with(http, recorder.clone()).layer(Server::statuses([status]));
        client.send(attempt(ONE)).await.unwrap();
        judged.push((status, recorder.log().pop().unwrap()));
    }
    assert_eq!(judged, expected.map(|(status, health)| (status, health.to_owned())));
}

/// If one caller of a gateway sends what no server accepts, or sends too slowly, the breaker stays closed for all.
// trap 55
#[tokio::test(start_paused = true)]
async fn faults_of_a_caller_open_no_breaker() {
    for status in [408, 501, 505] {
        let client = guarded(&Server::statuses([status]));
        for _ in 0..100 {
            assert_eq!(client.send(attempt(ONE)).await.unwrap().status(), status);
        }
    }
}

/// Callers that hang up are not evidence, but a caller that hangs up at its deadline each time is.
// G-25
#[tokio::test(start_paused = true)]
async fn hang_ups_open_no_breaker() {
    let client = guarded(&Server::by(|_, _| Act::Hang));
    for _ in 0..100 {
        let call = client.send(attempt(ONE));
        assert!(tokio::time::timeout(ms(10), call).await.is_err());
    }
    assert_eq!(client.guard().state("one.example"), BreakerState::Closed);
    for _ in 0..5 {
        // The usual latency of the server is not known, so the deadline must leave it a second.
        let call = client.send(attempt(ONE).with(reattempt::Deadline::after(ms(1000))));
        assert!(tokio::time::timeout(ms(1000), call).await.is_err());
    }
    assert_eq!(client.guard().state("one.example"), BreakerState::Open);
}

/// A probe keeps its place as long as the layer's attempt timeout.
// G-1, trap 51
#[tokio::test(start_paused = true)]
async fn attempt_timeout_is_a_probes_lease() {
    let server = Server::by(|number, _| if number <= 5 { 500.into() } else { Act::Hang });
    let layer = GuardLayer::http(timeless().consecutive_failures(5));
    let client = layer.attempt_timeout(ms(100_000)).layer(server.clone());
    for _ in 0..5 {
        client.send(attempt(ONE)).await.unwrap();
    }
    tokio::time::sleep(ms(11_000)).await;
    let probe = tokio::spawn(client.send(attempt(ONE)));
    tokio::time::sleep(ms(99_000)).await;
    let refused = refusal(&client.send(attempt(ONE)).await.unwrap_err());
    assert_eq!(refused.reason(), Reason::TooManyRequests);
    assert!(probe.await.unwrap().is_err(), "timed out");
    assert_eq!(client.guard().state("one.example"), BreakerState::Open);
}

/// A status 4xx that the caller retries may have one cause for many calls, so it counts once for an event.
// C-6
#[tokio::test(start_paused = true)]
async fn overrides_decide_over_health() {
    let recorder = Recorder::default();
    let http = Http::new().on_status(http::StatusCode::CONFLICT, Verdict::not_processed());
    let client = GuardLayer::with(http, recorder.clone()).layer(Server::statuses([409, 500]));
    client.send(attempt(ONE)).await.unwrap();
    let own = CallOptions::new().on_status(http::StatusCode::INTERNAL_SERVER_ERROR, Verdict::Success);
    client.send(attempt(ONE).with(own)).await.unwrap();
    assert_eq!(recorder.log(), ["admitted", "Lost", "admitted", "Served"]);
}

#[tokio::test(start_paused = true)]
async fn own_body_error_is_ignored() {
    let recorder = Recorder::default();
    let client = GuardLayer::http(recorder.clone()).layer(Server::statuses([200]));
    let limits = reattempt_replay::ReplayLimits::default();
    let body = reattempt_replay::ReplayBody::new(failing(), &limits);
    let request = http::Request::put(ONE).body(body).unwrap();
    assert!(client.send(request).await.is_err());
    assert_eq!(recorder.log().last().unwrap(), "Ignored");
}

// G-25
#[tokio::test(start_paused = true)]
async fn attempt_timeout_inside_opens_the_breaker() {
    let server = Server::by(|_, _| Act::Hang);
    let breaker = timeless().consecutive_failures(5);
    let client =
        ServiceBuilder::new().layer(GuardLayer::http(breaker.clone())).timeout(ms(100)).service(server.clone());
    for _ in 0..5 {
        client.send(attempt(ONE)).await.unwrap_err();
    }
    refusal(&client.send(attempt(ONE)).await.unwrap_err());
    assert_eq!(server.count(), 5);
}

// G-23
#[tokio::test(start_paused = true)]
async fn refusal_further_in_is_unsent_outside() {
    let (outer, inner) = (Recorder::default(), timeless().consecutive_failures(5));
    inner.isolate("one.example").unwrap();
    let client = ServiceBuilder::new()
        .layer(GuardLayer::classified(judge_all, outer.clone()))
        .layer(GuardLayer::http(inner))
        .service(Server::statuses([200]));
    let error = client.send(attempt(ONE)).await.unwrap_err();
    assert_eq!(refusal(&error).reason(), Reason::Isolated);
    assert_eq!(outer.log(), ["admitted", "unsent"]);
}

/// A classifier that must not be called for a refusal.
fn judge_all<T>(_: Result<&T, &(dyn std::error::Error + 'static)>) -> Verdict {
    Verdict::Success
}

#[tokio::test(start_paused = true)]
async fn second_guard_refuses_first_is_unsent() {
    let (first, second) = (Recorder::default(), Recorder::default());
    second.refuse(refused());
    let client = GuardLayer::http((first.clone(), second.clone())).layer(Server::statuses([200]));
    client.send(attempt(ONE)).await.unwrap_err();
    assert_eq!((first.log().join(" "), second.log().join(" ")), ("admitted unsent".into(), "refused".into()));
}

// trap 38
#[tokio::test(start_paused = true)]
async fn refused_call_reserves_no_readiness() {
    use tower::Service;
    let server = Server::statuses([200]);
    let recorder = Recorder::default();
    recorder.refuse(refused());
    let mut client = GuardLayer::http(recorder).layer(server.clone());
    let call = ServiceExt::<http::Request<reattempt_replay::ReplayBody<Body>>>::ready(&mut client)
        .await
        .unwrap()
        .call(attempt(ONE));
    assert_eq!(server.unused(), 1);
    call.await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn observer_is_notified_of_refusals() {
    let log = Log::default();
    let recorder = Recorder::default();
    recorder.refuse(refused());
    let seen = log.clone();
    let layer = GuardLayer::http(recorder).observe_with(seen);
    layer.layer(Server::statuses([200])).send(attempt(ONE)).await.unwrap_err();
    assert_eq!(log.lines(), ["one.example: not sent: the guard is full"]);
}

#[tokio::test(start_paused = true)]
async fn guard_notifies_all_observers() {
    let (first, second) = (Log::default(), Log::default());
    let recorder = Recorder::default();
    recorder.refuse(refused());
    let layer = GuardLayer::http(recorder).observe_with(first.clone()).observe_with(second.clone());
    layer.layer(Server::statuses([200])).send(attempt(ONE)).await.unwrap_err();
    assert_eq!(first.lines(), ["one.example: not sent: the guard is full"]);
    assert_eq!(first.lines(), second.lines());
}

#[tokio::test(start_paused = true)]
async fn passed_deadline_is_not_sent() {
    let server = Server::statuses([200]);
    let recorder = Recorder::default();
    let client = GuardLayer::http(recorder.clone()).layer(server.clone());
    let request = attempt(ONE).with(reattempt::Deadline::after(ms(0)));
    let error = client.send(request).await.unwrap_err();
    assert_eq!(error.to_string(), "the deadline had passed");
    assert_eq!((server.count(), recorder.log().len()), (0, 0));
}

#[test]
fn layer_debug_shows_the_guard() {
    let layer = GuardLayer::http(timeless().consecutive_failures(5).with_name("billing"));
    assert!(format!("{layer:?}").contains("billing"));
}
