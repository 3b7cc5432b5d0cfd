//! Models of a rate limiter: tokens, the queue of waiting calls, and calls that leave it.

#[allow(dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/guard/rate_limit/limit.rs"]
mod limit;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/guard/rate_limit/limiter.rs"]
mod limiter;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/guard/rate_limit/tokens.rs"]
mod tokens;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use limit::{Limit, TOKEN};
use limiter::{Forgets, Limiter, LimiterNote, LimiterSettings};
use loom::thread;
use reattempt_core::guard::{Admit, Arrival, GuardKind, Resume};

use crate::wait_queue::Patience;

const NOW: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(2);

/// Returns a limiter of one token per second with a burst of one.
fn limiter() -> Arc<Limiter> {
    let patience = Patience { calls: 9, time: Duration::from_secs(9) };
    let (limit, kind) = (Limit::per_second(1), GuardKind::RATE_LIMIT);
    Arc::new(Limiter::new(LimiterSettings { limit, burst: TOKEN, patience, following: None, kind }))
}

fn waiting(limiter: &Limiter) -> LimiterNote {
    match limiter.admit(&Arrival::new("", NOW)) {
        Some(Admit::Waiting(note)) => note,
        _ => panic!("it does not wait"),
    }
}

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_last_token_goes_to_one_call() {
    loom::model(|| {
        let limiter = limiter();
        let other = Arc::clone(&limiter);
        let other = thread::spawn(move || other.allow(TOKEN, NOW));
        let own = limiter.allow(TOKEN, NOW);
        assert_eq!([own, other.join().unwrap()].iter().filter(|one| **one == Some(true)).count(), 1);
    });
}

/// The call behind a dropped one gets its time, and is woken for it unless it checks afterwards.
// G-14
#[test]
fn a_dropped_call_hands_on_its_moment() {
    loom::model(|| {
        let limiter = limiter();
        assert_eq!(limiter.allow(TOKEN, NOW), Some(true));
        let (first, mut second) = (waiting(&limiter), waiting(&limiter));
        let other = Arc::clone(&limiter);
        let other = thread::spawn(move || other.unsent(&first, NOW));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let resume = limiter.resume(&mut second, &Arrival::new("", NOW), &waker);
        other.join().unwrap();
        let moved_up = resume == Resume::Waiting { until: Some(LATER) };
        assert!(moved_up || woken.0.load(Ordering::Relaxed) == 1, "{resume:?}");
        let arrival = Arrival::new("", LATER);
        assert_eq!(limiter.resume(&mut second, &arrival, &waker), Resume::Admitted);
        assert_eq!(limiter.allow(TOKEN, LATER), Some(false));
    });
}

// A new destination's limiter is not retired while it has an admitted call.
#[test]
fn tokens_are_taken_or_it_is_retired() {
    loom::model(|| {
        let limiter = limiter();
        let other = Arc::clone(&limiter);
        let other = thread::spawn(move || other.retire(NOW, Forgets::Nothing, &|| true));
        let allowed = limiter.allow(TOKEN, NOW).is_some();
        assert_ne!(allowed, other.join().unwrap());
    });
}
