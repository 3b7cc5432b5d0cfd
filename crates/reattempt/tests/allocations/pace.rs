//! Allocations of paced calls while nothing is throttled: none, and no clone of the service.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Empty, Full};
use reattempt::guard::{GuardLayer, Pace};
use reattempt_schedule_responsive::Responsive;
use tower::{Layer, Service};

/// A server that responds at once and allocates nothing.
struct Server;

impl Clone for Server {
    fn clone(&self) -> Self {
        panic!("a call that need not wait clones nothing")
    }
}

impl Service<Request<Full<Bytes>>> for Server {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Empty<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Full<Bytes>>) -> Self::Future {
        ready(Ok(Response::new(Empty::new())))
    }
}

#[test]
fn call_without_wait_allocates_nothing() {
    let mut client = GuardLayer::http(Pace::new(Responsive::new())).layer(Server);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..3 {
        let request = Request::get("http://one.example/").body(Full::from("hello")).unwrap();
        let allocated = reattempt_testing::allocations_of(|| {
            assert!(client.poll_ready(&mut cx).is_ready());
            assert!(pin!(client.call(request)).poll(&mut cx).is_ready());
        });
        assert_eq!(allocated, 0);
    }
    assert_eq!(client.guard().responsive().metrics().invocations, 3);
}
