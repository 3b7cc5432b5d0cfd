//! An endpoint's client, whose `poll_ready` is part of each call.

use std::sync::Arc;
use std::task::{Context, Poll};

use tower_service::Service;

use super::guard::EndpointGuard;
use super::send::send_to_endpoint;
use crate::guard::Shared;
use crate::protocol::ReadRequest;
use crate::send::{Sending, send};

/// The future of a call whose endpoint was picked.
pub(super) type Sent<C, Req, F, P, Mode> =
    crate::guard::contract::ResponseFuture<OnDemand<C>, Req, Sending<C, Req, F>, EndpointGuard<C>, P, Mode>;

/// Picks an endpoint and sends a request through a clone of its client.
#[inline]
pub(super) fn send_to_client<C, Req, P, Mode>(
    shared: &Arc<Shared<EndpointGuard<C>, P>>,
    request: Req,
) -> Sent<C, Req, C::Future, P, Mode>
where
    C: Service<Req> + Clone + Send + Sync + 'static,
    P: ReadRequest<Req>,
{
    send_to_endpoint(shared, request, |ticket, request| Ok(send(ticket.service().clone(), request)))
}

/// A client that is always ready. Each call waits until the inner client is ready.
#[derive(Debug)]
pub struct OnDemand<C>(C);

impl<C: Service<Req> + Clone, Req> Service<Req> for OnDemand<C> {
    type Response = C::Response;
    type Error = C::Error;
    type Future = Sending<C, Req, C::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        send(self.0.clone(), request)
    }
}
