//! Tests of bodies that are completely known when they are created, and of those that only look like it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use crate::support::*;
use bytes::Bytes;
use http_body::{Body, SizeHint};
use http_body_util::{Full, StreamBody};
use reattempt_replay::{ReplayBody, ReplayLimits, ReplayMemory};

fn full(data: &'static str) -> Full<Bytes> {
    Full::new(Bytes::from_static(data.as_bytes()))
}

fn data(bytes: &'static [u8]) -> Seen {
    Seen::Data(Bytes::from_static(bytes))
}

/// Returns the limits with which scripts are read.
fn limits_of(memory: &ReplayMemory) -> ReplayLimits {
    ReplayLimits::default().per_call(200).memory(memory.clone())
}

/// A script with an exact hint, and its control.
fn exact(steps: &[Step], memory: &ReplayMemory) -> (Reader, Arc<Control>) {
    let (script, control) = Script::new(steps);
    (Box::pin(ReplayBody::in_memory(script.exact(), &limits_of(memory))), control)
}

#[test]
fn reader_is_small() {
    type Streamed = StreamBody<Pin<Box<dyn Send>>>;
    // A client moves its request more than twenty times.
    assert_eq!(size_of::<ReplayBody<Full<Bytes>>>(), size_of::<Full<Bytes>>() + 24);
    assert!(size_of::<ReplayBody<Streamed>>() <= 56);
    assert_eq!(size_of::<Option<ReplayBody<Full<Bytes>>>>(), size_of::<ReplayBody<Full<Bytes>>>());
}

#[test]
fn set_aside_reader_is_charged_once() {
    let memory = ReplayMemory::new(100);
    let limits = ReplayLimits::default().memory(memory.clone());
    let mut first = Box::pin(ReplayBody::new(full(&"x".repeat(40).leak()[..]), &limits));
    let kept = first.try_clone().unwrap();
    assert_eq!(memory.used(), 40);
    assert_eq!(first.size_hint().exact(), Some(40));
    assert!(matches!(poll(&mut first, Waker::noop()), Poll::Ready(Seen::Data(data)) if data.len() == 40));
    assert_eq!((first.size_hint().exact(), first.is_end_stream()), (Some(0), true));
    assert_eq!(read_all(&mut first), [Seen::End]);
    assert!(!first.is_replayable() && first.try_clone().is_none(), "it was given out");
    drop(first);
    assert_eq!(memory.used(), 40, "the one set aside holds the charge");

    // The attempt is sent unchanged, and its clone is set aside.
    let mut second = Box::pin(kept);
    let kept = second.try_clone().unwrap();
    assert_eq!(memory.used(), 40);
    read_all(&mut second);
    drop(second);
    assert_eq!(memory.used(), 40);
    let mut last = Box::pin(kept);
    assert!(last.is_replayable());
    assert!(matches!(poll(&mut last, Waker::noop()), Poll::Ready(Seen::Data(_))));
    assert_eq!(memory.used(), 0, "handed on, and not kept");
}

#[test]
fn one_buffer_notes_its_polls_if_asked() {
    let memory = ReplayMemory::new(100);
    let limits = limits_of(&memory);
    let mut first = Box::pin(ReplayBody::new(full("hello"), &limits).noting_polls());
    let mut kept = Box::pin(first.try_clone().unwrap());
    assert_eq!((kept.was_polled(), first.size_hint().exact(), memory.used()), (false, Some(5), 32));
    assert_eq!(read_all(&mut first), [data(b"hello"), Seen::End]);
    assert!(kept.was_polled());
    kept.forget_polls();
    assert!(!kept.was_polled());
    assert_eq!(read_all(&mut kept), [data(b"hello"), Seen::End]);
    drop((first, kept));
    assert_eq!(memory.used(), 0);
}

type Whole = ReplayBody<Full<Bytes>>;

/// A client need not poll an empty body, but it reads the length or the end before it sends the request.
// trap 48
#[test]
fn empty_body_notes_a_look_at_it_if_asked() {
    let limits = ReplayLimits::default();
    let looks: [fn(&mut Pin<Box<Whole>>); 3] = [
        |first| assert!(first.is_end_stream()),
        |first| assert_eq!(first.size_hint().exact(), Some(0)),
        |first| assert_eq!(read_all(first), [Seen::End]),
    ];
    for (look, asked) in looks.into_iter().flat_map(|look| [(look, true), (look, false)]) {
        let body = ReplayBody::new(full(""), &limits);
        let body = if asked { body.noting_polls() } else { body };
        let mut first = Box::pin(body);
        let kept = first.try_clone().unwrap();
        assert!(!kept.was_polled());
        look(&mut first);
        assert_eq!(kept.was_polled(), asked);
        kept.forget_polls();
        assert!(!kept.was_polled());
        look(&mut first);
        drop(first);
        assert_eq!(kept.was_polled(), asked);
    }
}

