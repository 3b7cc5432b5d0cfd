//! Tests of the memory charged for copied frames, and of the buffers that readers return.

use std::task::{Poll, Waker};

use crate::support::*;
use bytes::Bytes;
use http_body::{Body, SizeHint};
use http_body_util::Empty;
use reattempt_replay::{ReplayBody, ReplayLimits, ReplayMemory};

/// The length from which frames of a streamed body are kept by reference.
const LARGE: usize = 256 * 1024;

static BYTES: [u8; LARGE] = [7; LARGE];

fn limits_of(memory: &ReplayMemory) -> ReplayLimits {
    ReplayLimits::default().per_call(usize::MAX).memory(memory.clone())
}

fn next(reader: &mut Reader) -> Seen {
    match poll(reader, Waker::noop()) {
        Poll::Ready(seen) => seen,
        Poll::Pending => panic!("the body is ready"),
    }
}

/// Returns `true` if the frame is part of the static buffer.
fn is_static(seen: &Seen) -> bool {
    let Seen::Data(data) = seen else { panic!("no data: {seen:?}") };
    BYTES.as_ptr_range().contains(&data.as_ptr())
}

// trap 33
#[test]
fn short_frames_share_few_chunks() {
    let memory = ReplayMemory::new(usize::MAX);
    let mut first = streamed(&vec![Step::Data(b"x"); 4096], &limits_of(&memory));
    let kept = clone(&first);
    for frame in 1..=4096 {
        assert!(matches!(next(&mut first), Seen::Data(_)));
        let used = memory.used();
        assert!((frame..=32.max(2 * frame)).contains(&used), "{used} for {frame} bytes");
    }
    drop((first, kept));
    assert_eq!(memory.used(), 0);
}

/// A frame given to a slower reader has its own entry, which is charged too.
// trap 33
#[test]
fn taken_parts_of_chunk_charge_their_place() {
    let memory = ReplayMemory::new(usize::MAX);
    let mut first = streamed(&vec![Step::Data(b"x"); 40], &limits_of(&memory));
    let mut second = clone(&first);
    let kept = clone(&first);
    let mut used = Vec::new();
    for _ in 0..3 {
        next(&mut first);
        next(&mut second);
        used.push(memory.used());
    }
    assert_eq!(used, [32, 32 + 64, 32 + 2 * 64]);
    drop((first, second, kept));
    assert_eq!(memory.used(), 0);
}

#[test]
fn chunk_is_freed_once_readers_have_passed() {
    for leaves in [false, true] {
        let memory = ReplayMemory::new(usize::MAX);
        let mut first = streamed(&vec![Step::Data(b"short"); 9], &limits_of(&memory));
        let mut second = clone(&first);
        for _ in 0..3 {
            next(&mut first);
        }
        assert_eq!(memory.used(), 32);
        next(&mut second);
        assert_eq!(memory.used(), 32, "two readers that go on may need the chunk again");
        if leaves {
            drop(second);
        } else {
            first.cancel_others();
        }
        assert_eq!(memory.used(), 0);
        assert_eq!(read_all(&mut first).len(), 6 + 1);
    }
}

#[test]
fn large_frames_share_the_callers_buffer() {
    let short = Step::Data(&BYTES[1..]);
    let steps = [Step::Data(b"x"), Step::Data(&BYTES), short.clone(), Step::Data(&BYTES), short];
    let mut first = streamed(&steps, &unlimited());
    let mut kept = clone(&first);
    assert_eq!(joined(&read_all(&mut first)), joined(&expected(&steps)));
    let again = read_all(&mut clone(&kept));
    assert_eq!(joined(&again), joined(&expected(&steps)));
    let shared = again[..5].iter().map(is_static).collect::<Vec<_>>();
    assert_eq!(shared, [false, true, false, true, false]);
    assert_eq!(read_all(&mut kept), again);
}

/// The frame after the first one is prefetched.
#[test]
fn large_second_frame_shares_the_buffer() {
    for (second, shared) in [(&BYTES[..], true), (&BYTES[1..], false)] {
        let (script, _) = Script::new(&[Step::Data(b"x"), Step::Data(second)]);
        let mut first: Reader = Box::pin(ReplayBody::read_ahead(script, &unlimited()));
        let mut kept = clone(&first);
        for reader in [&mut first, &mut kept] {
            assert!(matches!(next(reader), Seen::Data(_)));
            assert_eq!(is_static(&next(reader)), shared);
        }
    }
}

