//! The guarded client, whose guard admits, delays or refuses each call before it is sent.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, Guard};
use reattempt_engine::Http;
use reattempt_engine::error::{BoxedError, ErrorMode};
use reattempt_engine::observe::Event;
use reattempt_engine::protocol::ReadRequest;
use reattempt_engine::wall::{Impatient, Sending, Testimony, arrived, attempt_terms, inner_accessors, send_method};
use tower_service::Service;

use super::future::{ResponseFuture, Waiting};
use super::pass::Pass;
use super::protocol::{GuardOutcome, OwnEnd};
use super::shared::Shared;

/// A client whose guard admits or refuses every attempt, created by [`GuardLayer`](super::GuardLayer).
///
/// Clones share the guard. Cloning this type clones the inner service. A call that waits or is refused also clones it,
/// to release the instance that is ready.
///
/// Waiting requires a tokio runtime with its time driver enabled. Without a runtime, no call waits.
pub struct Guarded<S, G, P = Http, Mode = BoxedError> {
    #[doc(hidden)]
    pub inner: S,
    #[doc(hidden)]
    pub shared: Arc<Shared<G, P>>,
    mode: PhantomData<fn() -> Mode>,
}

impl<S, G, P, Mode> Guarded<S, G, P, Mode> {
    #[doc(hidden)]
    pub fn new(shared: Arc<Shared<G, P>>, inner: S) -> Self {
        Self { inner, shared, mode: PhantomData }
    }

    /// Returns the guard, for example to read its state.
    pub fn guard(&self) -> &G {
        &self.shared.guard
    }

    inner_accessors!(S, inner);
    send_method!(Sending<Self, Req, <Self as Service<Req>>::Future>);
}

impl<S, Req, G, P, Mode> Service<Req> for Guarded<S, G, P, Mode>
where
    S: Service<Req> + Clone,
    G: Guard,
    P: ReadRequest<Req> + GuardOutcome<S::Response, S::Error, Mode>,
    Mode: ErrorMode<S::Error>,
{
    type Response = P::Guarded<G>;
    type Error = Mode::Error;
    type Future = ResponseFuture<S, Req, S::Future, G, P, Mode>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Mode::Error>> {
        self.inner.poll_ready(cx).map_err(Mode::own)
    }

    /// Requests the guard's decision. If the guard admits the call, the request is sent immediately.
    fn call(&mut self, request: Req) -> Self::Future {
        let shared = &self.shared;
        let view = P::view(&request);
        let (deadline, mut terms) = attempt_terms(&shared.protocol, view);
        let destination = shared.protocol.destination_of(view);
        let mut arrival = Arrival::new(&destination, arrived(&mut terms).since_epoch());
        arrival.latest = deadline.map(|deadline| deadline.instant().since_epoch());
        arrival.patient = view.extension::<Impatient>().is_none();
        arrival.timeout = shared.attempt_timeout;
        if arrival.latest.is_some_and(|latest| latest <= arrival.now) {
            self.inner = self.inner.clone();
            return ResponseFuture::not_sent(OwnEnd::Late(Duration::ZERO));
        }
        match shared.admit(&arrival, &mut terms) {
            Admit::Admitted(ticket) => {
                let pass = Pass::new(Arc::clone(shared), ticket, &arrival, terms);
                let attempt = self.inner.call(request);
                ResponseFuture::sent(pass, attempt)
            }
            Admit::Waiting(ticket) => {
                let pass = Pass::new(Arc::clone(shared), ticket, &arrival, terms);
                shared.notify(&destination, &Event::Waiting);
                let testimony = Testimony::of(view);
                let (began, renewal) = (arrival.now, deadline.map(|deadline| (deadline, P::renew_deadline as _)));
                let destination = arrival.destination.into();
                // The instance that is ready is released, so that other calls need not wait for this one.
                self.inner = self.inner.clone();
                let service = self.inner.clone();
                let waiting = Waiting::new(pass, destination, began, renewal, service, request, testimony);
                ResponseFuture::waiting(waiting)
            }
            Admit::Refused(refused) => {
                shared.notify(&destination, &Event::Refused { refused: &refused });
                Testimony::of(view).iter().for_each(Testimony::refuse);
                self.inner = self.inner.clone();
                ResponseFuture::not_sent(OwnEnd::Refused(refused))
            }
        }
    }
}

impl<S: Clone, G, P, Mode> Clone for Guarded<S, G, P, Mode> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared), self.inner.clone())
    }
}

impl<S: fmt::Debug, G: fmt::Debug, P: fmt::Debug, Mode> fmt::Debug for Guarded<S, G, P, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("inner", &self.inner)
            .field("guard", &self.shared.guard)
            .field("protocol", &self.shared.protocol)
            .finish_non_exhaustive()
    }
}
