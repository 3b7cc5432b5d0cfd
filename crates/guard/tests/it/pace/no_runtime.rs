//! Tests without a runtime: nothing waits, and nothing panics.

use std::future::Future;
use std::task::{Context, Poll, Waker};

use reattempt::guard::contract::GuardKind;
use reattempt::guard::{GuardLayer, Guarded, Pace, Reason, Refused};
use tower::BoxError;
use tower::{Layer, Service};

use super::support::{Server, pace, request, secs};

/// Polls a call once; it must then be over.
fn call(client: &mut Guarded<Server, Pace>) -> Result<u16, BoxError> {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Service::<http::Request<http_body_util::Empty<bytes::Bytes>>>::poll_ready(client, &mut cx).is_ready());
    let mut answer = Box::pin(client.call(request()));
    match answer.as_mut().poll(&mut cx) {
        Poll::Ready(answer) => answer.map(|answer| answer.status().as_u16()),
        Poll::Pending => panic!("it waits, and there is nothing to wait on"),
    }
}

// trap 23
#[test]
fn interval_of_0_touches_no_timer() {
    let pace = pace();
    let mut client = GuardLayer::http(Pace::new(pace.clone())).layer(Server::statuses([200]));
    for _ in 0..5 {
        assert_eq!(call(&mut client).unwrap(), 200);
    }
    assert_eq!((pace.metrics().invocations, pace.metrics().times_slept), (5, 0));
}

// trap 23
#[test]
fn call_is_refused_if_nothing_can_wait() {
    // Longer than the test, whose clock is not paused.
    let pace = pace().initial(secs(20));
    let mut client = GuardLayer::http(Pace::new(pace.clone())).layer(Server::statuses([429, 200]));
    assert_eq!(call(&mut client).unwrap(), 429);
    for _ in 0..3 {
        let error = call(&mut client).unwrap_err();
        let refused: &Refused = error.downcast_ref().unwrap();
        assert_eq!((refused.guard(), refused.reason()), (GuardKind::PACE, Reason::RateExceeded));
        assert!(refused.wait().is_some_and(|wait| wait <= secs(20)), "{refused}");
    }
    assert_eq!((pace.metrics().invocations, pace.metrics().times_slept), (1, 0));
}
