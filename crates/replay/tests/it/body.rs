//! Tests of the replayable body, polled by hand: what every reader sees, and what is kept for it.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::support::*;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Empty;
use reattempt_replay::{ReplayBody, ReplayError, ReplayLimits, ReplayMemory};

const THREE: [Step; 3] = [Step::Data(b"one"), Step::Data(b"two"), Step::Data(b"three")];

fn data(bytes: &'static [u8]) -> Seen {
    Seen::Data(Bytes::from_static(bytes))
}

fn next(reader: &mut Reader) -> Seen {
    match poll(reader, Waker::noop()) {
        Poll::Ready(seen) => seen,
        Poll::Pending => panic!("not ready"),
    }
}

/// A reader in place of one that could not be created is never taken for an empty body.
#[test]
fn unkept_reader_fails_when_it_is_read() {
    let mut body = Box::pin(ReplayBody::<Empty<Bytes>>::not_kept());
    assert!(!body.is_replayable() && body.try_clone().is_none());
    assert!(!body.is_end_stream());
    assert_eq!(body.size_hint().exact(), None);
    let Poll::Ready(Some(Err(error))) = body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())) else {
        panic!("the body is read")
    };
    assert!(matches!(error.downcast_ref(), Some(ReplayError::NotKept)));
}

#[test]
fn each_poll_after_forgetting_is_noted() {
    let mut first = streamed(&THREE, &unlimited());
    let kept = clone(&first);
    for frame in [b"one".as_slice(), b"two", b"three"] {
        kept.forget_polls();
        assert!(!kept.was_polled());
        assert_eq!(next(&mut first), Seen::Data(Bytes::copy_from_slice(frame)));
        assert!(kept.was_polled(), "{frame:?}");
    }
}

// trap 01
#[test]
fn retry_before_first_byte_repeats_nothing() {
    let mut first = reader(&THREE, &unlimited());
    let kept = clone(&first);
    drop(clone(&kept));
    let mut second = clone(&kept);
    assert_eq!(next(&mut first), data(b"one"));
    drop(first);
    assert_eq!(read_all(&mut second), expected(&THREE));
    let mut third = kept;
    assert_eq!(read_all(&mut third), expected(&THREE));
}

// trap 02
#[test]
fn two_readers_take_turns_and_both_see_all() {
    let mut first = reader(&THREE, &unlimited());
    let mut second = clone(&first);
    assert_eq!(next(&mut first), data(b"one"));
    assert_eq!(next(&mut second), data(b"one"));
    assert_eq!(next(&mut second), data(b"two"));
    assert_eq!(next(&mut second), data(b"three"));
    assert_eq!(read_all(&mut first), expected(&THREE)[1..]);
    assert_eq!(next(&mut second), Seen::End);
}

// trap 03
#[test]
fn size_hint_is_each_readers_rest() {
    for tells_end in [true, false] {
        let script = Script::new(&THREE).0.exact().tells_end(tells_end);
        let mut first = Box::pin(ReplayBody::in_memory(script, &unlimited()));
        let mut second = clone(&first);
        for reader in [&mut first, &mut second] {
            let mut left = 11;
            for chunk in [3, 3, 5] {
                assert_eq!(reader.size_hint().exact(), Some(left));
                assert!(!reader.is_end_stream());
                next(reader);
                left -= chunk;
            }
            assert_eq!(reader.size_hint().exact(), Some(0));
            // Announced or not, but the same for each attempt, because the framing depends on it.
            assert_eq!(reader.is_end_stream(), tells_end);
            assert_eq!(next(reader), Seen::End);
            assert!(reader.is_end_stream());
        }
    }
}

// trap 03
#[test]
fn exact_hint_does_not_hide_trailers() {
    let steps = [Step::Data(b"all"), Step::Trailers("c0ffee")];
    let mut first = Box::pin(ReplayBody::new(Script::new(&steps).0.exact(), &unlimited()));
    let mut second = clone(&first);
    for reader in [&mut first, &mut second] {
        assert_eq!(next(reader), data(b"all"));
        assert_eq!(reader.size_hint().exact(), Some(0));
        assert!(!reader.is_end_stream(), "the trailers are still to come");
        assert_eq!(next(reader), Seen::Trailers(trailers("c0ffee")));
        assert!(reader.is_end_stream());
        assert_eq!(next(reader), Seen::End);
    }
}

#[test]
fn a_hint_that_lies_saturates() {
    let mut hint = SizeHint::new();
    hint.set_lower(2);
    hint.set_upper(4);
    let mut first = Box::pin(ReplayBody::new(Script::new(&THREE).0.hinting(hint), &unlimited()));
    for hint in [(2, Some(4)), (0, Some(1)), (0, Some(0)), (0, Some(0))] {
        assert_eq!((first.size_hint().lower(), first.size_hint().upper()), hint);
        next(&mut first);
    }
}

