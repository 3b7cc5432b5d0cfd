//! Tests of watches on readers: which become ready, and at which frame.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use crate::support::*;
use http_body_util::Full;
use reattempt_replay::{ReplayBody, ReplayLimits, ReplayMemory, ReplayWatch};

const TEN: Step = Step::Data(b"ten bytes.");

/// Returns limits for three of the frames.
fn three() -> ReplayLimits {
    ReplayLimits::default().memory(ReplayMemory::new(96))
}

fn cut_off(watch: &ReplayWatch, waker: &Waker) -> bool {
    watch.poll_cut_off(&mut Context::from_waker(waker)).is_ready()
}

fn is_cut_off(watch: &ReplayWatch) -> bool {
    cut_off(watch, Waker::noop())
}

fn read(reader: &mut Reader, frames: usize) {
    for _ in 0..frames {
        assert!(poll(reader, Waker::noop()).is_ready());
    }
}

// BUF-8
#[test]
fn overflow_reports_all_but_the_leader() {
    for ahead in 0..3 {
        for limits in [three(), unlimited().memory(ReplayMemory::new(96))] {
            let kept = reader(&[TEN; 6], &limits);
            let mut attempts = [clone(&kept), clone(&kept), clone(&kept)];
            let watches = [0, 1, 2].map(|at| attempts[at].watch());
            let flags = [0, 1, 2].map(|_| Flag::new());
            for (watch, flag) in watches.iter().zip(&flags) {
                assert!(!cut_off(watch, &flag.waker()));
            }
            for (at, attempt) in attempts.iter_mut().enumerate() {
                // While everything is kept, no reader is cut off, whatever its position.
                read(attempt, if at == ahead { 3 } else { at + 1 });
            }
            for (watch, flag) in watches.iter().zip(&flags) {
                assert_eq!(flag.take(), 0);
                assert!(!cut_off(watch, &flag.waker()));
            }
            read(&mut attempts[ahead], 1);
            for at in 0..3 {
                assert_eq!(flags[at].take(), usize::from(at != ahead));
                assert_eq!(is_cut_off(&watches[at]), at != ahead);
            }
            assert!(is_cut_off(&kept.watch()), "watched only afterwards");
            assert_eq!(read_all(&mut attempts[ahead]), expected(&[TEN; 2]));
            assert!(!is_cut_off(&attempts[ahead].watch()));
            for at in (0..3).filter(|at| *at != ahead) {
                assert_eq!(read_all(&mut attempts[at]), [Seen::NotKept, Seen::End]);
            }
        }
    }
}

#[test]
fn dropped_reader_is_reported() {
    let mut ahead = reader(&[TEN; 6], &three());
    let behind = clone(&ahead);
    let _kept = clone(&ahead);
    let watch = behind.watch();
    drop(behind);
    let flag = Flag::new();
    assert!(!cut_off(&watch, &flag.waker()));
    read(&mut ahead, 4);
    assert_eq!(flag.take(), 1);
    assert!(is_cut_off(&watch));
}

#[test]
fn reader_taking_over_cuts_off_others() {
    let kept = reader(&[TEN; 6], &three());
    let former = clone(&kept);
    let (watch_kept, watch_former) = (kept.watch(), former.watch());
    let flag = Flag::new();
    assert!(!cut_off(&watch_former, &flag.waker()) && !cut_off(&watch_kept, &flag.waker()));
    kept.cancel_others();
    assert_eq!(flag.take(), 1);
    let mut next = clone(&kept);
    let watch_next = next.watch();
    assert_eq!([&watch_kept, &watch_former, &watch_next].map(is_cut_off), [false, true, false]);
    read(&mut next, 4);
    assert_eq!([&watch_kept, &watch_former, &watch_next].map(is_cut_off), [true, true, false]);
}

#[test]
fn first_reader_is_watched_from_any_other() {
    for first_reads_on in [true, false] {
        let mut first = reader(&[TEN; 6], &three());
        let mut second = clone(&first);
        let watch = clone(&second).watch_first();
        assert!(!is_cut_off(&watch));
        read(if first_reads_on { &mut first } else { &mut second }, 4);
        assert_eq!(is_cut_off(&watch), !first_reads_on);
        assert!(is_cut_off(&if first_reads_on { second } else { first }.watch_first()));
    }
    let held = ReplayBody::new(Full::from("hello"), &three());
    assert!(!is_cut_off(&held.watch_first()));
}

#[test]
fn watch_keeps_neither_frames_nor_body() {
    let memory = ReplayMemory::new(1024);
    let (script, control) = Script::new(&[TEN; 6]);
    let limits = unlimited().memory(memory.clone());
    let mut ahead: Reader = Box::pin(ReplayBody::in_memory(script, &limits));
    let behind = clone(&ahead);
    let watch = behind.watch();
    assert!(!is_cut_off(&watch));
    read(&mut ahead, 3);
    assert_eq!(memory.used(), 96);
    drop(behind);
    assert_eq!(memory.used(), 0);
    drop(ahead);
    assert_eq!(Arc::strong_count(&control), 1);
    assert!(!is_cut_off(&watch), "nobody is left to have gone on");
}

