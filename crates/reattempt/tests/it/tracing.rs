//! Tests of the observer that writes `tracing` events: what a person finds in the log.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Empty, Full};
use reattempt::guard::CircuitBreaker;
use reattempt::observe::{Event, Observer, TracingObserver};
use reattempt::{RetryLayer, RetryPolicy, StopReason};
use reattempt_replay::ReplayBody;
use reattempt_schedule_fixed::Constant;
use reattempt_testing_layers::TracingLog;
use tower::{Layer, ServiceExt, service_fn};

type Body = Full<Bytes>;

/// Returns the log of one call with these responses.
async fn log_of(method: &str, answers: &'static [u16]) -> Vec<String> {
    let log = TracingLog::default();
    let _guard = log.subscribe();

    let seen = AtomicUsize::new(0);
    let service = service_fn(|_: Request<ReplayBody<Body>>| {
        let status = answers[seen.fetch_add(1, Ordering::Relaxed)];
        let response = Response::builder().status(status).body(Empty::<Bytes>::new()).unwrap();
        async move { Ok::<_, Infallible>(response) }
    });
    let policy =
        RetryPolicy::http().backoff(Constant::new(Duration::from_nanos(100_123_456))).observe_with(TracingObserver);
    let request = Request::builder().method(method).uri("http://one.example/").body(Body::default());
    RetryLayer::new(policy).layer(service).oneshot(request.unwrap()).await.unwrap();
    log.lines()
}

#[test]
fn breaker_that_opens_warns() {
    let log = TracingLog::default();
    let _guard = log.subscribe();
    let breaker = CircuitBreaker::rate().seed(1).with_name("stock").on_state_change(TracingObserver::on_state_change);
    breaker.isolate_at("one.example", Duration::ZERO);
    breaker.close_at("one.example", Duration::ZERO);
    assert_eq!(
        log.lines(),
        [
            r#"WARN reattempt: a circuit breaker opened destination="one.example" name="stock" from=closed to=forced open"#,
            r#"DEBUG reattempt: a circuit breaker changed destination="one.example" name="stock" from=forced open to=closed"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_success_at_once_is_one_trace() {
    assert_eq!(log_of("GET", &[200]).await, [r#"TRACE reattempt: succeeded destination="one.example" attempts=1"#]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_told_at_debug() {
    assert_eq!(
        log_of("GET", &[503, 200]).await,
        [
            r#"DEBUG reattempt: attempt failed destination="one.example" attempt=1 outcome=server (503)"#,
            r#"DEBUG reattempt: will retry destination="one.example" attempt=2 after=100ms"#,
            r#"TRACE reattempt: succeeded destination="one.example" attempts=2"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn giving_up_warns_permanent_does_not() {
    let last = |log: Vec<String>| log.last().cloned().unwrap();
    assert_eq!(
        last(log_of("POST", &[503]).await),
        r#"WARN reattempt: gave up destination="one.example" attempts=1 reason=the request must not be repeated"#
    );
    assert_eq!(
        last(log_of("GET", &[404]).await),
        r#"DEBUG reattempt: failed destination="one.example" attempts=1 reason=the failure is permanent"#
    );
}

#[test]
fn call_that_is_not_sent_gives_nothing_up() {
    let log = TracingLog::default();
    let _guard = log.subscribe();
    let event = Event::GaveUp { attempts: 0, reason: StopReason::DeadlineExceeded };
    TracingObserver.on_event("one.example", &event);
    assert_eq!(
        log.lines(),
        [
            r#"WARN reattempt: not sent destination="one.example" reason=the deadline has passed, or would pass before another attempt"#
        ]
    );
}