// trap 04
#[test]
fn body_over_cap_is_sent_once_without_error() {
    static LARGE: [u8; 60] = [7; 60];
    let steps = [Step::Data(&LARGE), Step::Data(&LARGE), Step::Data(b"tail"), Step::Trailers("t")];
    let memory = ReplayMemory::new(1000);
    let limits = ReplayLimits::default().per_call(100).memory(memory.clone());
    let mut first = streamed(&steps, &limits);
    let mut kept = clone(&first);
    assert_eq!(next(&mut first), Seen::Data(Bytes::from_static(&LARGE)));
    assert!(kept.is_replayable() && first.is_replayable());
    assert_eq!(memory.used(), 60);

    assert_eq!(next(&mut first), Seen::Data(Bytes::from_static(&LARGE)));
    assert!(!kept.is_replayable() && !first.is_replayable());
    assert!(kept.try_clone().is_none() && first.try_clone().is_none());
    assert_eq!(memory.used(), 0, "nothing is kept for a replay that cannot be");
    assert_eq!(read_all(&mut first), expected(&steps)[2..]);
    assert_eq!(read_all(&mut kept), [Seen::NotKept, Seen::End]);
}

// trap 04
#[test]
fn cap_of_nothing_passes_bodies_through() {
    let limits = ReplayLimits::default().per_call(0);
    let mut body = reader(&THREE, &limits);
    assert!(!body.is_replayable() && body.try_clone().is_none());
    body.cancel_others();
    assert_eq!(read_all(&mut body), expected(&THREE));
    assert!(ReplayBody::new(Empty::<Bytes>::new(), &limits).is_replayable());
}

// trap 05
#[test]
fn unlimited_cap_does_not_overflow() {
    let mut first = reader(&THREE, &unlimited());
    let mut kept = clone(&first);
    assert_eq!(read_all(&mut first), expected(&THREE));
    assert_eq!(read_all(&mut kept), expected(&THREE));
}

// trap 05
#[test]
fn odd_frames_and_errors_pass_unchanged() {
    let cases: [&[Step]; 6] = [
        &[Step::Data(b""), Step::Data(b"x"), Step::Data(b""), Step::Data(b"")],
        &[Step::Trailers("alone")],
        &[Step::Data(b""), Step::Trailers("after nothing")],
        &[Step::Data(b"half"), Step::Fail, Step::Data(b"never")],
        &[Step::Fail],
        &[Step::Yield],
    ];
    for steps in cases {
        let mut first = reader(steps, &unlimited());
        let kept = clone(&first);
        let fails = expected(steps).contains(&Seen::Source);
        assert!(!first.source_failed());
        assert_eq!(read_all(&mut first), expected(steps), "{steps:?}");
        assert_eq!(kept.source_failed(), fails);
        drop(first);
        let mut second = clone(&kept);
        assert_eq!(read_all(&mut second), expected(steps), "{steps:?} again");
        let mut last = kept;
        assert_eq!(read_all(&mut last), expected(steps), "{steps:?} for the last time");
        assert_eq!(next(&mut last), Seen::End, "and nothing after the end");

        let mut once = Box::pin(ReplayBody::passthrough(Script::new(steps).0));
        assert_eq!(read_all(&mut once), expected(steps), "{steps:?} passed through");
        assert_eq!(once.source_failed(), fails);
        assert_eq!(next(&mut once), Seen::End);
    }
}

// trap 32
#[test]
fn what_many_bodies_keep_is_bounded() {
    static CHUNK: [u8; 100] = [1; 100];
    let steps = [Step::Data(&CHUNK), Step::Data(&CHUNK)];
    let memory = ReplayMemory::new(1050);
    let limits = ReplayLimits::default().memory(memory.clone());
    let mut calls = Vec::new();
    for _ in 0..20 {
        let mut first = reader(&steps, &limits);
        let kept = clone(&first);
        assert_eq!(read_all(&mut first), expected(&steps), "it is sent all the same");
        assert!(memory.used() <= memory.limit());
        calls.push(kept);
    }
    let kept = calls.iter().filter(|call| call.is_replayable()).count();
    assert_eq!((kept, memory.used()), (5, 1000));
    calls.remove(0);
    assert_eq!(memory.used(), 800, "a body that is dropped makes room");
    assert_eq!(read_all(&mut calls[0]), expected(&steps));
    assert_eq!(memory.used(), 600, "and so does one that is read by its last reader");
    calls.clear();
    assert_eq!(memory.used(), 0);
}

// trap 32
#[test]
fn endless_empty_frames_hold_nothing() {
    let memory = ReplayMemory::new(10_000);
    let limits = ReplayLimits::default().per_call(3200).memory(memory.clone());
    let mut first = Box::pin(ReplayBody::new(Endless, &limits));
    let kept = first.try_clone().unwrap();
    for _ in 0..1000 {
        assert_eq!(poll(&mut first, Waker::noop()), Poll::Ready(data(b"")));
        assert_eq!(memory.used(), 0);
    }
    assert!(kept.is_replayable());
}

