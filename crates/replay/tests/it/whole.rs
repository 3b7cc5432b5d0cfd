//! Tests of bodies of unknown types whose first frame is the whole body.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Poll, Waker};

use crate::support::*;
use bytes::Bytes;
use http_body::Body;
use http_body_util::combinators::{BoxBody, MapErr, UnsyncBoxBody};
use http_body_util::{BodyExt, Either, Empty, Full};
use reattempt_replay::{ReplayBody, ReplayLimits, ReplayMemory};

/// The length from which frames of a streamed body are kept by reference.
const LARGE: usize = 256 * 1024;

static BYTES: [u8; 1 << 20] = [7; 1 << 20];

fn limits_of(memory: &ReplayMemory) -> ReplayLimits {
    ReplayLimits::default().memory(memory.clone())
}

fn full(length: usize) -> Full<Bytes> {
    Full::new(Bytes::from_static(&BYTES[..length]))
}

/// Reads a body twice. Returns `true` if its length was charged, and the second reader got the same buffer.
fn replays<B>(body: B, length: usize) -> bool
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let memory = ReplayMemory::new(BYTES.len());
    let mut first = Box::pin(ReplayBody::new(body, &limits_of(&memory)));
    let mut kept = Box::pin(first.try_clone().unwrap());
    assert_eq!(first.size_hint().exact(), Some(length.try_into().unwrap()));
    assert_eq!(memory.used(), 0, "it is not polled yet");
    let polled = poll(&mut first, Waker::noop());
    assert!(matches!(polled, Poll::Ready(Seen::Data(data)) if data.len() == length));
    assert!(first.is_end_stream());
    drop(first);
    assert_eq!((memory.used(), kept.is_replayable()), (length, true));
    let Poll::Ready(Seen::Data(again)) = poll(&mut kept, Waker::noop()) else { panic!("no data") };
    assert_eq!(again, BYTES[..length]);
    assert_eq!(memory.used(), 0);
    BYTES.as_ptr_range().contains(&again.as_ptr())
}

#[test]
fn wrapped_full_is_kept_whole_past_the_cap() {
    for (length, by_reference) in [(100_000, false), (LARGE - 1, false), (1 << 20, true)] {
        let boxed: BoxBody<Bytes, Infallible> = full(length).boxed();
        let unsync: UnsyncBoxBody<Bytes, Infallible> = full(length).boxed_unsync();
        let either: Either<Full<Bytes>, Empty<Bytes>> = Either::Left(full(length));
        let mapped: MapErr<_, fn(Infallible) -> BoxError> = full(length).map_err(Into::into);
        let pinned: Pin<Box<Full<Bytes>>> = Box::pin(full(length));
        assert_eq!(
            [
                replays(boxed, length),
                replays(unsync, length),
                replays(either, length),
                replays(mapped, length),
                replays(pinned, length),
            ],
            [by_reference; 5],
            "{length}"
        );
    }
}

/// The per-call limit applies to a body with more frames, and to one of unknown length.
#[test]
fn part_of_a_body_past_the_cap_is_not_kept() {
    let script = |steps| Script::new(steps).0;
    let large = Step::Data(&BYTES[..100_000]);
    let two = [large.clone(), Step::Data(b"rest")];
    for (body, whole) in [
        (script(&two).exact(), false),
        (script(&two[..1]), false),
        (script(&two[..1]).exact(), true),
        (script(&two[..1]).exact().tells_end(false), true),
        (script(&[Step::Data(b""), large.clone()]).exact(), true),
        (script(&[Step::Yield, large.clone()]).exact(), true),
        (script(&[large, Step::Trailers("sum")]).exact(), true),
    ] {
        let memory = ReplayMemory::new(BYTES.len());
        let mut first = Box::pin(ReplayBody::new(body, &limits_of(&memory)));
        let mut kept = clone(&first);
        let seen = read_all(&mut first);
        assert_eq!(kept.is_replayable(), whole, "{seen:?}");
        if whole {
            assert_eq!(joined(&read_all(&mut kept)), joined(&seen));
        }
        drop((first, kept));
        assert_eq!(memory.used(), 0);
    }
}

// trap 32
#[test]
fn whole_frame_past_the_bound_is_sent_once() {
    for length in [100_000, LARGE] {
        let memory = ReplayMemory::new(length);
        let limits = limits_of(&memory);
        let other = limits.charge(1).unwrap();
        let mut first = Box::pin(ReplayBody::new(full(length).boxed(), &limits));
        let kept = first.try_clone().unwrap();
        assert!(kept.is_replayable(), "nothing was read yet");
        assert_eq!(read_all(&mut first), [Seen::Data(Bytes::from_static(&BYTES[..length])), Seen::End]);
        assert!(!kept.is_replayable());
        assert_eq!(memory.used(), 1);
        drop(other);
    }
}
