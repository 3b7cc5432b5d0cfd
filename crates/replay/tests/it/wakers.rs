//! Tests of several waiting readers: which are woken, when, and under which locks.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use crate::support::*;
use bytes::Bytes;
use http_body::{Body, Frame};
use reattempt_replay::ReplayBody;

const GATED: [Step; 3] = [Step::Wait, Step::Data(b"one"), Step::Data(b"two")];

fn one() -> Poll<Seen> {
    Poll::Ready(Seen::Data(Bytes::from_static(b"one")))
}

fn gated() -> (Reader, Arc<Control>) {
    let (script, control) = Script::new(&GATED);
    (Box::pin(ReplayBody::new(script, &unlimited())), control)
}

// trap 02
#[test]
fn dropped_waiting_reader_wakes_others() {
    let (mut first, control) = gated();
    let mut second = clone(&first);
    let (wakes_first, wakes_second) = (Flag::new(), Flag::new());
    assert!(poll(&mut second, &wakes_second.waker()).is_pending());
    assert!(poll(&mut first, &wakes_first.waker()).is_pending());
    drop(first);
    assert_eq!(wakes_first.take(), 0);
    assert!(wakes_second.take() > 0, "it has to poll the body itself now");
    assert!(poll(&mut second, &wakes_second.waker()).is_pending());
    assert!(control.open());
    assert_eq!(wakes_second.take(), 1);
    assert_eq!(poll(&mut second, &wakes_second.waker()), one());
}

// trap 02
#[test]
fn idle_woken_reader_starves_nobody() {
    let (mut first, control) = gated();
    let mut second = clone(&first);
    let (wakes_first, wakes_second) = (Flag::new(), Flag::new());
    // In either order of arrival, the one that polled last is the one that stalls.
    assert!(poll(&mut first, &wakes_first.waker()).is_pending());
    assert!(poll(&mut second, &wakes_second.waker()).is_pending());
    assert!(control.open());
    assert_eq!((wakes_first.take(), wakes_second.take()), (1, 1));
    assert_eq!(poll(&mut first, &wakes_first.waker()), one());
    assert_eq!(poll(&mut second, &wakes_second.waker()), one());
}

#[test]
fn fetched_frame_wakes_waiting_reader() {
    let (mut first, control) = gated();
    let mut second = clone(&first);
    let (wakes_first, wakes_second) = (Flag::new(), Flag::new());
    assert!(poll(&mut first, &wakes_first.waker()).is_pending());
    assert!(poll(&mut second, &wakes_second.waker()).is_pending());
    control.open_silently();
    assert!(poll(&mut first, &wakes_first.waker()).is_ready());
    assert_eq!(wakes_second.take(), 1);
    assert_eq!(wakes_first.take(), 0, "the one that has it need not be told");
}

#[test]
fn lone_waiter_is_woken_after_second_comes() {
    let (mut first, control) = gated();
    let mut second = clone(&first);
    let wakes = Flag::new();
    assert!(poll(&mut first, &wakes.waker()).is_pending());
    assert!(poll(&mut second, Waker::noop()).is_pending());
    assert!(control.open());
    assert_eq!(wakes.take(), 1);
}

#[test]
fn cancelled_readers_are_woken_to_see_it() {
    for second_polls in [false, true] {
        let (mut first, control) = gated();
        let mut second = clone(&first);
        let (wakes_first, wakes_second) = (Flag::new(), Flag::new());
        assert!(poll(&mut first, &wakes_first.waker()).is_pending());
        if second_polls {
            assert!(poll(&mut second, &wakes_second.waker()).is_pending());
        }
        second.cancel_others();
        assert_eq!((wakes_first.take(), wakes_second.take()), (1, 0));
        assert_eq!(poll(&mut first, &wakes_first.waker()), Poll::Ready(Seen::Superseded));
        if !second_polls {
            assert!(poll(&mut second, &wakes_second.waker()).is_pending());
        }
        assert!(control.open());
        assert_eq!(wakes_second.take(), 1);
        assert_eq!(poll(&mut second, &wakes_second.waker()), one());
    }
}

