//! Permits, which hold the tokens for one retry from the decision until the retry ends.

use alloc::sync::Arc;
use core::task::{Context, Poll};
use core::{fmt, mem};

use crate::user_code::release;

/// The issuer of a permit, which is notified when a granted retry ends or is not sent.
///
/// A dropped call notifies it from a destructor. A panic then reaches the caller, unless the thread already unwinds:
/// there it ends at the permit (with the feature `std`, which the crates with a runtime enable).
pub trait PermitIssuer: Send + Sync {
    /// Refunds `cost`, because the retry was never sent.
    fn give_back(&self, cost: u32);

    /// Records the end of a retry that was sent. Also called if the retry's call was dropped.
    ///
    /// `succeeded` is `true` if the retry was the last attempt of a successful call.
    fn on_retry_end(&self, cost: u32, succeeded: bool) {
        let _ = (cost, succeeded);
    }

    /// Polls for a remote store's confirmation of the permit. Resolves to `true` if the retry may be sent.
    ///
    /// The driver polls it during the delay before the retry, and sends the retry only after `true`. After `false` it
    /// drops the permit. Once ready, the result must not change. The budget must bound the time until it is ready,
    /// because drivers apply no timeout. Default: immediately `true`.
    fn poll_confirmed(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let _ = cx;
        Poll::Ready(true)
    }
}

/// Tokens withdrawn for one retry that has not been sent yet.
///
/// Dropping a permit returns the tokens to the budget. After [`spend`](Permit::spend), they are not returned.
#[must_use = "an unspent permit returns its tokens when it is dropped"]
#[derive(Default)]
pub struct Permit(Tokens);

/// A paid retry that is in flight.
///
/// [`succeed`](PaidRetry::succeed) reports a success to the issuer. Dropping the value reports any other outcome.
#[must_use = "the retry ends when this value is dropped"]
#[derive(Default)]
pub struct PaidRetry(Tokens);

#[derive(Clone, Default)]
struct Tokens {
    issuer: Option<Arc<dyn Issuer>>,
    cost: u32,
}

/// The object-safe form of [`PermitIssuer`] inside a permit. It takes the `Arc` by value, so the permit stays in
/// registers.
trait Issuer: PermitIssuer {
    fn give_back_owned(self: Arc<Self>, cost: u32);
    fn on_owned_retry_end(self: Arc<Self>, cost: u32, succeeded: bool);
}

impl<I: PermitIssuer> Issuer for I {
    fn give_back_owned(self: Arc<Self>, cost: u32) {
        release(|| self.give_back(cost));
    }

    fn on_owned_retry_end(self: Arc<Self>, cost: u32, succeeded: bool) {
        release(|| self.on_retry_end(cost, succeeded));
    }
}

/// The tokens of two issuers for one retry.
struct Both(Tokens, Tokens);

impl PermitIssuer for Both {
    fn give_back(&self, _: u32) {
        self.0.clone().give_back();
        self.1.clone().give_back();
    }

    fn on_retry_end(&self, _: u32, succeeded: bool) {
        self.0.clone().on_retry_end(succeeded);
        self.1.clone().on_retry_end(succeeded);
    }

    /// Both issuers must confirm. Both are polled, so that either one can wake the driver.
    fn poll_confirmed(&self, cx: &mut Context<'_>) -> Poll<bool> {
        match (self.0.poll_confirmed(cx), self.1.poll_confirmed(cx)) {
            (Poll::Ready(true), second) => second,
            (Poll::Ready(false), _) | (_, Poll::Ready(false)) => Poll::Ready(false),
            (Poll::Pending, _) => Poll::Pending,
        }
    }
}

impl Tokens {
    #[inline]
    fn give_back(&mut self) {
        if let Some(issuer) = self.issuer.take() {
            issuer.give_back_owned(self.cost);
        }
    }

    #[inline]
    fn on_retry_end(&mut self, succeeded: bool) {
        if let Some(issuer) = self.issuer.take() {
            issuer.on_owned_retry_end(self.cost, succeeded);
        }
    }

    fn poll_confirmed(&self, cx: &mut Context<'_>) -> Poll<bool> {
        self.issuer.as_ref().map_or(Poll::Ready(true), |issuer| issuer.poll_confirmed(cx))
    }
}

impl Permit {
    /// Creates a permit for which `issuer` has taken `cost` tokens, in the budget's own unit.
    #[inline]
    pub fn new(issuer: Arc<impl PermitIssuer + 'static>, cost: u32) -> Self {
        Self(Tokens { issuer: Some(issuer), cost })
    }

    /// Creates a permit without a cost.
    #[inline]
    pub const fn free() -> Self {
        Self(Tokens { issuer: None, cost: 0 })
    }

    /// Combines two permits for the same retry. Each issuer is notified with its own cost.
    ///
    /// The cost of the combined permit is the sum. Allocates only if both have an issuer.
    pub fn and(mut self, mut other: Self) -> Self {
        let (first, second) = (mem::take(&mut self.0), mem::take(&mut other.0));
        let cost = first.cost.saturating_add(second.cost);
        match (&first.issuer, &second.issuer) {
            (Some(_), Some(_)) => Self::new(Arc::new(Both(first, second)), cost),
            (Some(_), None) => Self(first),
            (None, _) => Self(second),
        }
    }

    /// Polls for the budget's confirmation. Resolves to `true` if the retry may be sent.
    ///
    /// A budget without a remote store confirms immediately. A driver that cannot wait may [`spend`](Self::spend) the
    /// permit without confirmation.
    #[inline]
    pub fn poll_confirmed(&self, cx: &mut Context<'_>) -> Poll<bool> {
        self.0.poll_confirmed(cx)
    }

    /// Records that the retry is being sent. Its tokens are no longer returned on drop.
    #[inline]
    pub fn spend(mut self) -> PaidRetry {
        PaidRetry(mem::take(&mut self.0))
    }
}

impl PaidRetry {
    /// Returns the tokens paid, in the budget's own unit.
    pub fn cost(&self) -> u32 {
        self.0.cost
    }

    /// Converts a paid retry back into a permit, after an inner layer refused to send the retry.
    pub fn unsent(mut self) -> Permit {
        Permit(mem::take(&mut self.0))
    }

    /// Records that the call succeeded with this retry.
    #[inline]
    pub fn succeed(mut self) {
        self.0.on_retry_end(true);
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl Drop for PaidRetry {
    #[inline]
    fn drop(&mut self) {
        self.0.on_retry_end(false);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("cost", &self.0.cost).finish_non_exhaustive()
    }
}

impl fmt::Debug for PaidRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaidRetry").field("cost", &self.0.cost).finish_non_exhaustive()
    }
}