#[test]
fn second_clone_is_charged_if_room() {
    for (limit, used) in [(80, [40, 80, 40]), (40, [40, 40, 0])] {
        let memory = ReplayMemory::new(limit);
        let limits = ReplayLimits::default().memory(memory.clone());
        let first = ReplayBody::new(full("0123456789012345678901234567890123456789"), &limits);
        let one = first.try_clone().unwrap();
        assert_eq!(memory.used(), used[0]);
        let two = first.try_clone().unwrap();
        assert!(two.is_replayable());
        assert_eq!(memory.used(), used[1]);
        drop(one);
        assert_eq!(memory.used(), used[2]);
        drop((first, two));
        assert_eq!(memory.used(), 0);
    }
}

#[test]
fn roomless_buffer_replays_while_unread() {
    let memory = ReplayMemory::new(40);
    let limits = ReplayLimits::default().memory(memory.clone());
    let other = ReplayBody::new(full("takes 32"), &limits);
    let mut first = Box::pin(ReplayBody::new(full("no room"), &limits));
    let kept = first.try_clone().unwrap();
    assert!(kept.is_replayable(), "nothing was read yet");
    assert_eq!(first.size_hint().exact(), Some(7));
    assert_eq!(read_all(&mut first), [data(b"no room"), Seen::End]);
    assert!(!kept.is_replayable());
    assert_eq!(read_all(&mut Box::pin(kept)), [Seen::NotKept, Seen::End]);
    drop(other);
    assert_eq!(memory.used(), 0);
}

#[test]
fn buffer_over_cap_replays_while_unread() {
    let limits = ReplayLimits::default().per_call(32);
    let body = full("this is longer than thirty-two bytes");
    let first = ReplayBody::new(body, &limits);
    let kept = first.try_clone().unwrap();
    drop(first);
    assert!(kept.is_replayable());
    assert_eq!(read_all(&mut Box::pin(kept)).len(), 2);
}

// trap 41
#[test]
fn unknown_body_is_unpolled_when_new() {
    let polls = |control: &Control| control.polls.load(Ordering::SeqCst);
    for exact in [false, true] {
        for make in [ReplayBody::<Script>::new, ReplayBody::<Script>::read_ahead] {
            let (script, control) = Script::new(&[Step::Data(b"whole")]);
            let script = if exact { script.exact() } else { script };
            let mut body: Reader = Box::pin(make(script.tells_end(false), &unlimited()));
            let mut kept = clone(&body);
            assert_eq!((polls(&control), body.is_end_stream()), (0, false));
            assert_eq!(poll(&mut body, Waker::noop()), Poll::Ready(data(b"whole")));
            // If it announces no length, only `read_ahead` detects it.
            let found = exact || polls(&control) == 2;
            assert_eq!(body.is_end_stream(), found, "so that no empty frame is sent after it");
            assert_eq!(read_all(&mut body), [Seen::End]);
            assert_eq!(read_all(&mut kept), [data(b"whole"), Seen::End]);
            assert_eq!(polls(&control), 2);
        }
    }
}

#[test]
fn body_of_known_type_is_held_when_new() {
    let kind = |body: &dyn std::fmt::Debug| format!("{body:?}");
    let limits = ReplayLimits::default();
    let memory = ReplayMemory::new(1000);
    let limits_of_all = limits.clone().memory(memory.clone());
    let _full = ReplayBody::new(full("known"), &limits_of_all);
    assert_eq!(memory.used(), 32);
    let _string = ReplayBody::new("known".to_owned(), &limits_of_all);
    assert_eq!(memory.used(), 64);
    let (script, control) = Script::new(&[Step::Data(b"whole")]);
    let added = ReplayBody::new(script, &limits_of_all.in_memory::<Script>());
    assert_eq!((memory.used(), control.polls.load(Ordering::SeqCst)), (96, 1));
    assert!(kind(&added).contains("kept"));
    // A type need not be `'static`.
    let text = String::from("borrowed");
    let body = http_body_util::BodyExt::map_frame(full("text"), |frame| {
        assert_eq!(text, "borrowed");
        frame
    });
    assert!(ReplayBody::new(body, &limits).is_replayable());
}

