//! Tests of a body's last reader, which owns the body alone, and of bodies with many frames.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::support::*;
use bytes::Bytes;
use http_body::{Body, Frame};
use reattempt_replay::{ReplayBody, ReplayError, ReplayLimits, ReplayMemory};

fn data(bytes: &'static [u8]) -> Poll<Seen> {
    Poll::Ready(Seen::Data(Bytes::from_static(bytes)))
}

/// Returns many frames of different lengths, with waits in between.
fn many() -> Vec<Step> {
    static BYTES: [u8; 600] = [7; 600];
    let step = |i: usize| if i % 7 == 3 { Step::Yield } else { Step::Data(&BYTES[..i]) };
    (0..600).map(step).chain([Step::Trailers("sum")]).collect()
}

fn charge(steps: &[Step]) -> usize {
    let one = |step: &Step| match step {
        Step::Data(data) => data.len().max(32),
        Step::Trailers(value) => 128 + "checksum".len() + value.len() + 128,
        _ => 0,
    };
    steps.iter().map(one).sum()
}

fn keeping(memory: &ReplayMemory) -> ReplayLimits {
    ReplayLimits::default().per_call(usize::MAX).memory(memory.clone())
}

/// Polls until there is a frame.
fn next(reader: &mut Reader) -> Seen {
    loop {
        if let Poll::Ready(seen) = poll(reader, Waker::noop()) {
            return seen;
        }
    }
}

#[test]
fn close_readers_free_what_both_passed() {
    let steps = many();
    let memory = ReplayMemory::new(usize::MAX);
    let mut ahead = reader(&steps, &keeping(&memory));
    let mut behind = clone(&ahead);
    let whole = expected(&steps);
    let held = |seen: &[Seen]| {
        let one = |seen: &Seen| match seen {
            Seen::Data(data) => data.len().max(32),
            _ => 0,
        };
        seen.iter().map(one).sum::<usize>()
    };
    for at in 0..whole.len() - 2 {
        assert_eq!(next(&mut ahead), whole[at]);
        if let Some(before) = at.checked_sub(3) {
            assert_eq!(next(&mut behind), whole[before]);
            assert_eq!(memory.used(), held(&whole[before + 1..=at]));
        }
    }
    assert_eq!(read_all(&mut ahead), whole[whole.len() - 2..]);
    assert_eq!(read_all(&mut behind), whole[whole.len() - 5..]);
    assert_eq!(memory.used(), 0);
}

#[test]
fn last_reader_frees_each_frame_as_it_goes() {
    let steps = many();
    let memory = ReplayMemory::new(usize::MAX);
    let mut first = reader(&steps, &keeping(&memory));
    let mut kept = clone(&first);
    let whole = expected(&steps);
    for _ in 0..300 {
        next(&mut first);
    }
    let half = memory.used();
    drop(first);
    assert_eq!(memory.used(), half);
    assert_eq!(next(&mut kept), whole[0]);
    assert!(memory.used() < half);
    assert!(!kept.is_replayable() && kept.try_clone().is_none());
    for seen in &whole[1..300] {
        assert!(!kept.is_end_stream());
        assert_eq!(next(&mut kept), *seen);
    }
    assert_eq!(memory.used(), 0, "the rest comes fresh and is not kept");
    assert_eq!(read_all(&mut kept), whole[300..]);

    let mut first = reader(&steps, &keeping(&memory));
    let mut kept = clone(&first);
    assert_eq!(read_all(&mut first), whole);
    assert_eq!(memory.used(), charge(&steps));
    drop(first);
    next(&mut kept);
    next(&mut kept);
    assert_eq!(memory.used(), charge(&steps) - 64);
    drop(kept);
    assert_eq!(memory.used(), 0, "what it had not read is given back when it goes");
}

#[test]
fn body_past_cap_wakes_fails_and_ends() {
    let steps = [Step::Data(&[1; 50]), Step::Data(&[2; 51]), Step::Wait, Step::Data(b"late"), Step::Wait, Step::Fail];
    let memory = ReplayMemory::new(1000);
    let (script, control) = Script::new(&steps);
    let limits = ReplayLimits::default().per_call(100).memory(memory.clone());
    let mut first: Reader = Box::pin(ReplayBody::new(script, &limits));
    let mut kept = clone(&first);
    next(&mut first);
    next(&mut first);
    assert!(!kept.is_replayable());
    let (old, new) = (Flag::new(), Flag::new());
    assert!(poll(&mut first, &old.waker()).is_pending());
    assert!(poll(&mut first, &new.waker()).is_pending());
    assert!(control.open());
    assert_eq!((old.take(), new.take()), (0, 1));
    assert_eq!(poll(&mut first, &new.waker()), data(b"late"));
    assert!(poll(&mut first, &new.waker()).is_pending());
    kept.cancel_others();
    assert!(control.open());
    assert!(!kept.source_failed());
    assert_eq!(read_all(&mut first), [Seen::Source, Seen::End]);
    assert!(first.source_failed() && kept.source_failed(), "whoever is asked");
    assert_eq!(read_all(&mut kept), [Seen::NotKept, Seen::End]);
    assert_eq!(memory.used(), 0);
}

#[test]
fn cancelled_reader_takes_nothing_along() {
    let steps = [Step::Data(b"one"), Step::Data(b"two"), Step::Data(b"three")];
    let mut old = reader(&steps, &unlimited());
    let mut new = clone(&old);
    assert_eq!(poll(&mut old, Waker::noop()), data(b"one"));
    assert_eq!(poll(&mut new, Waker::noop()), data(b"one"));
    new.cancel_others();
    assert_eq!(read_all(&mut old), [Seen::Superseded, Seen::End]);
    assert_eq!(read_all(&mut new), expected(&steps)[1..]);
}

/// One frame, a panic, and another frame.
#[derive(Default)]
struct Panics(usize);

impl Body for Panics {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0 += 1;
        assert_ne!(self.0, 3, "on purpose");
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
    }
}

#[test]
fn panicked_body_is_not_polled_again() {
    let last = ReplayBody::new(Panics::default(), &ReplayLimits::default());
    let once = ReplayBody::passthrough(Panics::default());
    for mut body in [Box::pin(last), Box::pin(once)] {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..2 {
            assert!(matches!(body.as_mut().poll_frame(&mut context), Poll::Ready(Some(Ok(_)))));
        }
        let poll = AssertUnwindSafe(|| {
            let _ = body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop()));
        });
        assert!(catch_unwind(poll).is_err());
        assert!(body.source_failed());
        let Poll::Ready(Some(Err(error))) = body.as_mut().poll_frame(&mut context) else {
            panic!("it looks as if it had come to its end")
        };
        assert!(matches!(error.downcast_ref(), Some(ReplayError::Source(_))));
        assert!(matches!(body.as_mut().poll_frame(&mut context), Poll::Ready(None)));
    }
}
