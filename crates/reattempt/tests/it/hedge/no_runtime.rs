//! Tests of calls without a runtime: polled by hand, with a waker that does nothing.

use std::convert::Infallible;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use reattempt::ReplayBody;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use tower::{Layer, ServiceExt, service_fn};

use crate::hedge::policy;
use crate::hedge::support::{Act, Body, Server, get, ms, post};

// trap 23
#[test]
fn trap_23_calls_work_and_are_not_hedged() {
    for (policy, request) in [(policy(), get()), (HedgePolicy::http(), get()), (policy().delay(ms(0)), post())] {
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

/// A call that started inside a runtime, and whose first attempt ends outside it, gets its response.
// trap 23
#[test]
fn call_that_leaves_runtime_has_its_answer() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (answer, answered) = tokio::sync::watch::channel(false);
    let server = service_fn(move |_: Request<ReplayBody<Body>>| {
        let mut answered = answered.clone();
        async move {
            answered.wait_for(|answered| *answered).await.unwrap();
            let busy = Response::builder().status(503).header("retry-after", "3");
            Ok::<_, Infallible>(busy.body(Empty::<Bytes>::new()).unwrap())
        }
    });
    let mut call = pin!(HedgeLayer::new(policy().delay(ms(60_000))).layer(server).oneshot(get()));
    let mut cx = Context::from_waker(Waker::noop());
    let entered = runtime.enter();
    assert!(call.as_mut().poll(&mut cx).is_pending());
    drop(entered);
    answer.send_replace(true);
    let Poll::Ready(answer) = call.as_mut().poll(&mut cx) else { panic!("it waits for something") };
    assert_eq!(answer.unwrap().status().as_u16(), 503);
}
