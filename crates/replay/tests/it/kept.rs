//! Tests of the frames kept while a clone does not read: by a reader that is ahead, and for readers behind it.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::support::*;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use reattempt_replay::{ReplayBody, ReplayError, ReplayLimits, ReplayMemory};

const X: Bytes = Bytes::from_static(b"x");

/// Three frames, a panic, and another frame. The panic may also come from `is_end_stream`, after the fourth frame.
#[derive(Default)]
struct Panics {
    polls: usize,
    late: bool,
}

impl Body for Panics {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.polls += 1;
        assert!(self.late || self.polls != 4, "on purpose");
        Poll::Ready(Some(Ok(Frame::data(X))))
    }

    fn is_end_stream(&self) -> bool {
        assert_ne!(self.polls, 4, "on purpose");
        false
    }
}

#[test]
fn panic_beyond_the_hint_looks_like_no_end() {
    // Two frames are read ahead. When the second is returned, the body is asked whether it has ended.
    let body = Panics { late: true, polls: 2 };
    let mut first = Box::pin(ReplayBody::in_memory(body, &ReplayLimits::default()));
    let kept = Box::pin(first.try_clone().unwrap());
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(first.as_mut().poll_frame(&mut context), Poll::Ready(Some(Ok(_)))));
    let poll = AssertUnwindSafe(|| {
        let _ = first.as_mut().poll_frame(&mut Context::from_waker(Waker::noop()));
    });
    assert!(catch_unwind(poll).is_err());
    assert!(kept.source_failed());
    for (mut reader, frames) in [(first, 0), (kept, 1)] {
        for _ in 0..frames {
            assert!(matches!(reader.as_mut().poll_frame(&mut context), Poll::Ready(Some(Ok(_)))));
        }
        assert!(matches!(reader.as_mut().poll_frame(&mut context), Poll::Ready(Some(Err(_)))));
        assert!(matches!(reader.as_mut().poll_frame(&mut context), Poll::Ready(None)));
    }
}

#[test]
fn panic_ends_every_reader_at_its_place() {
    type Panicking = Pin<Box<ReplayBody<Panics>>>;
    let poll = |reader: &mut Panicking| reader.as_mut().poll_frame(&mut Context::from_waker(Waker::noop()));
    for late in [false, true] {
        let body = Panics { late, polls: 0 };
        let mut ahead = Box::pin(ReplayBody::in_memory(body, &ReplayLimits::default()));
        let mut behind = Box::pin(ahead.try_clone().unwrap());
        for _ in 0..3 {
            assert!(matches!(poll(&mut ahead), Poll::Ready(Some(Ok(_)))));
        }
        assert!(!ahead.source_failed());
        assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut ahead))).is_err());
        assert!(ahead.source_failed() && behind.source_failed());
        for _ in 0..3 {
            assert!(matches!(poll(&mut behind), Poll::Ready(Some(Ok(_)))));
        }
        for mut reader in [ahead, behind] {
            let Poll::Ready(Some(Err(error))) = poll(&mut reader) else {
                panic!("it was asked again, or looks as if it had come to its end")
            };
            assert!(matches!(error.downcast_ref(), Some(ReplayError::Source(_))));
            assert!(matches!(poll(&mut reader), Poll::Ready(None)));
        }
    }
}

#[test]
fn caught_up_reader_finds_next_frame() {
    let steps = vec![Step::Data(b"data"); 10];
    let memory = ReplayMemory::new(1024);
    let mut ahead = reader(&steps, &ReplayLimits::default().memory(memory.clone()));
    let kept = clone(&ahead);
    let mut follows = clone(&ahead);
    for reader in [&mut ahead, &mut follows] {
        for _ in 0..3 {
            assert!(poll(reader, Waker::noop()).is_ready());
        }
    }
    for _ in 0..2 {
        assert!(poll(&mut ahead, Waker::noop()).is_ready());
    }
    drop(kept);
    assert_eq!(memory.used(), 2 * 32);
    assert_eq!(read_all(&mut follows), expected(&steps)[3..]);
    assert_eq!(read_all(&mut ahead), expected(&steps)[5..]);
    assert_eq!(memory.used(), 0);
}

#[test]
fn leaving_reader_frees_nothing_twice() {
    let steps = vec![Step::Data(b"ten bytes."); 40];
    let memory = ReplayMemory::new(40 * 32);
    let limits = ReplayLimits::default().memory(memory.clone());
    let mut ahead = reader(&steps, &limits);
    let mut behind = clone(&ahead);
    let mut between = clone(&ahead);
    for reader in [&mut ahead, &mut between, &mut behind] {
        for _ in 0..10 {
            assert!(poll(reader, Waker::noop()).is_ready());
        }
    }
    assert_eq!(memory.used(), 0);
    for (reader, frames) in [(&mut ahead, 25), (&mut between, 12), (&mut behind, 5)] {
        for _ in 0..frames {
            assert!(poll(reader, Waker::noop()).is_ready());
        }
    }
    assert_eq!(memory.used(), 20 * 32);
    drop(behind);
    assert_eq!(memory.used(), 13 * 32);
    assert_eq!(read_all(&mut between), expected(&steps)[22..]);
    drop(between);
    assert_eq!(memory.used(), 5 * 32, "for the one that is now behind");
    assert_eq!(read_all(&mut ahead), expected(&steps)[35..]);
    assert_eq!(memory.used(), 0);
}

