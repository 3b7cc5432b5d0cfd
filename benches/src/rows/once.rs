//! Calls that fail once and then succeed, with no delay between, under a paused clock.
//!
//! What counts as bare is a call that succeeds at once, so everything that the failure brings is the
//! retry's: its own work, the second call of the inner service, the second body and head.

use std::time::Duration;

use http::{Request, StatusCode};
use reattempt::schedule::Constant;
use reattempt::{Retry, RetryBudget, RetryPolicy};
use reqwest_middleware::ClientWithMiddleware;
use tokio::runtime::{Builder, Runtime};
use tower::retry::budget::TpsBudget;
use tower::{Layer, Service, ServiceExt};
use tower_resilience_retry::FixedInterval;

use super::{Row, Work, above, alone};
use crate::contenders::{ByHand, middleware_bare, reqwest_retry, resilience_with};
use crate::inner::{Answer, Answers, FailsFirst, Terminal, TerminalFailsFirst};
use crate::requests::{Body, reqwest_template, template};

pub(super) const ROWS: &[Row] = &[Row {
    name: "once",
    title: "fails once, then succeeds, delay 0, paused clock",
    operations: 500,
    counted: true,
    timed: true,
    contenders: &[
        alone("bare", || each(Answers)),
        above("ours", "bare", || each(ours(FailsFirst::default()))),
        above("tower", "bare", || each(by_hand(FailsFirst::default()))),
        above("tower-resilience", "bare", || {
            let layer = resilience_with(FixedInterval::new(Duration::ZERO), 1e6);
            each(layer.layer(FailsFirst::default()))
        }),
        alone("bare-middleware", || chained(middleware_bare(reqwest::Client::new(), Terminal))),
        above("reqwest-retry", "bare-middleware", || {
            let chain = reqwest_retry(reqwest::Client::new(), Duration::ZERO, Duration::ZERO);
            chained(chain.with(TerminalFailsFirst::default()).build())
        }),
    ],
}];

/// Ours without delay, and with a budget whose successes earn what a retry costs.
fn ours<S: Clone>(inner: S) -> Retry<S, RetryPolicy<reattempt::Http, Constant>> {
    let policy = RetryPolicy::http()
        .schedule(Constant::new(Duration::ZERO))
        .budget(RetryBudget::ratio(1.0).unwrap());
    Retry::new(policy, inner)
}

fn by_hand<S>(inner: S) -> tower::retry::Retry<ByHand, S> {
    let budget = TpsBudget::new(Duration::from_secs(10), 10, 10.0);
    let policy = ByHand::new(Duration::ZERO, Duration::from_millis(1), 0.0, budget);
    tower::retry::Retry::new(policy, inner)
}

fn paused() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Calls the service with one request after the other; each has to succeed in the end.
fn each<S>(mut service: S) -> Work
where
    S: Service<Request<Body>, Response = Answer> + 'static,
    S::Error: std::fmt::Debug,
{
    let runtime = paused();
    let mut make = template();
    Box::new(move |operations| {
        runtime.block_on(async {
            for _ in 0..operations {
                let answer = service.ready().await.unwrap().call(make()).await.unwrap();
                assert_eq!(answer.status(), StatusCode::OK);
            }
        });
    })
}

fn chained(client: ClientWithMiddleware) -> Work {
    let runtime = paused();
    let mut make = reqwest_template();
    Box::new(move |operations| {
        runtime.block_on(async {
            for _ in 0..operations {
                let answer = client.execute(make()).await.unwrap();
                assert_eq!(answer.status(), StatusCode::OK);
            }
        });
    })
}

/// Every contender gets through a service that fails each call's first attempt.
pub(super) fn check() {
    for contender in ROWS[0].contenders.iter().filter(|contender| contender.bare.is_some()) {
        (contender.prepare)()(10);
    }
    let service = FailsFirst::default();
    each(ours(service.clone()))(3);
    assert_eq!(service.calls(), 6, "two attempts for each call");
}