#[test]
fn self_waking_body_wakes_all_waiters() {
    let steps = [Step::Yield, Step::Yield, Step::Data(b"one")];
    let mut first = reader(&steps, &unlimited());
    let mut second = clone(&first);
    let (wakes_first, wakes_second) = (Flag::new(), Flag::new());
    assert!(poll(&mut first, &wakes_first.waker()).is_pending());
    assert_eq!(wakes_first.take(), 1);
    assert!(poll(&mut second, &wakes_second.waker()).is_pending());
    assert_eq!((wakes_first.take(), wakes_second.take()), (1, 1));
    assert_eq!(poll(&mut first, &wakes_first.waker()), one());
}

#[test]
fn moved_task_is_woken_at_new_place() {
    let (mut first, control) = gated();
    let mut second = clone(&first);
    let (old, new) = (Flag::new(), Flag::new());
    assert!(poll(&mut first, &old.waker()).is_pending());
    assert!(poll(&mut first, &new.waker()).is_pending());
    assert!(poll(&mut second, &old.waker()).is_pending());
    assert!(poll(&mut second, &new.waker()).is_pending());
    assert!(control.open());
    assert_eq!((old.take(), new.take()), (0, 2));
}

/// A waker that takes all locks of the body when it is called, and again when it is dropped.
struct Meddler {
    reader: Mutex<Option<Reader>>,
    called: AtomicUsize,
}

impl Meddler {
    fn new(reader: Reader) -> Arc<Self> {
        Arc::new(Self { reader: Mutex::new(Some(reader)), called: AtomicUsize::new(0) })
    }
}

impl Wake for Meddler {
    fn wake(self: Arc<Self>) {
        self.called.fetch_add(1, Ordering::SeqCst);
        let mut reader = self.reader.lock().unwrap().take().unwrap();
        assert!(reader.is_replayable());
        let _ = poll(&mut reader, Waker::noop());
        *self.reader.lock().unwrap() = Some(reader);
    }
}

#[test]
fn no_waker_is_called_or_dropped_under_lock() {
    let steps = [Step::Wait, Step::Yield, Step::Data(b"one"), Step::Data(b"two")];
    let (script, control) = Script::new(&steps);
    let mut first: Reader = Box::pin(ReplayBody::new(script, &unlimited()));
    let mut second = clone(&first);
    let meddler = Meddler::new(clone(&first));
    assert!(poll(&mut second, Waker::noop()).is_pending());
    assert!(poll(&mut first, &Waker::from(Arc::clone(&meddler))).is_pending());
    control.open();
    // The body wakes itself while it is polled, and the meddler is in the list again.
    assert!(poll(&mut first, &Waker::from(Arc::clone(&meddler))).is_ready());
    let mut third = clone(&first);
    assert!(poll(&mut third, Waker::noop()).is_ready());
    assert!(meddler.called.load(Ordering::SeqCst) > 0);
    // Displaced, and the last of its kind: dropping it drops its own reader.
    let (script, _control) = Script::new(&GATED);
    let mut waits: Reader = Box::pin(ReplayBody::new(script, &unlimited()));
    let meddler = Meddler::new(clone(&waits));
    assert!(poll(&mut waits, &Waker::from(meddler)).is_pending());
    assert!(poll(&mut waits, Waker::noop()).is_pending());
    let meddler = Meddler::new(clone(&waits));
    let mut other = clone(&waits);
    assert!(poll(&mut other, Waker::noop()).is_pending());
    assert!(poll(&mut waits, &Waker::from(meddler)).is_pending());
    assert!(poll(&mut waits, Waker::noop()).is_pending());
    let meddler = Meddler::new(clone(&waits));
    assert!(poll(&mut waits, &Waker::from(meddler)).is_pending());
    drop(waits);
}

