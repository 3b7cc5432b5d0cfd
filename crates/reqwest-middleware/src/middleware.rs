//! The middleware that runs the layers.

use http::Extensions;
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, RetryPolicy};
use reqwest::{Request, Response};

use super::api::{Middleware, Next, Result};
use super::chain::{ChainLayer, ChainService, LastExtensions};
use super::error::CallError;

/// A middleware that sends each request through layers of `reattempt`.
///
/// Middlewares that are added after this one run once per attempt, and those before it run once per call.
///
/// # Cancel safety
/// Dropping a call's future cancels its attempt or its delay.
///
/// ```
/// use reattempt::RetryPolicy;
/// use reattempt_reqwest_middleware::ReattemptMiddleware;
/// use reqwest_middleware::ClientBuilder;
///
/// # fn main() -> Result<(), reqwest::Error> {
/// // reqwest's own retries would multiply with the layer's.
/// let http = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;
/// let client = ClientBuilder::new(http)
///     .with(ReattemptMiddleware::new(RetryPolicy::http().max_attempts(4)))
///     .build();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ReattemptMiddleware<L = RetryPolicy> {
    layer: L,
}

impl ReattemptMiddleware {
    /// Creates a middleware that retries with the defaults of [`RetryPolicy::http`].
    pub fn http() -> Self {
        Self::new(RetryPolicy::http())
    }
}

impl<L> ReattemptMiddleware<L> {
    /// Creates a middleware from a layer or a stack of layers.
    ///
    /// The outermost layer must retry or hedge. A single guard or fallback, without other layers, is also allowed. All
    /// calls share the layers' state: budgets, guards, latencies. Stacks with guards require policies with boxed
    /// errors.
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    /// use reattempt::guard::{CircuitBreaker, GuardLayer};
    /// use reattempt_reqwest_middleware::ReattemptMiddleware;
    /// use tower::ServiceBuilder;
    ///
    /// let stack = ServiceBuilder::new()
    ///     .layer(RetryPolicy::http().boxed_errors())
    ///     .layer(GuardLayer::http(CircuitBreaker::rate()));
    /// let middleware = ReattemptMiddleware::new(stack.into_inner());
    /// # let _ = reqwest_middleware::ClientBuilder::new(reqwest::Client::new()).with(middleware);
    /// ```
    pub fn new(layer: L) -> Self
    where
        L: for<'a> ChainLayer<'a>,
    {
        Self { layer }
    }
}

#[async_trait::async_trait]
impl<L> Middleware for ReattemptMiddleware<L>
where
    L: for<'a> ChainLayer<'a> + Send + Sync + 'static,
{
    async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        let own = extensions.get::<CallOptions>().cloned().unwrap_or_default();
        let slot = own.report_slot().is_none().then(ReportSlot::default);
        let options = match &slot {
            Some(slot) => own.report_to(slot),
            None => own,
        };
        let last = LastExtensions::default();
        let mut inner = extensions.clone();
        let options = options.nested_in(&mut inner);
        let chain = ChainService { next, extensions: inner, last: last.clone() };
        let outcome = self.layer.send(chain, request, options).await;
        if let Some(mut changed) = last.take() {
            CallOptions::restore_nesting(extensions, &mut changed);
            *extensions = changed;
        }
        outcome.map_err(|error| CallError::new(error, slot.and_then(|slot| slot.take())).into())
    }
}
