//! Tests of the standard stack: its time limits, its guards, and contradictory settings.

use reattempt::fallback::{FallbackLayer, FellBack};
use reattempt::guard::{Bulkhead, CircuitBreaker, Refused, Throttle};
use reattempt::standard::{StandardClient, StandardLayer};
use reattempt::{CallOptions, Deadline, RetryPolicy, TimedOut};
use tokio::time::Instant;
use tower::Layer;

use super::standard_deadlines::Seen;
use super::support::Recorder;
use crate::calls::support::{Act, Server, get, ms};

/// Returns the stack with all defaults, and seeded delays.
fn stack() -> StandardLayer {
    StandardLayer::http().retry(RetryPolicy::http().seed(1).boxed_errors())
}

#[tokio::test(start_paused = true)]
async fn standard_stack_retries_and_succeeds() {
    let server = Server::statuses([503, 503, 200]);
    let client = stack().layer(server.clone());
    assert_eq!(client.send(get()).await.unwrap().status(), 200);
    assert_eq!(server.count(), 3);
}

// G-25
#[tokio::test(start_paused = true)]
async fn attempt_timeouts_open_the_breaker() {
    let server = Server::by(|_, _| Act::Hang);
    let recorder = Recorder::default();
    let layer = stack().guards(recorder.clone());
    let began = Instant::now();
    let error = layer.layer(server.clone()).send(get()).await.unwrap_err();
    assert!(error.is::<TimedOut>());
    // Three attempts of 10 s use up the total time.
    assert!(began.elapsed() <= ms(30_000));
    assert_eq!(recorder.log()[..2], ["admitted", "Unavailable"]);

    // Open for longer than a call may take.
    let breaker = crate::guard::support::timeless().consecutive_failures(5).open_time(ms(60_000)).seed(1);
    let layer = stack().limits(breaker, Bulkhead::new(64));
    let client = layer.layer(server.clone());
    for _ in 0..2 {
        client.send(get()).await.unwrap_err();
    }
    let before = server.count();
    let error = client.send(get()).await.unwrap_err();
    assert!(error.is::<Refused>(), "{error}");
    assert_eq!(server.count(), before);
}

#[tokio::test(start_paused = true)]
async fn total_time_ends_the_call() {
    let server = Server::by(|_, _| Act::Hang);
    let layer = stack().attempt_timeout(ms(900));
    let client = layer.total_time(ms(1_000)).layer(server);
    let began = Instant::now();
    client.send(get()).await.unwrap_err();
    assert!(began.elapsed() <= ms(1_000));
}

/// An attempt timeout that the user has not set never contradicts a total time.
#[tokio::test(start_paused = true)]
async fn default_attempt_fits_short_total_time() {
    let server = Server::by(|number, _| if number == 1 { Act::Hang } else { Act::from(200) });
    let layer = stack();
    let client = layer.clone().total_time(ms(5_000)).layer(server.clone());
    let began = Instant::now();
    assert_eq!(client.send(get()).await.unwrap().status(), 200);
    let elapsed = began.elapsed();
    assert!(elapsed >= ms(2_500) && elapsed <= ms(5_000), "{elapsed:?}");

    // If it is set again, the default is computed again.
    let longer = layer.total_time(ms(5_000)).total_time(ms(60_000));
    let client = longer.layer(Server::by(|_, _| Act::Hang));
    let error = client.send(get()).await.unwrap_err();
    let timed_out = error.downcast_ref::<TimedOut>().unwrap();
    assert_eq!(timed_out.after(), ms(10_000));
}

#[test]
fn debug_shows_the_time_limits_in_force() {
    let text = format!("{:?}", stack());
    assert!(text.contains("total: 30s, attempt: 10s, attempt_is_derived: true"), "{text}");
    let text = format!("{:?}", stack().total_time(ms(8_000)));
    assert!(text.contains("total: 8s, attempt: 4s, attempt_is_derived: true"), "{text}");
    let text = format!("{:?}", stack().attempt_timeout(ms(2_000)));
    assert!(text.contains("total: 30s, attempt: 2s, attempt_is_derived: false"), "{text}");
}

/// Each attempt has the deadline, including those made from the saved request.
#[tokio::test(start_paused = true)]
async fn options_of_a_handle_keep_total_time() {
    let seen = Seen::default();
    let client = stack().total_time(ms(5_000)).layer(seen.before(Server::statuses([503])));
    let deadline = Deadline::after(ms(5_000));
    let client = client.with_options(CallOptions::new().max_attempts(2));
    assert_eq!(client.send(get()).await.unwrap().status(), 503);
    assert_eq!(seen.found(), [Some(deadline); 2]);
}

