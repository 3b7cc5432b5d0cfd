//! Tests of the time limit for each attempt.

use std::convert::Infallible;
use std::fmt::Debug;
use std::io::ErrorKind::ConnectionReset;

use reattempt::error::TimeLimit;
use reattempt::guard::{Bulkhead, GuardLayer};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::report::{AttemptOutcome, ReportSlot};
use reattempt::{Deadline, ReplayBody, RetryLayer, TimedOut};
use reattempt_core::{FailureKind, StopReason};
use tokio::task::consume_budget;
use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

use crate::calls::support::{Act, Attempt, Broken, Mocked, Server, With, get, ms, options, policy, post, report_of};

#[tokio::test(start_paused = true)]
async fn hanging_attempt_is_dropped_and_retried() {
    let server = Server::by(|arrival, _| if arrival == 1 { Act::Hang } else { 200.into() });
    let client = RetryLayer::new(policy().attempt_timeout(ms(50))).layer(server.clone());
    let mut call = task::spawn(client.oneshot(get()));
    assert_pending!(call.poll());
    advance(ms(49)).await;
    assert_pending!(call.poll());
    assert_eq!(server.cancelled(), 0);
    advance(ms(1)).await;
    assert_pending!(call.poll());
    assert_eq!((server.cancelled(), server.count()), (1, 1), "dropped before the wait begins");
    let response = call.await.unwrap();
    assert_eq!(server.times(), [0, 150]);
    let report = report_of(&response);
    let AttemptOutcome::Failed { failure, error, .. } = &report.attempts()[0].outcome else {
        panic!("{report}");
    };
    assert_eq!(failure.kind(), FailureKind::Timeout);
    assert_eq!(error.as_deref(), Some("the attempt timed out after 50ms"));
}

#[tokio::test(start_paused = true)]
async fn a_post_that_hangs_is_not_retried() {
    let server = Server::by(|_, _| Act::Hang);
    let client = RetryLayer::new(policy().attempt_timeout(ms(50))).layer(server.clone());
    let slot = ReportSlot::default();
    let call = client.oneshot(post().with(options().report_to(&slot)));
    let error = call.await.unwrap_err();
    let timed_out = error.downcast_ref::<TimedOut>().unwrap();
    assert_eq!((timed_out.limit(), timed_out.after()), (TimeLimit::Attempt, ms(50)));
    assert!(timed_out.refused().is_none());
    assert_eq!((server.count(), server.cancelled()), (1, 1));
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::NotRepeatable);
    assert_eq!(error.to_string(), "the attempt timed out after 50ms");
}

// trap 30
#[tokio::test(start_paused = true)]
async fn timeout_error_names_limit_and_head() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(500).header("x-why", "first"),
        2 => Act::from(503).header("x-why", "second"),
        _ => Act::Hang,
    });
    let client = RetryLayer::new(policy().attempt_timeout(ms(50))).layer(server.clone());
    let error = client.oneshot(get()).await.unwrap_err();
    let timed_out = error.downcast_ref::<TimedOut>().unwrap();
    assert_eq!(timed_out.limit(), TimeLimit::Attempt);
    let refused = timed_out.refused().unwrap();
    assert_eq!((refused.status.as_u16(), refused.headers["x-why"].as_bytes()), (503, &b"second"[..]));
    let text = "the attempt timed out after 50ms; the last answer was 503 Service Unavailable";
    assert_eq!(error.to_string(), text);
}

