//! `Hedge::send`: one call by a shared handle, without `&mut`.

use reattempt_core::Budget;
use tower_service::Service;

use super::{Extended, Hedge, HedgePolicy, Hedgeable};
use crate::error_mode::ErrorMode;
use crate::protocol::{ClassifyOutcome, Origin, Protocol, Replay};
use crate::send::send;

impl<S, K, B, M> Hedge<S, HedgePolicy<K, B, M>>
where
    K: Protocol,
    B: Budget,
{
    /// Sends one request, by a clone of this handle; see [`Retry::send`](crate::Retry::send).
    ///
    /// # Errors
    /// Returns the error of the call, or of an inner service that does not become ready.
    ///
    /// # Cancel safety
    /// Dropping the future cancels every attempt under way.
    pub fn send<Req>(
        &self,
        request: Req,
    ) -> impl Future<Output = Result<K::Answer, M::Error>> + use<S, Req, K, B, M>
    where
        K: Replay<Req> + Origin<<K as Replay<Req>>::Attempt, Request = Req> + Hedgeable<Req>,
        S: Service<<K as Replay<Req>>::Attempt> + Clone,
        S::Response: Extended,
        K: ClassifyOutcome<S::Response>,
        M: ErrorMode<S::Error>,
    {
        send(self.clone(), request)
    }
}
