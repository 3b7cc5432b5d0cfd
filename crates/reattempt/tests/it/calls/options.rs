//! Tests of overrides for one call, from the request and from the handle.

use std::future::ready;
use std::io::ErrorKind::ConnectionReset;

use http::StatusCode;
use reattempt::classify::Outcome;
use reattempt::report::ReportSlot;
use reattempt::standard::StandardLayer;
use reattempt::{RetryLayer, retry};
use reattempt_core::{Failure, FailureKind, SharedSchedule, StopReason, Verdict};
use reattempt_schedule_fixed::{Constant, Linear};
use tower::{Layer, ServiceExt};

use crate::calls::support::{Act, Server, With, get, ms, options, policy, post, report_of, transient};

#[tokio::test(start_paused = true)]
async fn attempts() {
    for (attempts, expected) in [(0, 1), (1, 1), (2, 2), (6, 6)] {
        let server = Server::statuses([503]);
        let client = RetryLayer::new(policy()).layer(server.clone());
        client.oneshot(get().with(options().max_attempts(attempts))).await.unwrap();
        assert_eq!(server.count(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_where_the_policy_allows_one() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().max_attempts(1)).layer(server.clone());
    client.oneshot(get().with(options().max_attempts(3))).await.unwrap();
    assert_eq!(server.count(), 3);
}

/// No setting and no call option turns retries on again.
#[tokio::test(start_paused = true)]
async fn never_retry_on_the_policy_holds() {
    for policy in [policy().never_retry().max_attempts(5), policy().max_attempts(5).never_retry()] {
        assert_eq!(policy.limits().max_attempts, 1);
        let server = Server::statuses([503]);
        let client = RetryLayer::new(policy).layer(server.clone());
        client.clone().oneshot(get()).await.unwrap();
        client.oneshot(get().with(options().max_attempts(3))).await.unwrap();
        assert_eq!(server.count(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn elapsed_time() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().max_elapsed(None)).layer(server.clone());
    let response = client.oneshot(get().with(options().max_elapsed(ms(150)))).await.unwrap();
    assert_eq!(server.times(), [0, 100]);
    assert_eq!(report_of(&response).stop_reason(), StopReason::ElapsedExhausted);
}

#[tokio::test(start_paused = true)]
async fn repeatable_and_not_repeatable() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy()).layer(server.clone());
    client.clone().oneshot(post().with(options().repeatable(true))).await.unwrap();
    assert_eq!(server.count(), 3);
    client.clone().oneshot(get().with(options().repeatable(false))).await.unwrap();
    assert_eq!(server.count(), 4);
    let keyed = post().header("idempotency-key", "\"k\"").with(options().repeatable(false));
    client.oneshot(keyed).await.unwrap();
    assert_eq!(server.count(), 5, "the caller's word goes before the key");
}

#[tokio::test(start_paused = true)]
async fn a_schedule() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy()).layer(server.clone());
    let schedule = SharedSchedule::new(Linear::new(ms(7)));
    client.clone().oneshot(get().with(options().backoff(schedule.clone()))).await.unwrap();
    assert_eq!(server.times(), [0, 7, 21]);
    client.oneshot(get().with(options().backoff(schedule))).await.unwrap();
    assert_eq!(server.times()[3..], [21, 28, 42], "each call begins at its first delay");
}

