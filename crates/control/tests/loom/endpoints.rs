//! Models of an endpoint's words: no failure is lost, and a success does not undo an ejection.

use std::sync::Arc;
use std::time::Duration;

use loom::thread;

use crate::event_word::EventWord;
use crate::latency_word::LatencyWord;
use crate::words::{FailureWord, Stamp, WindowWord};

const NOW: Stamp = 5;

fn spawn<T: Send + Sync + 'static, R: Send + 'static>(
    word: &Arc<T>,
    work: impl FnOnce(&T) -> R + Send + 'static,
) -> thread::JoinHandle<R> {
    let word = Arc::clone(word);
    thread::spawn(move || work(&word))
}

/// The limit on consecutive failures.
const ROW: u32 = 5;

/// Returns `true` if there were 20 calls or more, of which at least half failed.
fn is_enough((calls, failures): (u32, u32)) -> bool {
    calls >= 20 && failures >= calls.div_ceil(2)
}

/// Returns a word after this many consecutive failures.
fn failed(times: usize) -> Arc<FailureWord> {
    let word = Arc::new(FailureWord::default());
    for _ in 0..times {
        assert!(!word.failed(ROW, NOW));
    }
    word
}

/// If the fourth and the fifth failure are concurrent, exactly one thread requests the ejection.
#[test]
fn fifth_failure_is_reported_once() {
    loom::model(|| {
        let word = failed(3);
        let other = spawn(&word, |word| word.failed(ROW, NOW));
        let own = word.failed(ROW, NOW);
        assert!(own != other.join().unwrap());
    });
}

/// No failure is lost: the running rate is that of two failures in either order.
#[test]
fn both_failures_raise_the_rate() {
    loom::model(|| {
        let word = failed(0);
        let other = spawn(&word, |word| word.overloaded(NOW));
        word.failed(ROW, NOW);
        other.join().unwrap();
        let one = 65_536 / 8;
        assert_eq!(word.rate(NOW), one + (65_536 - one) / 8);
    });
}

/// With a success beside the fifth failure, either the run is over or the ejection is requested.
#[test]
fn success_ends_the_row_or_comes_late() {
    loom::model(|| {
        let word = failed(4);
        let other = spawn(&word, |word| word.served(NOW));
        let asked = word.failed(ROW, NOW);
        other.join().unwrap();
        // If the success came first, it leaves one failure, and four more make five. If it came second, it leaves none.
        let reported = (0..4).filter(|_| word.failed(ROW, NOW)).count();
        assert_eq!(reported, usize::from(!asked));
    });
}

/// A late success does not clear the mark of an ejection.
#[test]
fn mark_outlives_a_late_success() {
    loom::model(|| {
        let word = failed(4);
        assert!(word.failed(ROW, NOW));
        let other = spawn(&word, |word| word.served(NOW));
        word.put_out();
        other.join().unwrap();
        assert!((0..9).all(|_| !word.failed(ROW, NOW)), "it is out");
        word.let_in(false);
        assert!(word.failed(ROW, NOW), "one failure is enough");
    });
}

/// Of the attempts that fail with one connection, exactly one opens the event. An attempt that was sent later opens the
/// next one.
// C-8, CI-5, E-21
#[test]
fn event_is_opened_once() {
    loom::model(|| {
        let word = Arc::new(EventWord::default());
        let [sent, seen, later] = [1, 5, 6].map(Duration::from_millis);
        let threads = [seen, later].map(|now| spawn(&word, move |word| word.opens(sent, now)));
        let own = word.opens(sent, seen);
        let [one, other] = threads.map(|thread| thread.join().unwrap());
        assert_eq!([own, one, other].into_iter().filter(|opens| *opens).count(), 1);
        let next = Duration::from_millis(7);
        assert!(word.opens(next, next + seen) && !word.opens(next, next + later));
    });
}

/// A refused connection beside a success: either the success clears the mark, or it came before the mark. The failure
/// is never lost.
// C-9, E-22
#[test]
fn mark_of_unreachable_is_cleared_or_stays() {
    loom::model(|| {
        let word = failed(0);
        assert!(word.not_connected(NOW));
        let other = spawn(&word, |word| word.served(NOW));
        word.mark_unreachable();
        let reported = word.not_connected(NOW);
        other.join().unwrap();
        if reported {
            assert!(!word.is_unreachable(), "only a success clears the mark");
        }
        assert!(word.rate(NOW) > 65_536 / 8);
        word.try_again();
        assert!(word.is_on_trial() && !word.is_unreachable());
    });
}

/// The counts of a window are exact.
#[test]
fn window_loses_no_call() {
    loom::model(|| {
        let word = Arc::new(WindowWord::default());
        for call in 0..18 {
            // Nine failures of 18 calls.
            match call % 2 {
                0 => assert!(!is_enough(word.failed(NOW))),
                _ => word.served(NOW),
            }
        }
        let other = spawn(&word, |word| word.served(NOW));
        let early = is_enough(word.failed(NOW));
        other.join().unwrap();
        // The twentieth call, ten of which have failed.
        assert!(early || is_enough(word.failed(NOW)));
    });
}

/// Of two concurrent samples, one is kept whole: the latency is one that a thread has measured, or twice the shorter
/// one.
// P-2
#[test]
fn latency_is_never_torn() {
    loom::model(|| {
        let word = Arc::new(LatencyWord::default());
        let [short, long] = [256, 25_600].map(Duration::from_nanos);
        let other = spawn(&word, move |word| word.served(long, NOW + 1));
        word.served(short, NOW);
        let seen = word.read(NOW + 1);
        other.join().unwrap();
        assert!([1, 2, 100].contains(&seen), "{seen}");
        assert!([1, 2, 100].contains(&word.read(NOW + 1)));
    });
}

/// A failure beside a success never lowers the latency below the known one.
#[test]
fn failure_keeps_the_latency() {
    loom::model(|| {
        let word = Arc::new(LatencyWord::default());
        word.served(Duration::from_nanos(25_600), NOW);
        let other = spawn(&word, |word| word.failed(Duration::from_nanos(1), NOW));
        word.abandoned(Duration::from_nanos(256), NOW);
        other.join().unwrap();
        assert_eq!(word.read(NOW), 100);
    });
}

/// Of two concurrent attempts without an answer, one is kept whole as the lower bound. The first answer ends it.
// P-7
#[test]
fn lower_bound_is_never_torn() {
    loom::model(|| {
        let word = Arc::new(LatencyWord::default());
        word.forget(3, NOW);
        let [short, long] = [4096, 3 * 4096].map(|units| Duration::from_nanos(units * 256));
        let other = spawn(&word, move |word| word.failed(long, NOW));
        word.abandoned(short, NOW);
        other.join().unwrap();
        assert!([4096, 3 * 4096].contains(&word.at_least(NOW)));
        assert_eq!((word.read(NOW), word.open_before()), (0, 3));
        word.served(short, NOW);
        assert_eq!((word.read(NOW), word.open_before(), word.at_least(NOW)), (4096, 0, 0));
    });
}

/// An answer beside a return: either it measures the endpoint anew, or it is forgotten with what was known. If it lies
/// between the read and the write of another one, it takes part in both.
// P-5
#[test]
fn return_forgets_all_or_comes_first() {
    loom::model(|| {
        let word = Arc::new(LatencyWord::default());
        word.served(Duration::from_nanos(25_600), NOW);
        let other = spawn(&word, |word| word.served(Duration::from_nanos(256), NOW));
        word.forget(0, NOW);
        other.join().unwrap();
        assert!([0, 1].contains(&word.read(NOW)));
    });
}