#[test]
fn body_over_the_cap_is_kept_if_in_memory() {
    static LARGE: [u8; 100] = [7; 100];
    let memory = ReplayMemory::new(150);
    let limits = ReplayLimits::default().per_call(10).memory(memory.clone());
    let body = || Full::new(Bytes::from_static(&LARGE));
    let mut first = Box::pin(ReplayBody::new(body(), &limits));
    let kept = first.try_clone().unwrap();
    assert_eq!(memory.used(), 100, "by reference, and charged to the bound over all bodies");
    read_all(&mut first);
    assert!(kept.is_replayable());

    // Beyond the limit it is not kept, but can be sent again while unread.
    let mut first = Box::pin(ReplayBody::new(body(), &limits));
    let second = first.try_clone().unwrap();
    assert_eq!(memory.used(), 100);
    assert!(second.is_replayable());
    read_all(&mut first);
    assert!(!second.is_replayable());
}

#[test]
fn streamed_body_longer_than_cap_keeps_none() {
    let memory = ReplayMemory::new(1000);
    let limits = ReplayLimits::default().per_call(10).memory(memory.clone());
    let steps = [Step::Data(b"six..."), Step::Data(b"six...")];
    let mut first = Box::pin(ReplayBody::new(Script::new(&steps).0.exact(), &limits));
    let kept = clone(&first);
    assert!(kept.is_replayable(), "nothing was read yet");
    assert_eq!(poll(&mut first, Waker::noop()), Poll::Ready(data(b"six...")));
    assert_eq!(memory.used(), 0);
    assert!(!kept.is_replayable());
    assert_eq!(read_all(&mut first), [data(b"six..."), Seen::End]);
}

/// Returns a script without a length, and its control.
fn untold(steps: &[Step], tells_end: bool, memory: &ReplayMemory) -> (Moved, Arc<Control>) {
    let (script, control) = Script::new(steps);
    let body = Box::pin(script.tells_end(tells_end));
    (Box::pin(ReplayBody::in_memory(body, &limits_of(memory))), control)
}

/// A reader of a movable body.
type Moved = Pin<Box<ReplayBody<Pin<Box<Script>>>>>;

#[test]
fn one_frame_is_known_whatever_its_hint() {
    let memory = ReplayMemory::new(1000);
    for (tells_end, polls) in [(true, 1), (false, 2)] {
        let (mut first, control) = untold(&[Step::Data(&[7; 40])], tells_end, &memory);
        let kept = first.try_clone().unwrap();
        assert_eq!(format!("{:?}", first.size_hint()), format!("{:?}", SizeHint::default()));
        assert_eq!(memory.used(), 40, "it lies in memory");
        assert!(!first.is_end_stream());
        assert_eq!(poll(&mut first, Waker::noop()), Poll::Ready(data(&[7; 40])));
        assert!(first.is_end_stream(), "so that no empty frame is sent after it");
        assert_eq!(format!("{:?}", first.size_hint()), format!("{:?}", SizeHint::default()));
        assert_eq!(read_all(&mut Box::pin(kept)), [data(&[7; 40]), Seen::End]);
        assert_eq!(control.polls.load(Ordering::SeqCst), polls);
        assert_eq!(memory.used(), 0);
    }
    let exact = Script::new(&[Step::Data(b"whole")]).0.exact().tells_end(false);
    let mut body = Box::pin(ReplayBody::new(exact, &unlimited()));
    assert_eq!(body.size_hint().exact(), Some(5));
    assert_eq!(read_all(&mut body), [data(b"whole"), Seen::End]);
}

