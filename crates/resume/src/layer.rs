//! The layer that resumes broken downloads, and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Schedule, Warning};
use reattempt_engine::Http;
use reattempt_engine::classify::RequestView;
use reattempt_engine::observe::{Event, Observer};
use reattempt_engine::protocol::Protocol;
use reattempt_engine::wall::{add_observer, protocol_setters};
use reattempt_schedule_exponential::Exponential;
use tower::BoxError;
use tower_layer::Layer;

use super::message::{self, ResumableResponse};
use super::resumption::Resumption;
use super::settings::{Rules, Settings};
use super::{Resume, ResumeBody, ResumePoint, Source};

/// The broken attempt plus five resumes without a new byte.
const MAX_ATTEMPTS: u32 = 6;

/// A layer that resumes a GET request when its response body breaks, as described in the [module docs](super).
///
/// Put the layer outside the retry layer, guards and endpoints. Calls keep the inner service's error type. The error
/// type of the body is tower's `BoxError`. The layer needs a tokio runtime with its time driver enabled. Without a
/// runtime, nothing is resumed after a delay.
///
/// | setting | default | reason |
/// |---|---|---|
/// | schedule | full jitter from 100 ms, doubling up to 5 s; it restarts after each new byte | as for retries |
/// | `max_attempts` | 6 | after five resumes without a new byte, the server is probably down, or fails at the same byte each time |
/// | `max_elapsed` | 30 s | as for retries, but measured from the last break |
/// | budget | [`RetryBudget::cautious`] for each destination | as for retries |
/// | `max_skip` | 64 MiB, once if the server ignores the range | skipping takes the server's work and the caller's time |
/// | `tags_only` | off | without an `ETag`, a date that is 60 s old nearly always identifies a version |
///
/// ```
/// use std::time::Duration;
/// use reattempt::resume::ResumeLayer;
///
/// let layer = ResumeLayer::http().max_elapsed(Duration::from_secs(300));
/// ```
pub struct ResumeLayer<Backoff = Exponential, B = RetryBudget> {
    settings: Settings<Backoff, B>,
    rules: Rules,
}

impl ResumeLayer {
    /// Creates a layer with the defaults listed at [`ResumeLayer`].
    pub fn http() -> Self {
        let mut settings = Settings::new(Http::new(), Http::default_backoff(), Http::default_budget());
        settings.limits.max_attempts = MAX_ATTEMPTS;
        Self { settings, rules: Rules::default() }
    }
}

/// The HTTP settings that affect resumes.
impl<Backoff, B> ResumeLayer<Backoff, B> {
    protocol_setters!(Http: reading, http);
}

impl<Backoff, B> ResumeLayer<Backoff, B> {
    /// Changes the protocol's settings, such as its classification of broken bodies.
    pub fn protocol(mut self, change: impl FnOnce(Http) -> Http) -> Self {
        self.settings.protocol = change(self.settings.protocol);
        self
    }

    /// Sets the delays before resumes. Default: full jitter from 100 ms, doubling up to 5 s.
    pub fn backoff<T: Schedule>(self, schedule: T) -> ResumeLayer<T, B> {
        ResumeLayer { settings: self.settings.map(|_, budget| (schedule, budget)), rules: self.rules }
    }

    /// Sets the budget, which must grant every resume. Default: [`RetryBudget::cautious`] for each destination.
    ///
    /// Give the layer a clone of the retry policy's budget, so that both layers spend the same tokens.
    pub fn budget<T: Budget>(self, budget: T) -> ResumeLayer<Backoff, T> {
        ResumeLayer { settings: self.settings.map(|schedule, _| (schedule, budget)), rules: self.rules }
    }

