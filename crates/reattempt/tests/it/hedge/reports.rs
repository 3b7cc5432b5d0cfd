//! Tests of the reports of hedged calls.

use std::io::ErrorKind::ConnectionRefused;

use reattempt::hedge::HedgeLayer;
use reattempt::report::{AttemptOutcome, ReportSlot};
use reattempt::{CallOptions, Deadline, Report, StopReason};
use tower::{Layer, ServiceExt};

use super::policy;
use super::support::{Act, Server, get, ms, post};

#[tokio::test(start_paused = true)]
async fn report_lists_cancelled_attempts() {
    let server = Server::by(|arrival, _| match arrival {
        3 => Act::from(200).later(ms(30)),
        _ => Act::Hang,
    });
    let answer = HedgeLayer::new(policy()).layer(server).oneshot(get()).await.unwrap();
    let report = Report::of(&answer).unwrap();
    let lines = "attempt 1 at 230ms: cancelled\nattempt 2 at 230ms: cancelled\n\
                 attempt 3 at 230ms: succeeded\nstopped: succeeded";
    assert_eq!(report.to_string(), lines);
    assert_eq!((report.retries(), report.winner()), (2, Some(3)));
}

#[tokio::test(start_paused = true)]
async fn report_lists_failures_before_success() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).later(ms(50)),
        _ => Act::from(200).later(ms(10)),
    });
    let answer = HedgeLayer::new(policy()).layer(server).oneshot(get()).await.unwrap();
    let report = Report::of(&answer).unwrap();
    let [first, second] = report.attempts() else { panic!("{report}") };
    assert!(matches!(&first.outcome, AttemptOutcome::Failed { failure, .. } if failure.code() == Some(503)));
    assert_eq!((first.ended, second.ended), (ms(50), ms(60)));
    assert_eq!((&second.outcome, report.winner()), (&AttemptOutcome::Succeeded, Some(2)));
}

#[tokio::test(start_paused = true)]
async fn slot_has_report_of_failed_call() {
    let server = Server::by(|_, _| ConnectionRefused.into());
    let slot = ReportSlot::default();
    let client = HedgeLayer::new(policy()).layer(server).with_options(CallOptions::new().report_to(&slot));
    client.oneshot(get()).await.unwrap_err();
    let report = slot.take().unwrap();
    assert_eq!(report.stop_reason(), StopReason::AttemptsExhausted);
    let numbers: Vec<_> = report.attempts().iter().map(|attempt| attempt.number).collect();
    assert_eq!((numbers, report.winner()), (vec![1, 2, 3], Some(3)));
}

#[tokio::test(start_paused = true)]
async fn slot_has_report_of_unhedged_call() {
    let slot = ReportSlot::default();
    let client = HedgeLayer::new(policy()).layer(Server::by(|_, _| 200.into()));
    let client = client.with_options(CallOptions::new().report_to(&slot));
    let answer = client.clone().oneshot(post()).await.unwrap();
    assert!(Report::of(&answer).is_none());
    let report = slot.take().unwrap();
    let [only] = report.attempts() else { panic!("{report}") };
    assert_eq!((&only.outcome, report.retries()), (&AttemptOutcome::Succeeded, 0));
    // DL-3
    let late = CallOptions::new().deadline(Deadline::after(ms(0))).report_to(&slot);
    let client = HedgeLayer::new(policy().boxed_errors()).layer(Server::by(|_, _| 200.into()));
    client.with_options(late).oneshot(get()).await.unwrap_err();
    let report = slot.take().unwrap();
    assert_eq!((report.attempts().len(), report.stop_reason()), (0, StopReason::DeadlineExceeded));
}