#[test]
fn eager_polls_stop_after_two_frames() {
    let memory = ReplayMemory::new(1000);
    let rows: [(&[Step], usize, usize); 5] = [
        (&[Step::Data(b"a"), Step::Data(b"b"), Step::Data(b"c")], 2, 4),
        (&[Step::Wait, Step::Data(b"a")], 1, 3),
        (&[Step::Trailers("sum")], 1, 2),
        (&[Step::Fail], 1, 1),
        (&[Step::Data(&[7; 201]), Step::Data(b"b")], 2, 3),
    ];
    for (steps, ahead, all) in rows {
        let (mut first, control) = untold(steps, false, &memory);
        let polls = || control.polls.load(Ordering::SeqCst);
        assert_eq!(polls(), ahead, "{steps:?}");
        let kept = first.try_clone().unwrap();
        control.open_silently();
        assert_eq!(read_all(&mut first), expected(steps));
        assert_eq!(polls(), all, "{steps:?}");
        assert_eq!(read_all(&mut Box::pin(kept)), expected(steps), "{steps:?} again");
        drop(first);
        assert_eq!(memory.used(), 0);
    }

    let steps = [Step::Data(&[7; 60]), Step::Data(&[7; 60])];
    let memory = ReplayMemory::new(100);
    let (mut first, _control) = untold(&steps, false, &memory);
    assert_eq!(memory.used(), 0, "both together have no room");
    let full = ReplayBody::new(full(&"x".repeat(100).leak()[..]), &limits_of(&memory));
    let (mut second, _control) = untold(&steps, false, &memory);
    drop(full);
    assert_eq!(read_all(&mut first), expected(&steps));
    assert_eq!(read_all(&mut second), expected(&steps));
    assert_eq!(memory.used(), 0);

    let (script, control) = Script::new(&[Step::Data(b"a")]);
    let nothing = ReplayLimits::default().per_call(0);
    let body = ReplayBody::new(Box::pin(script), &nothing);
    assert!(!body.is_replayable());
    let script = Script::new(&[]).0;
    assert!(ReplayBody::new(Box::pin(script), &nothing).is_replayable(), "it is empty");
    let (bounded, of_bounded) = Script::new(&[Step::Data(b"a")]);
    let mut hint = SizeHint::new();
    hint.set_upper(1);
    let _body = ReplayBody::new(Box::pin(bounded.hinting(hint)), &unlimited());
    assert_eq!([control, of_bounded].map(|control| control.polls.load(Ordering::SeqCst)), [0, 0]);
}

#[test]
fn what_was_said_ahead_is_not_lost() {
    let memory = ReplayMemory::new(1000);
    // The charge for data that is read ahead, for a body with a length and one without.
    let cases: [(&[Step], usize, usize); 6] = [
        (&[Step::Data(b"a"), Step::Data(b"b")], 32, 64),
        (&[Step::Data(b"a"), Step::Trailers("sum")], 32, 32),
        (&[Step::Data(b""), Step::Data(b"ab")], 32, 64),
        (&[Step::Fail, Step::Data(b"never")], 0, 0),
        (&[Step::Yield, Step::Data(b"ab")], 0, 0),
        (&[Step::Data(b"ab"), Step::Yield], 32, 32),
    ];
    for (steps, of_told, of_untold) in cases {
        let (mut first, _control) = exact(steps, &memory);
        let kept = clone(&first);
        assert!(!first.source_failed(), "nobody has got so far");
        assert_eq!(memory.used(), of_told, "{steps:?} unread");
        assert_eq!(read_all(&mut first), expected(steps), "{steps:?}");
        assert_eq!(kept.source_failed(), matches!(steps[0], Step::Fail));
        if let [Step::Data(_), Step::Data(_)] = steps {
            assert_eq!(memory.used(), 64, "each frame is charged once");
        }
        let mut second = clone(&kept);
        assert_eq!(read_all(&mut second), expected(steps), "{steps:?} again");
        drop((first, second, kept));
        assert_eq!(memory.used(), 0);

        let (mut first, _control) = untold(steps, true, &memory);
        let mut second = Box::pin(first.try_clone().unwrap());
        assert_eq!(memory.used(), of_untold, "{steps:?} unread");
        // Alternately, so that neither is far ahead.
        let (mut one, mut two) = (Vec::new(), Vec::new());
        while two.last() != Some(&Seen::End) {
            for (reader, seen) in [(&mut first, &mut one), (&mut second, &mut two)] {
                if let Poll::Ready(next) = poll(reader, Waker::noop()) {
                    seen.push(next);
                }
            }
        }
        assert_eq!([one, two], [expected(steps), expected(steps)], "{steps:?} untold");
        drop((first, second));
        assert_eq!(memory.used(), 0);
    }
}

#[test]
fn a_length_that_is_a_lie_changes_nothing() {
    let steps = [Step::Data(b"four"), Step::Data(b"more")];
    for hint in [1, 3, 4, 5, 99] {
        for steps in [&steps[..1], &steps[..]] {
            let script = Script::new(steps).0.hinting(SizeHint::with_exact(hint));
            let mut first = Box::pin(ReplayBody::in_memory(script, &unlimited()));
            let mut second = clone(&first);
            assert_eq!(read_all(&mut first), expected(steps), "{hint}");
            assert_eq!(read_all(&mut second), expected(steps), "{hint}");
        }
    }
    let nothing = Script::new(&[]).0.tells_end(false).hinting(SizeHint::with_exact(5));
    let mut body = Box::pin(ReplayBody::new(nothing, &unlimited()));
    assert_eq!(read_all(&mut body), [Seen::End]);
}

