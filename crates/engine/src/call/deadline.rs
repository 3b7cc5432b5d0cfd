//! The deadline of a call, which travels in the extensions of requests.

use std::time::Duration;

#[cfg(feature = "http")]
use http::Extensions;

use crate::call::clock::Instant;
#[cfg(feature = "http")]
use crate::call::frame::Frame;

/// The message of the error for a call that was ended by its deadline.
pub const PASSED: &str = "the deadline of the call has passed";

/// The deadline of a call: the time by which it must end.
///
/// Add it to the extensions of a request, or to [`CallOptions`](crate::CallOptions). A retry whose delay would exceed
/// the deadline is not sent.
///
/// | policy | at the deadline |
/// |---|---|
/// | with [`attempt_timeout`](crate::RetryPolicy::attempt_timeout) or [`boxed_errors`](crate::RetryPolicy::boxed_errors) | the call ends with a [`TimedOut`](crate::TimedOut). During the delay before a retry, it ends with the last error, if there is one |
/// | with a protocol that has a response for a passed deadline | the call ends with that response |
/// | any other | the attempt in flight continues |
///
/// The deadline is in the extensions of every attempt, with one exception. The deadline from a [standard
/// stack's][standard] total time is in the first attempt's extensions only if the request has other extensions.
/// [`of`](Self::of) finds it in `Service::call`. A server can [propagate](Self::propagate) its own caller's deadline to
/// outbound calls.
///
/// ```
/// use std::time::Duration;
/// use http::Request;
/// use reattempt::Deadline;
///
/// let mut outbound = Request::new(());
/// outbound.extensions_mut().insert(Deadline::after(Duration::from_millis(1500)));
/// ```
///
/// [standard]: https://docs.rs/reattempt/latest/reattempt/standard/index.html
#[doc(alias = "timeout")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(Instant);

impl Deadline {
    /// Creates a deadline that expires after this time on tokio's clock, at most about thirty years from now.
    #[doc(alias("new", "from_now", "in"))]
    pub fn after(timeout: Duration) -> Self {
        Self(Instant::now().later(timeout))
    }

    /// Returns the deadline of the attempt with these extensions, for a service inside a layer of this crate. Call this
    /// in [`Service::call`](tower::Service::call).
    ///
    /// The deadline is in the extensions, or the outer layer passes it in a thread-local variable while it calls its
    /// inner service. A call's future, a task and a service behind tower's `Buffer` therefore find it only in the
    /// extensions. For the same reason, a call through another client that starts within `call` also gets this
    /// deadline. To prevent this, start that call in an `async` block or a task. If a future needs the deadline, copy
    /// it to the extensions with this layer:
    ///
    /// ```
    /// use http::Request;
    /// use reattempt::Deadline;
    /// use reattempt::standard::StandardLayer;
    /// use tower::ServiceBuilder;
    /// use tower::util::MapRequestLayer;
    ///
    /// let with_deadline = MapRequestLayer::new(|mut request: Request<_>| {
    ///     if let Some(deadline) = Deadline::of(request.extensions()) {
    ///         request.extensions_mut().insert(deadline);
    ///     }
    ///     request
    /// });
    /// let builder = ServiceBuilder::new().layer(StandardLayer::http()).layer(with_deadline);
    /// # type Body = reattempt::ReplayBody<http_body_util::Full<bytes::Bytes>>;
    /// # let client = builder.service(tower::service_fn(async |_: Request<Body>| {
    /// #     Ok::<_, std::convert::Infallible>(http::Response::new(http_body_util::Full::<bytes::Bytes>::default()))
    /// # }));
    /// # reattempt::check::<Request<http_body_util::Full<bytes::Bytes>>, _>(&client);
    /// ```
    #[cfg(feature = "http")]
    #[inline]
    pub fn of(extensions: &Extensions) -> Option<Self> {
        earlier(extensions.get().copied(), Frame::deadline().map(Self::at))
    }

    /// Copies an inbound request's deadline, if any, to the extensions of an outbound request. If the outbound request
    /// already has a deadline, the earlier one applies.
    ///
    /// The deadline belongs to a request and not to a task, so a handler may send the outbound request from another
    /// task. If a call may outlive the handler's response, do not propagate the deadline to it.
    ///
    /// ```
    /// use http::Request;
    /// use reattempt::Deadline;
    /// # fn handle(inbound: Request<()>) {
    /// let mut outbound = Request::new(());
    /// Deadline::propagate(inbound.extensions(), outbound.extensions_mut());
    /// # }
    /// ```
    ///
    /// Reqwest requests have no public extensions, so set [`CallOptions::deadline`](crate::CallOptions::deadline) on a
    /// handle.
    #[cfg(feature = "http")]
    pub fn propagate(inbound: &Extensions, outbound: &mut Extensions) {
        if let Some(earliest) = earlier(Self::of(inbound), outbound.get().copied()) {
            outbound.insert(earliest);
        }
    }

    /// Returns the time left, which is zero if the deadline has passed.
    pub fn remaining(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub(crate) fn at(instant: Instant) -> Self {
        Self(instant)
    }

    #[doc(hidden)]
    pub fn instant(self) -> Instant {
        self.0
    }
}

/// Returns the earlier deadline.
#[cfg(feature = "http")]
#[inline]
pub(crate) fn earlier(one: Option<Deadline>, other: Option<Deadline>) -> Option<Deadline> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