#[test]
fn fitting_or_unshared_body_is_never_cut() {
    let mut first = reader(&[TEN; 3], &three());
    let mut second = clone(&first);
    let watches = [first.watch(), second.watch()];
    assert_eq!(read_all(&mut first), expected(&[TEN; 3]));
    assert_eq!(read_all(&mut second), expected(&[TEN; 3]));
    assert!(!watches.iter().any(is_cut_off));
    let held = ReplayBody::new(Full::from("hello"), &three());
    let other = held.try_clone().unwrap();
    other.cancel_others();
    assert!(![held.watch(), other.watch()].iter().any(is_cut_off));
    assert!(!is_cut_off(&ReplayBody::passthrough(Full::from("hello")).watch()));
}

#[test]
fn the_last_task_that_asked_is_woken() {
    let mut ahead = reader(&[TEN; 6], &three());
    let behind = clone(&ahead);
    let watch = behind.watch();
    let (old, new) = (Flag::new(), Flag::new());
    assert!(!cut_off(&watch, &old.waker()));
    assert!(!cut_off(&watch, &new.waker()));
    read(&mut ahead, 4);
    assert_eq!((old.take(), new.take()), (0, 1));
}

/// A waker that takes the locks of the body and of its watches.
struct Meddler {
    reader: Mutex<Option<Reader>>,
    called: AtomicBool,
}

impl Wake for Meddler {
    fn wake(self: Arc<Self>) {
        let mut reader = self.reader.lock().unwrap().take().unwrap();
        assert!(is_cut_off(&reader.watch()));
        assert_eq!(read_all(&mut reader), [Seen::NotKept, Seen::End]);
        self.called.store(true, Ordering::SeqCst);
    }
}

#[test]
fn whoever_watches_is_woken_under_no_lock() {
    let mut ahead = reader(&[TEN; 6], &three());
    let behind = clone(&ahead);
    let watch = behind.watch();
    let meddler = Arc::new(Meddler { reader: Mutex::new(Some(behind)), called: AtomicBool::new(false) });
    assert!(!cut_off(&watch, &Waker::from(Arc::clone(&meddler))));
    read(&mut ahead, 4);
    assert!(meddler.called.load(Ordering::SeqCst));
}

#[test]
fn watch_is_idle_if_nothing_is_shared() {
    let limits = ReplayLimits::default();
    let whole = ReplayBody::new(Full::new(bytes::Bytes::from_static(b"whole")), &limits);
    assert!(whole.watch().is_idle() && whole.watch_first().is_idle());
    let shared = reader(&[TEN; 2], &limits);
    assert!(!shared.watch().is_idle() && !shared.watch_first().is_idle());
    assert_eq!(format!("{:?}", shared.watch()), "ReplayWatch { .. }");
}

/// The source is pending only after a poll that returned `Pending`, whichever reader made it.
// C-11
#[test]
fn source_is_pending_while_it_is_waited_for() {
    let steps = [Step::Data(b"1"), Step::Wait, Step::Data(b"2"), Step::Wait];
    for readers in [1, 2] {
        let (script, control) = Script::new(&steps);
        let mut first = Box::pin(ReplayBody::new(script, &unlimited()));
        let kept = (readers > 1).then(|| clone(&first));
        let source = first.watch_source().unwrap();
        assert!(!source.is_pending(), "nobody has polled it");
        read(&mut first, 1);
        assert!(!source.is_pending(), "the server may not have read the first frame");
        assert!(poll(&mut first, Waker::noop()).is_pending());
        assert!(source.is_pending());
        control.open();
        read(&mut first, 1);
        assert!(!source.is_pending());
        assert!(poll(&mut first, Waker::noop()).is_pending());
        assert!(source.is_pending());
        if let Some(kept) = kept {
            drop(first);
            kept.forget_polls();
            assert!(!source.is_pending(), "the next attempt has not come that far");
        }
    }
}

/// An attempt that is still in flight waits for the source, even if another one is sent.
// C-11
#[test]
fn next_attempt_leaves_the_source_pending() {
    let (script, _control) = Script::new(&[Step::Data(b"1"), Step::Wait]);
    let mut first = Box::pin(ReplayBody::new(script, &unlimited()));
    let (next, source) = (clone(&first), first.watch_source().unwrap());
    read(&mut first, 1);
    assert!(poll(&mut first, Waker::noop()).is_pending());
    next.forget_polls();
    assert!(source.is_pending());
    next.cancel_others();
    assert!(!source.is_pending());
}

// C-11
#[test]
fn bodies_in_memory_have_no_source() {
    assert!(ReplayBody::new(Full::<bytes::Bytes>::from("hello"), &ReplayLimits::default()).watch_source().is_none());
    assert!(ReplayBody::passthrough(Full::<bytes::Bytes>::from("hello")).watched().watch_source().is_none());
    let (script, _control) = Script::new(&[TEN]);
    let passed = ReplayBody::passthrough(script);
    assert!(passed.watch_source().is_none());
    let mut passed = Box::pin(passed.watched());
    assert!(passed.watch_source().is_some());
    assert_eq!(read_all(&mut passed), expected(&[TEN]));
}
