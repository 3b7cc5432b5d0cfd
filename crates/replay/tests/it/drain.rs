//! Tests of draining refused responses: the part that is read, and the point at which reading stops.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use crate::support::*;
use bytes::Bytes;
use http_body_util::{Empty, Full};
use reattempt_replay::Drain;

/// Polls once. Also returns how often the body was polled.
fn drain(steps: &[Step], limit: u64) -> (Poll<bool>, usize) {
    let (script, control) = Script::new(steps);
    let future = pin!(Drain::new(script, limit));
    let polled = future.poll(&mut Context::from_waker(Waker::noop()));
    (polled, control.polls.load(Ordering::SeqCst))
}

fn ready<B: http_body::Body>(body: B, limit: u64) -> Poll<bool> {
    pin!(Drain::new(body, limit)).poll(&mut Context::from_waker(Waker::noop()))
}

// trap 07
#[test]
fn short_body_is_read_to_its_end() {
    let steps = [Step::Data(b"12345"), Step::Data(b""), Step::Data(b"67890"), Step::Trailers("t")];
    assert_eq!(drain(&steps, 10), (Poll::Ready(true), 4));
    assert_eq!(ready(Empty::<Bytes>::new(), 0), Poll::Ready(true));
    assert_eq!(ready(Full::<Bytes>::from("1234567890"), 10), Poll::Ready(true));
}

// trap 07
#[test]
fn body_past_the_limit_is_given_up() {
    let steps = [Step::Data(b"12345"), Step::Data(b"678901"), Step::Data(b"never read")];
    assert_eq!(drain(&steps, 10), (Poll::Ready(false), 2));
}

// trap 07
#[test]
fn announced_excess_is_not_begun() {
    let (script, control) = Script::new(&[Step::Data(b"12345678901")]);
    assert_eq!(ready(script.exact(), 10), Poll::Ready(false));
    assert_eq!(control.polls.load(Ordering::SeqCst), 0);
}

// trap 07
#[test]
fn endless_empty_frames_do_not_keep_it() {
    let steps = vec![Step::Data(b""); 5000];
    assert_eq!(drain(&steps, Drain::<Script>::DEFAULT_LIMIT), (Poll::Ready(false), 512));
}

// trap 07
#[test]
fn body_that_trickles_leaves_time_to_caller() {
    let (script, control) = Script::new(&[Step::Data(b"1"), Step::Wait, Step::Data(b"2")]);
    let flag = Flag::new();
    let waker = flag.waker();
    let mut future = pin!(Drain::new(script, 10));
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(control.open());
    assert_eq!(flag.take(), 1);
    assert_eq!(future.poll(&mut Context::from_waker(&waker)), Poll::Ready(true));
    assert_eq!(Arc::strong_count(&control), 2);
}

#[test]
fn a_body_that_fails_is_given_up() {
    assert_eq!(drain(&[Step::Data(b"1"), Step::Fail], 10), (Poll::Ready(false), 2));
}

#[test]
fn the_future_is_as_send_as_its_body() {
    fn send<T: Send>(_: &T) {}
    let future = Drain::new(Script::new(&[]).0, 10);
    send(&future);
    assert_eq!(format!("{future:?}"), "Drain { bytes_left: 10, .. }");
}
