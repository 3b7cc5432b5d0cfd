//! Models of the cautious bucket: in every order of events, no failure and no token is lost, and no more retries are
//! granted than the bounds allow.

use std::sync::Arc;
use std::time::Duration;

use loom::thread;
use reattempt_core::{FailureKind, PermitIssuer};

use crate::bucket::{TOKEN, Take};
use crate::cautious::{Cause, Caution, CautiousBucket, Event, MOST_DOUBT, QUIET, Wants};
use crate::not_full::{BucketCount, NotFull, Slot};

const START: Duration = Duration::ZERO;
const HASH: u64 = 0;
const FAILURE: Event = event(FailureKind::Server, Cause::Own, Wants::Nothing);
const RETRY: Event = event(FailureKind::Server, Cause::Own, Wants::Retry);
const HEDGE: Event = event(FailureKind::Other, Cause::Own, Wants::Hedge);
const LOST: Event = event(FailureKind::Network, Cause::Shared { sent: START }, Wants::Retry);
const REFUSED: Event = event(FailureKind::Network, Cause::Shared { sent: START }, Wants::Replacement);

const fn event(kind: FailureKind, cause: Cause, wants: Wants) -> Event {
    Event { kind, cause, wants }
}

/// Creates a bucket of `capacity` tokens that earns half a token per success, after this many failures.
fn bucket(capacity: u64, failures: u64) -> (Arc<CautiousBucket>, Arc<NotFull>) {
    let not_full = Arc::new(NotFull::new());
    let counted = BucketCount { not_full: Arc::clone(&not_full), slot: Slot::of(HASH) };
    let rule = Caution { capacity: capacity * TOKEN, credit: TOKEN / 2, debt: 512 * TOKEN };
    let bucket = Arc::new(CautiousBucket::new(rule, counted));
    for _ in 0..failures {
        bucket.record(FAILURE, START);
    }
    (bucket, not_full)
}

/// Records an event in its own thread; returns the number of tokens granted.
fn recorder(bucket: &Arc<CautiousBucket>, event: Event) -> thread::JoinHandle<u64> {
    let bucket = Arc::clone(bucket);
    thread::spawn(move || taken(&bucket, event))
}

fn taken(bucket: &CautiousBucket, event: Event) -> u64 {
    u64::from(bucket.record(event, START) == Take::Taken)
}

/// Returns tokens in halves, and doubt.
fn state(bucket: &CautiousBucket) -> (u64, u64) {
    (bucket.balance().unwrap().cast_unsigned() * 2 / TOKEN, bucket.doubt())
}

fn count(not_full: &NotFull) -> usize {
    assert_eq!(not_full.count_for(HASH) as usize, not_full.count());
    not_full.count()
}

#[test]
fn two_failures_take_what_is_allowed() {
    for (failures, allowed) in [(0, 2), (1, 2), (2, 1), (3, 0)] {
        loom::model(move || {
            let (bucket, not_full) = bucket(10, failures);
            let other = recorder(&bucket, RETRY);
            let granted = taken(&bucket, RETRY) + other.join().unwrap();
            assert_eq!(granted, allowed);
            assert_eq!(state(&bucket), (20 - 2 * allowed, failures + 2));
            assert_eq!(count(&not_full), 1);
        });
    }
}

#[test]
fn three_failures_race_for_the_last_doubt() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (bucket, _) = bucket(10, 1);
        let others = [recorder(&bucket, RETRY), recorder(&bucket, RETRY)];
        let own = taken(&bucket, RETRY);
        let granted = others.map(|other| other.join().unwrap()).iter().sum::<u64>() + own;
        assert_eq!((granted, state(&bucket)), (2, (16, 4)));
    });
}

#[test]
fn the_last_token_goes_to_one_failure() {
    loom::model(|| {
        let (bucket, _) = bucket(1, 0);
        let other = recorder(&bucket, RETRY);
        let granted = taken(&bucket, RETRY) + other.join().unwrap();
        assert_eq!((granted, state(&bucket)), (1, (0, 2)));
    });
}

/// A refused hedge leaves no doubt, but a refused failure does.
#[test]
fn hedge_and_failure_share_the_last_doubt() {
    loom::model(|| {
        let (bucket, _) = bucket(10, 2);
        let hedge = recorder(&bucket, HEDGE);
        let retry = taken(&bucket, RETRY);
        let hedge = hedge.join().unwrap();
        assert_eq!(hedge + retry, 1);
        assert_eq!(state(&bucket), (20 - 4 * hedge - 2 * retry, 3 + hedge));
    });
}

