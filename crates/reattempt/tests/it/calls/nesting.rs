//! Retry layers inside retry layers.

use std::io::ErrorKind::ConnectionReset;

use reattempt::{CallOptions, RetryLayer};
use reattempt_core::StopReason;
use tower::{Layer, ServiceExt};

use crate::calls::support::{Policy, Server, With, get, ms, options, policy, report_of};

/// Four attempts and no budget that could hide a fifth.
fn four(nested: bool) -> RetryLayer<Policy> {
    let budget = reattempt_control::RetryBudget::unlimited();
    RetryLayer::new(policy().max_attempts(4).budget(budget).nested(nested))
}

// trap 28
#[tokio::test(start_paused = true)]
async fn trap_28_three_nested_layers_of_four_attempts_make_four_in_all() {
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
async fn trap_28_without_the_setting_attempts_multiply() {
    // What the setting is there for.
    let server = Server::statuses([503]);
    let client = four(false).layer(four(false).layer(four(false).layer(server.clone())));
    client.oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 64);
}

// trap 28
#[tokio::test(start_paused = true)]
async fn trap_28_an_inner_layer_that_gave_up_stops_the_outer_one() {
    let server = Server::statuses([503]);
    let client = four(true).layer(four(false).layer(server.clone()));
    let response = client.oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 4);
    let report = report_of(&response);
    assert_eq!((report.attempts().len(), report.stop_reason()), (1, StopReason::Nested));
}

// trap 28
#[tokio::test(start_paused = true)]
async fn trap_28_the_news_of_giving_up_passes_through_a_layer_between() {
    for between in [true, false] {
        let server = Server::statuses([503]);
        let client = four(true).layer(four(between).layer(four(false).layer(server.clone())));
        let response = client.oneshot(get()).await.unwrap();
        // A layer in between that does not know of nesting starts over, as its setting says.
        let expected = if between { 4 } else { 16 };
        assert_eq!((response.status().as_u16(), server.count()), (503, expected));
    }
}

#[tokio::test(start_paused = true)]
async fn an_inner_layer_whose_retries_succeed_is_no_reason_to_stop() {
    let server = Server::statuses([503, 200]);
    let client = four(true).layer(four(false).layer(server.clone()));
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(server.count(), 2);
}

// trap 28
#[tokio::test(start_paused = true)]
async fn trap_28_an_inner_layer_that_never_retries_has_given_nothing_up() {
    let server = Server::statuses([503]);
    let never = RetryLayer::new(policy().max_attempts(1));
    four(true).layer(never.layer(server.clone())).oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 4, "the outer layer's attempts");
}

// trap 28
#[tokio::test(start_paused = true)]
async fn trap_28_an_inner_handle_that_never_retries_has_given_nothing_up() {
    let server = Server::statuses([503]);
    let never = four(false).layer(server.clone()).with_options(CallOptions::new().never_retry());
    four(true).layer(never).oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 4, "the outer layer's attempts");
}

#[tokio::test(start_paused = true)]
async fn each_call_of_a_nested_client_stands_for_itself() {
    let server = Server::statuses([503, 503, 503, 503, 503, 200]);
    let client = four(true).layer(four(false).layer(server.clone()));
    client.clone().oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 4);
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(server.count(), 6, "that the call before gave up is forgotten");
}

// trap 26
#[tokio::test(start_paused = true)]
async fn trap_26_nesting_is_looked_at_before_the_first_retry() {
    let server = Server::statuses([503]);
    // The inner layer, asked directly, would wait for a tenth of a second.
    let outer = RetryLayer::new(policy().nested(true).max_elapsed(ms(50)));
    let client = outer.layer(four(true).layer(server.clone()));
    client.oneshot(get()).await.unwrap();
    assert_eq!(server.times(), [0]);
}

// trap 26
#[tokio::test(start_paused = true)]
async fn trap_26_a_call_that_must_never_be_retried_is_not_even_once() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy()).layer(server.clone());
    client.clone().oneshot(get().with(options().never_retry())).await.unwrap();
    assert_eq!(server.count(), 1);
    client.with_options(options().never_retry()).oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 2);
}

// trap 28
#[tokio::test(start_paused = true)]
async fn trap_28_the_number_of_an_attempt_is_seen_from_the_second_on() {
    let server = Server::statuses([503]);
    RetryLayer::new(policy().max_attempts(4)).layer(server.clone()).oneshot(get()).await.unwrap();
    let numbers: Vec<_> = server.seen().iter().map(|seen| seen.number()).collect();
    assert_eq!(numbers, [None, Some(2), Some(3), Some(4)]);
}
