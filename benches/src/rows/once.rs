//! Calls that fail once and then succeed without a delay, under a paused clock.
//!
//! The bare call succeeds at once. So the cost of the retry includes its own work, the second call
//! of the inner service, and the second head and body.

use std::pin::{Pin, pin};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use reattempt::schedule::Constant;
use reattempt::{Retry, RetryBudget, RetryPolicy};
#[cfg(feature = "peers")]
use reqwest_middleware::ClientWithMiddleware;
use tokio::runtime::{Builder, Runtime};
#[cfg(feature = "peers")]
use tower::Layer;
use tower::retry::budget::TpsBudget;
use tower::{Service, ServiceExt};
#[cfg(feature = "peers")]
use tower_resilience_retry::FixedInterval;

#[cfg(feature = "peers")]
use super::call::bare_chain;
use super::{Row, Work, above, alone};
use crate::contenders::{Bucket, ByHand};
#[cfg(feature = "peers")]
use crate::contenders::{reqwest_retry, resilience_with, seatbelt_retry};
#[cfg(feature = "peers")]
use crate::inner::Answer;
#[cfg(feature = "peers")]
use crate::inner::TerminalFailsFirst;
use crate::inner::{Answers, FailsFirst};
use crate::requests::{Body, fresh, fresh_unknown, template};
#[cfg(feature = "peers")]
use crate::requests::{reqwest_fresh, reqwest_template};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "once",
        title: "fails once, then succeeds, delay 0, paused clock",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(Answers, template())),
            above("ours", "bare", || each(ours(FailsFirst::default()), template())),
            above("tower", "bare", || each(by_hand(FailsFirst::default()), template())),
            above("tower-bucket", "bare", || each(with_bucket(FailsFirst::default()), template())),
            #[cfg(feature = "peers")]
            above("tower-resilience", "bare", || each(without_delay(), template())),
            #[cfg(feature = "peers")]
            above("seatbelt", "bare", || by_seatbelt(template())),
            #[cfg(feature = "peers")]
            alone("bare-middleware", || chained(bare_chain(), reqwest_template())),
            #[cfg(feature = "peers")]
            above("reqwest-retry", "bare-middleware", || chained(retrying(), reqwest_template())),
        ],
    },
    Row {
        name: "once-fresh",
        title: "the same, fresh, 1 KiB body",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(Answers, fresh)),
            above("ours", "bare", || each(ours(FailsFirst::default()), fresh)),
            above("tower", "bare", || each(by_hand(FailsFirst::default()), fresh)),
            above("tower-bucket", "bare", || each(with_bucket(FailsFirst::default()), fresh)),
            #[cfg(feature = "peers")]
            above("tower-resilience", "bare", || each(without_delay(), fresh)),
            #[cfg(feature = "peers")]
            above("seatbelt", "bare", || by_seatbelt(fresh)),
            #[cfg(feature = "peers")]
            alone("bare-middleware", || chained(bare_chain(), reqwest_fresh)),
            #[cfg(feature = "peers")]
            above("reqwest-retry", "bare-middleware", || chained(retrying(), reqwest_fresh)),
        ],
    },
    Row {
        name: "once-unknown",
        title: "the same, fresh, no run-time name in any table",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(Answers, fresh_unknown)),
            above("ours", "bare", || each(ours(FailsFirst::default()), fresh_unknown)),
            above("tower", "bare", || each(by_hand(FailsFirst::default()), fresh_unknown)),
            above("tower-bucket", "bare", || each(with_bucket(FailsFirst::default()), fresh_unknown)),
        ],
    },
];

#[cfg(feature = "peers")]
fn without_delay() -> impl Service<Request<Body>, Response = Answer, Error: std::fmt::Debug> {
    let layer = resilience_with(FixedInterval::new(Duration::ZERO), 1e6);
    layer.layer(FailsFirst::default())
}

