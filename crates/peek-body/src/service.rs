//! The service that reads response bodies ahead.

use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::SizeHint;
use reattempt_engine::protocol::RequestProtocol;
use reattempt_engine::wall::inner_accessors;
use tower_service::Service;

use super::ResponseFuture;
use super::future::Terms;
use super::message::{PeekableRequest, PeekableResponse};
use super::settings::Settings;

/// The service of [`PeekBodyLayer`](super::PeekBodyLayer).
#[derive(Debug, Clone)]
pub struct PeekBody<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S> PeekBody<S> {
    pub(crate) fn new(inner: S, settings: Arc<Settings>) -> Self {
        Self { inner, settings }
    }

    inner_accessors!(S, inner);
}

impl<S, Req> Service<Req> for PeekBody<S>
where
    S: Service<Req, Response: PeekableResponse>,
    Req: PeekableRequest,
{
    type Response = <S::Response as PeekableResponse>::Peeked;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, S::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let settings = self.settings.for_request(request.view());
        let destination = || settings.http.destination_of(request.view());
        let limits = match settings.limits.for_call(&SizeHint::default(), destination) {
            Cow::Owned(limits) => Some(limits),
            Cow::Borrowed(_) => None,
        };
        let (method, streamed) = (request.method().clone(), request.is_streamed());
        let attempt = self.inner.call(request);
        ResponseFuture::new(attempt, Terms { settings, method, streamed, limits })
    }
}
