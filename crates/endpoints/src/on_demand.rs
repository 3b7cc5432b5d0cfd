//! An endpoint's client, whose `poll_ready` is part of each call.

use std::sync::Arc;
use std::task::{Context, Poll};

use reattempt_engine::protocol::ReadRequest;
use reattempt_engine::wall::clock::Instant;
use reattempt_engine::wall::frame::Frame;
use reattempt_engine::wall::{Sending, send};
use reattempt_guard::wall::Shared;
use tower_service::Service;

use super::guard::EndpointGuard;
use super::send::send_to_endpoint;

/// The future of a call whose endpoint was picked.
pub(super) type Sent<C, Req, F, P, Mode> =
    reattempt_guard::contract::ResponseFuture<OnDemand<C>, Req, Sending<Within<C>, Req, F>, EndpointGuard<C>, P, Mode>;

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
    send_to_endpoint(shared, request, |ticket, request| Ok(send(Within::of(ticket.service()), request)))
}

/// A client that is always ready. Each call waits until the inner client is ready.
#[derive(Debug)]
pub struct OnDemand<C>(C);

impl<C: Service<Req> + Clone, Req> Service<Req> for OnDemand<C> {
    type Response = C::Response;
    type Error = C::Error;
    type Future = Sending<Within<C>, Req, C::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        send(Within::of(&self.0), request)
    }
}

/// A clone of a client for one call. When the clone is ready, the call is sent with the deadline of an outer layer.
#[derive(Debug)]
#[expect(unnameable_types, reason = "part of the type of a future, which nobody names")]
pub struct Within<C> {
    client: C,
    until: Option<Instant>,
}

impl<C: Clone> Within<C> {
    fn of(client: &C) -> Self {
        Self { client: client.clone(), until: Frame::deadline() }
    }
}

impl<C: Service<Req>, Req> Service<Req> for Within<C> {
    type Response = C::Response;
    type Error = C::Error;
    type Future = C::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        self.client.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> C::Future {
        let _frame = Frame::late(self.until, None);
        self.client.call(request)
    }
}
