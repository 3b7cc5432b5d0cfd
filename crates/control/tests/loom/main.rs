//! Models of the bucket: the checker tries every order in which the threads can run, and every value that they may
//! read.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p reattempt-control --test loom --release`.
#![cfg(loom)]

#[allow(unreachable_pub, reason = "the crate exports it")]
#[path = "../../src/bounded_name.rs"]
mod bounded_name;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/budget/bucket.rs"]
mod bucket;
#[path = "caution.rs"]
mod caution;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/budget/cautious.rs"]
mod cautious;
#[path = "circuit.rs"]
mod circuit;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/destination_table.rs"]
mod destination_table;
#[path = "endpoints.rs"]
mod endpoints_model;
#[path = "../../src/endpoints/event_word.rs"]
mod event_word;
#[path = "keyed.rs"]
mod keyed_model;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/endpoints/latency_word.rs"]
mod latency_word;
#[path = "limiter.rs"]
mod limiter_model;
#[path = "server_load.rs"]
mod load_model;
#[path = "memory.rs"]
mod memory_model;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/millionths.rs"]
mod millionths;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/budget/not_full.rs"]
mod not_full;
#[path = "pause.rs"]
mod pause_model;
#[path = "places.rs"]
mod places_model;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/sync.rs"]
mod sync;
#[path = "../../src/guard/time.rs"]
mod time;
#[allow(dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/guard/usual_latency.rs"]
mod usual_latency;
#[allow(dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/guard/wait_queue.rs"]
mod wait_queue;
#[path = "window.rs"]
mod window_model;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/endpoints/words.rs"]
mod words;

use std::sync::Arc;
use std::time::Duration;

use bucket::{Bucket, TOKEN, Take, TokenRule};
use loom::thread;
use not_full::{BucketCount, NotFull, Slot};
use reattempt_core::PermitIssuer;

const START: Duration = Duration::ZERO;
const HASH: u64 = 0;

/// Creates a bucket that holds `held` of `capacity` tokens, with its count.
fn bucket(capacity: u64, held: u64, refill: u64) -> (Arc<Bucket>, Arc<NotFull>) {
    let not_full = Arc::new(NotFull::new());
    let counted = BucketCount { not_full: Arc::clone(&not_full), slot: Slot::of(HASH) };
    (bucket_counted(capacity, held, refill, counted), not_full)
}

/// Creates a bucket that is counted for every destination, as the one that all share.
fn bucket_of_all(capacity: u64, held: u64, refill: u64) -> (Arc<Bucket>, Arc<NotFull>) {
    let not_full = Arc::new(NotFull::new());
    let counted = BucketCount { not_full: Arc::clone(&not_full), slot: Slot::OTHERS };
    (bucket_counted(capacity, held, refill, counted), not_full)
}

fn bucket_counted(capacity: u64, held: u64, refill: u64, counted: BucketCount) -> Arc<Bucket> {
    let (capacity_held, refill) = (capacity * TOKEN, refill * TOKEN);
    let rule = TokenRule { capacity: capacity_held, ratio: TOKEN / 2, refill, refunds: true };
    let bucket = Arc::new(Bucket::new(rule, counted));
    for _ in held..capacity {
        assert_eq!(bucket.take(1, START), Take::Taken);
    }
    bucket
}

/// Takes in its own thread; returns the number of tokens taken, 0 or 1.
fn taker(bucket: &Arc<Bucket>, now: Duration) -> thread::JoinHandle<u64> {
    let bucket = Arc::clone(bucket);
    thread::spawn(move || u64::from(bucket.take(1, now) == Take::Taken))
}

/// Returns the count of buckets that are not full: while no thread changes it, the total and the count by hash are the
/// same.
fn count(not_full: &NotFull) -> usize {
    let count = not_full.count();
    assert_eq!(not_full.count_for(HASH) as usize, count);
    count
}

#[test]
fn the_last_token_goes_to_one_taker() {
    loom::model(|| {
        let (bucket, not_full) = bucket(1, 1, 0);
        let other = taker(&bucket, START);
        let own = u64::from(bucket.take(1, START) == Take::Taken);
        assert_eq!(own + other.join().unwrap(), 1);
        assert_eq!((bucket.balance(), count(&not_full)), (Some(0), 1));
    });
}

#[test]
fn a_token_given_back_can_be_taken_again() {
    loom::model(|| {
        let (bucket, not_full) = bucket(2, 1, 0);
        let other = taker(&bucket, START);
        let taken = bucket.take(1, START) == Take::Taken;
        if taken {
            bucket.give_back(1);
        }
        let other = other.join().unwrap();
        assert!(taken || other == 1);
        assert_eq!((bucket.balance(), count(&not_full)), (Some((1 - other) * TOKEN), 1));
    });
}

#[test]
fn no_credit_is_lost_or_past_capacity() {
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
fn credit_and_take_do_not_lose_each_other() {
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
        let own = u64::from(bucket.take(1, later) == Take::Taken);
        assert_eq!(own + other.join().unwrap(), 1);
        assert_eq!(bucket.take(1, later), Take::Refused);
    });
}

