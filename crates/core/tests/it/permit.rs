//! Tests of permits, and of this crate's budgets.

use core::time::Duration;
use std::sync::Arc;

use crate::support::{Bucket, FAILURE, Log};
use reattempt_core::{Budget, Permit, PermitIssuer, ServerHint, SpendOnly, Unlimited};

const NOW: Duration = Duration::ZERO;

#[test]
fn dropped_permit_gives_back_spent_does_not() {
    let bucket = Bucket::of(10);
    let acquire = || bucket.acquire("a", &FAILURE, Duration::ZERO).unwrap();

    let permit = acquire();
    assert_eq!(bucket.tokens(), 9);
    drop(permit);
    assert_eq!(bucket.tokens(), 10);

    assert_eq!(acquire().spend().cost(), 1, "what was paid");
    assert_eq!(bucket.tokens(), 9);
}

#[test]
fn paid_retry_ends_once() {
    let bucket = Bucket::of(10);
    let retry = || bucket.acquire("a", &FAILURE, Duration::ZERO).unwrap().spend();
    let (lost, won) = (retry(), retry());
    bucket.log();
    drop(lost);
    assert_eq!(bucket.log(), ["on_retry_end 1 false"]);
    won.succeed();
    assert_eq!(bucket.log(), ["on_retry_end 1 true"]);
}

#[test]
fn ended_permit_holds_no_issuer() {
    struct Issuer;
    impl PermitIssuer for Issuer {
        fn give_back(&self, _: u32) {}
    }
    let issuer = Arc::new(Issuer);
    let permit = || Permit::new(issuer.clone(), 1);
    drop(permit());
    drop(permit().spend());
    permit().spend().succeed();
    drop(permit().and(permit()));
    permit().and(permit()).spend().succeed();
    assert_eq!(Arc::strong_count(&issuer), 1);
}

#[test]
fn permit_gives_back_when_its_holder_panics() {
    let bucket = Bucket::of(10);
    let permit = bucket.acquire("a", &FAILURE, Duration::ZERO);
    let panicked = std::thread::spawn(move || {
        let _held = permit;
        std::panic::resume_unwind(Box::new("as a cancelled task may"));
    });
    assert!(panicked.join().is_err());
    assert_eq!(bucket.tokens(), 10);
}

/// An issuer's panic reaches the caller. While the thread unwinds, it would abort the process, so it ends here.
// trap 72
#[cfg(feature = "std")]
#[test]
fn issuer_panics_while_unwinding() {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    struct Issuer;
    impl PermitIssuer for Issuer {
        fn give_back(&self, _: u32) {
            resume_unwind(Box::new("the issuer's"));
        }
        fn on_retry_end(&self, _: u32, _: bool) {
            resume_unwind(Box::new("the issuer's"));
        }
    }
    let held = || (Permit::new(Arc::new(Issuer), 1), Permit::new(Arc::new(Issuer), 1).spend());
    let fault = |run: &dyn Fn()| *catch_unwind(AssertUnwindSafe(run)).unwrap_err().downcast::<&str>().unwrap();
    assert_eq!(fault(&|| drop(held())), "the issuer's");
    let unwinds = || {
        let _held = held();
        resume_unwind(Box::new("the caller's"));
    };
    assert_eq!(fault(&unwinds), "the caller's");
}

#[test]
fn nothing_is_paid_without_a_budget() {
    assert!(Unlimited.is_full());
    let permit = Unlimited.acquire("a", &FAILURE, Duration::MAX);
    assert_eq!(permit.map(|permit| permit.spend().cost()), Some(0));
    assert_eq!(Permit::free().spend().cost(), 0);
}

#[test]
fn debug_output_reads_well() {
    let bucket = Bucket::of(1);
    let permit = bucket.acquire("a", &FAILURE, Duration::ZERO).unwrap();
    assert_eq!(format!("{permit:?}"), "Permit { cost: 1, .. }");
    assert_eq!(format!("{:?}", permit.spend()), "PaidRetry { cost: 1, .. }");
}

#[test]
fn a_shared_budget_passes_everything_on() {
    let bucket = Bucket::of(1);
    let erased: Arc<dyn Budget> = Arc::new(bucket.clone());
    let behind_two: Arc<Arc<dyn Budget>> = Arc::new(erased);
    assert!(!behind_two.is_full() && !behind_two.is_noop());
    assert!(behind_two.acquire("a", &FAILURE, NOW).is_some());
    assert!(behind_two.acquire_after_failure("b", &FAILURE.into(), NOW).is_some());
    behind_two.on_failure("c", &FAILURE.into(), NOW);
    behind_two.on_success("d", 7);
    behind_two.on_permanent_failure("e", ServerHint::Stop, 2);
    let events = [
        "acquire a server (503)",
        "give_back 1",
        "on_failure b server (503)",
        "acquire b server (503)",
        "give_back 1",
        "on_failure c server (503)",
        "on_success d 7",
        "on_permanent_failure e Stop 2",
    ];
    assert_eq!(bucket.log(), events);
}

