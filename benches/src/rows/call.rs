//! Calls that succeed at the first attempt, retryable or not.
//!
//! An operation makes a request and calls with it. The client answers inside of `call`, so a single
//! poll without a runtime ends the call.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use http::Request;
use http_body_util::BodyExt;
use reattempt::service_config::ServiceConfig;
use reattempt::{CallOptions, ReplayLimits, Retry, RetryLayer, RetryPolicy, ServiceConfigLayer};
use reqwest_middleware::ClientWithMiddleware;
use tower::Layer;
use tower_service::Service;

use super::{Row, Work, above, alone};
use crate::contenders::{
    by_hand, by_hand_once, middleware_bare, ours, reqwest_retry_usual, resilience,
};
use crate::inner::{Answers, Reads, Terminal};
use crate::requests::{Body, fresh, grpc, grpc_encoded, reqwest_fresh, reqwest_template, template};

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
            above("tower-resilience", "bare", || each(resilience().layer(Answers), template())),
            alone("bare-middleware", || chained(bare_chain(), reqwest_template())),
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
            above("tower-resilience", "bare", || each(resilience().layer(Answers), fresh)),
            alone("bare-middleware", || chained(bare_chain(), reqwest_fresh)),
            above("reqwest-retry", "bare-middleware", || chained(retrying(), reqwest_fresh)),
        ],
    },
    Row {
        name: "never",
        title: "calls that cannot be retried",
        operations: 500,
        counted: true,
        timed: true,
        contenders: &[
            alone("bare", || each(Answers, fresh)),
            above("ours-one-attempt", "bare", || each(one_attempt(), fresh)),
            above("ours-opted-out", "bare", || {
                let options = CallOptions::new().never_retry();
                each(ours(Answers).with_options(options), fresh)
            }),
            alone("bare-with-options", || each(Answers, opted_out())),
            above("ours-opted-out-by-request", "bare-with-options", || {
                each(ours(Answers), opted_out())
            }),
            above("ours-body-not-kept", "bare", || {
                let nothing = ReplayLimits::default().per_call(0);
                each(Retry::new(RetryPolicy::http().replay(nothing), Answers), fresh)
            }),
            above("tower", "bare", || each(by_hand_once(Answers), fresh)),
        ],
    },
    Row {
        name: "grpc",
        title: "gRPC unary, first-time success, 1 KiB message",
        operations: 500,
        counted: true,
        timed: true,
        contenders: &[
            alone("bare-http", || each(Answers, fresh)),
            above("ours-http", "bare-http", || each(ours(Answers), fresh)),
            alone("bare", || each(Reads, || boxed(grpc()))),
            above("ours", "bare", || each(RetryLayer::grpc().layer(Reads), grpc)),
            alone("bare-encoded", || each(Reads, || boxed(grpc_encoded()))),
            above("ours-encoded", "bare-encoded", || {
                each(RetryLayer::grpc().layer(Reads), grpc_encoded)
            }),
            above("ours-by-config", "bare", || each(by_config().layer(Reads), grpc)),
        ],
    },
];

/// A request whose body is boxed once more, as tonic's type makes whoever wraps one do.
fn boxed(request: Request<tonic::body::Body>) -> Request<tonic::body::Body> {
    // Another type, or tonic would see that it has boxed this one before.
    request.map(|body| tonic::body::Body::new(body.map_err(|error| error)))
}

/// A service config with a policy for the method that is called, and a throttle.
fn by_config() -> ServiceConfigLayer {
    let text = r#"{
        "methodConfig": [{
            "name": [{ "service": "shop.Orders" }],
            "retryPolicy": {
                "maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "5s",
                "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]
            }
        }],
        "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 }
    }"#;
    ServiceConfigLayer::new(ServiceConfig::parse(text).unwrap())
}

fn one_attempt() -> Retry<Answers> {
    Retry::new(RetryPolicy::http().max_attempts(1), Answers)
}

/// Makes fresh requests that say themselves that they are not to be retried.
fn opted_out() -> impl FnMut() -> Request<Body> {
    let options = CallOptions::new().never_retry();
    move || {
        let mut request = fresh();
        request.extensions_mut().insert(options.clone());
        request
    }
}

/// Calls the service with one request after the other.
fn each<S, R>(mut service: S, mut make: impl FnMut() -> R + 'static) -> Work
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

/// The chain with nothing in it but its end.
pub(super) fn bare_chain() -> ClientWithMiddleware {
    middleware_bare(reqwest::Client::new(), Terminal)
}

fn retrying() -> ClientWithMiddleware {
    reqwest_retry_usual(reqwest::Client::new()).with(Terminal).build()
}

/// Sends one request after the other down a chain of middleware.
fn chained(
    client: ClientWithMiddleware,
    mut make: impl FnMut() -> reqwest::Request + 'static,
) -> Work {
    Box::new(move |operations| {
        for _ in 0..operations {
            execute(&client, make());
        }
    })
}

#[inline(never)]
fn execute(client: &ClientWithMiddleware, request: reqwest::Request) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(pin!(client.execute(request)).poll(&mut context), Poll::Ready(Ok(_))));
}
