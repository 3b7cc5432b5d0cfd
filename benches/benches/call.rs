//! What a call costs that succeeds at once: the bare service, and the same service under the layer.
//!
//! The service is in memory and answers when it is called, so the difference is the layer's alone.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use http::{Request, Response};
use http_body_util::{Empty, Full};
use reattempt::{CallOptions, ReplayBody, RetryLayer};
use tower::Layer;
use tower_service::Service;

type Body = Full<Bytes>;

/// Answers 200 to whatever it is asked.
#[derive(Clone)]
struct Answers;

impl<B> Service<Request<B>> for Answers {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        black_box(request);
        ready(Ok(Response::new(Empty::new())))
    }
}

/// A request as a client makes it: eight headers, half of them built at run time.
fn request(body: Body) -> Request<Body> {
    let mut request = Request::put("http://shop.example/orders/7").body(body).unwrap_or_default();
    let headers = request.headers_mut();
    for name in ["accept", "accept-language", "content-type", "user-agent"] {
        headers.insert(name, http::HeaderValue::from_static("something/constant"));
    }
    for (number, name) in
        ["authorization", "traceparent", "x-request-id", "x-tenant"].into_iter().enumerate()
    {
        if let Ok(value) = http::HeaderValue::try_from(format!("made-at-run-time-{number}")) {
            headers.insert(name, value);
        }
    }
    request
}

/// Calls a service whose future is ready at once.
fn call<S: Service<Request<Body>>>(service: &mut S, request: Request<Body>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    let readied = service.poll_ready(&mut context).is_ready();
    readied && pin!(service.call(request)).poll(&mut context).is_ready()
}

fn first_time_success(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("first-time success");
    let body = Bytes::from_static(&[7; 1024]);
    let fresh = || request(Full::new(body.clone()));

    let mut bare = Answers;
    group.bench_function("bare", |bencher| bencher.iter(|| call(&mut bare, fresh())));

    let mut layered = RetryLayer::http().layer(Answers);
    group.bench_function("reattempt", |bencher| bencher.iter(|| call(&mut layered, fresh())));

    let mut passed = layered.with_options(CallOptions::new().never_retry());
    group.bench_function("reattempt, never retried", |bencher| {
        bencher.iter(|| call(&mut passed, fresh()));
    });
    group.finish();
}

/// The layer asks for a service of its own body type; named here so that a change of it is seen.
#[allow(dead_code, reason = "a check at compile time")]
fn inner_request_type(
    request: Request<ReplayBody<Body>>,
) -> Ready<Result<Response<Empty<Bytes>>, Infallible>> {
    Answers.call(request)
}

criterion_group!(benches, first_time_success);
criterion_main!(benches);
