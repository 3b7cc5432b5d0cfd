//! Tests of `Clone` requests of any service.

use std::error::Error;
use std::io;
use std::sync::Mutex;

use reattempt::observe::Event;
use reattempt::report::ReportSlot;
use reattempt::{RetryLayer, RetryPolicy};
use reattempt_core::{Failure, FailureKind, StopReason, Verdict};
use reattempt_schedule_fixed::Constant;
use tower::{Layer, ServiceExt, service_fn};

use crate::calls::support::{ms, options, tokens};

/// Lost connections and the response "busy" are retried.
fn judge(outcome: Result<&String, &(dyn Error + 'static)>) -> Verdict {
    match outcome {
        Ok(answer) if answer == "busy" => Verdict::Transient(Failure::new(FailureKind::Server)),
        Ok(_) => Verdict::Success,
        Err(error) if error.is::<io::Error>() => Verdict::Transient(Failure::new(FailureKind::Network)),
        Err(_) => Verdict::Permanent,
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_request_is_cloned_and_retried() {
    let asked = Mutex::new(Vec::new());
    let began = tokio::time::Instant::now();
    let inner = service_fn(|question: String| {
        let mut asked = asked.lock().unwrap();
        asked.push((question, began.elapsed().as_millis()));
        let attempt = asked.len();
        async move {
            match attempt {
                1 => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
                2 => Ok("busy".to_owned()),
                _ => Ok("42".to_owned()),
            }
        }
    });
    let policy = RetryPolicy::cloned(judge).backoff(Constant::new(ms(100)));
    let answer = RetryLayer::new(policy).layer(inner).oneshot("what?".to_owned()).await.unwrap();
    assert_eq!(answer, "42");
    let asked = asked.into_inner().unwrap();
    assert_eq!(asked, [("what?".to_owned(), 0), ("what?".to_owned(), 100), ("what?".to_owned(), 200)]);
}

#[tokio::test(start_paused = true)]
async fn limits_hold_and_last_outcome_is_returned() {
    let inner = service_fn(|_: u32| async { Ok::<_, io::Error>("busy".to_owned()) });
    let slot = ReportSlot::default();
    let budget = tokens(3.0);
    let policy = RetryPolicy::cloned(judge).backoff(Constant::new(ms(100))).budget(budget.clone());
    let client = RetryLayer::new(policy).layer(inner).with_options(options().report_to(&slot));
    assert_eq!(client.clone().oneshot(1).await.unwrap(), "busy");
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::AttemptsExhausted);
    client.oneshot(2).await.unwrap();
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::BudgetExhausted);
    assert_eq!(budget.balance(""), 0.0);
}

#[tokio::test(start_paused = true)]
async fn what_it_calls_permanent_is_not_retried() {
    #[derive(Debug)]
    struct Never;
    impl std::fmt::Display for Never {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("never")
        }
    }
    impl Error for Never {}
    let asked = Mutex::new(0);
    let inner = service_fn(|(): ()| {
        *asked.lock().unwrap() += 1;
        async { Err::<String, _>(Never) }
    });
    RetryLayer::new(RetryPolicy::cloned(judge)).layer(inner).oneshot(()).await.unwrap_err();
    assert_eq!(*asked.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_can_be_timed_out_and_observed() {
    let events = std::sync::Arc::new(Mutex::new(Vec::new()));
    let noted = std::sync::Arc::clone(&events);
    let inner = service_fn(|(): ()| async { std::future::pending::<Result<String, io::Error>>().await });
    let policy = RetryPolicy::cloned(judge)
        .backoff(Constant::new(ms(100)))
        .attempt_timeout(ms(50))
        .max_attempts(2)
        .observe_with(move |_: &str, event: &Event<'_>| noted.lock().unwrap().push(event.to_string()));
    RetryLayer::new(policy).layer(inner).oneshot(()).await.unwrap_err();
    assert_eq!(
        *events.lock().unwrap(),
        [
            "attempt 1: timeout: the attempt timed out after 50ms",
            "attempt 2 in 100ms",
            "attempt 2: timeout: the attempt timed out after 50ms",
            "gave up after 2 attempts: all allowed attempts have been made",
        ]
    );
}
