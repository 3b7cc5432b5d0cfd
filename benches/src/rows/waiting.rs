//! Many calls that wait for their next attempt at the same time.
//!
//! The calls are boxed futures without a task, polled once each. The clock is paused, so no call
//! continues. The figure is all heap memory of a waiting call: the box with its future and its
//! timer, the kept request, and any other state for another attempt.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::Request;
use reattempt::body::{ReplayLimits, ReplayMemory};
use reattempt::schedule::Exponential;
use reattempt::{Http, Retry, RetryBudget, RetryPolicy};
use tokio::runtime::{Builder, Runtime};
use tower_service::Service;

use super::{Row, Work, above, alone};
use crate::contenders::{Bucket, ByHand};
use crate::inner::{Fails, Holds};
use crate::requests::{Body, fresh};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "waiting-bytes",
        title: "bytes for each waiting call",
        operations: 100_000,
        counted: false,
        timed: false,
        contenders: &[alone("ours", || gather(ours())), alone("tower", || gather(by_hand(Fails)))],
    },
    Row {
        name: "in-flight-bytes",
        title: "bytes for each call in flight",
        operations: 100_000,
        counted: false,
        timed: false,
        contenders: &[
            alone("bare", || gather(Holds)),
            above("ours", "bare", || gather(Retry::new(roomy(), Holds))),
            above("tower", "bare", || gather(by_hand(Holds))),
        ],
    },
    Row {
        name: "one-more",
        title: "one more call fails",
        operations: 2000,
        counted: true,
        timed: false,
        contenders: &[
            alone("ours-1000", || one_more(ours(), 1000)),
            alone("ours-20000", || one_more(ours(), 20_000)),
            alone("tower-1000", || one_more(by_hand(Fails), 1000)),
            alone("tower-20000", || one_more(by_hand(Fails), 20_000)),
        ],
    },
];

const HOUR: Duration = Duration::from_secs(3600);

/// Returns our policy with room for every body.
///
/// The default bound on kept bodies would refuse some of 100,000, and a refused body costs less
/// memory.
fn roomy() -> RetryPolicy {
    let memory = ReplayMemory::new(1 << 30);
    RetryPolicy::with(Http::new().replay(ReplayLimits::default().memory(memory)))
}

fn ours() -> Retry<Fails> {
    let policy =
        roomy().backoff(Exponential::no_jitter(HOUR)).max_elapsed(None).budget(RetryBudget::rate(1.0, 10_000_000.0));
    Retry::new(policy, Fails)
}

fn by_hand<S>(inner: S) -> tower::retry::Retry<ByHand<Bucket>, S> {
    tower::retry::Retry::new(ByHand::new(HOUR, HOUR, Bucket::new(10_000_000, 1)), inner)
}

fn paused() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Calls the service and polls until the call waits.
#[inline(never)]
fn call_and_fail<S>(service: &mut S) -> Pin<Box<S::Future>>
where
    S: Service<Request<Body>>,
{
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_ready());
    let mut call = Box::pin(service.call(fresh()));
    assert!(matches!(call.as_mut().poll(&mut context), Poll::Pending), "the call waits");
    call
}

/// Each operation leaves one more call waiting.
fn gather<S>(mut service: S) -> Work
where
    S: Service<Request<Body>> + 'static,
{
    let runtime = paused();
    // The capacity is reserved first, so that the list itself is not counted.
    let mut waiting = Vec::with_capacity(200_000);
    Box::new(move |operations| {
        let _entered = runtime.enter();
        waiting.extend((0..operations).map(|_| call_and_fail(&mut service)));
    })
}

/// Lets one more call fail while `already` calls wait, and drops it, in each operation.
fn one_more<S>(mut service: S, already: usize) -> Work
where
    S: Service<Request<Body>> + 'static,
{
    let runtime = paused();
    let waiting: Vec<_> = {
        let _entered = runtime.enter();
        (0..already).map(|_| call_and_fail(&mut service)).collect()
    };
    Box::new(move |operations| {
        let _entered = runtime.enter();
        for _ in 0..operations {
            drop(call_and_fail(&mut service));
        }
        assert_eq!(waiting.len(), already);
    })
}

/// Checks that each contender's calls wait, which [`call_and_fail`] asserts.
pub(super) fn check() {
    gather(ours())(10);
    gather(by_hand(Fails))(10);
    gather(Retry::new(roomy(), Holds))(10);
    gather(by_hand(Holds))(10);
}
