//! Tests of slow hooks.

use std::io::ErrorKind::ConnectionReset;

use http::request::Parts;
use reattempt::report::ReportSlot;
use reattempt::retry::AttemptContext;
use reattempt::{Deadline, RetryLayer};
use reattempt_core::StopReason;
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt};

use crate::regressions::support::{Server, With, get, ms, options, policy};

/// Even if it cannot be interrupted, a call that has an error to end with ends at its limit.
#[tokio::test(start_paused = true)]
async fn retry_whose_hook_is_late_is_not_sent() {
    for by_deadline in [false, true] {
        let server = Server::by(|_, _| ConnectionReset.into());
        let policy = policy().before_attempt(|_: &mut Parts, attempt: AttemptContext| {
            Box::pin(async move {
                if attempt.number > 1 {
                    sleep(ms(60_000)).await;
                }
            })
        });
        let slot = ReportSlot::default();
        let options = options().report_to(&slot);
        let limited = match by_deadline {
            true => options.deadline(Deadline::after(ms(200))),
            false => options.max_elapsed(ms(200)),
        };
        let began = Instant::now();
        let client = RetryLayer::new(policy).layer(server.clone());
        let error = client.oneshot(get().with(limited)).await.unwrap_err();
        assert_eq!((error.attempt, server.count(), began.elapsed().as_millis()), (1, 1, 200));
        assert_eq!(slot.take().unwrap().stop_reason(), StopReason::NotReady);
    }
}
