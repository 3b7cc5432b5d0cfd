//! Tests of the events that observers receive, one by one.

use std::io::ErrorKind::{ConnectionRefused, ConnectionReset, InvalidData};
use std::task::{Context, Waker};

use http::Request;
use reattempt::{Deadline, RetryLayer};
use reattempt_core::ScheduleExt;
use reattempt_schedule_fixed::Constant;
use tower::{Layer, ServiceExt};

use crate::calls::support::{Act, Body, Log, Policy, Server, With, get, ms, options, policy, post, put, tokens};

/// Returns the events of one call. Other tests check how it ended.
async fn events(policy: Policy, server: &Server, request: Request<Body>) -> Vec<String> {
    let log = Log::default();
    let _ = RetryLayer::new(policy.observe_with(log.clone())).layer(server.clone()).oneshot(request).await;
    log.lines()
}

/// Returns the events of a call whose attempts all get this status.
async fn of_status(status: u16, policy: Policy, request: Request<Body>) -> Vec<String> {
    events(policy, &Server::statuses([status]), request).await
}

const FAILED: &str = "one.example: attempt 1: server (503)";

const FAILED_FOR_GOOD: &str = "one.example: failed on attempt 1: the failure is permanent";

fn gave_up(reason: &str) -> String {
    format!("one.example: gave up after 1 attempt: {reason}")
}