#[tokio::test(start_paused = true)]
async fn refused_head_is_the_last_there_was() {
    let server = Server::by(|arrival, _| match arrival {
        1 => 503.into(),
        2 => ConnectionReset.into(),
        _ => Act::Hang,
    });
    let client = RetryLayer::new(policy().attempt_timeout(ms(50))).layer(server.clone());
    let error = client.oneshot(get()).await.unwrap_err();
    assert_eq!(error.downcast_ref::<TimedOut>().unwrap().refused().unwrap().status, 503);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_the_whole_time() {
    let server = Server::by(|arrival, _| match arrival {
        3 => Act::from(200).later(ms(40)),
        _ => Act::from(503).later(ms(40)),
    });
    let client = RetryLayer::new(policy().attempt_timeout(ms(50))).layer(server.clone());
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!((server.times(), server.cancelled()), (vec![0, 140, 280], 0));
}

#[tokio::test(start_paused = true)]
async fn all_attempts_may_time_out() {
    let server = Server::by(|_, _| Act::Hang);
    let client = RetryLayer::new(policy().attempt_timeout(ms(50))).layer(server.clone());
    let began = Instant::now();
    let error = client.oneshot(get()).await.unwrap_err();
    assert!(error.is::<TimedOut>());
    assert_eq!(began.elapsed().as_millis(), 350);
    assert_eq!((server.times(), server.cancelled()), (vec![0, 150, 300], 3));
}

#[tokio::test(start_paused = true)]
async fn options_timeout_precedes_policys() {
    for (of_policy, of_call) in [(50, 20), (20, 50)] {
        let server = Server::by(|_, _| Act::Hang);
        let client = RetryLayer::new(policy().attempt_timeout(ms(of_policy))).layer(server.clone());
        let request = post().with(options().attempt_timeout(ms(of_call)));
        let error = client.oneshot(request).await.unwrap_err();
        assert_eq!(error.downcast_ref::<TimedOut>().unwrap().after(), ms(of_call));
    }
}

#[tokio::test(start_paused = true)]
async fn options_timeout_needs_no_policy_timeout() {
    let server = Server::by(|_, _| Act::Hang);
    let client = RetryLayer::new(policy().boxed_errors()).layer(server.clone());
    let request = post().with(options().attempt_timeout(ms(20)));
    assert!(client.oneshot(request).await.unwrap_err().is::<TimedOut>());
}

#[tokio::test(start_paused = true)]
async fn options_timeout_spares_own_error() {
    let server = Server::by(|_, _| Act::from(200).later(ms(500)));
    let client = RetryLayer::new(policy()).layer(server.clone());
    let request = get().with(options().attempt_timeout(ms(20)));
    assert_eq!(client.oneshot(request).await.unwrap().status(), 200);
    assert_eq!(server.cancelled(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_inner_error_is_found_in_the_box() {
    let server = Server::by(|_, _| ConnectionReset.into());
    let client = RetryLayer::new(policy().attempt_timeout(ms(50))).layer(server.clone());
    let error = client.oneshot(get()).await.unwrap_err();
    assert_eq!(error.downcast_ref::<Broken>().unwrap().attempt, 3);
}

#[tokio::test(start_paused = true)]
async fn unretryable_call_is_timed_out_too() {
    let server = Server::by(|_, _| Act::Hang);
    let client = RetryLayer::new(policy().attempt_timeout(ms(50))).layer(server.clone());
    let error = client.oneshot(get().with(options().never_retry())).await.unwrap_err();
    assert!(error.is::<TimedOut>());
    assert_eq!((server.count(), server.cancelled()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn timeout_of_layer_below_is_a_timeout() {
    let server = Server::by(|arrival, _| if arrival == 1 { Act::Hang } else { 200.into() });
    let inner = RetryLayer::new(policy().max_attempts(1).attempt_timeout(ms(50)));
    let outer = RetryLayer::new(policy().boxed_errors());
    let response = outer.layer(inner.layer(server.clone())).oneshot(get()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.times()), (200, vec![0, 150]));
}

#[tokio::test(start_paused = true)]
async fn deadline_that_layer_below_has_met_is_end() {
    let server = Server::by(|_, _| Act::Hang);
    let layer = || RetryLayer::new(policy().boxed_errors());
    let request = get().with(Deadline::after(ms(70)));
    let began = Instant::now();
    let error = layer().layer(layer().layer(server.clone())).oneshot(request).await.unwrap_err();
    assert_eq!(error.downcast_ref::<TimedOut>().unwrap().limit(), TimeLimit::Deadline);
    assert_eq!((server.count(), began.elapsed().as_millis()), (1, 70));
}

/// An attempt that always has work, so it uses up tokio's budget for one poll of a task.
async fn busy() -> Result<Mocked, Infallible> {
    loop {
        consume_budget().await;
    }
}

async fn assert_busy_attempt_ends<S, Req>(client: S, request: Req)
where
    S: Service<Req, Response: Debug, Error = BoxError>,
{
    let mut call = task::spawn(client.oneshot(request));
    assert_pending!(call.poll());
    advance(ms(50)).await;
    let Err(error) = assert_ready!(call.poll()) else { panic!("a response") };
    assert!(error.is::<TimedOut>(), "{error}");
}

// A timer must not need any of that budget.
#[tokio::test(start_paused = true)]
async fn attempt_that_always_has_work_is_ended() {
    let service = service_fn(|_: Attempt| busy());
    let timed = policy().max_attempts(1).attempt_timeout(ms(50));
    assert_busy_attempt_ends(RetryLayer::new(timed).layer(service), get()).await;
    let boxed = RetryLayer::new(policy().boxed_errors()).layer(service);
    assert_busy_attempt_ends(boxed, get().with(Deadline::after(ms(50)))).await;
    let hedges = HedgePolicy::http().delay(ms(100)).boxed_errors();
    let hedged = HedgeLayer::new(hedges).layer(service);
    assert_busy_attempt_ends(hedged, get().with(Deadline::after(ms(50)))).await;
    let guards = GuardLayer::http(Bulkhead::new(1)).attempt_timeout(ms(50));
    let request = get().map(ReplayBody::passthrough);
    assert_busy_attempt_ends(guards.layer(service), request).await;
}