#[test]
fn nobody_is_refused_what_time_has_added() {
    loom::model(|| {
        let (bucket, _) = bucket(2, 0, 1);
        let later = Duration::from_secs(2);
        let other = taker(&bucket, later);
        let own = u64::from(bucket.take(1, later) == Take::Taken);
        assert_eq!(own + other.join().unwrap(), 2);
    });
}

#[test]
fn time_at_full_bucket_adds_nothing() {
    loom::model(|| {
        let (bucket, _) = bucket(1, 1, 1);
        let later = Duration::from_secs(3600);
        let other = taker(&bucket, later);
        let own = u64::from(bucket.take(1, later) == Take::Taken);
        assert_eq!(own + other.join().unwrap(), 1);
        assert_eq!(bucket.take(1, later), Take::Refused);
    });
}

#[test]
fn takers_with_two_clocks_share_the_latest() {
    loom::model(|| {
        let (bucket, _) = bucket(3, 0, 1);
        let late = Duration::from_secs(2);
        let other = taker(&bucket, late);
        let own = u64::from(bucket.take(1, Duration::from_secs(1)) == Take::Taken);
        let mut taken = own + other.join().unwrap();
        while bucket.take(1, late) == Take::Taken {
            taken += 1;
        }
        assert_eq!(taken, 2);
    });
}

/// After two refills, the state has its earlier balance but another epoch.
#[test]
fn two_refills_are_not_taken_for_none() {
    loom::model(|| {
        let (bucket, _) = bucket(2, 0, 1);
        let [sooner, later] = [1, 2].map(Duration::from_secs);
        let refilling = Arc::clone(&bucket);
        let refilling =
            thread::spawn(move || [sooner, later].map(|now| u64::from(refilling.take(1, now) == Take::Taken)));
        let own = u64::from(bucket.take(1, sooner) == Take::Taken);
        let taken = own + refilling.join().unwrap().iter().sum::<u64>();
        assert!(taken <= 2, "{taken} tokens in two seconds");
    });
}

#[test]
fn a_refill_a_credit_and_a_take_add_up() {
    // Three threads: every order with up to three preemptions; otherwise it would take a minute.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (bucket, not_full) = bucket(4, 0, 1);
        let later = Duration::from_secs(1);
        let other = taker(&bucket, later);
        let crediting = Arc::clone(&bucket);
        let crediting = thread::spawn(move || crediting.credit());
        let own = u64::from(bucket.take(1, later) == Take::Taken);
        let taken = own + other.join().unwrap();
        crediting.join().unwrap();
        assert_eq!((taken, bucket.balance()), (1, Some(TOKEN / 2)));
        assert_eq!(count(&not_full), 1);
    });
}

#[test]
fn bucket_is_retired_or_taken_from() {
    loom::model(|| {
        let (bucket, not_full) = bucket(1, 1, 0);
        let taking = Arc::clone(&bucket);
        let taking = thread::spawn(move || taking.take(1, START));
        let retired = bucket.retire(START, false, &|| true);
        let taken = taking.join().unwrap();
        assert_eq!(taken, if retired { Take::Retired } else { Take::Taken });
        assert_eq!(count(&not_full), usize::from(!retired));
    });
}

#[test]
fn late_permits_spare_retired_bucket() {
    loom::model(|| {
        // The permit for its only token is taken, and time has filled it up again.
        let (bucket, not_full) = bucket(1, 0, 1);
        let late = Arc::clone(&bucket);
        let late = thread::spawn(move || {
            late.credit();
            late.give_back(1);
        });
        let retired = bucket.retire(Duration::from_secs(1), false, &|| true);
        late.join().unwrap();
        assert_eq!(bucket.balance(), if retired { None } else { Some(TOKEN) });
        assert_eq!(count(&not_full), 0);
        assert!(retired || bucket.retire(START, false, &|| true));
    });
}

#[test]
fn count_is_not_zero_once_token_is_gone() {
    loom::model(|| {
        let (bucket, not_full) = bucket(1, 1, 0);
        let seen = Arc::clone(&bucket);
        let observer = thread::spawn(move || {
            if seen.balance() == Some(0) {
                assert_eq!((not_full.count(), not_full.count_for(HASH)), (1, 1));
            }
        });
        assert_eq!(bucket.take(1, START), Take::Taken);
        observer.join().unwrap();
    });
}

#[test]
fn count_is_zero_only_once_bucket_is_full() {
    loom::model(|| {
        let (bucket, not_full) = bucket(1, 0, 0);
        bucket.credit();
        let crediting = Arc::clone(&bucket);
        let crediting = thread::spawn(move || crediting.credit());
        if not_full.count() == 0 {
            assert_eq!(bucket.balance(), Some(TOKEN));
        }
        if not_full.count_for(HASH) == 0 {
            assert_eq!(bucket.balance(), Some(TOKEN));
        }
        crediting.join().unwrap();
        assert_eq!(count(&not_full), 0);
    });
}