#[test]
fn body_not_ready_ahead_wakes_its_reader() {
    let (mut body, control) = exact(&[Step::Wait, Step::Data(b"late")], &ReplayMemory::new(1000));
    let flag = Flag::new();
    assert!(poll(&mut body, &flag.waker()).is_pending());
    assert!(control.open());
    assert_eq!(flag.take(), 1);
    assert_eq!(read_all(&mut body), [data(b"late"), Seen::End]);
}

type ReadNow = Pin<Box<ReplayBody<Pin<Box<Script>>>>>;

/// Returns a reader of a script that is read ahead when it is made.
fn read_now(steps: &[Step], limits: &ReplayLimits) -> (ReadNow, Arc<Control>) {
    let (script, control) = Script::new(steps);
    (Box::pin(ReplayBody::read_ahead_now(Box::pin(script.tells_end(false)), limits)), control)
}

#[test]
fn message_read_now_is_shared_by_reference() {
    let memory = ReplayMemory::new(20_000);
    let (mut first, control) = read_now(&[Step::Data(b"whole")], &limits_of(&memory));
    let mut kept = Box::pin(first.try_clone().unwrap());
    assert_eq!((control.polls.load(Ordering::SeqCst), memory.used()), (2, 8192), "it pins its encoder's buffer");
    assert_eq!((first.size_hint().exact(), first.is_end_stream(), kept.was_polled()), (None, false, false));
    assert_eq!(poll(&mut first, Waker::noop()), Poll::Ready(data(b"whole")));
    assert!(first.is_end_stream() && !first.is_replayable() && first.try_clone().is_none());
    assert_eq!(read_all(&mut first), [Seen::End]);
    assert!(kept.was_polled() && kept.is_replayable());
    kept.forget_polls();
    drop(first);
    assert_eq!((kept.was_polled(), memory.used()), (false, 8192));
    assert_eq!(read_all(&mut kept), [data(b"whole"), Seen::End]);
    drop(kept);
    assert_eq!(memory.used(), 0);
}

/// Frames that were read when the body was made come first, and are kept like those of any streamed body.
#[test]
fn stream_read_now_continues_when_polled() {
    let frames = [data(b"one"), data(b"two"), Seen::End];
    let (one, two) = (Step::Data(b"one"), Step::Data(b"two"));
    let scripts = [
        (vec![Step::Yield, one.clone(), two.clone()], 1),
        (vec![one.clone(), Step::Yield, two.clone()], 2),
        (vec![one, two], 2),
    ];
    for (steps, polls) in scripts {
        let memory = ReplayMemory::new(20_000);
        let (mut first, control) = read_now(&steps, &limits_of(&memory));
        assert_eq!(control.polls.load(Ordering::SeqCst), polls);
        let mut kept = Box::pin(first.try_clone().unwrap());
        assert!(!kept.was_polled());
        assert_eq!(joined(&read_all(&mut first)), joined(&frames));
        assert!(kept.was_polled());
        assert_eq!(joined(&read_all(&mut kept)), joined(&frames));
        drop((first, kept));
        assert_eq!(memory.used(), 0);
    }
}

#[test]
fn message_past_limits_is_sent_once() {
    let long = Step::Data(&[7; 201]);
    for (limits, step) in [
        (ReplayLimits::default().per_call(200), &long),
        (limits_of(&ReplayMemory::new(100)), &long),
        (ReplayLimits::default().per_call(0), &long),
    ] {
        let (mut first, _) = read_now(std::slice::from_ref(step), &limits);
        let kept = first.try_clone();
        assert_eq!(kept.is_some(), limits.per_call_limit() > 0);
        assert_eq!(read_all(&mut first).len(), 2);
        assert!(kept.is_none_or(|kept| !kept.is_replayable()));
    }
}

#[test]
fn error_read_now_reaches_every_reader() {
    for steps in [vec![Step::Fail], vec![Step::Data(b"one"), Step::Fail]] {
        let (mut first, _) = read_now(&steps, &ReplayLimits::default());
        let mut kept = Box::pin(first.try_clone().unwrap());
        let seen = read_all(&mut first);
        assert!(matches!(seen[..], [Seen::Source, Seen::End] | [Seen::Data(_), Seen::Source, Seen::End]), "{seen:?}");
        assert_eq!(read_all(&mut kept), seen);
    }
}
