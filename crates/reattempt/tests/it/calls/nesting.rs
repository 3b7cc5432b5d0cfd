//! Tests of retry layers inside retry layers.

use std::io::ErrorKind::ConnectionReset;

use reattempt::{CallOptions, RetryLayer};
use reattempt_core::StopReason;
use tower::{Layer, ServiceExt};

use crate::calls::support::{Policy, Server, With, get, ms, options, policy, report_of};

/// Returns a layer with four attempts and no budget that could hide a fifth.
fn four(nested: bool) -> RetryLayer<Policy> {
    let budget = reattempt_control::RetryBudget::unlimited();
    RetryLayer::new(policy().max_attempts(4).budget(budget).nested(nested))
}

// trap 28
#[tokio::test(start_paused = true)]
async fn three_layers_of_four_make_four_attempts() {
    let server = Server::statuses([503]);
    let client = four(true).layer(four(true).layer(four(true).layer(server.clone())));
    let response = client.oneshot(get()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (503, 4));
    let report = report_of(&response);
    assert_eq!((report.attempts().len(), report.stop_reason()), (4, StopReason::AttemptsExhausted));
    assert_eq!(server.times(), [0, 100, 200, 300]);
}

// trap 28
#[tokio::test(start_paused = true)]
async fn trap_28_errors_nest_as_responses_do() {
    let server = Server::by(|_, _| ConnectionReset.into());
    let client = four(true).layer(four(true).layer(four(true).layer(server.clone())));
    assert_eq!(client.oneshot(get()).await.unwrap_err().attempt, 4);
}

// trap 28
#[tokio::test(start_paused = true)]
async fn attempts_multiply_without_the_setting() {
    // The purpose of the setting.
    let server = Server::statuses([503]);
    let client = four(false).layer(four(false).layer(four(false).layer(server.clone())));
    client.oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 64);
}

// trap 28
#[tokio::test(start_paused = true)]
async fn inner_layer_giving_up_stops_outer() {
    let server = Server::statuses([503]);
    let client = four(true).layer(four(false).layer(server.clone()));
    let response = client.oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 4);
    let report = report_of(&response);
    assert_eq!((report.attempts().len(), report.stop_reason()), (1, StopReason::Nested));
}

// trap 28
#[tokio::test(start_paused = true)]
async fn giving_up_passes_layer_between() {
    for between in [true, false] {
        let server = Server::statuses([503]);
        let client = four(true).layer(four(between).layer(four(false).layer(server.clone())));
        let response = client.oneshot(get()).await.unwrap();
        // A layer in between without the setting starts over.
        let expected = if between { 4 } else { 16 };
        assert_eq!((response.status().as_u16(), server.count()), (503, expected));
    }
}

#[tokio::test(start_paused = true)]
async fn inner_success_does_not_stop_outer() {
    let server = Server::statuses([503, 200]);
    let client = four(true).layer(four(false).layer(server.clone()));
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(server.count(), 2);
}

// trap 28
#[tokio::test(start_paused = true)]
async fn unretrying_inner_layer_stops_no_outer() {
    let server = Server::statuses([503]);
    let never = RetryLayer::new(policy().max_attempts(1));
    four(true).layer(never.layer(server.clone())).oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 4, "the outer layer's attempts");
}

// trap 28
#[tokio::test(start_paused = true)]
async fn unretrying_inner_handle_stops_no_outer() {
    let server = Server::statuses([503]);
    let never = four(false).layer(server.clone()).with_options(CallOptions::new().never_retry());
    four(true).layer(never).oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 4, "the outer layer's attempts");
}

#[tokio::test(start_paused = true)]
async fn nested_calls_stand_for_themselves() {
    let server = Server::statuses([503, 503, 503, 503, 503, 200]);
    let client = four(true).layer(four(false).layer(server.clone()));
    client.clone().oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 4);
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(server.count(), 6, "that the call before gave up is forgotten");
}

// trap 26
#[tokio::test(start_paused = true)]
async fn nesting_is_checked_before_first_retry() {
    let server = Server::statuses([503]);
    // On its own, the inner layer would wait for a tenth of a second.
    let outer = RetryLayer::new(policy().nested(true).max_elapsed(ms(50)));
    let client = outer.layer(four(true).layer(server.clone()));
    client.oneshot(get()).await.unwrap();
    assert_eq!(server.times(), [0]);
}

// trap 26
#[tokio::test(start_paused = true)]
async fn forbidden_call_is_never_retried() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy()).layer(server.clone());
    client.clone().oneshot(get().with(options().never_retry())).await.unwrap();
    assert_eq!(server.count(), 1);
    client.with_options(options().never_retry()).oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 2);
}

// trap 28
#[tokio::test(start_paused = true)]
async fn attempt_number_is_seen_from_second_on() {
    let server = Server::statuses([503]);
    RetryLayer::new(policy().max_attempts(4)).layer(server.clone()).oneshot(get()).await.unwrap();
    let numbers: Vec<_> = server.seen().iter().map(|seen| seen.number()).collect();
    assert_eq!(numbers, [None, Some(2), Some(3), Some(4)]);
}
