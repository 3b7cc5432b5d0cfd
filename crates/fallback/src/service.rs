//! The client with a fallback, which saves whatever the fallback needs from each request.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use reattempt_engine::error::BoxedError;
use reattempt_engine::protocol::ReadRequest;
use reattempt_engine::wall::{Testimony, attempt_terms, inner_accessors, send_method};
use reattempt_engine::{CallOptions, Http};
use reattempt_guard::contract::GuardOutcome;
use tower::BoxError;
use tower_service::Service;

use super::future::{ResponseFuture, Waiting};
use super::shared::Shared;
use super::{Replaceable, Source};

/// A client that replaces the outcomes of failed calls, created by [`FallbackLayer`](super::FallbackLayer).
pub struct Fallback<S, F, P = Http> {
    inner: S,
    shared: Arc<Shared<F, P>>,
}

impl<S, F, P> Fallback<S, F, P> {
    pub(super) fn new(shared: Arc<Shared<F, P>>, inner: S) -> Self {
        Self { inner, shared }
    }

    inner_accessors!(S, inner);
    send_method!(
        impl Future<Output = Result<<Self as Service<Req>>::Response, <Self as Service<Req>>::Error>> + use<S, F, P, Req>
    );
}

impl<S, Req, F, P> Service<Req> for Fallback<S, F, P>
where
    S: Service<Req, Error: Into<BoxError>>,
    F: Source<P, Req, S::Response>,
    P: ReadRequest<Req> + GuardOutcome<S::Response, S::Error, BoxedError> + Replaceable<S::Response>,
{
    type Response = <P as Replaceable<S::Response>>::Replaced;
    type Error = BoxError;
    type Future = ResponseFuture<S, Req, F, P>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        let (protocol, view) = (&shared.protocol, P::view(&request));
        let (deadline, terms) = attempt_terms(protocol, view);
        let observed = shared.observer.is_some();
        let destination = observed.then(|| protocol.destination_of(view).into());
        let options = terms.and_then(|terms| terms.options);
        let permitted = options.as_ref().and_then(CallOptions::get_repeatable);
        // An idempotency key does not suffice, because the backup may not know the key.
        let repeatable = permitted.unwrap_or_else(|| {
            let safety = protocol.retry_safety(view);
            safety.repeatable && !safety.keyed
        });
        let (mut request, saved) = shared.source.save_part(protocol, request);
        let saved = Some(saved);
        let proves = F::SENDS && !repeatable;
        let testimony = proves.then(|| witness_of(protocol, &mut request)).flatten();
        let waiting = Waiting { shared, saved, options, deadline, repeatable, testimony, destination };
        ResponseFuture::new(self.inner.call(request), waiting)
    }
}

/// Prepares a request so that a refusal can prove that the request was not processed. An inner retry layer may have
/// sent it before, because of its key or its own options. A guard may also have refused a later hop.
///
/// A request with private extensions cannot carry this witness. It has no proof, unless the user states that no inner
/// layer sends a request twice.
fn witness_of<P: ReadRequest<Req>, Req>(protocol: &P, request: &mut Req) -> Option<Testimony> {
    if let Some(extensions) = P::extensions_mut(request) {
        return Some(Testimony::call(extensions));
    }
    (!protocol.sends_once(P::view(request))).then(Testimony::void)
}

impl<S: Clone, F, P> Clone for Fallback<S, F, P> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<S: fmt::Debug, F, P: fmt::Debug> fmt::Debug for Fallback<S, F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback")
            .field("inner", &self.inner)
            .field("protocol", &self.shared.protocol)
            .finish_non_exhaustive()
    }
}
