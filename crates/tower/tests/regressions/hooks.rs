//! Hooks that take their time.

use std::io::ErrorKind::ConnectionReset;

use http::request::Parts;
use reattempt_core::StopReason;
use reattempt_tower::{Attempting, Deadline, ReportSlot, RetryLayer};
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt};

use crate::support::{Server, With, get, ms, options, policy};

/// Without a way to interrupt, a call that has an error to end with ends at its limit all the same.
#[tokio::test(start_paused = true)]
async fn a_retry_whose_hook_outlasts_the_limit_is_not_sent() {
    let limits =
        [(policy().max_elapsed(ms(200)), get()), (policy(), get().with(Deadline::after(ms(200))))];
    for (policy, request) in limits {
        let server = Server::by(|_, _| ConnectionReset.into());
        let policy = policy.before_attempt(|_: &mut Parts, attempt: Attempting| {
            Box::pin(async move {
                if attempt.number > 1 {
                    sleep(ms(60_000)).await;
                }
            })
        });
        let slot = ReportSlot::default();
        let request = request.with(options().report_to(&slot));
        let began = Instant::now();
        let error = RetryLayer::new(policy).layer(server.clone()).oneshot(request).await;
        assert_eq!(error.unwrap_err().attempt, 1);
        assert_eq!((server.count(), began.elapsed().as_millis()), (1, 200));
        assert_eq!(slot.take().unwrap().stop_reason(), StopReason::NotReady);
    }
}
