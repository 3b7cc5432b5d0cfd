//! Tests of the outcomes that classifiers see, and of those that they leave to the table.

use reattempt::classify::Outcome;
use reattempt::{RetryLayer, TimedOut};
use reattempt_core::Verdict;
use tower::{Layer, ServiceExt};

use crate::regressions::support::{Act, Server, With, get, ms, options, policy};

fn no_timeouts(outcome: Outcome<'_>) -> Option<Verdict> {
    outcome.find_error::<TimedOut>().map(|_| Verdict::Permanent)
}

#[tokio::test(start_paused = true)]
async fn policy_classifier_sees_attempt_timeouts() {
    let server = Server::by(|_, _| Act::Hang);
    let policy = policy().attempt_timeout(ms(50)).protocol(|http| http.classify(no_timeouts));
    RetryLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap_err();
    assert_eq!(server.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn call_classifier_sees_attempt_timeouts() {
    let server = Server::by(|_, _| Act::Hang);
    let client = RetryLayer::new(policy().attempt_timeout(ms(50))).layer(server.clone());
    client.oneshot(get().with(options().classify(no_timeouts))).await.unwrap_err();
    assert_eq!(server.count(), 1);
}

/// A classifier for some of the table's statuses must not cost the others their retries.
#[cfg(feature = "tower-http")]
#[tokio::test(start_paused = true)]
async fn tower_http_success_is_left_to_the_table() {
    use reattempt::classify::TowerHttpClassifier;
    use tower_http::classify::StatusInRangeAsFailures;

    let only_5xx = TowerHttpClassifier::new(StatusInRangeAsFailures::new(500..=599));
    // 429 is in the table, 501 only in the classifier, and 404 in neither.
    for (status, attempts) in [(429, 2), (501, 2), (404, 1)] {
        let server = Server::statuses([status, 200]);
        let client = RetryLayer::new(policy().protocol(|http| http.classify_with(only_5xx.clone())));
        client.layer(server.clone()).oneshot(get()).await.unwrap();
        assert_eq!(server.count(), attempts, "{status}");
    }
}
