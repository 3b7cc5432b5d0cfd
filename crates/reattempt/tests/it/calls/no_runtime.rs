//! Tests of calls without a runtime: polled by hand, with a waker that does nothing.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use reattempt::{Deadline, RetryLayer};
use reattempt_core::StopReason;
use reattempt_schedule_fixed::Constant;
use tower::{Layer, ServiceExt};

use crate::calls::support::{Act, Answer, Server, With, answer, get, ms, of_frames, policy, post, put, report_of};

/// Returns the outcome of a future that must be ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits for something"),
    }
}

// trap 23
#[test]
fn success_needs_no_runtime() {
    let server = Server::statuses([200]);
    let client = RetryLayer::http().layer(server.clone());
    for request in [get(), put(), post()] {
        assert_eq!(now(client.clone().oneshot(request)).unwrap().status(), 200);
    }
    assert_eq!(server.count(), 3);
}

// trap 23
#[test]
fn trap_23_nor_where_time_limits_are_set() {
    let server = Server::statuses([200]);
    let client = RetryLayer::new(policy().attempt_timeout(ms(10))).layer(server);
    let request = get().with(Deadline::after(ms(1000)));
    assert_eq!(now(client.oneshot(request)).unwrap().status(), 200);
}

// trap 23
#[test]
fn pending_attempt_needs_no_runtime() {
    let server = Server::by(|_, _| Act::Hang);
    let client = RetryLayer::new(policy().attempt_timeout(ms(10))).layer(server);
    let mut call = pin!(client.oneshot(get()));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_pending());
    assert!(call.as_mut().poll(&mut cx).is_pending());
}

// trap 23
#[test]
fn call_that_would_wait_gets_its_outcome() {
    let server = Server::by(|_, _| Act::Answer(answer(503, "busy")));
    let client = RetryLayer::new(policy()).layer(server.clone());
    let response: Answer = now(client.clone().oneshot(get())).unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (503, 1));
    assert_eq!(report_of(&response).stop_reason(), StopReason::NoTimer);
    assert_eq!(client.policy().budget_ref().balance("one.example"), 10.0, "no token is lost");
}

// trap 23
#[test]
fn retries_without_delay_need_no_runtime() {
    let server = Server::statuses([503, 503, 200]);
    let client = RetryLayer::new(policy().backoff(Constant::immediate())).layer(server.clone());
    assert_eq!(now(client.oneshot(put())).unwrap().status(), 200);
    assert_eq!(server.count(), 3);
}

// trap 23
#[test]
fn undrained_is_dropped_without_runtime() {
    struct Stalled;
    impl http_body::Body for Stalled {
        type Data = bytes::Bytes;
        type Error = std::io::Error;
        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, std::io::Error>>> {
            Poll::Pending
        }
    }
    let server = Server::by(|arrival, _| match arrival {
        1 => {
            let body = http_body_util::BodyExt::boxed(Stalled);
            Act::Answer(http::Response::builder().status(503).body(body).unwrap())
        }
        _ => 200.into(),
    });
    let client = RetryLayer::new(policy().backoff(Constant::immediate())).layer(server.clone());
    assert_eq!(now(client.oneshot(get())).unwrap().status(), 200);
}

#[test]
fn a_streamed_body_needs_no_runtime() {
    let server = Server::statuses([503, 200]);
    let client = RetryLayer::new(policy().backoff(Constant::immediate())).layer(server.clone());
    let body = of_frames::<std::io::Error>([Ok("one "), Ok("two")]);
    let request = http::Request::put("http://one.example/").body(body).unwrap();
    assert_eq!(now(client.oneshot(request)).unwrap().status(), 200);
    assert_eq!(server.seen()[1].body.as_deref(), Some(&b"one two"[..]));
}

/// tokio offers no way to detect that a runtime has no time driver. If this fails, there may be one now.
#[test]
#[should_panic(expected = "timers are disabled")]
fn runtime_without_time_driver_panics() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let client = RetryLayer::new(policy()).layer(Server::statuses([503, 200]));
    let _ = runtime.block_on(client.oneshot(get()));
}