/// No reader is woken while the source is polled, because that happens under a lock, and a waker may run foreign code.
// trap 02
#[test]
fn no_reader_is_woken_while_body_is_polled() {
    struct Yields(Arc<AtomicUsize>);

    impl Body for Yields {
        type Data = Bytes;
        type Error = Boom;

        fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Boom>>> {
            self.0.store(1, Ordering::SeqCst);
            cx.waker().wake_by_ref();
            self.0.store(0, Ordering::SeqCst);
            Poll::Pending
        }
    }

    /// A waker that counts its wakes, and fails if the body is being polled.
    struct Outside {
        polling: Arc<AtomicUsize>,
        wakes: AtomicUsize,
    }

    impl Wake for Outside {
        fn wake(self: Arc<Self>) {
            assert_eq!(self.polling.load(Ordering::SeqCst), 0, "the body is being polled");
            self.wakes.fetch_add(1, Ordering::SeqCst);
        }
    }

    let polling = Arc::new(AtomicUsize::new(0));
    let mut first = Box::pin(ReplayBody::new(Yields(Arc::clone(&polling)), &unlimited()));
    let mut second = Box::pin(first.try_clone().unwrap());
    assert!(poll(&mut first, Waker::noop()).is_pending());
    let outside = Arc::new(Outside { polling, wakes: AtomicUsize::new(0) });
    for _ in 0..2 {
        for reader in [&mut second, &mut first] {
            assert!(poll(reader, &Waker::from(Arc::clone(&outside))).is_pending());
        }
    }
    assert!(outside.wakes.load(Ordering::SeqCst) > 0);
}

/// Two readers have waited before. While one waits again, the other, which is behind, catches up and loses no wake.
// trap 02
#[test]
fn catching_up_reader_loses_no_wake() {
    for in_memory in [false, true] {
        let frame = || Step::Data(b"one");
        let (script, control) = Script::new(&[Step::Wait, frame(), frame(), Step::Wait, frame()]);
        let limits = unlimited();
        let make = if in_memory { ReplayBody::in_memory } else { ReplayBody::new };
        let mut ahead = Box::pin(make(script, &limits));
        let mut behind = clone(&ahead);
        let (wakes_ahead, wakes_behind) = (Flag::new(), Flag::new());
        assert!(poll(&mut behind, &wakes_behind.waker()).is_pending());
        assert!(poll(&mut ahead, &wakes_ahead.waker()).is_pending());
        control.open();
        assert_eq!((wakes_ahead.take(), wakes_behind.take()), (1, 1));
        for _ in 0..2 {
            assert!(poll(&mut ahead, &wakes_ahead.waker()).is_ready());
        }
        assert!(poll(&mut ahead, &wakes_ahead.waker()).is_pending());
        while poll(&mut behind, &wakes_behind.waker()).is_ready() {}
        wakes_ahead.take();
        control.open();
        assert_eq!((wakes_ahead.take(), wakes_behind.take()), (1, 1), "in memory: {in_memory}");
        assert_eq!((poll(&mut ahead, Waker::noop()), poll(&mut behind, Waker::noop())), (one(), one()));
    }
}

/// Both readers get the next frame, although one of them has not waited.
#[test]
fn next_frame_is_for_one_that_caught_up() {
    let data = || Step::Data(b"one");
    let (script, control) = Script::new(&[Step::Wait, data(), data(), data(), Step::Wait, data(), data()]);
    let mut ahead = Box::pin(ReplayBody::in_memory(script, &unlimited()));
    let mut behind = clone(&ahead);
    control.open_silently();
    for reader in [&mut ahead, &mut behind] {
        for _ in 0..3 {
            assert_eq!(poll(reader, Waker::noop()), one());
        }
    }
    assert!(poll(&mut ahead, Waker::noop()).is_pending());
    control.open_silently();
    for reader in [&mut ahead, &mut behind] {
        assert_eq!(poll(reader, Waker::noop()), one());
        assert_eq!(read_all(reader), [Seen::Data(Bytes::from_static(b"one")), Seen::End]);
    }
}

#[test]
fn dropped_reader_leaves_no_waker() {
    let (mut first, control) = gated();
    let second = clone(&first);
    let wakes = Flag::new();
    assert!(poll(&mut first, &wakes.waker()).is_pending());
    drop(first);
    control.open();
    assert_eq!(Arc::strong_count(&wakes), 1);
    drop(second);
}