#[test]
fn a_failure_and_a_success_keep_each_other() {
    loom::model(|| {
        // Six failures, then a success for one of them: at most one more retry.
        let (bucket, not_full) = bucket(10, 3);
        let crediting = Arc::clone(&bucket);
        let crediting = thread::spawn(move || crediting.credit());
        let granted = taken(&bucket, RETRY);
        crediting.join().unwrap();
        // If the retry was granted, the success came first, and its half token did not fit.
        assert_eq!(state(&bucket), (20 - 2 * granted, 2));
        assert_eq!(count(&not_full), 1);
    });
}

#[test]
fn first_failure_and_success_are_counted() {
    loom::model(|| {
        let (bucket, not_full) = bucket(10, 0);
        let crediting = Arc::clone(&bucket);
        let crediting = thread::spawn(move || crediting.credit());
        assert_eq!(bucket.record(FAILURE, START), Take::Refused);
        crediting.join().unwrap();
        let doubt = bucket.doubt();
        assert!(doubt <= 1);
        assert_eq!(count(&not_full), doubt as usize);
    });
}

/// No doubt is left, and there is room for two credits.
#[test]
fn success_without_doubt_keeps_all_others() {
    for event in [None, Some(RETRY)] {
        loom::model(move || {
            let (bucket, not_full) = bucket(10, 0);
            assert_eq!(taken(&bucket, HEDGE), 1);
            bucket.credit();
            assert_eq!(state(&bucket), (17, 0));
            let other = Arc::clone(&bucket);
            let other = thread::spawn(move || match event {
                None => drop(other.credit()),
                Some(event) => assert_eq!(taken(&other, event), 1),
            });
            bucket.credit();
            other.join().unwrap();
            let (tokens, doubt) = state(&bucket);
            match event {
                None => assert_eq!((tokens, doubt), (19, 0)),
                Some(_) => assert!(tokens == 16 && doubt <= 1, "{tokens} {doubt}"),
            }
            assert_eq!(count(&not_full), 1);
        });
    }
}

#[test]
fn a_retry_that_succeeds_returns_its_token() {
    loom::model(|| {
        let (bucket, not_full) = bucket(2, 0);
        assert_eq!(taken(&bucket, RETRY), 1);
        let succeeding = Arc::clone(&bucket);
        let succeeding = thread::spawn(move || {
            succeeding.on_retry_end(1, true);
            succeeding.credit();
        });
        let granted = taken(&bucket, RETRY);
        succeeding.join().unwrap();
        let (tokens, doubt) = state(&bucket);
        assert_eq!(granted, 1);
        assert!(doubt <= 1 && (2..=3).contains(&tokens), "{tokens} {doubt}");
        assert_eq!(count(&not_full), 1);
    });
}

#[test]
fn a_permit_given_back_can_be_taken_again() {
    loom::model(|| {
        let (bucket, not_full) = bucket(1, 0);
        assert_eq!(taken(&bucket, RETRY), 1);
        let other = recorder(&bucket, RETRY);
        bucket.give_back(1);
        let granted = other.join().unwrap();
        assert_eq!(state(&bucket), (2 - 2 * granted, 2));
        assert_eq!(count(&not_full), 1);
    });
}

/// Quiet fills the bucket before a failure or not at all.
#[test]
fn quiet_races_with_a_failure() {
    loom::model(|| {
        let (bucket, not_full) = bucket(2, 9);
        let quiet = QUIET;
        let other = Arc::clone(&bucket);
        let catching_up = thread::spawn(move || other.catch_up(quiet));
        assert_eq!(bucket.record(RETRY, quiet), Take::Taken);
        catching_up.join().unwrap();
        assert_eq!((state(&bucket), count(&not_full)), ((2, 1), 1));
    });
}