#[test]
fn spend_only_grants_and_records_nothing() {
    let bucket = Bucket::of(1);
    let hedges = SpendOnly(bucket.clone());
    assert!(hedges.is_full() && hedges.is_noop());
    drop(hedges.acquire("a", &FAILURE, NOW).map(Permit::spend));
    hedges.on_failure("a", &FAILURE.into(), NOW);
    hedges.on_success("a", 1);
    hedges.on_permanent_failure("a", ServerHint::None, 0);
    assert!(hedges.acquire("a", &FAILURE, NOW).is_none());
    let events = ["acquire a server (503)", "on_retry_end 1 false", "acquire a server (503)"];
    assert_eq!(bucket.log(), events);
}

/// Two budgets can be combined, and both must grant a retry.
#[test]
fn pair_needs_both_and_reports_to_both() {
    let log = Log::default();
    let (a, b) = (Bucket::named("a ", 2, &log), Bucket::named("b ", 1, &log));
    let pair = (a.clone(), b.clone());

    let permit = pair.acquire("x", &FAILURE, NOW).unwrap();
    assert_eq!((a.tokens(), b.tokens(), permit.spend().cost()), (1, 0, 2));
    assert!(pair.acquire("x", &FAILURE, NOW).is_none(), "the second refuses");
    assert_eq!((a.tokens(), b.tokens()), (1, 0), "the first has its token back");
    a.log();

    pair.on_success("x", 1);
    pair.on_failure("x", &FAILURE.into(), NOW);
    pair.on_permanent_failure("x", ServerHint::None, 0);
    let both = |event: &str| [format!("a {event}"), format!("b {event}")];
    let events = [both("on_success x 1"), both("on_failure x server (503)"), both("on_permanent_failure x None 0")];
    assert_eq!(a.log(), events.concat());
}

/// Each issuer in a pair gets back its own tokens, and is notified once of each retry's end.
#[test]
fn pair_permit_reaches_both_issuers() {
    let log = Log::default();
    let (a, b) = (Bucket::named("a ", 5, &log), Bucket::named("b ", 5, &log));
    let pair = ((a.clone(), Unlimited), b.clone());
    drop(pair.acquire("x", &FAILURE, NOW));
    pair.acquire("x", &FAILURE, NOW).unwrap().spend().succeed();
    drop(pair.acquire("x", &FAILURE, NOW).map(Permit::spend));
    assert_eq!((a.tokens(), b.tokens()), (3, 3));
    let ends: Vec<_> = a.log().into_iter().filter(|event| !event.contains("acquire")).collect();
    let expected = [
        "a give_back 1",
        "b give_back 1",
        "a on_retry_end 1 true",
        "b on_retry_end 1 true",
        "a on_retry_end 1 false",
        "b on_retry_end 1 false",
    ];
    assert_eq!(ends, expected);
}

/// Each budget in a pair records every failed attempt once, whichever of them refuses.
#[test]
fn pair_records_each_failure_once() {
    for (first, second) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let log = Log::default();
        let pair = (Bucket::named("a ", first, &log), Bucket::named("b ", second, &log));
        let granted = pair.acquire_after_failure("x", &FAILURE.into(), NOW).is_some();
        assert_eq!(granted, (first, second) == (1, 1));
        let events = pair.0.log();
        for name in ["a", "b"] {
            let failures = format!("{name} on_failure x server (503)");
            assert_eq!(events.iter().filter(|event| **event == failures).count(), 1);
        }
    }
}

/// By default a budget records a permanent failure as a success.
#[test]
fn permanent_failure_counts_as_success() {
    #[derive(Default)]
    struct Successes(std::sync::Mutex<Vec<(String, u32)>>);
    impl Budget for Successes {
        fn acquire(&self, _: &str, _: &reattempt_core::Failure, _: Duration) -> Option<Permit> {
            None
        }
        fn on_success(&self, destination: &str, retries: u32) {
            self.0.lock().unwrap().push((destination.to_owned(), retries));
        }
    }
    let budget = Successes::default();
    budget.on_permanent_failure("x", ServerHint::None, 3);
    assert_eq!(*budget.0.lock().unwrap(), [("x".to_owned(), 3)]);
}

#[test]
fn spend_only_keeps_destinations_as_inner() {
    assert!(SpendOnly(Bucket::of(1)).is_keyed());
    assert!(!SpendOnly(Unlimited).is_keyed());
}
