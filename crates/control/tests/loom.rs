//! The bucket under the model checker, which tries every order in which the threads can run and
//! every value that they may read.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p reattempt-control --test loom --release`.
#![cfg(loom)]

#[allow(dead_code, reason = "only what the models use")]
#[path = "../src/budget/bucket.rs"]
mod bucket;
#[path = "../src/sync.rs"]
mod sync;

use std::sync::Arc;
use std::time::Duration;

use bucket::{Bucket, Rule, TOKEN, Take};
use loom::thread;
use reattempt_core::GiveBack;
use sync::{AtomicUsize, Ordering};

const START: Duration = Duration::ZERO;

/// A bucket that holds `held` of `capacity` tokens, and the count that it keeps.
fn bucket(capacity: u64, held: u64, refill: u64) -> (Arc<Bucket>, Arc<AtomicUsize>) {
    let rule = Rule { capacity: capacity * TOKEN, ratio: TOKEN / 2, refill: refill * TOKEN };
    let not_full = Arc::new(AtomicUsize::new(0));
    let bucket = Arc::new(Bucket::new(rule, Arc::clone(&not_full)));
    for _ in held..capacity {
        assert_eq!(bucket.take(START), Take::Taken);
    }
    (bucket, not_full)
}

/// Takes in a thread of its own; gives how many tokens it got, 0 or 1.
fn taker(bucket: &Arc<Bucket>, now: Duration) -> thread::JoinHandle<u64> {
    let bucket = Arc::clone(bucket);
    thread::spawn(move || u64::from(bucket.take(now) == Take::Taken))
}

fn count(not_full: &AtomicUsize) -> usize {
    not_full.load(Ordering::Acquire)
}

#[test]
fn the_last_token_goes_to_one_taker() {
    loom::model(|| {
        let (bucket, not_full) = bucket(1, 1, 0);
        let other = taker(&bucket, START);
        let own = u64::from(bucket.take(START) == Take::Taken);
        assert_eq!(own + other.join().unwrap(), 1);
        assert_eq!((bucket.balance(), count(&not_full)), (Some(0), 1));
    });
}

#[test]
fn a_token_given_back_can_be_taken_again() {
    loom::model(|| {
        let (bucket, not_full) = bucket(2, 1, 0);
        let other = taker(&bucket, START);
        let taken = bucket.take(START) == Take::Taken;
        if taken {
            bucket.give_back(1);
        }
        let other = other.join().unwrap();
        assert!(taken || other == 1);
        assert_eq!((bucket.balance(), count(&not_full)), (Some((1 - other) * TOKEN), 1));
    });
}

#[test]
fn no_credit_is_lost_and_none_goes_past_the_capacity() {
    loom::model(|| {
        let (bucket, not_full) = bucket(1, 0, 0);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let bucket = Arc::clone(&bucket);
                thread::spawn(move || bucket.credit())
            })
            .collect();
        bucket.give_back(0);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!((bucket.balance(), count(&not_full)), (Some(TOKEN), 0));
        bucket.credit();
        assert_eq!((bucket.balance(), count(&not_full)), (Some(TOKEN), 0));
    });
}

#[test]
fn a_credit_and_a_take_do_not_lose_each_other() {
    loom::model(|| {
        let (bucket, not_full) = bucket(2, 1, 0);
        let other = taker(&bucket, START);
        bucket.credit();
        assert_eq!(other.join().unwrap(), 1);
        assert_eq!((bucket.balance(), count(&not_full)), (Some(TOKEN / 2), 1));
    });
}

#[test]
fn time_is_credited_once() {
    loom::model(|| {
        let (bucket, _) = bucket(2, 0, 1);
        let later = Duration::from_secs(1);
        let other = taker(&bucket, later);
        let own = u64::from(bucket.take(later) == Take::Taken);
        assert_eq!(own + other.join().unwrap(), 1);
        assert_eq!(bucket.take(later), Take::Refused);
    });
}

