//! Calls where there is no runtime: polled by hand, with a waker that does nothing.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use reattempt::hedge::{HedgeLayer, HedgePolicy};
use tower::{Layer, ServiceExt};

use crate::hedge::policy;
use crate::hedge::support::{Act, Server, get, ms, post};

// trap 23
#[test]
fn trap_23_calls_work_and_are_not_hedged() {
    for (policy, request) in
        [(policy(), get()), (HedgePolicy::http(), get()), (policy().delay(ms(0)), post())]
    {
        let server = Server::statuses([200]);
        let call = pin!(HedgeLayer::new(policy).layer(server.clone()).oneshot(request));
        let Poll::Ready(answer) = call.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("it waits for something");
        };
        assert_eq!((answer.unwrap().status().as_u16(), server.count()), (200, 1));
    }
}

// trap 23
#[test]
fn slowness_and_failure_need_no_timer() {
    for delay in [0, 100] {
        let server = Server::by(|_, _| Act::Hang);
        let client = HedgeLayer::new(policy().delay(ms(delay))).layer(server.clone());
        let mut call = pin!(client.oneshot(get()));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(&mut cx).is_pending());
        assert!(call.as_mut().poll(&mut cx).is_pending());
        assert_eq!(server.count(), 1);

        let server = Server::statuses([503]);
        let client = HedgeLayer::new(policy().delay(ms(delay))).layer(server.clone());
        let Poll::Ready(answer) = pin!(client.oneshot(get())).poll(&mut cx) else {
            panic!("it waits for something");
        };
        assert_eq!((answer.unwrap().status().as_u16(), server.count()), (503, 1));
    }
}