/// Calls through seatbelt's retry.
#[cfg(feature = "peers")]
fn by_seatbelt(make: impl FnMut() -> Request<Body> + 'static) -> Work {
    with_clock(paused(), |runtime| {
        each(seatbelt_retry(FailsFirst::default(), (Duration::ZERO, Duration::ZERO), runtime), make)
    })
}

/// Prepares work with seatbelt's clock, whose runtime lives as long as the work.
#[cfg(feature = "peers")]
pub(super) fn with_clock(runtime: Runtime, prepare: impl FnOnce(&Runtime) -> Work) -> Work {
    let mut work = prepare(&runtime);
    Box::new(move |operations| {
        let _runtime = &runtime;
        work(operations);
    })
}

#[cfg(feature = "peers")]
fn retrying() -> ClientWithMiddleware {
    let chain = reqwest_retry(reqwest::Client::new(), Duration::ZERO, Duration::ZERO);
    chain.with(TerminalFailsFirst::default()).build()
}

/// Wraps a service in ours without delay, with a budget whose successes earn the cost of a retry.
fn ours<S: Clone>(inner: S) -> Retry<S, RetryPolicy<reattempt::Http, Constant>> {
    let policy = RetryPolicy::http().backoff(Constant::immediate()).budget(RetryBudget::ratio(1.0));
    Retry::new(policy, inner)
}

fn by_hand<S>(inner: S) -> tower::retry::Retry<ByHand<TpsBudget>, S> {
    let budget = TpsBudget::new(Duration::from_secs(10), 10, 10.0);
    tower::retry::Retry::new(ByHand::new(Duration::ZERO, Duration::ZERO, budget), inner)
}

/// Wraps a service in tower's `Retry`, with a bucket in which a success adds the token of a retry.
fn with_bucket<S>(inner: S) -> tower::retry::Retry<ByHand<Bucket>, S> {
    let budget = Bucket::new(10, 1000);
    tower::retry::Retry::new(ByHand::new(Duration::ZERO, Duration::ZERO, budget), inner)
}

pub(super) fn paused() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Calls the service with one request after another on a paused clock; each call must succeed in the end.
pub(super) fn each<S, B>(service: S, make: impl FnMut() -> Request<Body> + 'static) -> Work
where
    S: Service<Request<Body>, Response = Response<B>> + 'static,
    S::Error: std::fmt::Debug,
{
    each_on(paused(), service, make)
}

/// Calls the service with one request after another; each call must succeed in the end.
pub(super) fn each_on<S, B>(runtime: Runtime, mut service: S, mut make: impl FnMut() -> Request<Body> + 'static) -> Work
where
    S: Service<Request<Body>, Response = Response<B>> + 'static,
    S::Error: std::fmt::Debug,
{
    Box::new(move |operations| {
        block_on(&runtime, async {
            for _ in 0..operations {
                let answer = service.ready().await.unwrap().call(make()).await.unwrap();
                assert_eq!(answer.status(), StatusCode::OK);
            }
        });
    })
}

/// Runs the future on the runtime. The compiler makes tokio's code once, for all types of futures.
pub(super) fn block_on(runtime: &Runtime, future: impl Future<Output = ()>) {
    let future: Pin<&mut dyn Future<Output = ()>> = pin!(future);
    runtime.block_on(future);
}

#[cfg(feature = "peers")]
fn chained(client: ClientWithMiddleware, mut make: impl FnMut() -> reqwest::Request + 'static) -> Work {
    let runtime = paused();
    Box::new(move |operations| {
        runtime.block_on(async {
            for _ in 0..operations {
                let answer = client.execute(make()).await.unwrap();
                assert_eq!(answer.status(), StatusCode::OK);
            }
        });
    })
}

/// Checks that every contender succeeds with a service that fails each call's first attempt.
pub(super) fn check() {
    let contenders = ROWS.iter().flat_map(|row| row.contenders);
    for contender in contenders.filter(|contender| contender.bare.is_some()) {
        (contender.prepare)()(10);
    }
    let service = FailsFirst::default();
    each(ours(service.clone()), template())(3);
    assert_eq!(service.calls(), 6, "two attempts for each call");
}
