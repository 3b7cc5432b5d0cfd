//! Tests with readers on their own threads, and a body that another thread wakes: nothing is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::support::*;
use reattempt_replay::ReplayBody;

struct Unpark(Thread, AtomicBool);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::SeqCst);
        self.0.unpark();
    }
}

/// Reads until the end, or until `most` frames were read.
fn read(mut reader: Reader, most: usize) -> Vec<Seen> {
    let unpark = Arc::new(Unpark(thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&unpark));
    let mut seen = Vec::new();
    while seen.len() < most && seen.last() != Some(&Seen::End) {
        match poll(&mut reader, &waker) {
            Poll::Ready(next) => seen.push(next),
            Poll::Pending => wait(&unpark.1),
        }
    }
    seen
}

/// Parks until woken. The limit only makes a hanging test fail.
fn wait(woken: &AtomicBool) {
    for _ in 0..100 {
        if woken.swap(false, Ordering::SeqCst) {
            return;
        }
        thread::park_timeout(Duration::from_millis(200));
    }
    panic!("a reader is asleep for ever");
}

#[test]
fn readers_on_threads_all_see_the_body() {
    let round = [Step::Wait, Step::Data(b"a"), Step::Yield, Step::Data(b"bc"), Step::Wait];
    let steps: Vec<Step> = round.iter().cycle().take(60).cloned().collect();
    let expected = expected(&steps);
    for round in 0..200 {
        let (script, control) = Script::new(&steps);
        let copied = round % 2 == 0;
        let make = if copied { ReplayBody::new } else { ReplayBody::in_memory };
        let kept: Reader = Box::pin(make(script, &unlimited()));
        thread::scope(|scope| {
            let readers = [usize::MAX, 3, usize::MAX, 10, 0].map(|most| {
                let reader = clone(&kept);
                (scope.spawn(move || read(reader, most)), most)
            });
            scope.spawn(|| {
                for _ in 0..steps.len() {
                    control.open();
                    thread::yield_now();
                }
            });
            for (reader, most) in readers {
                let seen = reader.join().unwrap();
                if !copied {
                    assert_eq!(seen, expected[..most.min(expected.len())]);
                } else if most == usize::MAX {
                    assert_eq!(joined(&seen), joined(&expected));
                }
            }
        });
        assert_eq!(joined(&read(kept, usize::MAX)), joined(&expected));
    }
}