    /// Sets the maximum number of attempts without a new byte, including the attempt that broke. 0 and 1 turn resumes
    /// off. Default: 6.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.settings.limits.max_attempts = attempts;
        self
    }

    /// Sets the maximum time from a break to the head of the response that continues the body. `None` removes the
    /// limit. Default: 30 s.
    pub fn max_elapsed(mut self, elapsed: impl Into<Option<Duration>>) -> Self {
        self.settings.limits.max_elapsed = elapsed.into();
        self
    }

    /// Sets the maximum delay that a server may ask for. If it asks for more, the body is not resumed. Default: 60 s,
    /// but the default `max_elapsed` of 30 s is stricter.
    pub fn max_server_delay(mut self, delay: Duration) -> Self {
        self.settings.limits.max_server_delay = delay;
        self
    }

    /// Sets the maximum number of bytes that a response may repeat. They are skipped. A server that ignores the range
    /// repeats everything; that is accepted once for each body. 0 turns skipping off. Default: 64 MiB.
    pub fn max_skip(mut self, bytes: u64) -> Self {
        self.rules.max_skip = bytes;
        self
    }

    /// Resumes only bodies with a strong `ETag`. By default, a `Last-Modified` at least 60 s before `Date` is a
    /// validator if there is no `ETag`. It is the same for two versions of equal length from the same second, and their
    /// parts would be joined.
    pub fn tags_only(mut self) -> Self {
        self.rules.tags_only = true;
        self
    }

    /// Verifies the SHA-256 or SHA-512 in the first response's `Content-Digest` or `Repr-Digest` (RFC 9530) over the
    /// joined body. If it differs, the body fails with a [`DigestMismatch`](super::DigestMismatch) in place of its last
    /// frame. A body that cannot be resumed, or without such a field, is not verified. Default: off, because the digest
    /// takes the time of a pass over all bytes.
    #[cfg(feature = "digest")]
    pub fn verify_digest(mut self) -> Self {
        self.rules.verify_digest = true;
        self
    }

    /// Adds a closure as an observer; [`observe_with`](Self::observe_with) adds any other observer.
    pub fn observe<F: Fn(&str, &Event<'_>) + Send + Sync + 'static>(self, observer: F) -> Self {
        self.observe_with(observer)
    }

    /// Notifies an [`Observer`](reattempt_engine::observe::Observer) of breaks and resumptions. Observers are notified
    /// in the order in which they were added.
    pub fn observe_with(mut self, observer: impl Observer + 'static) -> Self {
        add_observer(&mut self.settings.observer, observer);
        self
    }

    /// Returns a warning for each limit, delay or budget setting outside its recommended range.
    ///
    /// ```
    /// use reattempt::resume::ResumeLayer;
    ///
    /// assert!(ResumeLayer::http().validate().is_empty());
    /// ```
    pub fn validate(&self) -> Vec<Warning>
    where
        Backoff: Schedule,
        B: Budget,
    {
        let Settings { limits, strategy: schedule, budget, .. } = &self.settings;
        [limits.validate(), schedule.validate(limits), budget.validate()].concat()
    }
}

impl<Backoff: Schedule + Clone, B: Budget + Clone> ResumeLayer<Backoff, B> {
    /// Makes a response body resumable without a layer. `source`, usually a closure, requests the rest of a broken
    /// body.
    ///
    /// `request` is the original request. The source must send its requests to the same resource, with the headers of
    /// [`ResumePoint::write_to`].
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use bytes::Bytes;
    /// use futures_util::stream;
    /// use http::{Request, Response};
    /// use http_body::{Body, Frame};
    /// use http_body_util::{BodyExt, StreamBody};
    /// use reattempt::resume::{ResumeLayer, ResumePoint};
    ///
    /// fn body(text: &'static str) -> impl Body<Data = Bytes, Error = Infallible> {
    ///     StreamBody::new(stream::iter([Ok(Frame::data(Bytes::from(text)))]))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// let request = Request::get("http://one.example/greeting").body(())?;
    /// // A response whose body ends after two of five bytes.
    /// let response = Response::builder().header("etag", "\"1\"").header("content-length", 5);
    /// let response = response.body(body("he"))?;
    ///
    /// let source = |point: ResumePoint| async move {
    ///     assert_eq!(point.received(), 2);
    ///     let rest = Response::builder().status(206).header("etag", "\"1\"").header("content-range", "bytes 2-4/5");
    ///     rest.body(body("llo"))
    /// };
    /// let response = ResumeLayer::http().resumed(&request, response, source);
    /// assert_eq!(response.into_body().collect().await?.to_bytes(), "hello");
    /// # Ok(())
    /// # }
    /// ```
    pub fn resumed<T, R>(
        &self,
        request: &Request<T>,
        response: Response<R::Body>,
        source: R,
    ) -> Response<ResumeBody<R, Backoff, B>>
    where
        R: Source,
        R::Body: Body<Error: Into<BoxError>>,
    {
        let (mut head, body) = response.into_message().into_parts();
        let point = ResumePoint::new(request.method(), request.headers(), head.status, &head.headers);
        let body = match point {
            Some(point) => {
                let settings = Arc::new(self.settings.clone());
                let context = Resumption::<R, Backoff, B>::context(&settings, RequestView::from(request), None);
                let destination = message::destination(&settings.protocol, request);
                let path = message::path_of(request.uri());
                ResumeBody::new(
                    body,
                    point,
                    Resumption::new((settings, self.rules), context, destination, source, &path, &mut head),
                )
            }
            None => ResumeBody::whole(body),
        };
        Response::from_parts(head, body)
    }
}

impl<S: Clone, Backoff: Schedule + Clone, B: Budget + Clone> Layer<S> for ResumeLayer<Backoff, B> {
    type Service = Resume<S, Backoff, B>;

    fn layer(&self, inner: S) -> Self::Service {
        Resume::new((Arc::new(self.settings.clone()), self.rules), inner)
    }
}

impl<Backoff: Clone, B: Clone> Clone for ResumeLayer<Backoff, B> {
    fn clone(&self) -> Self {
        Self { settings: self.settings.clone(), rules: self.rules }
    }
}

impl<Backoff: fmt::Debug, B: fmt::Debug> fmt::Debug for ResumeLayer<Backoff, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumeLayer")
            .field("protocol", &self.settings.protocol)
            .field("schedule", &self.settings.strategy)
            .field("budget", &self.settings.budget)
            .field("limits", &self.settings.limits)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
