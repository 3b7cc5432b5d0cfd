//! Tests of attempts that provably were not processed: replaced without a permit, within bounds.

use core::time::Duration;
use std::sync::Mutex;

use reattempt_core::{
    Budget, Call, Decision, Evidence, FailedAttempt, Failure, FailureKind, Fault, Permit, StopReason, Terms, Undone,
    Verdict,
};

use super::{AGAIN, Counting, SECOND, decide, limits, terms};
use crate::support::{Bucket, FAILURE};

const CONNECT: Failure = Failure::new(FailureKind::Connect);

/// A budget that grants everything but replacements.
#[derive(Default)]
struct Doubting(Mutex<Vec<Evidence>>);

impl Budget for Doubting {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        Some(Permit::free())
    }

    fn on_unprocessed(&self, _: &str, evidence: &Evidence, _: Duration) -> bool {
        self.0.lock().unwrap().push(*evidence);
        false
    }
}

fn not_connected() -> FailedAttempt<'static> {
    FailedAttempt::new(Verdict::NotProcessed(CONNECT), "x", Duration::ZERO).elsewhere(true)
}

fn refused(undone: Undone) -> FailedAttempt<'static> {
    let verdict = Verdict::NotProcessed(Failure::new(FailureKind::Network));
    FailedAttempt { undone: Some(undone), ..FailedAttempt::new(verdict, "x", Duration::ZERO) }
}

/// A call moves on at once while another endpoint is left, without a token or an attempt.
// C-3, CI-4
#[test]
fn no_connection_moves_three_times() {
    let bucket = Bucket::of(1);
    let mut call = Call::new(&Counting);
    for _ in 0..3 {
        assert_eq!(decide(&mut call, &terms(), &not_connected(), &bucket), Decision::Resend);
        call.on_send();
        assert_eq!((call.attempt(), bucket.tokens()), (1, 1));
    }
    // After that it is a retry, which goes elsewhere at once but is paid for.
    let decision = decide(&mut call, &terms(), &not_connected(), &bucket);
    assert_eq!((decision, bucket.tokens()), (Decision::Retry { after: Duration::ZERO }, 0));
}

// C-3
#[test]
fn no_connection_stays_where_it_must() {
    let bucket = Bucket::of(9);
    let moves = |attempt: &FailedAttempt<'_>, terms: &Terms| {
        decide(&mut Call::new(&Counting), terms, attempt, &bucket) == Decision::Resend
    };
    assert!(moves(&not_connected(), &terms()));
    assert!(!moves(&not_connected().elsewhere(false), &terms()), "the last endpoint's failure is the service's");
    assert!(!moves(&FailedAttempt { responded: true, ..not_connected() }, &terms()));
    assert!(!moves(&FailedAttempt { replayable: false, ..not_connected() }, &terms()));
    assert!(!moves(&not_connected().elapsed(SECOND * 31), &terms()), "the call is out of time");
    let transient = FailedAttempt::new(Verdict::Transient(CONNECT), "x", Duration::ZERO).elsewhere(true);
    assert!(!moves(&transient, &terms()), "perhaps it was processed");
}

/// The budget's doubt is the brake for a server that refuses everything.
// C-2, CI-3
#[test]
fn budget_may_refuse_a_replacement() {
    for undone in [Undone::Refused, Undone::Excluded] {
        let budget = Doubting::default();
        let mut call = Call::new(&Counting);
        assert_eq!(decide(&mut call, &terms(), &refused(undone).sent(SECOND), &budget), AGAIN);
        let asked = budget.0.into_inner().unwrap();
        assert_eq!(
            asked.iter().map(|evidence| (evidence.undone, evidence.sent)).collect::<Vec<_>>(),
            [(Some(undone), SECOND)]
        );
    }
    // These never reached the server, so its budget is not asked.
    for undone in [Undone::NoConnection, Undone::NotDispatched] {
        let decision = decide(&mut Call::new(&Counting), &terms(), &refused(undone), &Doubting::default());
        assert_eq!(decision, Decision::Resend);
    }
}

/// A GOAWAY and a refused stream are one kind, so together they replace one attempt.
// C-2
#[test]
fn refusals_are_replaced_once() {
    let bucket = Bucket::of(9);
    let mut call = Call::new(&Counting);
    assert_eq!(decide(&mut call, &terms(), &refused(Undone::Excluded), &bucket), Decision::Resend);
    call.on_send();
    assert_eq!(decide(&mut call, &terms(), &refused(Undone::Refused), &bucket), AGAIN);
}

/// A retry that fails on this machine never reached the server, so its token comes back.
// trap 62
#[test]
fn local_fault_pays_the_retry_back() {
    let bucket = Bucket::of(1);
    let terms = Terms::new(limits(5));
    let local = FailedAttempt { fault: Some(Fault::Local), ..not_connected().elsewhere(false) };
    let mut call = Call::new(&Counting);
    for second in 1..=4 {
        let decision = decide(&mut call, &terms, &local, &bucket);
        assert_eq!(decision, Decision::Retry { after: SECOND * second });
        assert_eq!(bucket.tokens(), 0);
        call.on_send();
    }
    assert_eq!(decide(&mut call, &terms, &local, &bucket), Decision::Return(StopReason::AttemptsExhausted));
    assert_eq!(bucket.tokens(), 1);
    let failed = FailedAttempt::new(Verdict::Transient(FAILURE), "x", Duration::ZERO);
    let mut call = Call::new(&Counting);
    for _ in 0..2 {
        decide(&mut call, &terms, &failed, &bucket);
        call.on_send();
    }
    assert_eq!(bucket.tokens(), 0, "a failure at the server is paid for");
}