#[test]
fn caught_up_time_is_credited_once() {
    loom::model(|| {
        let (bucket, not_full) = bucket(1, 0, 1);
        let later = Duration::from_secs(1);
        let other = Arc::clone(&bucket);
        let other = thread::spawn(move || {
            other.catch_up(later);
            u64::from(other.take(1, later) == Take::Taken)
        });
        let own = u64::from(bucket.take(1, later) == Take::Taken);
        assert_eq!(own + other.join().unwrap(), 1);
        assert_eq!(bucket.take(1, later), Take::Refused);
        assert_eq!((bucket.balance(), count(&not_full)), (Some(0), 1));
    });
}

#[test]
fn time_and_credit_fill_bucket_once() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (bucket, not_full) = bucket(1, 0, 1);
        bucket.credit();
        let later = Duration::from_secs(1);
        let other = Arc::clone(&bucket);
        let catching_up = thread::spawn(move || other.catch_up(later));
        let credited = Arc::clone(&bucket);
        let crediting = thread::spawn(move || credited.credit());
        bucket.catch_up(later);
        catching_up.join().unwrap();
        crediting.join().unwrap();
        assert_eq!((bucket.balance(), count(&not_full)), (Some(TOKEN), 0));
    });
}

#[test]
fn retired_bucket_does_not_catch_up() {
    loom::model(|| {
        let (bucket, not_full) = bucket(1, 0, 1);
        let later = Duration::from_secs(1);
        let other = Arc::clone(&bucket);
        let catching_up = thread::spawn(move || other.catch_up(later));
        let retired = bucket.retire(later, false, &|| true);
        catching_up.join().unwrap();
        assert_eq!(bucket.balance().is_none(), retired);
        assert_eq!(count(&not_full), 0);
    });
}

#[test]
fn bucket_of_all_loses_no_token() {
    loom::model(|| {
        let (bucket, not_full) = bucket_of_all(2, 2, 0);
        let other = taker(&bucket, START);
        assert_eq!(bucket.take(1, START), Take::Taken);
        bucket.give_back(1);
        assert_eq!(other.join().unwrap(), 1);
        assert_eq!(bucket.balance(), Some(TOKEN));
        assert_eq!(count(&not_full), 1);
        bucket.give_back(5);
        assert_eq!(bucket.balance(), Some(2 * TOKEN));
        assert_eq!(count(&not_full), 0);
    });
}

#[test]
fn bucket_of_all_is_retired_or_taken() {
    loom::model(|| {
        let (bucket, not_full) = bucket_of_all(1, 1, 0);
        let taking = Arc::clone(&bucket);
        let taking = thread::spawn(move || taking.take(1, START));
        let retired = bucket.retire(START, false, &|| true);
        assert_eq!(taking.join().unwrap(), if retired { Take::Retired } else { Take::Taken });
        assert_eq!(bucket.balance(), (!retired).then_some(0));
        bucket.give_back(1);
        bucket.credit();
        assert_eq!(bucket.balance(), (!retired).then_some(TOKEN), "what is retired stays so");
        assert_eq!(count(&not_full), 0);
    });
}

#[test]
fn dear_take_and_cheap_one_never_overdraw() {
    loom::model(|| {
        // Not full, so that both take the fast path.
        let (bucket, not_full) = bucket(13, 12, 0);
        let dear = Arc::clone(&bucket);
        let dear = thread::spawn(move || dear.take(10, START));
        let cheap = bucket.take(5, START);
        let left = match (dear.join().unwrap(), cheap) {
            (Take::Taken, Take::Refused) => 2,
            (Take::Refused, Take::Taken) => 7,
            other => panic!("one of them, and one alone: {other:?}"),
        };
        assert_eq!((bucket.balance(), count(&not_full)), (Some(left * TOKEN), 1));
    });
}

#[test]
fn success_gives_back_what_has_room() {
    loom::model(|| {
        let (bucket, not_full) = bucket(12, 2, 0);
        let succeeding = Arc::clone(&bucket);
        let succeeding = thread::spawn(move || succeeding.on_retry_end(5, true));
        bucket.credit();
        let taken = bucket.take(5, START) == Take::Taken;
        succeeding.join().unwrap();
        let balance = 2 * TOKEN + 5 * TOKEN + TOKEN / 2 - u64::from(taken) * 5 * TOKEN;
        assert_eq!((bucket.balance(), count(&not_full)), (Some(balance), 1));
        bucket.on_retry_end(10, true);
        bucket.on_retry_end(10, true);
        assert_eq!((bucket.balance(), count(&not_full)), (Some(12 * TOKEN), 0));
    });
}

#[test]
fn filling_success_and_dear_take_both_count() {
    loom::model(|| {
        let (bucket, not_full) = bucket(10, 5, 0);
        // A take that fails only loads. If it ran first, loom would run no other order (tokio-rs/loom#166).
        let taking = Arc::clone(&bucket);
        let taking = thread::spawn(move || taking.take(10, START) == Take::Taken);
        bucket.on_retry_end(5, true);
        let taken = taking.join().unwrap();
        let left = if taken { 0 } else { 10 };
        assert_eq!(bucket.balance(), Some(left * TOKEN));
        assert_eq!(count(&not_full), usize::from(taken));
    });
}
