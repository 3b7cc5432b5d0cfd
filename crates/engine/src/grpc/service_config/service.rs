//! The client that chooses retries or hedging for each call.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use http::Response;
use http_body::Body;
use reattempt_core::Budget;
use reattempt_grpc::{MethodConfig, RetryThrottle, ServiceConfigHandle};
use reattempt_schedule_exponential::Exponential;
use tower_service::Service;

use super::future::ResponseFuture;
use super::{Hedges, Retries};
use crate::accessors::inner_accessors;
use crate::call::method::MethodOverrides;
use crate::call::options::CallOptions;
use crate::error_mode::{Answered, ErrorMode};
use crate::grpc::{Grpc, GrpcBody};
use crate::hedge;
use crate::hedge::begin;
use crate::protocol::{Origin, ReadRequest, Replay};
use crate::retry;
use crate::retry::Retry;
use crate::shared::Shared;

/// A gRPC client whose calls are retried or hedged according to a service config, created by
/// [`ServiceConfigLayer`](super::ServiceConfigLayer).
///
/// The error type is the inner service's own. Cloning a client clones the inner service; everything else is shared.
pub struct Client<S, Budgets = RetryThrottle> {
    /// The client for calls that are not hedged, which contains the inner service.
    retry: Retry<S, Retries<Budgets>>,
    shared: Arc<ClientState<S, Budgets>>,
    options: Option<CallOptions>,
}

/// The entry for methods that are not in the config.
static NO_ENTRY: LazyLock<Arc<MethodConfig>> = LazyLock::new(Arc::default);

struct ClientState<S, Budgets> {
    handle: ServiceConfigHandle,
    most_attempts: u32,
    hedge: Arc<Shared<S, Hedges<Budgets>>>,
}

impl<S: Clone, Budgets: Budget> Client<S, Budgets> {
    pub(super) fn new(
        handle: ServiceConfigHandle,
        most_attempts: u32,
        (retries, hedges): (Retries<Budgets>, Hedges<Budgets>),
        inner: S,
    ) -> Self {
        let shared = ClientState { handle, most_attempts, hedge: Arc::new(Shared::new(hedges, inner.clone())) };
        let retry = Retry::new(retries, inner);
        Self { retry, shared: Arc::new(shared), options: None }
    }

    /// Returns a handle to this client with these options for all calls. They override the config, and a request's own
    /// options override them.
    pub fn with_options(&self, options: CallOptions) -> Self {
        // If the layer never retries, its handles do not either.
        let never = self.options.as_ref().is_some_and(CallOptions::never);
        let options = if never { options.never_retry() } else { options };
        Self { options: Some(options), ..self.clone() }
    }
}

impl<S, Budgets> Client<S, Budgets> {
    /// Returns the config's handle.
    pub fn handle(&self) -> &ServiceConfigHandle {
        &self.shared.handle
    }

    inner_accessors!(S, retry.inner);
}

impl<S, Req, A, B, Budgets> Service<Req> for Client<S, Budgets>
where
    Budgets: Budget + 'static,
    S: Service<A, Response = Response<B>> + Clone,
    B: Body,
    Grpc: Replay<Req, Attempt = A> + Origin<A, Request = Req>,
    Answered: ErrorMode<S::Error, Error = S::Error>,
{
    type Response = Response<GrpcBody<B>>;
    type Error = S::Error;
    type Future = ResponseFuture<
        retry::ResponseFuture<S, Req, Grpc, Exponential, Budgets, Answered>,
        hedge::ResponseFuture<S, Req, Grpc, Budgets, Answered>,
    >;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.retry.inner.poll_ready(cx)
    }

    /// Starts the call according to the current config. The first attempt uses the inner service that is ready.
    fn call(&mut self, request: Req) -> Self::Future {
        let shared = &*self.shared;
        let config = match shared.handle.for_method(Grpc::view(&request).path()) {
            Ok(config) => config.unwrap_or_else(|| Arc::clone(&NO_ENTRY)),
            Err(none) => {
                self.retry.release();
                return ResponseFuture::refused(none);
            }
        };
        // If the client has turned hedging off, the retrying client sends the call with one attempt. It still replaces
        // an attempt that reached no server.
        let hedged = config.hedging_delay().is_some() && shared.most_attempts > 1;
        let options = self.options.clone().unwrap_or_default();
        let options = options.with_method(config, shared.most_attempts);
        if hedged {
            let (inner, hedge) = (&mut self.retry.inner, &shared.hedge);
            ResponseFuture::hedged(begin(inner, hedge, (Some(&options), None), request))
        } else {
            ResponseFuture::retried(self.retry.call_with(options, request))
        }
    }
}

impl<S: Clone, Budgets> Clone for Client<S, Budgets> {
    fn clone(&self) -> Self {
        Self { retry: self.retry.clone(), shared: Arc::clone(&self.shared), options: self.options.clone() }
    }
}

impl<S: fmt::Debug, Budgets> fmt::Debug for Client<S, Budgets> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("inner", self.get_ref())
            .field("handle", &self.shared.handle)
            .field("max_attempts", &self.shared.most_attempts)
            .finish_non_exhaustive()
    }
}