#[test]
fn short_frames_around_large_stay_in_order() {
    let four = [Step::Data(&BYTES), Step::Data(b"a"), Step::Data(b"b"), Step::Data(&BYTES)];
    let steps: Vec<_> = four.iter().cycle().take(16).cloned().collect();
    let mut first = streamed(&steps, &unlimited());
    let kept = clone(&first);
    assert_eq!(joined(&read_all(&mut first)), joined(&expected(&steps)));
    assert_eq!(joined(&read_all(&mut clone(&kept))), joined(&expected(&steps)));
}

#[test]
fn streamed_body_of_the_cap_is_kept() {
    for (length, replayable) in [(10, true), (11, false)] {
        let limits = ReplayLimits::default().per_call(10);
        let (script, _) = Script::new(&[Step::Data(&BYTES[..1]), Step::Data(&BYTES[1..length])]);
        let mut first: Reader = Box::pin(ReplayBody::new(script.exact(), &limits));
        let kept = clone(&first);
        read_all(&mut first);
        assert_eq!(kept.is_replayable(), replayable, "{length}");
    }
}

/// Prefetched frames are charged at once.
#[test]
fn second_frame_past_the_cap_ends_replay() {
    for (cap, replayable) in [(64, true), (63, false), (31, false)] {
        let (script, _) = Script::new(&[Step::Data(&BYTES[..32]), Step::Data(&BYTES[..32])]);
        let limits = ReplayLimits::default().per_call(cap);
        let mut first: Reader = Box::pin(ReplayBody::read_ahead(script, &limits));
        let kept = clone(&first);
        next(&mut first);
        assert_eq!(kept.is_replayable(), replayable, "cap of {cap}");
        assert_eq!(read_all(&mut first).len(), 2);
    }
}

#[test]
fn sole_reader_keeps_and_prefetches_nothing() {
    let memory = ReplayMemory::new(1000);
    let steps = vec![Step::Data(b"data"); 9];
    let mut only = reader(&steps, &limits_of(&memory));
    while memory.used() == 0 {
        match poll(&mut only, Waker::noop()) {
            Poll::Ready(Seen::End) => break,
            _ => assert_eq!(memory.used(), 0),
        }
    }
    let (script, control) = Script::new(&steps);
    let mut only: Reader = Box::pin(ReplayBody::read_ahead(script, &limits_of(&memory)));
    next(&mut only);
    assert_eq!(control.polls.load(std::sync::atomic::Ordering::SeqCst), 1);
}

/// If a body's end is known with its last frame, the last reader keeps the same framing.
#[test]
fn last_reader_sees_the_end_with_its_frame() {
    let steps = vec![Step::Data(b"data"); 4];
    let mut first = reader(&steps, &unlimited());
    let mut last = clone(&first);
    read_all(&mut first);
    next(&mut last);
    drop(first);
    let ends = (0..3).map(|_| {
        next(&mut last);
        last.is_end_stream()
    });
    assert_eq!(ends.collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn passed_through_body_may_be_at_its_end() {
    let ended = |body: &ReplayBody<Empty<Bytes>>| body.is_end_stream();
    assert!(ended(&ReplayBody::passthrough(Empty::new())) && ended(&ReplayBody::default()));
    let full = http_body_util::Full::new(Bytes::from_static(b"data"));
    assert!(!ReplayBody::passthrough(full).is_end_stream());
}

#[test]
fn limits_and_charges_show_their_values() {
    let memory = ReplayMemory::new(640);
    let limits = ReplayLimits::default().per_call(7).memory(memory.clone());
    let charge = limits.charge(64).unwrap();
    assert_eq!((limits.per_call_limit(), limits.memory_ref().limit()), (7, 640));
    assert_eq!(limits.memory_ref().used(), 64);
    assert_eq!(format!("{charge:?} {memory:?}"), "ReplayCharge(64) ReplayMemory { used: 64, limit: 640 }");
}

/// A destination's bytes remain counted while other destinations come and go.
// trap 40
#[test]
fn share_stays_full_while_others_come() {
    let memory = ReplayMemory::new(400);
    let limits = ReplayLimits::default().memory(memory.clone()).by_destination();
    let charge = |name: String, bytes: usize| {
        let length = SizeHint::with_exact(bytes.try_into().unwrap());
        limits.for_call(&length, || name.into()).charge(bytes)
    };
    let _begun = charge("any".into(), 100).unwrap();
    let _hanging = charge("hangs".into(), 150).unwrap();
    for number in 0..100 {
        assert!(charge(format!("{number}.example"), 1).is_some());
        assert!(charge("hangs".into(), 1).is_none(), "after {number}");
    }
}
