//! Allocations of guarded calls that are admitted at once: none, and no clone of the service.

use std::cell::Cell;
use std::convert::Infallible;
use std::fmt::Debug;
use std::future::{Ready, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use reattempt::guard::contract::Guard;
use reattempt::guard::{Bulkhead, CircuitBreaker, GuardLayer};
use reattempt::standard::StandardLayer;
use reattempt::{RetryLayer, RetryPolicy};
use tower::{Layer, Service};

/// A server that responds at once and allocates nothing.
pub(super) struct Server;

impl Clone for Server {
    fn clone(&self) -> Self {
        assert!(MAY_CLONE.get(), "a call that is admitted at once clones nothing");
        Self
    }
}

thread_local! {
    pub(super) static MAY_CLONE: Cell<bool> = const { Cell::new(false) };
}

impl<B> Service<Request<B>> for Server {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        ready(Ok(Response::new(Full::from("hello"))))
    }
}

/// Returns the allocations of a call to a destination that the guard already has.
fn allocations(guard: impl Guard) -> usize {
    allocations_of_call(GuardLayer::http(guard).layer(Server))
}

/// Returns the allocations of a call to a destination that the client has called before.
pub(super) fn allocations_of_call<C: Service<Request<Full<Bytes>>, Error: Debug>>(mut client: C) -> usize {
    let mut cx = Context::from_waker(Waker::noop());
    let mut allocated = 0;
    for _ in 0..3 {
        let request = Request::get("http://one.example/").body(Full::default()).unwrap();
        allocated = reattempt_testing::allocations_of(|| {
            assert!(client.poll_ready(&mut cx).is_ready());
            let Poll::Ready(response) = pin!(client.call(request)).poll(&mut cx) else { panic!("it waits") };
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

/// The deadline of a call needs no extension.
#[test]
fn standard_stack_allocates_nothing() {
    MAY_CLONE.set(true);
    let policy = RetryPolicy::http().seed(1).boxed_errors();
    let retried = RetryLayer::new(policy.clone()).layer(Server);
    let stack = StandardLayer::http().retry(policy).layer(Server);
    MAY_CLONE.set(false);
    assert_eq!(allocations_of_call(retried), 0);
    assert_eq!(allocations_of_call(stack), 0);
}
