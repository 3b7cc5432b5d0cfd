//! Tests of a call's report.

use std::io::ErrorKind::ConnectionReset;

use reattempt::report::{AttemptOutcome, ReportSlot};
use reattempt::{Report, RetryLayer};
use reattempt_core::StopReason;
use reattempt_replay::{ReplayLimits, ReplayMemory};
use tower::{Layer, ServiceExt};

use crate::calls::support::{Act, ONE, Server, With, get, ms, options, policy, report_of, request, server_failure};

#[tokio::test(start_paused = true)]
async fn report_holds_attempts_delays_and_reason() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).later(ms(10)),
        2 => Act::Fail(ConnectionReset).later(ms(10)),
        _ => Act::from(200).later(ms(10)),
    });
    let response = RetryLayer::new(policy()).layer(server).oneshot(get()).await.unwrap();
    let report = report_of(&response);
    assert_eq!((report.retries(), report.stop_reason()), (2, StopReason::Succeeded));
    assert_eq!(report.total_delay(), ms(200));
    let [first, second, third] = report.attempts() else { panic!("{report}") };
    assert_eq!((first.number, first.ended, first.delay), (1, ms(10), Some(ms(100))));
    assert_eq!(first.outcome, AttemptOutcome::Failed { failure: server_failure(503), error: None, cause: None });
    assert_eq!((second.number, second.ended, second.delay), (2, ms(120), Some(ms(100))));
    assert_eq!((third.number, third.ended, third.delay), (3, ms(230), None));
    assert_eq!(third.outcome, AttemptOutcome::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn its_text_is_read_at_night() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).later(ms(10)),
        _ => Act::Fail(ConnectionReset).later(ms(10)),
    });
    let slot = ReportSlot::default();
    let request = get().with(options().report_to(&slot));
    RetryLayer::new(policy()).layer(server).oneshot(request).await.unwrap_err();
    assert_eq!(
        slot.take().unwrap().to_string(),
        "attempt 1 at 10ms: server (503), next in 100ms\n\
         attempt 2 at 120ms: network: arrival 2 broke: connection reset, next in 100ms\n\
         attempt 3 at 230ms: network: arrival 3 broke: connection reset\n\
         stopped: all allowed attempts have been made"
    );
}

#[tokio::test(start_paused = true)]
async fn slot_is_filled_by_success_at_once_too() {
    let server = Server::statuses([200]);
    let slot = ReportSlot::default();
    let request = get().with(options().report_to(&slot));
    let response = RetryLayer::new(policy()).layer(server).oneshot(request).await.unwrap();
    assert!(response.extensions().get::<Report>().is_none());
    let report = slot.take().unwrap();
    assert_eq!(report.to_string(), "attempt 1 at 0s: succeeded\nstopped: succeeded");
    assert_eq!((report.retries(), report.total_delay()), (0, ms(0)));
    assert!(slot.take().is_none(), "taken");
}

#[tokio::test(start_paused = true)]
async fn a_slot_and_the_response_hold_the_same() {
    let server = Server::statuses([503, 200]);
    let slot = ReportSlot::default();
    let request = get().with(options().report_to(&slot));
    let response = RetryLayer::new(policy()).layer(server).oneshot(request).await.unwrap();
    assert_eq!(slot.take().as_ref(), Some(report_of(&response)));
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_fills_the_slot() {
    let server = Server::statuses([404]);
    let slot = ReportSlot::default();
    let request = get().with(options().report_to(&slot));
    RetryLayer::new(policy()).layer(server).oneshot(request).await.unwrap();
    let text = slot.take().unwrap().to_string();
    assert_eq!(text, "attempt 1 at 0s: permanent failure (404)\nstopped: the failure is permanent");
}

// trap 04
#[tokio::test(start_paused = true)]
async fn unkept_body_names_limits_in_report() {
    let server = Server::statuses([503]);
    let limits = ReplayLimits::default().per_call(0).memory(ReplayMemory::new(1000));
    let slot = ReportSlot::default();
    let policy = policy().protocol(|http| http.replay(limits));
    let request = request("PUT", ONE, "text").with(options().report_to(&slot));
    RetryLayer::new(policy).layer(server).oneshot(request).await.unwrap();
    assert_eq!(
        slot.take().unwrap().to_string(),
        "attempt 1 at 0s: server (503)\n\
         stopped: the request body was not kept \
         (ReplayLimits::per_call is 0 bytes, ReplayLimits::memory 1000 bytes; \
         an UploadBody of any length can be opened again)"
    );
}

#[tokio::test(start_paused = true)]
async fn call_that_is_not_retried_fills_slot() {
    let server = Server::statuses([503]);
    let slot = ReportSlot::default();
    let request = get().with(options().never_retry().report_to(&slot));
    RetryLayer::new(policy()).layer(server).oneshot(request).await.unwrap();
    let report = slot.take().unwrap();
    assert_eq!((report.attempts().len(), report.stop_reason()), (1, StopReason::Forbidden));
}

#[tokio::test(start_paused = true)]
async fn refused_retry_has_no_delay_in_report() {
    let server = Server::statuses([503]);
    let response = RetryLayer::new(policy().max_elapsed(ms(50))).layer(server).oneshot(get()).await.unwrap();
    assert_eq!(report_of(&response).total_delay(), ms(0));
}

#[tokio::test(start_paused = true)]
async fn long_call_keeps_first_and_last_attempts() {
    let server = Server::statuses([503]);
    let policy = policy().max_attempts(500).max_elapsed(None).budget(reattempt_core::Unlimited);
    let response = RetryLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
    let report = report_of(&response);
    assert_eq!((server.count(), report.retries()), (500, 499));
    let numbers: Vec<_> = report.attempts().iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, (1..=32).chain(469..=500).collect::<Vec<_>>());
    assert_eq!(report.omitted(), 500 - 64);
    let text = report.to_string();
    assert!(text.contains("\n(436 attempts in the middle are left out)\nstopped: "), "{text}");
}