#[tokio::test(start_paused = true)]
async fn a_success_at_once() {
    let lines = of_status(200, policy(), get()).await;
    assert_eq!(lines, ["one.example: succeeded on attempt 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_and_a_success() {
    let server = Server::by(|arrival, _| match arrival {
        1 => 503.into(),
        2 => ConnectionReset.into(),
        _ => 200.into(),
    });
    assert_eq!(
        events(policy(), &server, get()).await,
        [
            FAILED,
            "one.example: attempt 2 in 100ms",
            "one.example: attempt 2: network: arrival 2 broke: connection reset",
            "one.example: attempt 3 in 100ms",
            "one.example: succeeded on attempt 3",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn all_attempts_made() {
    assert_eq!(
        of_status(503, policy(), get()).await,
        [
            FAILED,
            "one.example: attempt 2 in 100ms",
            "one.example: attempt 2: server (503)",
            "one.example: attempt 3 in 100ms",
            "one.example: attempt 3: server (503)",
            "one.example: gave up after 3 attempts: all allowed attempts have been made",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure() {
    assert_eq!(
        of_status(404, policy(), get()).await,
        ["one.example: attempt 1: permanent failure (404)".to_owned(), FAILED_FOR_GOOD.to_owned(),]
    );
    let server = Server::by(|_, _| InvalidData.into());
    assert_eq!(
        events(policy(), &server, get()).await,
        [
            "one.example: attempt 1: permanent failure: arrival 1 broke: invalid data".to_owned(),
            FAILED_FOR_GOOD.to_owned(),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_after_a_retry() {
    assert_eq!(
        events(policy(), &Server::statuses([503, 404]), get()).await,
        [
            FAILED,
            "one.example: attempt 2 in 100ms",
            "one.example: attempt 2: permanent failure (404)",
            "one.example: failed on attempt 2: the failure is permanent",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_must_not_be_repeated() {
    assert_eq!(
        of_status(503, policy(), post()).await,
        [FAILED.to_owned(), gave_up("the request must not be repeated")]
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_not_kept() {
    let policy = policy().protocol(|http| http.replay(reattempt_replay::ReplayLimits::default().per_call(0)));
    assert_eq!(of_status(503, policy, put()).await, [FAILED.to_owned(), gave_up("the request body was not kept")]);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_ended() {
    let schedule = Constant::new(ms(100)).take(0);
    let log = Log::default();
    let client = RetryLayer::new(policy().backoff(schedule).observe_with(log.clone())).layer(Server::statuses([503]));
    client.oneshot(get()).await.unwrap();
    assert_eq!(log.lines(), [FAILED.to_owned(), gave_up("the schedule has ended")]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_said_stop() {
    let server = Server::by(|_, _| Act::from(503).header("x-should-retry", "false"));
    assert_eq!(
        events(policy(), &server, get()).await,
        [FAILED.to_owned(), gave_up("the server asked not to be called again")]
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asked_for_too_much() {
    let server = Server::by(|_, _| Act::from(503).header("retry-after", "100"));
    assert_eq!(
        events(policy(), &server, get()).await,
        [FAILED.to_owned(), gave_up("the server asked for a longer wait than is allowed")]
    );
}

#[tokio::test(start_paused = true)]
async fn no_time_left() {
    assert_eq!(
        of_status(503, policy().max_elapsed(ms(50)), get()).await,
        [FAILED.to_owned(), gave_up("the next delay would pass the limit on elapsed time")]
    );
    assert_eq!(
        of_status(503, policy(), get().with(Deadline::after(ms(50)))).await,
        [FAILED.to_owned(), gave_up("the deadline has passed, or would pass before another attempt")]
    );
}

#[tokio::test(start_paused = true)]
async fn no_token_left() {
    let policy = policy().budget(tokens(1.0));
    let lines = of_status(503, policy.clone(), get()).await;
    assert_eq!(lines.last().unwrap(), "one.example: gave up after 2 attempts: the retry budget is exhausted");
    assert_eq!(of_status(503, policy, get()).await, [FAILED.to_owned(), gave_up("the retry budget is exhausted")]);
}

/// A call that a destructor polls while the thread unwinds notifies no observer, because a second panic would abort the
/// process. Otherwise the observer's panic reaches the caller.
// trap 72
#[tokio::test(start_paused = true)]
async fn unwinding_call_notifies_no_observer() {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    struct Polls<F: Future + Unpin>(F);
    impl<F: Future + Unpin> Drop for Polls<F> {
        fn drop(&mut self) {
            let polled = std::pin::Pin::new(&mut self.0).poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_ready());
        }
    }
    let fault = |unwinds: bool, status: u16| {
        let policy = policy().max_attempts(1).observe(|_, _| resume_unwind(Box::new("the observer's")));
        let call = Box::pin(RetryLayer::new(policy).layer(Server::statuses([status])).oneshot(get()));
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            let _polls = Polls(call);
            if unwinds {
                resume_unwind(Box::new("the caller's"));
            }
        }));
        *dropped.unwrap_err().downcast::<&str>().unwrap()
    };
    for status in [200, 503] {
        assert_eq!((fault(false, status), fault(true, status)), ("the observer's", "the caller's"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_left_to_an_outer_layer() {
    let log = Log::default();
    let inner = RetryLayer::new(policy().nested(true).observe_with(log.clone()));
    let outer = RetryLayer::new(policy().nested(true).max_attempts(2));
    outer.layer(inner.layer(Server::statuses([503, 200]))).oneshot(get()).await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "one.example: attempt 1: server (503)",
            "one.example: gave up after 1 attempt: another retry layer answers for this call",
            "one.example: succeeded on attempt 1",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_timeout_names_itself() {
    let log = Log::default();
    let server = Server::by(|arrival, _| match arrival {
        1 => ConnectionRefused.into(),
        _ => Act::Hang,
    });
    let policy = policy().max_attempts(2).attempt_timeout(ms(50)).observe_with(log.clone());
    RetryLayer::new(policy).layer(server).oneshot(get()).await.unwrap_err();
    assert_eq!(
        log.lines(),
        [
            "one.example: attempt 1: connect: arrival 1 broke: connection refused",
            "one.example: attempt 2 in 100ms",
            "one.example: attempt 2: timeout: the attempt timed out after 50ms",
            "one.example: gave up after 2 attempts: all allowed attempts have been made",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_interrupts() {
    let log = Log::default();
    let server = Server::by(|_, _| Act::Hang);
    let policy = policy().boxed_errors().observe_with(log.clone());
    let request = get().with(Deadline::after(ms(70)));
    RetryLayer::new(policy).layer(server).oneshot(request).await.unwrap_err();
    assert_eq!(
        log.lines(),
        [
            "one.example: attempt 1: permanent failure: the deadline passed after 70ms".to_owned(),
            gave_up("the deadline has passed, or would pass before another attempt"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn unretried_call_is_told_with_destination() {
    assert_eq!(
        of_status(200, policy(), get().with(options().never_retry())).await,
        ["one.example: succeeded on attempt 1"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_silent() {
    let log = Log::default();
    let client = RetryLayer::new(policy().observe_with(log.clone())).layer(Server::statuses([503]));
    let mut call = tokio_test::task::spawn(client.oneshot(get()));
    assert!(call.poll().is_pending());
    drop(call);
    assert_eq!(log.lines(), [FAILED, "one.example: attempt 2 in 100ms"]);
}

#[tokio::test(start_paused = true)]
async fn several_observers_are_told_in_turn() {
    let (first, second) = (Log::default(), Log::default());
    let policy = policy().observe_with(first.clone()).observe_with(second.clone());
    RetryLayer::new(policy).layer(Server::statuses([503, 200])).oneshot(get()).await.unwrap();
    assert_eq!(first.lines().len(), 3);
    assert_eq!(first.lines(), second.lines());
}