#[test]
fn all_kinds_of_frames_replay_in_order() {
    let steps =
        [Step::Data(b"one"), Step::Trailers("early"), Step::Data(b""), Step::Data(b"two"), Step::Trailers("late")];
    let mut first = reader(&steps, &unlimited());
    let kept = clone(&first);
    assert_eq!(read_all(&mut first), expected(&steps));
    for _ in 0..3 {
        assert_eq!(read_all(&mut clone(&kept)), expected(&steps));
    }
    assert!(kept.is_replayable());
}

#[test]
fn reader_amid_kept_frames_is_cancelled() {
    let steps = vec![Step::Data(b"data"); 10];
    let mut first = reader(&steps, &unlimited());
    let kept = clone(&first);
    let mut behind = clone(&first);
    assert_eq!(read_all(&mut first), expected(&steps));
    for seen in &expected(&steps)[..5] {
        assert_eq!(poll(&mut behind, Waker::noop()), Poll::Ready(seen.clone()));
    }
    kept.cancel_others();
    assert_eq!(read_all(&mut behind), [Seen::Superseded, Seen::End]);
    assert_eq!(read_all(&mut clone(&kept)), expected(&steps));
}

/// One destination can hold five eighths of the limit, even if its bodies start before destinations are counted.
// trap 40
#[test]
fn share_of_destination_bounds_its_streams() {
    let memory = ReplayMemory::new(128 * 32);
    let limits = unlimited().per_call(32).memory(memory.clone()).by_destination();
    let steps = vec![Step::Data(b"----- these are thirty-two -----"); 40];
    let (mut readers, mut kept, mut most) = (Vec::new(), Vec::new(), 0);
    for number in 0..200 {
        let limits = limits.for_call(&SizeHint::new(), || "one.example".into());
        let first = reader(&steps, &limits);
        kept.push(clone(&first));
        readers.push(first);
        // The first eight begin at once, the others while the previous ones are being read.
        for first in readers.iter_mut().filter(|_| number >= 8) {
            let _ = poll(first, Waker::noop());
            most = most.max(memory.used());
        }
    }
    let (quarter, share) = (memory.limit() / 4, memory.limit() / 8 * 5);
    assert!(quarter < most && most <= share, "{most} of {share}");
    drop((readers, kept));
    assert_eq!(memory.used(), 0);
}

// trap 40
#[test]
fn share_comes_back_with_what_was_kept() {
    let memory = ReplayMemory::new(400);
    let limits = ReplayLimits::default().memory(memory.clone()).by_destination();
    let length = SizeHint::with_exact(100);
    let charge = |destination: &'static str| limits.for_call(&length, || destination.into()).charge(100);
    let begun = charge("one").unwrap();
    let rounds = (0..100).map(|_| (charge("one").is_some(), charge("two").is_some()));
    assert!(rounds.collect::<Vec<_>>().iter().all(|both| *both == (true, true)));
    let (one, two) = (charge("one"), charge("two"));
    assert!(one.is_some() && two.is_some() && charge("three").is_none());
    drop(one);
    assert!(charge("two").is_none() && charge("three").is_some());
    drop((begun, two));
    assert_eq!(memory.used(), 0);
}

/// Without destinations, all bodies together may use the whole limit.
#[test]
fn bound_without_destinations_is_used_full() {
    let memory = ReplayMemory::new(400);
    let limits = ReplayLimits::default().memory(memory.clone());
    let charges: Vec<_> = (0..5).map(|_| limits.charge(100)).collect();
    assert_eq!(charges.iter().flatten().count(), 4);
}

// trap 33
#[test]
fn source_is_dropped_when_it_has_ended() {
    for (steps, tells_end) in [
        (&[Step::Data(b"one"), Step::Data(b"two")][..], true),
        (&[Step::Data(b"one"), Step::Trailers("sum")], false),
        (&[Step::Data(b"one"), Step::Fail], false),
    ] {
        let (script, control) = Script::new(steps);
        let mut first: Reader = Box::pin(ReplayBody::new(script.tells_end(tells_end), &unlimited()));
        let kept = clone(&first);
        let mut frames = steps.len() + usize::from(!tells_end);
        if let [.., Step::Fail] = steps {
            frames = steps.len();
        }
        for _ in 0..frames {
            assert_eq!(std::sync::Arc::strong_count(&control), 2);
            assert!(poll(&mut first, Waker::noop()).is_ready());
        }
        assert_eq!(std::sync::Arc::strong_count(&control), 1, "{steps:?}");
        assert_eq!(joined(&read_all(&mut clone(&kept))), joined(&expected(steps)));
    }
}

/// A chunk may take everything that a body without a destination may have.
// trap 33
#[test]
fn copied_frame_that_fills_bound_is_kept() {
    let memory = ReplayMemory::new(4 * 60);
    let limits = ReplayLimits::default().memory(memory.clone()).by_destination();
    let mut first = streamed(&[Step::Data(&[7; 60])], &limits);
    let kept = clone(&first);
    assert!(poll(&mut first, Waker::noop()).is_ready());
    assert_eq!((memory.used(), kept.is_replayable()), (60, true));
}
