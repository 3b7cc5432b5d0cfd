//! Models of the throttle: the checker tries every order in which the threads can run.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p reattempt-grpc --test loom --release`.
#![cfg(loom)]

use loom::thread;
use reattempt_grpc::{RetryThrottle, RetryThrottling};

fn settings(max_tokens: f64, token_ratio: f64) -> Option<RetryThrottling> {
    Some(RetryThrottling::new(max_tokens, token_ratio))
}

fn spawn<T: 'static>(throttle: &RetryThrottle, act: impl Fn(&RetryThrottle) -> T + 'static) -> thread::JoinHandle<T> {
    let throttle = throttle.clone();
    thread::spawn(move || act(&throttle))
}

// THR-3
#[test]
fn no_debit_is_lost_and_one_sees_the_half() {
    loom::model(|| {
        let throttle = RetryThrottle::new(settings(4.0, 1.0));
        let other = spawn(&throttle, RetryThrottle::failed);
        let own = throttle.failed();
        // One of them left 3 of 4 tokens, the other 2.
        assert_ne!(own, other.join().unwrap());
        assert_eq!(throttle.tokens_thousandths(), Some(2_000));
    });
}

// THR-4
#[test]
fn no_credit_is_lost_or_past_the_most() {
    loom::model(|| {
        let throttle = RetryThrottle::new(settings(2.0, 0.75));
        throttle.failed();
        let other = spawn(&throttle, RetryThrottle::succeeded);
        throttle.succeeded();
        other.join().unwrap();
        assert_eq!(throttle.tokens_thousandths(), Some(2_000));
    });
}

// THR-2
#[test]
fn debit_and_a_credit_at_the_bottom() {
    loom::model(|| {
        let throttle = RetryThrottle::new(settings(1.0, 0.5));
        throttle.failed();
        // A debit without effect only loads. If it ran first, loom would run no other order (tokio-rs/loom#166).
        let other = spawn(&throttle, RetryThrottle::failed);
        throttle.succeeded();
        assert!(!other.join().unwrap(), "half of it or nothing is left");
        let left = throttle.tokens_thousandths();
        assert!(left == Some(0) || left == Some(500), "{left:?}");
    });
}

// SC-6
#[test]
fn new_settings_lose_no_debit_and_no_credit() {
    // Three threads: every order with up to three preemptions.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let throttle = RetryThrottle::new(settings(8.0, 1.0));
        (0..4).for_each(|_| _ = throttle.failed());
        let failing = spawn(&throttle, RetryThrottle::failed);
        let swapping = spawn(&throttle, |throttle| throttle.configure(settings(16.0, 2.0)));
        throttle.succeeded();
        failing.join().unwrap();
        swapping.join().unwrap();
        // 4 of 8, or 8 of 16: the debit is worth 1 before the swap and half of that after it. The credit is worth the
        // same before and after.
        let left = throttle.tokens_thousandths();
        assert!(left == Some(8_000) || left == Some(9_000), "{left:?}");
    });
}

// SC-6
#[test]
fn tokens_are_seen_under_own_settings_only() {
    loom::model(|| {
        let throttle = RetryThrottle::new(settings(4.0, 1.0));
        let swapping = spawn(&throttle, |throttle| {
            throttle.configure(settings(1000.0, 1.0));
            throttle.configure(settings(4.0, 1.0));
        });
        assert!(throttle.failed(), "one token of 4, or one of 1000, is missing");
        swapping.join().unwrap();
        let left = throttle.tokens_thousandths();
        assert!(left == Some(3_000) || left == Some(3_996), "{left:?}");
    });
}
