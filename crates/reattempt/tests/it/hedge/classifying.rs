//! Tests of classifiers on hedged calls: their hints, and the request that they see.

use std::sync::{Arc, Mutex};

use http::StatusCode;
use reattempt::Verdict;
use reattempt::classify::{Outcome, ServerHint};
use reattempt::hedge::HedgeLayer;
use tower::{Layer, ServiceExt};

use crate::hedge::policy;
use crate::hedge::support::{Act, Server, get, ms};

#[tokio::test(start_paused = true)]
async fn hedge_hint_puts_next_off_or_stops() {
    // The classifier's hint for the first attempt, which fails after 30 ms.
    for (hint, expected) in
        [(ServerHint::None, vec![0, 30]), (ServerHint::Exactly(ms(400)), vec![0, 430]), (ServerHint::Stop, vec![0])]
    {
        let server = Server::by(|arrival, _| match arrival {
            1 => Act::from(503).later(ms(30)),
            _ => 200.into(),
        });
        let policy = policy().protocol(move |http| {
            http.classify(move |outcome: Outcome<'_>| {
                (outcome.status()? == 503).then(|| Verdict::transient().with_hint(hint))
            })
        });
        HedgeLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
        assert_eq!(server.times(), expected, "{hint:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn hedge_own_verdict_outranks_should_retry() {
    for (own, attempts) in [(None, 2), (Some(Verdict::Permanent), 1)] {
        let server = Server::by(|arrival, _| match arrival {
            1 => Act::from(429).header("stripe-should-retry", "true"),
            _ => 200.into(),
        });
        let policy = policy().protocol(|http| match own {
            Some(own) => http.on_status(StatusCode::TOO_MANY_REQUESTS, own),
            None => http,
        });
        HedgeLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
        assert_eq!(server.count(), attempts, "{own:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn hedge_classifier_sees_request_each_time() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let server = Server::statuses([503]);
    let policy = policy().protocol(|http| {
        http.classify(move |outcome: Outcome<'_>| {
            noted.lock().unwrap().push(outcome.request()?.authority()?.to_owned());
            None::<Verdict>
        })
    });
    HedgeLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((server.count(), seen.lock().unwrap().clone()), (3, vec!["one.example".into(); 3]));
}
