//! The best policy that can be written by hand on tower's `Retry`.
//!
//! It clones the request with `Request::clone`, draws its delay only when a retry is due, and arms
//! no timer for a delay of zero. It is measured with tower's own `TpsBudget`, and with a bucket in
//! one atomic.

use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower::retry::Policy;
use tower::retry::budget::{Budget, TpsBudget};

use super::{BASE, CAP};
use crate::requests::Body;

/// Wraps a service in tower's `Retry` with tower's budget.
pub(crate) fn by_hand<S>(inner: S) -> tower::retry::Retry<ByHand<TpsBudget>, S> {
    tower::retry::Retry::new(ByHand::new(BASE, CAP, TpsBudget::default()), inner)
}

/// Wraps a service in tower's `Retry` with a budget in one atomic.
pub(crate) fn by_hand_with_bucket<S>(inner: S) -> tower::retry::Retry<ByHand<Bucket>, S> {
    tower::retry::Retry::new(ByHand::new(BASE, CAP, Bucket::default()), inner)
}

/// Wraps a service in a policy with one attempt allowed, so that only the policy is cloned.
pub(crate) fn by_hand_once<S>(inner: S) -> tower::retry::Retry<ByHand<Bucket>, S> {
    let mut policy = ByHand::new(BASE, CAP, Bucket::default());
    // Hidden from the compiler, because a real policy is built at run time.
    policy.retries_left = black_box(0);
    tower::retry::Retry::new(policy, inner)
}

/// A policy that clones head and body and looks at the status alone.
#[derive(Debug)]
pub(crate) struct ByHand<B> {
    retries_left: u32,
    shared: Arc<Shared<B>>,
}

#[derive(Debug)]
struct Shared<B> {
    /// The upper bound of the first delay, in nanoseconds.
    base: u64,
    /// The upper bound of all delays.
    cap: u64,
    budget: B,
}

const RETRIES: u32 = 2;

impl<B> ByHand<B> {
    pub(crate) fn new(base: Duration, cap: Duration, budget: B) -> Self {
        let [base, cap] = [base, cap].map(|time| u64::try_from(time.as_nanos()).unwrap());
        Self { retries_left: RETRIES, shared: Arc::new(Shared { base, cap, budget }) }
    }
}

// Not derived, because that would require `B: Clone`.
impl<B> Clone for ByHand<B> {
    fn clone(&self) -> Self {
        Self { retries_left: self.retries_left, shared: Arc::clone(&self.shared) }
    }
}

impl<B: Budget, A, E> Policy<Request<Body>, Response<A>, E> for ByHand<B> {
    type Future = Pause;

    fn retry(&mut self, _: &mut Request<Body>, result: &mut Result<Response<A>, E>) -> Option<Pause> {
        let failed = result.as_ref().map_or(true, |response| response.status().is_server_error());
        if !failed {
            self.shared.budget.deposit();
            return None;
        }
        if self.retries_left == 0 || !self.shared.budget.withdraw() {
            return None;
        }
        let most = (self.shared.base << (RETRIES - self.retries_left)).min(self.shared.cap);
        self.retries_left -= 1;
        let delay = if most == 0 { 0 } else { fastrand::u64(0..=most) };
        Some(Pause::new(Duration::from_nanos(delay)))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        (self.retries_left > 0).then(|| request.clone())
    }
}

pin_project! {
    /// A sleep, unless the delay is zero.
    #[derive(Debug)]
    pub(crate) struct Pause {
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl Pause {
    pub(crate) fn new(delay: Duration) -> Self {
        Self { sleep: (!delay.is_zero()).then(|| sleep(delay)) }
    }
}

impl Future for Pause {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().sleep.as_pin_mut().map_or(Poll::Ready(()), |sleep| sleep.poll(cx))
    }
}

/// A bucket of tokens in one atomic, counted in thousandths.
///
/// A success adds a part of a token, a retry takes one. There is one bucket for all destinations.
#[derive(Debug)]
pub(crate) struct Bucket {
    tokens: AtomicI64,
    capacity: i64,
    /// The amount that a success adds.
    credit: i64,
}

const TOKEN: i64 = 1000;

impl Bucket {
    /// Creates a full bucket.
    pub(crate) const fn new(tokens: i64, credit: i64) -> Self {
        let capacity = tokens * TOKEN;
        Self { tokens: AtomicI64::new(capacity), capacity, credit }
    }
}

impl Default for Bucket {
    /// Ten tokens, and a tenth of one for each success, as in our `RetryBudget::ratio(0.1)`.
    fn default() -> Self {
        Self::new(10, TOKEN / 10)
    }
}

impl Budget for Bucket {
    #[inline]
    fn deposit(&self) {
        // A full bucket is only read, which does not slow other threads.
        if self.tokens.load(Ordering::Relaxed) < self.capacity {
            let put = |tokens: i64| Some((tokens + self.credit).min(self.capacity));
            let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, put);
        }
    }

    #[inline]
    fn withdraw(&self) -> bool {
        let take = |tokens: i64| (tokens >= TOKEN).then_some(tokens - TOKEN);
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}
