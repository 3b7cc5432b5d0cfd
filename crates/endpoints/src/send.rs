//! The pick of an attempt's endpoint, and the client of several base URLs.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use reattempt_core::guard::Arrival;
use reattempt_engine::classify::{IDEMPOTENCY_KEY, RequestView};
use reattempt_engine::protocol::ReadRequest;
use reattempt_engine::wall::frame::Frame;
use reattempt_engine::wall::{AttemptTerms, Testimony, arrived, attempt_terms};
use reattempt_guard::contract::ResponseFuture;
use reattempt_guard::wall::Shared;
use reattempt_guard::{OwnEnd, Pass};
use tower_service::Service;

use super::base_url::{BaseUrl, has_dots};
use super::guard::{EndpointGuard, Picked};
use super::rewrite::Rewrite;
use super::{EndpointsError, ForeignHosts};

/// The future of a call that was sent to its endpoint.
pub(super) type Sent<C, Req, F, P, Mode> = ResponseFuture<C, Req, F, EndpointGuard<C>, P, Mode>;

/// An attempt whose endpoint was picked.
pub(super) struct Admitted<T> {
    pub(super) picked: Picked<T>,
    pub(super) arrival: Arrival<'static>,
    pub(super) terms: Option<Box<AttemptTerms>>,
}

/// Picks an endpoint for a request.
#[inline]
pub(super) fn admit<Req, T, P>(shared: &Shared<EndpointGuard<T>, P>, request: &Req) -> Result<Admitted<T>, OwnEnd>
where
    T: Send + Sync + 'static,
    P: ReadRequest<Req>,
{
    let (deadline, mut terms) = attempt_terms(&shared.protocol, P::view(request));
    let mut arrival = Arrival::new("", arrived(&mut terms).since_epoch());
    arrival.latest = deadline.map(|deadline| deadline.instant().since_epoch());
    if arrival.latest.is_some_and(|latest| latest <= arrival.now) {
        return Err(OwnEnd::Late(Duration::ZERO));
    }
    match shared.guard.pick(&arrival, || key_of(P::view(request))) {
        Some(picked) => Ok(Admitted { picked, arrival, terms }),
        None => {
            Testimony::of(P::view(request)).iter().for_each(Testimony::refuse);
            Err(OwnEnd::Refused(shared.guard.refusal()))
        }
    }
}

/// Returns the idempotency key of a request that only a key makes repeatable.
fn key_of(request: RequestView<'_>) -> Option<&[u8]> {
    let key = request.header(IDEMPOTENCY_KEY)?;
    let is_idempotent = Method::from_bytes(request.method().as_bytes()).is_ok_and(|method| method.is_idempotent());
    (!is_idempotent).then_some(key)
}

/// Sends a request to one of the endpoints if it has their base URL, and others as the settings say.
#[inline]
pub fn direct<S, Req, P, Mode>(
    shared: &Arc<Shared<EndpointGuard<BaseUrl>, P>>,
    base: &BaseUrl,
    inner: &mut S,
    request: Req,
) -> ResponseFuture<S, Req, S::Future, EndpointGuard<BaseUrl>, P, Mode>
where
    S: Service<Req> + Clone,
    Req: Rewrite,
    P: ReadRequest<Req>,
{
    let prefix = match request.prefix_in(base) {
        Some(prefix) => prefix,
        None => match shared.guard.treat_foreign(&request) {
            Ok(ForeignHosts::Base) => 0,
            Ok(_) => return ResponseFuture::passing(inner.call(request)),
            Err(error) => {
                *inner = inner.clone();
                return ResponseFuture::not_sent(OwnEnd::Unwritable(error.into()));
            }
        },
    };
    let sent = admit(shared, &request).and_then(|Admitted { picked, arrival, terms }| {
        Frame::picked(picked.pick);
        let mut request = request;
        // If this fails, dropping the ticket ends it as unsent.
        request.rewrite(prefix, picked.ticket.service()).map_err(|error| OwnEnd::Unwritable(error.into()))?;
        let attempt = inner.call(request);
        Ok(ResponseFuture::sent(Pass::new(Arc::clone(shared), picked.ticket, &arrival, terms), attempt))
    });
    sent.unwrap_or_else(|end| {
        // Drops the instance that is ready.
        *inner = inner.clone();
        ResponseFuture::not_sent(end)
    })
}

impl EndpointGuard<BaseUrl> {
    /// Returns what to do with a request that has another base URL. One to a server of the set passes, unless its path
    /// leaves that server's prefix.
    #[cold]
    fn treat_foreign(&self, request: &impl Rewrite) -> Result<ForeignHosts, EndpointsError> {
        let foreign = self.settings.foreign;
        let leaves = |server: &BaseUrl| !server.prefix.is_empty() && has_dots(request.path());
        let is_for = |server: &BaseUrl| request.prefix_in(server).is_some() && !leaves(server);
        if foreign == ForeignHosts::Pass || self.set.any(is_for) {
            return Ok(ForeignHosts::Pass);
        }
        if foreign == ForeignHosts::Base && request.path().starts_with('/') {
            return Ok(ForeignHosts::Base);
        }
        Err(EndpointsError::foreign(request.authority()))
    }
}
