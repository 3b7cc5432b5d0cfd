//! Tests of the evidence in an outcome, as a table of its signs.

use core::time::Duration;

use reattempt_core::guard::Health;
use reattempt_core::{Evidence, Failure, FailureKind, Fault, Proof, Signs, Undone, Verdict, Work};

const MS: Duration = Duration::from_millis(1);

fn transient(kind: FailureKind) -> Verdict {
    Verdict::Transient(Failure::new(kind))
}

fn unprocessed(kind: FailureKind) -> Verdict {
    Verdict::NotProcessed(Failure::new(kind))
}

fn status(code: u16) -> Verdict {
    Verdict::Transient(Failure::new(FailureKind::Server).with_code(code))
}

fn of(verdict: Verdict, undone: Option<Undone>, fault: Option<Fault>) -> Evidence {
    Evidence::of(&Signs { undone, fault, unavailable: &[503, 504], ..Signs::new(verdict) })
}

#[test]
fn each_kind_of_failure_has_one_health() {
    for (verdict, health, is_shared) in [
        (transient(FailureKind::Network), Health::Lost, true),
        (unprocessed(FailureKind::Connect), Health::NotConnected, true),
        (Verdict::renew(), Health::Served, true),
        (status(401), Health::Lost, true),
        (status(408), Health::Ignored, false),
        (status(429), Health::Failed, false),
        (transient(FailureKind::Timeout), Health::Unavailable, false),
        (Verdict::throttled(), Health::Overloaded, false),
        (status(500), Health::Failed, false),
        (status(503), Health::Unavailable, false),
        (transient(FailureKind::Other), Health::Failed, false),
        (Verdict::Success, Health::Served, false),
        (Verdict::Permanent, Health::Failed, false),
    ] {
        let evidence = of(verdict, None, None);
        assert_eq!((evidence.health, evidence.is_shared()), (health, is_shared), "{verdict:?}");
        assert!(!evidence.is_local(), "{verdict:?}");
    }
}

/// A fault that is not the server's decides over the verdict.
// trap 61, trap 62
#[test]
fn fault_decides_whose_matter_it_is() {
    for verdict in [unprocessed(FailureKind::Connect), transient(FailureKind::Network), Verdict::Permanent] {
        let (local, caller) = (of(verdict, None, Some(Fault::Local)), of(verdict, None, Some(Fault::Caller)));
        assert_eq!((local.health, local.is_local()), (Health::Local, true), "{verdict:?}");
        assert_eq!((caller.health, caller.is_local()), (Health::Ignored, false), "{verdict:?}");
    }
}

#[test]
fn each_proof_has_a_name() {
    for (verdict, undone, proof) in [
        (unprocessed(FailureKind::Connect), None, Some(Proof::NotConnected)),
        (unprocessed(FailureKind::Connect), Some(Undone::NoConnection), Some(Proof::OtherConnection)),
        (unprocessed(FailureKind::Connect), Some(Undone::NotDispatched), Some(Proof::NotDispatched)),
        (unprocessed(FailureKind::Network), Some(Undone::Refused), Some(Proof::RefusedStream)),
        (unprocessed(FailureKind::Network), Some(Undone::Excluded), Some(Proof::GoAway)),
        (Verdict::throttled(), None, Some(Proof::Rejected)),
        (status(503), None, None),
        (transient(FailureKind::Network), None, None),
    ] {
        let evidence = of(verdict, undone, None);
        assert_eq!(evidence.proof(), proof, "{verdict:?} {undone:?}");
        assert_eq!(evidence.work == Work::None, proof.is_some(), "{verdict:?} {undone:?}");
    }
    let all = [Proof::NotSent, Proof::NotConnected, Proof::OtherConnection, Proof::NotDispatched, Proof::RefusedStream];
    let names = all.into_iter().chain([Proof::GoAway, Proof::Rejected]).map(Proof::name);
    assert_eq!(names.collect::<std::collections::HashSet<_>>().len(), 7);
}

/// A connection that ended before it took the request says nothing about the server, but budgets still count it.
// C-1
#[test]
fn undispatched_is_no_local_fault() {
    let evidence = of(unprocessed(FailureKind::Connect), Some(Undone::NotDispatched), None);
    assert_eq!((evidence.health, evidence.is_local(), evidence.is_shared()), (Health::Local, false, true));
}

#[test]
fn event_has_the_attempts_sent_before_it() {
    let lost = Evidence::from(transient(FailureKind::Network));
    assert!(lost.sent_at(5 * MS).is_of_event(5 * MS));
    assert!(!lost.sent_at(6 * MS).is_of_event(5 * MS));
    assert!(!lost.is_of_event(5 * MS), "the time of sending is unknown");
    assert!(!Evidence::from(status(503)).sent_at(MS).is_of_event(5 * MS));
}
