//! The permit of a budget, and the two smallest budgets.

#![allow(missing_docs, reason = "tests")]

mod support;

use core::time::Duration;
use std::sync::{Arc, Mutex};

use reattempt_core::{Budget, Failure, Permit, Unlimited};
use support::{Bucket, FAILURE};

#[test]
fn a_dropped_permit_gives_back_and_a_spent_one_does_not() {
    let bucket = Bucket::of(10);
    let acquire = || bucket.acquire("a", &FAILURE, Duration::ZERO).unwrap();

    let permit = acquire();
    assert_eq!(bucket.tokens(), 9);
    drop(permit);
    assert_eq!(bucket.tokens(), 10);

    assert_eq!(acquire().spend(), 1, "what was paid");
    assert_eq!(bucket.tokens(), 9);
}

#[test]
fn a_permit_gives_back_when_its_holder_panics() {
    let bucket = Bucket::of(10);
    let permit = bucket.acquire("a", &FAILURE, Duration::ZERO);
    let panicked = std::thread::spawn(move || {
        let _held = permit;
        std::panic::resume_unwind(Box::new("as a cancelled task may"));
    });
    assert!(panicked.join().is_err());
    assert_eq!(bucket.tokens(), 10);
}

#[test]
fn nothing_is_paid_without_a_budget() {
    assert!(Unlimited.is_full());
    let permit = Unlimited.acquire("a", &FAILURE, Duration::MAX);
    assert_eq!(permit.map(Permit::spend), Some(0));
    assert_eq!(Permit::free().spend(), 0);
}

#[test]
fn debug_output_reads_well() {
    let bucket = Bucket::of(1);
    let permit = bucket.acquire("a", &FAILURE, Duration::ZERO).unwrap();
    assert_eq!(format!("{permit:?}"), "Permit { cost: 1, .. }");
}

#[test]
fn a_shared_budget_passes_everything_on() {
    #[derive(Default)]
    struct Recorder(Mutex<Vec<String>>);
    impl Budget for Recorder {
        fn acquire(&self, destination: &str, failure: &Failure, _: Duration) -> Option<Permit> {
            self.0.lock().unwrap().push(format!("acquire {destination} {failure}"));
            None
        }
        fn succeeded(&self, destination: &str, paid: u32) {
            self.0.lock().unwrap().push(format!("succeeded {destination} {paid}"));
        }
        fn failed(&self, destination: &str, failure: &Failure) {
            self.0.lock().unwrap().push(format!("failed {destination} {failure}"));
        }
        fn is_full(&self) -> bool {
            true
        }
    }
    let shared: Arc<dyn Budget> = Arc::new(Recorder::default());
    let recorder = Arc::new(Recorder::default());
    let behind_two: Arc<Arc<Recorder>> = Arc::new(recorder.clone());
    assert!(shared.is_full() && behind_two.is_full());
    assert!(behind_two.acquire("a", &FAILURE, Duration::ZERO).is_none());
    behind_two.succeeded("b", 7);
    behind_two.failed("c", &FAILURE);
    let told = ["acquire a server (503)", "succeeded b 7", "failed c server (503)"];
    assert_eq!(*recorder.0.lock().unwrap(), told);
}
