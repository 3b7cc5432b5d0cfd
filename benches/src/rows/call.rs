//! Calls that succeed at the first attempt, retryable or not.
//!
//! An operation makes a request and calls with it. The client answers inside of `call`, so a single
//! poll without a runtime ends the call.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use http::Request;
use reattempt::body::ReplayLimits;
use reattempt::{CallOptions, Http, Retry, RetryPolicy};
#[cfg(feature = "peers")]
use reqwest_middleware::ClientWithMiddleware;
#[cfg(feature = "peers")]
use tower::Layer;
use tower_service::Service;

#[cfg(feature = "peers")]
use super::once::{paused, with_clock};
use super::{Row, Work, above, alone};
#[cfg(feature = "peers")]
use crate::contenders::{BASE, CAP, middleware_bare, reqwest_retry_usual, resilience, seatbelt_retry};
use crate::contenders::{by_hand, by_hand_once, by_hand_with_bucket, ours};
use crate::inner::Answers;
#[cfg(feature = "peers")]
use crate::inner::Terminal;
use crate::requests::{Body, fresh, template};
#[cfg(feature = "peers")]
use crate::requests::{reqwest_fresh, reqwest_template};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "template",
        title: "first-time success, template, empty body",
        operations: 500,
        counted: true,
        timed: true,
        contenders: &[
            alone("bare", || each(Answers, template())),
            above("ours", "bare", || each(ours(Answers), template())),
            above("tower", "bare", || each(by_hand(Answers), template())),
            above("tower-bucket", "bare", || each(by_hand_with_bucket(Answers), template())),
            #[cfg(feature = "peers")]
            above("tower-resilience", "bare", || each(resilience().layer(Answers), template())),
            #[cfg(feature = "peers")]
            above("seatbelt", "bare", || by_seatbelt(template())),
            #[cfg(feature = "peers")]
            alone("bare-middleware", || chained(bare_chain(), reqwest_template())),
            #[cfg(feature = "peers")]
            above("reqwest-retry", "bare-middleware", || chained(retrying(), reqwest_template())),
        ],
    },
    Row {
        name: "fresh",
        title: "first-time success, fresh, 1 KiB body",
        operations: 500,
        counted: true,
        timed: true,
        contenders: &[
            alone("bare", || each(Answers, fresh)),
            above("ours", "bare", || each(ours(Answers), fresh)),
            above("tower", "bare", || each(by_hand(Answers), fresh)),
            above("tower-bucket", "bare", || each(by_hand_with_bucket(Answers), fresh)),
            #[cfg(feature = "peers")]
            above("tower-resilience", "bare", || each(resilience().layer(Answers), fresh)),
            #[cfg(feature = "peers")]
            above("seatbelt", "bare", || by_seatbelt(fresh)),
            #[cfg(feature = "peers")]
            alone("bare-middleware", || chained(bare_chain(), reqwest_fresh)),
            #[cfg(feature = "peers")]
            above("reqwest-retry", "bare-middleware", || chained(retrying(), reqwest_fresh)),
        ],
    },
    Row {
        name: "never",
        title: "calls that cannot be retried",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(Answers, fresh)),
            above("ours-one-attempt", "bare", || each(one_attempt(), fresh)),
            above("ours-opted-out", "bare", || {
                let options = CallOptions::new().never_retry();
                each(ours(Answers).with_options(options), fresh)
            }),
            alone("bare-with-options", || each(Answers, opted_out())),
            above("ours-opted-out-by-request", "bare-with-options", || each(ours(Answers), opted_out())),
            above("ours-body-not-kept", "bare", || {
                let nothing = ReplayLimits::default().per_call(0);
                each(Retry::new(RetryPolicy::with(Http::new().replay(nothing)), Answers), fresh)
            }),
            above("tower-bucket", "bare", || each(by_hand_once(Answers), fresh)),
        ],
    },
];

fn one_attempt() -> Retry<Answers> {
    Retry::new(RetryPolicy::http().max_attempts(1), Answers)
}

/// Makes fresh requests that opt out of retries.
fn opted_out() -> impl FnMut() -> Request<Body> {
    let options = CallOptions::new().never_retry();
    move || {
        let mut request = fresh();
        request.extensions_mut().insert(options.clone());
        request
    }
}

/// Calls the service with one request after another.
pub(super) fn each<S, R>(mut service: S, mut make: impl FnMut() -> R + 'static) -> Work
where
    S: Service<R> + 'static,
{
    Box::new(move |operations| {
        for _ in 0..operations {
            call(&mut service, make());
        }
    })
}

/// Calls a service whose future is ready at once.
#[inline(never)]
fn call<S: Service<R>, R>(service: &mut S, request: R) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(service.poll_ready(&mut context), Poll::Ready(Ok(()))));
    assert!(matches!(pin!(service.call(request)).poll(&mut context), Poll::Ready(Ok(_))));
}

#[cfg(feature = "peers")]
/// Returns a chain that has only its terminal.
pub(super) fn bare_chain() -> ClientWithMiddleware {
    middleware_bare(reqwest::Client::new(), Terminal)
}

/// Calls through seatbelt's retry.
#[cfg(feature = "peers")]
fn by_seatbelt(make: impl FnMut() -> Request<Body> + 'static) -> Work {
    with_clock(paused(), |runtime| each(seatbelt_retry(Answers, (BASE, CAP), runtime), make))
}

#[cfg(feature = "peers")]
fn retrying() -> ClientWithMiddleware {
    reqwest_retry_usual(reqwest::Client::new()).with(Terminal).build()
}

#[cfg(feature = "peers")]
/// Sends one request after another through a chain of middleware.
fn chained(client: ClientWithMiddleware, mut make: impl FnMut() -> reqwest::Request + 'static) -> Work {
    Box::new(move |operations| {
        for _ in 0..operations {
            execute(&client, make());
        }
    })
}

#[cfg(feature = "peers")]
#[inline(never)]
fn execute(client: &ClientWithMiddleware, request: reqwest::Request) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(pin!(client.execute(request)).poll(&mut context), Poll::Ready(Ok(_))));
}
