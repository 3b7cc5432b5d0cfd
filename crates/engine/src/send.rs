//! One call through a shared handle, which is cloned, polled until it is ready, called and dropped.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_service::Service;

pin_project! {
    /// The future of a call on a clone of a handle. The future waits until the clone is ready, calls it, and
    /// immediately drops the clone.
    ///
    /// If `poll_ready` returns an error, so does the future. A future that is polled again after completion stays
    /// pending.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call.
    #[must_use = "futures do nothing unless polled"]
    pub struct Sending<S, Req, F> {
        unsent: Option<(S, Req)>,
        #[pin]
        call: Option<F>,
    }
}

/// Sends one request through a service that only this call uses.
pub fn send<S: Service<Req>, Req>(service: S, request: Req) -> Sending<S, Req, S::Future> {
    Sending { unsent: Some((service, request)), call: None }
}

impl<S: Service<Req>, Req> Future for Sending<S, Req, S::Future> {
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some((service, _)) = this.unsent {
            let ready = ready!(service.poll_ready(cx));
            // Dropped immediately, because a refused handle stays in the inner service's queue and would get the next
            // permit (trap 50).
            let unsent = this.unsent.take();
            ready?;
            this.call.set(unsent.map(|(mut service, request)| service.call(request)));
        }
        this.call.as_pin_mut().map_or(Poll::Pending, |call| call.poll(cx))
    }
}

impl<S, Req, F> fmt::Debug for Sending<S, Req, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("sent", &self.call.is_some()).finish_non_exhaustive()
    }
}

/// Defines the method `send`, which returns a `$Future`, for a service whose clones share state.
// The future of a client is opaque, because the compiler then suggests a remedy for mistakes. If a service's body is a
// trait object, only a future with a named type can be spawned.
#[doc(hidden)]
#[macro_export]
macro_rules! send_method {
    ($Future:ty) => {
        /// Sends one request through a clone of this handle. The call waits until the clone is ready.
        ///
        /// One handle serves any number of concurrent calls, and need not be `mut`. Each call starts with a clone of
        /// the handle's state. If the inner service changes its own state during a call, for example by opening a
        /// connection, later calls do not see that change. Most clients share their state between clones, and a
        /// tower `Buffer` shares that of any service.
        ///
        /// # Errors
        /// Returns the call's error, or the error from the inner service's `poll_ready`.
        ///
        /// # Cancel safety
        /// Dropping the future cancels the call and every attempt in flight. The call's places in guards are released,
        /// and the tokens of an unsent retry are returned to the budget.
        pub fn send<Req>(&self, request: Req) -> $Future
        where
            Self: tower_service::Service<Req> + Clone,
        {
            $crate::wall::send(self.clone(), request)
        }
    };
}

pub use send_method;

/// Checks at compile time that `service` accepts requests of type `Request`.
///
/// If a wrapped client does not accept its requests, the compiler only reports that "the method exists, but its trait
/// bounds were not satisfied". If you call this function, the compiler reports the unsatisfied bound and the remedy.
/// Remove the call once the program compiles.
///
/// ```
/// use bytes::Bytes;
/// use http::Request;
/// use http_body_util::Full;
/// use hyper_util::client::legacy::Client;
/// use hyper_util::rt::TokioExecutor;
/// use reattempt::RetryLayer;
/// use tower::ServiceBuilder;
///
/// let client = ServiceBuilder::new()
///     .layer(RetryLayer::http())
///     .service(Client::builder(TokioExecutor::new()).build_http());
/// reattempt::check::<Request<Full<Bytes>>, _>(&client);
/// ```
pub fn check<Request, S: Service<Request>>(service: &S) {
    let _ = service;
}