// trap 32
#[test]
fn empty_frames_in_memory_are_bounded() {
    let memory = ReplayMemory::new(3200);
    let mut first = reader(&[const { Step::Data(b"") }; 101], &ReplayLimits::default().memory(memory.clone()));
    let kept = first.try_clone().unwrap();
    for read in 1..=100 {
        assert_eq!(next(&mut first), data(b""));
        assert_eq!(memory.used(), 32 * read);
    }
    assert!(kept.is_replayable());
    assert_eq!(next(&mut first), data(b""));
    assert!(!kept.is_replayable());
    assert_eq!(memory.used(), 0);
}

/// A body that returns empty frames again and again.
struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Boom;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Boom>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::new()))))
    }
}

#[test]
fn dropped_kept_reader_frees_frames() {
    let memory = ReplayMemory::new(1000);
    let mut first = reader(&THREE, &ReplayLimits::default().memory(memory.clone()));
    let kept = clone(&first);
    next(&mut first);
    next(&mut first);
    assert_eq!(memory.used(), 64);
    drop(kept);
    assert_eq!(memory.used(), 0);
    assert!(!first.is_replayable() && first.try_clone().is_none());
    assert_eq!(next(&mut first), data(b"three"));
    assert_eq!(memory.used(), 0);
    assert_eq!(next(&mut first), Seen::End);
}

#[test]
fn passed_frames_of_slowest_are_freed() {
    let memory = ReplayMemory::new(1000);
    let mut fast = reader(&THREE, &ReplayLimits::default().memory(memory.clone()));
    let mut middle = clone(&fast);
    let slow = clone(&fast);
    assert_eq!(read_all(&mut fast), expected(&THREE));
    next(&mut middle);
    next(&mut middle);
    assert_eq!(memory.used(), 96);
    drop(slow);
    assert_eq!(memory.used(), 32);
    assert_eq!(read_all(&mut middle), expected(&THREE)[2..]);
    assert_eq!(memory.used(), 0);
}

#[test]
fn ended_body_stays_replayable() {
    let body = ReplayBody::new(Empty::<Bytes>::new(), &ReplayLimits::default());
    let mut copy = Box::pin(body.try_clone().unwrap());
    assert!(copy.is_end_stream());
    assert_eq!(copy.size_hint().exact(), Some(0));
    assert_eq!(read_all(&mut copy), [Seen::End]);
    assert!(copy.is_replayable() && body.is_replayable());
}

#[test]
fn cancelled_readers_fail_and_hold_nothing() {
    let memory = ReplayMemory::new(1000);
    let mut old = reader(&THREE, &ReplayLimits::default().memory(memory.clone()));
    let kept = clone(&old);
    next(&mut old);
    kept.cancel_others();
    let mut new = clone(&kept);
    assert!(!old.is_replayable() && old.try_clone().is_none());
    old.cancel_others();
    assert_eq!(read_all(&mut old), [Seen::Superseded, Seen::End]);
    assert_eq!(read_all(&mut new), expected(&THREE));
    drop(old);
    new.cancel_others();
    assert_eq!(memory.used(), 0, "what was kept for the cancelled reader is freed at once");
    assert!(!kept.is_replayable());
}

#[test]
fn the_errors_read_well() {
    let texts = [
        (ReplayError::Superseded, "another attempt has taken the request body over"),
        (ReplayError::NotKept, "the request body was not kept and cannot be read again"),
        (ReplayError::Source(Arc::new(Boom)), "the request body failed"),
    ];
    for (error, text) in texts {
        assert_eq!(error.to_string(), text);
        let of_the_caller = error.source().is_some_and(|source| source.is::<Boom>());
        assert_eq!(of_the_caller, matches!(error, ReplayError::Source(_)));
    }
}

#[test]
fn debug_needs_nothing_of_the_body() {
    let mut body = reader(&THREE, &unlimited());
    next(&mut body);
    let rest = SizeHint::default();
    let text = format!(r#"ReplayBody {{ kind: "kept", rest: {rest:?}, done: false, .. }}"#);
    assert_eq!(format!("{body:?}"), text);
    let mut body = Box::pin(ReplayBody::passthrough(Script::new(&THREE).0.exact()));
    for (frame, rest) in [(b"one".as_slice(), 8), (b"two", 5), (b"three", 0)] {
        assert_eq!(next(&mut body), data(frame));
        let (rest, done) = (SizeHint::with_exact(rest), rest == 0);
        let text = format!(r#"ReplayBody {{ kind: "passed through", rest: {rest:?}, done: {done}, .. }}"#);
        assert_eq!(format!("{body:?}"), text);
    }
    assert_eq!(format!("{:?}", ReplayMemory::new(5)), "ReplayMemory { used: 0, limit: 5 }");
}

#[test]
fn send_body_makes_send_and_sync_replay() {
    fn send_sync<T: Send + Sync>() {}
    send_sync::<ReplayBody<Script>>();
    send_sync::<ReplayBody<Pin<Box<dyn Body<Data = Bytes, Error = Boom> + Send>>>>();
    send_sync::<ReplayLimits>();
    send_sync::<ReplayError>();
}