#[tokio::test(start_paused = true)]
async fn classifier_that_is_asked_before_policys() {
    let server = Server::statuses([404]);
    let policy = policy().protocol(|http| {
        http.classify(|outcome: Outcome<'_>| (outcome.status()?.as_u16() == 404).then_some(Verdict::Success))
    });
    let client = RetryLayer::new(policy).layer(server.clone());
    let mine = options().classify(|outcome: Outcome<'_>| (outcome.status()?.as_u16() == 404).then(|| transient(404)));
    client.clone().oneshot(get().with(mine)).await.unwrap();
    assert_eq!(server.count(), 3);
    client.oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn call_classifier_sees_errors() {
    let server = Server::by(|_, _| ConnectionReset.into());
    let client = RetryLayer::new(policy()).layer(server.clone());
    let mine =
        options().classify(|outcome: Outcome<'_>| outcome.find_error::<std::io::Error>().map(|_| Verdict::Permanent));
    client.clone().oneshot(get().with(mine)).await.unwrap_err();
    assert_eq!(server.count(), 1);
    client.oneshot(get().with(options().classify(|_: Outcome<'_>| None::<Verdict>))).await.unwrap_err();
    assert_eq!(server.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn handle_gives_options_to_all_calls() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy()).layer(server.clone());
    let patient = client.with_options(options().max_attempts(5));
    for _ in 0..2 {
        patient.clone().oneshot(get()).await.unwrap();
    }
    assert_eq!(server.count(), 10);
    client.oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 13, "the handle it came from is as it was");
}

#[tokio::test(start_paused = true)]
async fn request_options_precede_those_of_handle() {
    let server = Server::statuses([503]);
    let of_handle = options().max_attempts(5).backoff(SharedSchedule::new(Constant::new(ms(7))));
    let client = RetryLayer::new(policy()).layer(server.clone()).with_options(of_handle);
    client.oneshot(get().with(options().max_attempts(3))).await.unwrap();
    assert_eq!(server.times(), [0, 7, 14], "attempts of the request, schedule of the handle");
}

#[tokio::test(start_paused = true)]
async fn request_cannot_allow_what_handle_forbids() {
    let server = Server::statuses([503]);
    let slot = ReportSlot::default();
    let never = options().never_retry().report_to(&slot);
    let client = RetryLayer::new(policy()).layer(server.clone()).with_options(never);
    client.oneshot(get().with(options().max_server_delay(ms(1)))).await.unwrap();
    assert_eq!(server.count(), 1);
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::Forbidden);
}

#[tokio::test(start_paused = true)]
async fn request_classifiers_precede_the_handles() {
    let verdict = |status: u16, verdict| {
        options().classify(move |outcome: Outcome<'_>| {
            (outcome.status().map(|own| own.as_u16()) == Some(status)).then_some(verdict)
        })
    };
    let retried = Verdict::Transient(Failure::new(FailureKind::Other));
    let of_handle = verdict(404, retried).on_status(StatusCode::GONE, retried);
    let server = Server::statuses([404, 410, 200]);
    let client = RetryLayer::new(policy()).layer(server.clone()).with_options(of_handle);
    client.clone().oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 3, "404 and 410 are both the handle's to retry");
    let server = Server::statuses([404, 410, 200]);
    let client = RetryLayer::new(policy()).layer(server.clone()).with_options(verdict(404, retried));
    let response = client.oneshot(get().with(verdict(404, Verdict::Permanent))).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (404, 1));
}

#[tokio::test(start_paused = true)]
async fn a_report_of_each_call_of_a_handle() {
    let server = Server::statuses([503, 200]);
    let slot = ReportSlot::default();
    let client = RetryLayer::new(policy()).layer(server).with_options(options().report_to(&slot));
    client.clone().oneshot(get()).await.unwrap();
    assert_eq!(slot.take().unwrap().retries(), 1);
    client.oneshot(get()).await.unwrap();
    assert_eq!(slot.take().unwrap().retries(), 0);
}

#[test]
fn options_are_shown_to_people() {
    let text = format!("{:?}", options().max_attempts(2).repeatable(true));
    assert_eq!(
        text,
        "CallOptions { never_retry: false, repeatable: Some(true), max_attempts: Some(2), \
         max_elapsed: None, max_server_delay: None, attempt_timeout: None, deadline: None, .. }"
    );
}

#[tokio::test(start_paused = true)]
async fn elapsed_unlimited_with_longer_hint() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).header("retry-after", "90"),
        _ => 200.into(),
    });
    let client = RetryLayer::new(policy()).layer(server.clone());
    let patient = options().max_elapsed(None).max_server_delay(ms(100_000));
    assert_eq!(client.oneshot(get().with(patient)).await.unwrap().status(), 200);
    assert!((90_000..=99_001).contains(&server.times()[1]));
}

#[tokio::test(start_paused = true)]
async fn status_and_classifiers_coexist() {
    let server = Server::by(|arrival, _| match arrival {
        1 => 404.into(),
        2 => 409.into(),
        _ => 410.into(),
    });
    let client = RetryLayer::new(policy().max_attempts(9)).layer(server.clone());
    let on = |wanted: u16| move |outcome: Outcome<'_>| (outcome.status()? == wanted).then(|| transient(wanted));
    let mine = options().on_status(http::StatusCode::NOT_FOUND, transient(404)).classify(on(409));
    assert_eq!(client.oneshot(get().with(mine)).await.unwrap().status(), 410);
    assert_eq!(server.count(), 3);
}

/// The number of attempts has the same meaning wherever it is set.
#[tokio::test(start_paused = true)]
async fn attempts_in_every_spelling() {
    let server = Server::statuses([503]);
    RetryLayer::new(policy().max_retries(1)).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 2);
    StandardLayer::http().max_attempts(2).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 4);
    assert_eq!(policy().max_retries(u32::MAX).limits().max_attempts, u32::MAX);

    let mut tries = 0;
    let operation = || {
        tries += 1;
        ready(Err::<(), _>("down"))
    };
    retry(Constant::immediate(), operation).max_attempts(2).await.unwrap_err();
    assert_eq!(tries, 2);
}
