//! Several readers that wait: who is woken, when, and under which locks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};

use crate::support::*;
use bytes::Bytes;
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
    // Either order of coming: the one that polled last is the one that stalls.
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

/// A waker that takes every lock of the body when it is called, and again when it is dropped.
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
    // The body wakes itself while it is polled, and the meddler is on the list again.
    assert!(poll(&mut first, &Waker::from(Arc::clone(&meddler))).is_ready());
    let mut third = clone(&first);
    assert!(poll(&mut third, Waker::noop()).is_ready());
    assert!(meddler.called.load(Ordering::SeqCst) > 0);
    // Displaced, and the last of its kind: it takes its own reader with it.
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
