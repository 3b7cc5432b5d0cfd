//! Where there is no runtime: nothing waits, and nothing panics.

use std::future::Future;
use std::task::{Context, Poll, Waker};

use reattempt::pace::{Pace, PaceLayer};
use tower::{Layer, Service};

use super::support::{Answer, Server, ms, pace, request};

/// Polls a call once; it must be over then.
fn call(client: &mut Pace<Server>) -> Answer {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(
        Service::<http::Request<http_body_util::Empty<bytes::Bytes>>>::poll_ready(client, &mut cx)
            .is_ready()
    );
    let mut answer = Box::pin(client.call(request()));
    match answer.as_mut().poll(&mut cx) {
        Poll::Ready(answer) => answer.unwrap(),
        Poll::Pending => panic!("it waits, and there is nothing to wait on"),
    }
}

// trap 23
#[test]
fn interval_of_0_touches_no_timer() {
    let pace = pace();
    let mut client = PaceLayer::http(pace.clone()).layer(Server::statuses([200]));
    for _ in 0..5 {
        call(&mut client);
    }
    assert_eq!((pace.metrics().invocations, pace.metrics().times_slept), (5, 0));
}

// trap 23
#[test]
fn interval_is_skipped_if_nothing_can_wait() {
    let pace = pace();
    let mut client = PaceLayer::http(pace.clone()).layer(Server::statuses([429, 429, 200]));
    for _ in 0..4 {
        call(&mut client);
    }
    assert_eq!(pace.interval(), ms(100));
    let metrics = pace.metrics();
    assert_eq!((metrics.invocations, metrics.times_up, metrics.times_down), (4, 2, 1));
    assert_eq!(metrics.times_slept, 0);
}
