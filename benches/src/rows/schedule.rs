//! The delay before the next retry.
//!
//! An operation is one delay: from 100 ms, doubling, up to 5 s. Five delays are drawn from each
//! fresh state, as by a call that fails five times, so each includes a fifth of the cost of that
//! state. Every schedule has the widest jitter it supports, and its own generator. Ours gets a
//! seeded generator of the kind that backon and exponential-backoff use.

use std::hint::black_box;
use std::time::{Duration, SystemTime};

use backoff::backoff::Backoff as _;
use backon::BackoffBuilder;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use reattempt::schedule::{Delays, Exponential, Failure, FailureKind, NextRetry, Random, Schedule};
use reqwest_retry::policies::ExponentialBackoff as ReqwestBackoff;
use reqwest_retry::{Jitter, RetryDecision, RetryPolicy};
use tower::retry::backoff::{Backoff, ExponentialBackoffMaker, MakeBackoff};
use tower::util::rng::HasherRng;

use super::{Row, Work, above, alone};

const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(5);
const SEQUENCE: u64 = 5;

pub(super) const ROWS: &[Row] = &[Row {
    name: "delay",
    title: "next delay",
    operations: 1000,
    counted: true,
    timed: false,
    contenders: &[
        alone("bare", || each(|| BASE, |delay| *delay)),
        above("ours", "bare", || ours(Exponential::full_jitter(BASE))),
        above("ours-small-rng", "bare", || {
            ours_from(Exponential::full_jitter(BASE), Small(SmallRng::seed_from_u64(1)))
        }),
        above("ours-factor-3", "bare", || ours(factor(3.0))),
        above("ours-factor-1.5", "bare", || ours(factor(1.5))),
        above("ours-equal", "bare", || ours(Exponential::equal_jitter(BASE))),
        above("ours-decorrelated", "bare", || ours(Exponential::decorrelated(BASE))),
        above("tokio-retry", "bare", || {
            let schedule = tokio_retry::strategy::ExponentialBackoff::from_millis(2).factor(50).max_delay(CAP);
            each(move || schedule.clone().map(tokio_retry::strategy::jitter), |delays| delays.next().unwrap())
        }),
        above("backon", "bare", || {
            let builder = backon::ExponentialBuilder::new()
                .with_min_delay(BASE)
                .with_max_delay(CAP)
                .with_jitter()
                .with_jitter_seed(1)
                .without_max_times();
            each(move || builder.build(), |delays| delays.next().unwrap())
        }),
        above("backoff", "bare", || {
            let mut builder = backoff::ExponentialBackoffBuilder::new();
            builder
                .with_initial_interval(BASE)
                .with_multiplier(2.0)
                .with_max_interval(CAP)
                .with_randomization_factor(1.0)
                .with_max_elapsed_time(None);
            each(move || builder.build(), |delays: &mut backoff::ExponentialBackoff| delays.next_backoff().unwrap())
        }),
        above("retry-policies", "bare", || {
            let policy =
                ReqwestBackoff::builder().retry_bounds(BASE, CAP).jitter(Jitter::Full).build_with_max_retries(u32::MAX);
            let start = SystemTime::now();
            each(
                || 0,
                move |retries| {
                    *retries += 1;
                    // The result is a moment, so reading the clock is part of its cost.
                    match policy.should_retry(start, *retries - 1) {
                        RetryDecision::Retry { execute_after } => {
                            execute_after.duration_since(start).unwrap_or_default()
                        }
                        RetryDecision::DoNotRetry => unreachable!("it has no limit"),
                    }
                },
            )
        }),
        above("exponential-backoff", "bare", || {
            let mut schedule = exponential_backoff::Backoff::new(u32::MAX, BASE, CAP);
            schedule.set_jitter(1.0);
            each(move || schedule.iter(), |delays| delays.next().flatten().unwrap())
        }),
        above("tower", "bare", by_tower),
    ],
}];

fn factor(factor: f64) -> Exponential {
    Exponential::full_jitter(BASE).factor(factor)
}

/// Draws delays, five from each fresh state.
fn each<T>(fresh: impl Fn() -> T + 'static, next: impl Fn(&mut T) -> Duration + 'static) -> Work {
    Box::new(move |operations| {
        for _ in 0..operations.div_ceil(SEQUENCE) {
            // Hidden, so that the compiler does not draw all five delays together.
            let mut state = black_box(fresh());
            for _ in 0..SEQUENCE {
                black_box(next(&mut state));
            }
        }
    })
}

/// A generator that takes a few instructions per number.
struct Fast(fastrand::Rng);

impl Random for Fast {
    fn next_u64(&mut self) -> u64 {
        self.0.u64(..)
    }
}

/// The generator of reattempt's own layer, which takes a dozen instructions more.
struct Small(SmallRng);

impl Random for Small {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

fn ours(schedule: impl Schedule + 'static) -> Work {
    ours_from(schedule, Fast(fastrand::Rng::with_seed(1)))
}

fn ours_from(schedule: impl Schedule + 'static, mut random: impl Random + 'static) -> Work {
    let failure = Failure::new(FailureKind::Server);
    Box::new(move |operations| {
        for _ in 0..operations.div_ceil(SEQUENCE) {
            let mut state = black_box(schedule.delays());
            let mut previous = None;
            for number in 0..5 {
                let retry = NextRetry::new(number, failure).after(previous);
                previous = state.next_delay(&retry, &mut random);
                black_box(previous);
            }
        }
    })
}

/// Makes tower's own schedule, which returns a sleep instead of a duration. Creating the sleep
/// needs a runtime and is part of its cost.
fn by_tower() -> Work {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut maker = ExponentialBackoffMaker::new(BASE, CAP, 1.0, HasherRng::new()).unwrap();
    Box::new(move |operations| {
        let _entered = runtime.enter();
        for _ in 0..operations.div_ceil(SEQUENCE) {
            let mut state = black_box(maker.make_backoff());
            for _ in 0..SEQUENCE {
                black_box(&state.next_backoff());
            }
        }
    })
}

/// Checks that our delays are jittered and within their range.
pub(super) fn check() {
    let schedule = Exponential::full_jitter(BASE);
    let mut random = Fast(fastrand::Rng::with_seed(1));
    let retry = NextRetry::new(0, Failure::new(FailureKind::Server));
    let first = || schedule.delays().next_delay(&retry, &mut random).unwrap();
    let drawn: Vec<Duration> = std::iter::repeat_with(first).take(100).collect();
    assert!(drawn.iter().all(|delay| *delay <= BASE), "{drawn:?}");
    assert!(drawn.iter().max() > drawn.iter().min(), "{drawn:?}");
}