/// A failure from a thread whose clock is late does not make the bucket quiet any sooner.
#[test]
fn failure_ends_the_quiet_whoever_is_first() {
    loom::model(|| {
        let (bucket, not_full) = bucket(2, 9);
        let quiet = QUIET;
        let failing = Arc::clone(&bucket);
        let failing = thread::spawn(move || failing.record(FAILURE, Duration::from_secs(1)));
        bucket.catch_up(quiet);
        failing.join().unwrap();
        let doubt = bucket.doubt();
        assert!(doubt == 10 || doubt == 1, "{doubt}");
        assert_eq!(count(&not_full), 1);
    });
}

#[test]
fn a_bucket_is_retired_or_counts_a_failure() {
    for (failures, now) in [(0, START), (9, QUIET)] {
        loom::model(move || {
            let (bucket, not_full) = bucket(2, failures);
            let failing = Arc::clone(&bucket);
            let failing = thread::spawn(move || failing.record(FAILURE, now));
            let retired = bucket.retire(now, false, &|| true);
            let expected = if retired { Take::Retired } else { Take::Refused };
            assert_eq!(failing.join().unwrap(), expected);
            assert_eq!(bucket.balance().is_none(), retired);
            assert_eq!((bucket.doubt(), count(&not_full)), if retired { (0, 0) } else { (1, 1) });
        });
    }
}

#[test]
fn a_retired_bucket_is_left_alone() {
    loom::model(|| {
        let (bucket, not_full) = bucket(2, 9);
        let late = Arc::clone(&bucket);
        let late = thread::spawn(move || {
            late.credit();
            late.give_back(1);
            late.on_retry_end(1, true);
        });
        let retired = bucket.retire(QUIET, false, &|| true);
        late.join().unwrap();
        // A concurrent success may end the attempt to retire the bucket.
        assert!(retired || bucket.retire(QUIET, false, &|| true));
        assert_eq!((bucket.balance(), count(&not_full)), (None, 0));
        assert!(!bucket.credit());
    });
}

#[test]
fn calls_of_lost_connection_are_one_failure() {
    loom::model(|| {
        let (bucket, _) = bucket(10, 0);
        let other = recorder(&bucket, LOST);
        let granted = taken(&bucket, LOST) + other.join().unwrap();
        assert_eq!((granted, state(&bucket)), (2, (16, 1)));
    });
}

/// One member overdraws the bucket, and none of the debt is lost.
// C-5
#[test]
fn members_race_for_the_last_token() {
    loom::model(|| {
        let (bucket, not_full) = bucket(2, 0);
        assert_eq!(taken(&bucket, LOST), 1);
        let other = Arc::clone(&bucket);
        let other = thread::spawn(move || other.record(LOST, START));
        let own = bucket.record(LOST, START);
        let takes = [own, other.join().unwrap()];
        assert!(takes.contains(&Take::Taken) && takes.contains(&Take::Overdrawn), "{takes:?}");
        assert_eq!((bucket.balance(), bucket.doubt()), (Some(-2 * TOKEN.cast_signed()), 1));
        assert_eq!(count(&not_full), 1);
    });
}

/// A success may come before or after an overdrawn retry, and is kept either way.
// C-5
#[test]
fn overdraft_and_success_keep_each_other() {
    loom::model(|| {
        let (bucket, _) = bucket(2, 0);
        assert_eq!(taken(&bucket, LOST) + taken(&bucket, LOST), 2);
        let crediting = Arc::clone(&bucket);
        let crediting = thread::spawn(move || crediting.credit());
        assert_eq!(bucket.record(LOST, START), Take::Overdrawn);
        assert!(crediting.join().unwrap());
        assert_eq!((bucket.balance(), bucket.doubt()), (Some(-3 * TOKEN.cast_signed() / 2), 0));
    });
}

/// Streams that one refusal ended add one doubt, whichever is seen first.
// C-2
#[test]
fn refused_streams_are_one_failure() {
    loom::model(|| {
        let (bucket, _) = bucket(10, 2);
        let other = recorder(&bucket, REFUSED);
        assert_eq!(taken(&bucket, REFUSED) + other.join().unwrap(), 2);
        assert_eq!(state(&bucket), (20, 3));
    });
}

#[test]
fn doubt_has_a_bound_that_races_keep() {
    loom::model(|| {
        let (bucket, _) = bucket(10, MOST_DOUBT - 1);
        let other = recorder(&bucket, RETRY);
        assert_eq!(taken(&bucket, RETRY) + other.join().unwrap(), 0);
        assert_eq!(state(&bucket), (20, MOST_DOUBT));
    });
}