#[test]
fn nobody_is_refused_what_time_has_added() {
    loom::model(|| {
        let (bucket, _) = bucket(2, 0, 1);
        let later = Duration::from_secs(2);
        let other = taker(&bucket, later);
        let own = u64::from(bucket.take(later) == Take::Taken);
        assert_eq!(own + other.join().unwrap(), 2);
    });
}

#[test]
fn time_that_passes_while_the_bucket_is_full_adds_nothing() {
    loom::model(|| {
        let (bucket, _) = bucket(1, 1, 1);
        let later = Duration::from_secs(3600);
        let other = taker(&bucket, later);
        let own = u64::from(bucket.take(later) == Take::Taken);
        assert_eq!(own + other.join().unwrap(), 1);
        assert_eq!(bucket.take(later), Take::Refused);
    });
}

#[test]
fn takers_with_different_clocks_share_what_the_latest_allows() {
    loom::model(|| {
        let (bucket, _) = bucket(3, 0, 1);
        let late = Duration::from_secs(2);
        let other = taker(&bucket, late);
        let own = u64::from(bucket.take(Duration::from_secs(1)) == Take::Taken);
        let mut taken = own + other.join().unwrap();
        while bucket.take(late) == Take::Taken {
            taken += 1;
        }
        assert_eq!(taken, 2);
    });
}

#[test]
fn a_refill_a_credit_and_a_take_add_up() {
    // Three threads: every order with up to three preemptions, else it would take a minute.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (bucket, not_full) = bucket(4, 0, 1);
        let later = Duration::from_secs(1);
        let other = taker(&bucket, later);
        let crediting = Arc::clone(&bucket);
        let crediting = thread::spawn(move || crediting.credit());
        let own = u64::from(bucket.take(later) == Take::Taken);
        let taken = own + other.join().unwrap();
        crediting.join().unwrap();
        assert_eq!((taken, bucket.balance()), (1, Some(TOKEN / 2)));
        assert_eq!(count(&not_full), 1);
    });
}

#[test]
fn a_bucket_is_retired_or_taken_from_and_never_both() {
    loom::model(|| {
        let (bucket, not_full) = bucket(1, 1, 0);
        let taking = Arc::clone(&bucket);
        let taking = thread::spawn(move || taking.take(START));
        let retired = bucket.retire(START);
        let taken = taking.join().unwrap();
        assert_eq!(taken, if retired { Take::Retired } else { Take::Taken });
        assert_eq!(count(&not_full), usize::from(!retired));
    });
}

#[test]
fn a_retired_bucket_is_left_alone_by_late_permits_and_credits() {
    loom::model(|| {
        // The permit of its only token is out, and time has filled it up again.
        let (bucket, not_full) = bucket(1, 0, 1);
        let late = Arc::clone(&bucket);
        let late = thread::spawn(move || {
            late.credit();
            late.give_back(1);
        });
        let retired = bucket.retire(Duration::from_secs(1));
        late.join().unwrap();
        assert_eq!(bucket.balance(), if retired { None } else { Some(TOKEN) });
        assert_eq!(count(&not_full), 0);
        assert!(retired || bucket.retire(START));
    });
}

#[test]
fn the_count_is_not_zero_once_a_token_is_seen_to_be_gone() {
    loom::model(|| {
        let (bucket, not_full) = bucket(1, 1, 0);
        let seen = Arc::clone(&bucket);
        let observer = thread::spawn(move || {
            if seen.balance() == Some(0) {
                assert_eq!(count(&not_full), 1);
            }
        });
        assert_eq!(bucket.take(START), Take::Taken);
        observer.join().unwrap();
    });
}

#[test]
fn the_count_is_zero_only_once_the_bucket_is_seen_to_be_full() {
    loom::model(|| {
        let (bucket, not_full) = bucket(1, 0, 0);
        bucket.credit();
        let crediting = Arc::clone(&bucket);
        let crediting = thread::spawn(move || crediting.credit());
        if count(&not_full) == 0 {
            assert_eq!(bucket.balance(), Some(TOKEN));
        }
        crediting.join().unwrap();
        assert_eq!(count(&not_full), 0);
    });
}