/// The order in which the two are set has no effect.
#[tokio::test(start_paused = true)]
async fn throttle_and_fallback_stand_outside() {
    let server = Server::by(|_, _| Act::from(503));
    let stack = stack();
    let fallback = FallbackLayer::http(|_| Some(http::Response::new("[]".into())));
    let throttle = || Throttle::new().seed(1).inactive_below(1, 0);
    let one = stack.clone().fallback(fallback.clone()).throttle(throttle());
    let two = stack.throttle(throttle()).fallback(fallback);
    let clients = [one.layer(server.clone()), two.layer(server.clone())];
    for client in clients {
        let own = client.send(get()).await.unwrap();
        let own = own.extensions().get::<FellBack>().unwrap().failed().to_string();
        assert_eq!(own, "503 Service Unavailable");
        let mut refused = 0;
        for _ in 0..20 {
            let before = server.count();
            let response = client.send(get()).await.unwrap();
            let own = response.extensions().get::<FellBack>().unwrap().failed().outcome();
            if own.is_err_and(|error| error.is::<Refused>()) {
                assert_eq!(server.count(), before);
                refused += 1;
            }
        }
        assert!(refused > 5, "{refused}");
    }
}

/// A call that took all of the total time still gets its backup.
#[tokio::test(start_paused = true)]
async fn backup_has_a_time_of_its_own() {
    let backup = stack().layer(Server::by(|_, _| Act::from(200).later(ms(5_000))));
    let layer = stack().total_time(ms(2_000)).fallback(FallbackLayer::backup(backup));
    let began = Instant::now();
    let response = layer.layer(Server::by(|_, _| Act::Hang)).send(get()).await.unwrap();
    assert!(response.extensions().get::<FellBack>().is_some());
    assert_eq!((response.status().as_u16(), began.elapsed()), (200, ms(7_000)));
}

#[test]
fn contradictions_name_both_settings() {
    let text = |error: reattempt::error::ConfigError| error.to_string();
    let chosen = stack().attempt_timeout(ms(10_000));
    assert_eq!(
        text(chosen.total_time(ms(10_000)).checked().unwrap_err()),
        "`attempt_timeout` must be below `total_time`, but it is 10s"
    );
    let breaker = crate::guard::support::timeless().consecutive_failures(5).interval(ms(15_000));
    assert_eq!(
        text(stack().limits(breaker, Bulkhead::new(1)).checked().unwrap_err()),
        "`CircuitBreaker::interval` must be at least twice `attempt_timeout`, but it is 15s"
    );
    let policy = RetryPolicy::http().attempt_timeout(ms(500));
    assert_eq!(
        text(stack().retry(policy).checked().unwrap_err()),
        "`RetryPolicy::attempt_timeout` must be unset: `attempt_timeout` of the stack stands inside the guards, but it is 500ms"
    );
}

#[cfg(feature = "tonic")]
#[tokio::test(start_paused = true)]
async fn grpc_stack_answers_in_its_own_types() {
    use crate::grpc::support::{GrpcServer, ends_with};

    let server = GrpcServer::by(|number| match number {
        1 => (60_000, Ok(ends_with(reattempt_grpc::Code::Ok))),
        _ => (0, Ok(ends_with(reattempt_grpc::Code::Ok))),
    });
    let client = StandardLayer::grpc().layer(server.clone());
    let request = || {
        let body = tonic::body::Body::empty();
        http::Request::post("http://one.example/service/method").body(body).unwrap()
    };
    let response = client.send(request()).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "4", "the method may not be repeated");
    assert!(client.send(request()).await.unwrap().headers().get("grpc-status").is_none());
}

#[test]
fn standard_clients_have_types_to_store() {
    fn service<R, S: tower::Service<R>>() {}
    #[cfg(feature = "reqwest")]
    service::<reqwest::Request, <StandardLayer as Layer<reqwest::Client>>::Service>();
    service::<http::Request<crate::calls::support::Body>, StandardClient<Server>>();
    let _: StandardClient<Server> = StandardLayer::http().layer(Server::statuses([200]));
    #[cfg(feature = "tonic")]
    let _: StandardClient<Server, reattempt::grpc::Grpc> = StandardLayer::grpc().layer(Server::statuses([200]));
}

/// The default attempt timeout of 10 s fits a window of 20 s.
#[test]
fn window_of_two_attempts_is_allowed() {
    for (window, allowed) in [(20_000, true), (19_990, false), (0, true)] {
        let breaker = CircuitBreaker::counting().interval(ms(window));
        assert_eq!(stack().limits(breaker, Bulkhead::new(1)).checked().is_ok(), allowed, "{window}");
    }
}
