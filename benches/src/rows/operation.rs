//! `retry()` of a closure beside backon and tokio-retry.
//!
//! The closure is ready at once. It succeeds, or it fails and then succeeds without a delay.

use std::cell::Cell;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use backon::Retryable;
use reattempt::retry;
use reattempt::schedule::{Constant, Exponential};
#[cfg(feature = "peers")]
use tokio_retry::strategy::{FixedInterval, jitter};

use super::{Row, Work, above, alone, once};
use crate::contenders::{BASE, CAP, Pause};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "retry",
        title: "`retry()` of a closure, success",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || polled(succeeds)),
            above("ours", "bare", || polled(ours)),
            above("backon", "bare", || polled(by_backon)),
            #[cfg(feature = "peers")]
            above("tokio-retry", "bare", || polled(by_tokio_retry)),
        ],
    },
    Row {
        name: "retry-once",
        title: "`retry()` of a closure, fails once, delay 0",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || awaited(succeeds_once)),
            above("ours", "bare", || awaited(ours_once)),
            above("backon", "bare", || awaited(backon_once)),
            above("backon-without-timer", "bare", || awaited(backon_once_without_timer)),
            #[cfg(feature = "peers")]
            above("tokio-retry", "bare", || awaited(tokio_retry_once)),
        ],
    },
];

type Outcome = Result<u32, &'static str>;

fn succeeds() -> Ready<Outcome> {
    ready(Ok(black_box(7)))
}

fn ours() -> impl Future<Output = Result<u32, reattempt::operation::RetryError<&'static str>>> {
    retry(Exponential::full_jitter(BASE), succeeds).into_future()
}

fn by_backon() -> impl Future<Output = Outcome> {
    let delays = backon::ExponentialBuilder::new().with_min_delay(BASE).with_max_delay(CAP).with_jitter();
    succeeds.retry(delays)
}

#[cfg(feature = "peers")]
fn by_tokio_retry() -> impl Future<Output = Outcome> {
    let delays = tokio_retry::strategy::ExponentialBackoff::from_millis(2).factor(50);
    tokio_retry::Retry::start(delays.max_delay(CAP).map(jitter).take(2), succeeds)
}

/// Returns the size of each contender's future in bytes.
#[cfg(feature = "peers")]
pub(super) fn sizes() -> Vec<(&'static str, usize)> {
    let _entered = once::paused();
    vec![
        ("ours", size_of_val(&ours())),
        ("backon", size_of_val(&by_backon())),
        ("tokio-retry", size_of_val(&by_tokio_retry())),
    ]
}

/// Polls one future after another; each is ready at its first poll.
fn polled<F: Future<Output = Result<u32, E>>, E>(make: impl Fn() -> F + 'static) -> Work {
    Box::new(move |operations| {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..operations {
            let polled = pin!(black_box(make())).poll(&mut context);
            assert!(matches!(polled, Poll::Ready(Ok(7))));
        }
    })
}

/// An operation that fails at the first of two turns.
#[derive(Debug, Default)]
struct Turns(Cell<u32>);

impl Turns {
    fn next(&self) -> Ready<Outcome> {
        let turn = self.0.get();
        self.0.set(turn + 1);
        ready(if turn.is_multiple_of(2) { Err("not yet") } else { Ok(black_box(7)) })
    }
}

/// Awaits one future after another on a runtime with a paused clock.
fn awaited<F: AsyncFn(&Turns) -> bool + 'static>(run: F) -> Work {
    let runtime = once::paused();
    Box::new(move |operations| {
        once::block_on(&runtime, async {
            let turns = Turns::default();
            for _ in 0..operations {
                assert!(run(&turns).await);
            }
        });
    })
}

async fn succeeds_once(_: &Turns) -> bool {
    succeeds().await.is_ok()
}

async fn ours_once(turns: &Turns) -> bool {
    retry(Constant::immediate(), || turns.next()).await.is_ok()
}

async fn backon_once(turns: &Turns) -> bool {
    let delays = backon::ConstantBuilder::new().with_delay(Duration::ZERO);
    (|| turns.next()).retry(delays).await.is_ok()
}

async fn backon_once_without_timer(turns: &Turns) -> bool {
    let delays = backon::ConstantBuilder::new().with_delay(Duration::ZERO);
    (|| turns.next()).retry(delays).sleep(Pause::new).await.is_ok()
}

#[cfg(feature = "peers")]
async fn tokio_retry_once(turns: &Turns) -> bool {
    let delays = FixedInterval::new(Duration::ZERO).take(2);
    tokio_retry::Retry::start(delays, || turns.next()).await.is_ok()
}

/// Checks that each contender succeeds at the second turn.
pub(super) fn check() {
    for contender in ROWS.iter().flat_map(|row| row.contenders) {
        (contender.prepare)()(10);
    }
}
