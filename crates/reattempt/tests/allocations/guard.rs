//! Guarded calls that are admitted at once: no allocation and no clone of the service.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use reattempt::guard::{Bulkhead, CircuitBreaker, Guard, GuardLayer};
use tower::{Layer, Service};

/// Answers at once, and allocates nothing.
struct Server;

impl Clone for Server {
    fn clone(&self) -> Self {
        panic!("a call that is admitted at once clones nothing")
    }
}

impl Service<Request<Full<Bytes>>> for Server {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Full<Bytes>>) -> Self::Future {
        ready(Ok(Response::new(Full::from("hello"))))
    }
}

/// Returns the allocations of a call to a destination that the guard has seen before.
fn allocations(guard: impl Guard) -> usize {
    let mut client = GuardLayer::http(guard).layer(Server);
    let mut cx = Context::from_waker(Waker::noop());
    let mut allocated = 0;
    for _ in 0..3 {
        let request = Request::get("http://one.example/").body(Full::default()).unwrap();
        allocated = reattempt_testing::allocations_of(|| {
            assert!(client.poll_ready(&mut cx).is_ready());
            let Poll::Ready(response) = pin!(client.call(request)).poll(&mut cx) else {
                panic!("it waits")
            };
            drop(response.unwrap());
        });
    }
    allocated
}

#[test]
fn call_through_guards_allocates_nothing() {
    assert_eq!(allocations(CircuitBreaker::rate().consecutive_failures(5)), 0);
    assert_eq!(
        allocations((CircuitBreaker::rate().consecutive_failures(5), Bulkhead::new(64))),
        0,
        "held in the body itself"
    );
}
