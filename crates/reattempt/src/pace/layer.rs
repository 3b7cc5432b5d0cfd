//! The layer that paces the calls of a client, and its settings.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use reattempt_control::Patience;
use reattempt_core::Classification;
use reattempt_schedule_responsive::Responsive;
use tower_layer::Layer;

use super::Pace;
use super::queue::Queue;
use super::settings::Settings;
use crate::call::random::Seed;
use crate::error_mode::BoxedError;
use crate::protocol::{CloneRequest, Http, Protocol};

/// A layer that paces the calls of a client: each is sent one interval after the call before it.
///
/// All callers that share the pace share one order of turns, so their number does not change the rate of 1/interval.
/// While nothing is throttled the interval is 0, and a call costs a few counts: no timer is made and nothing is
/// allocated.
/// [`Responsive`] documents the moves of the interval and its settings; for turns, its `initial` is 10 µs unless it is
/// set. The timer counts in whole milliseconds and rounds up. If several turns are due at once, they are taken at once.
///
/// # The queue
///
/// Calls are sent in the order in which they came. At most 1024 wait ([`max_waiting`](Self::max_waiting)), each at most
/// 30 s ([`max_wait`](Self::max_wait)). A call that cannot wait finds the queue full, or its turn due after its
/// deadline:
///
/// | error mode | a call that cannot wait |
/// |---|---|
/// | boxed ([`boxed_errors`](Self::boxed_errors)) | ends at once with a [`PaceRefused`](crate::pace::PaceRefused) that names the reason |
/// | the protocol has a response for it ([`Answered`](crate::error::Answered)) | gets that response at once, with the [`PaceRefused`](crate::pace::PaceRefused) in its extensions |
/// | the inner service's own | cannot be turned away. Services are not ready while the queue is full, and deadlines are ignored. tower's `LoadShed` outside turns that into an error |
///
/// A call that is dropped while it waits gives its turn back. Under an open load of twice its capacity, a service
/// receives about its capacity (`lab responsive --turns`).
///
/// The share of its capacity that a service then serves depends on its way of counting. The laboratory measured these
/// shares in the second minute of an open load, with responses after 5 ms:
///
/// | the service refuses | capacity | load | served | with a timer of 1 µs |
/// |---|---|---|---|---|
/// | what is above its capacity in a window of time | 5,000/s | 6,000/s | 100 % | |
/// | | 5/s | 6/s | 94 % | |
/// | | 1/s | 1.2/s | 100 % | |
/// | | 1/s | 2/s | 97 % | |
/// | each call that follows too soon on the one before | 1/s | 1.2/s | 90 % | 90 % |
/// | | 1/s | 2/s | 85 % | 85 % |
/// | | 50/s | 60/s | 87 % | 92 % |
/// | | 500/s | 1,000/s | 61 % | 81 % |
/// | | 5,000/s | 6,000/s | 35 % | 57 % |
///
/// So a service that demands an exact gap of a few milliseconds or less serves much less than its capacity. One cause
/// is tokio's timer, which counts in milliseconds: several turns come together. The other is that refusals arrive late.
///
/// # What moves the interval
///
/// Outcomes are classified as by a [`RetryLayer`](crate::RetryLayer) with the same protocol:
///
/// | outcome | the interval |
/// |---|---|
/// | 429; a failure of the kind [`Throttled`](crate::schedule::FailureKind::Throttled) from a classifier | grows |
/// | a success: 1xx to 3xx, or a response whose status is still to come | shrinks after ten of them, or at once after several refusals |
/// | everything else: 503, UNAVAILABLE, other 5xx, 408, 425, lost connections, timeouts, permanent failures | stays |
///
/// 503 and UNAVAILABLE do not count, because they are signs of an outage at least as often as of too much load. Slower
/// calls do not mend an outage, and the long interval would outlive it by hundreds of calls. This example is for a
/// service that throttles by 503:
///
/// ```
/// use http::StatusCode;
/// use reattempt::{Http, Verdict};
/// use reattempt::pace::PaceLayer;
/// use reattempt::schedule::{Failure, FailureKind, Responsive};
///
/// let slow_down = Verdict::NotProcessed(Failure::new(FailureKind::Throttled).with_code(503));
/// let http = Http::new().on_status(StatusCode::SERVICE_UNAVAILABLE, slow_down);
/// let layer = PaceLayer::with(Responsive::new(), http);
/// ```
///
/// # Together with retries
///
/// Put the layer **inside** a [`RetryLayer`](crate::RetryLayer) with any schedule. Every attempt is then paced, and the
/// delay before a retry is added. The wait is a part of the attempt. So the limit on elapsed time does not count it
/// beforehand; an attempt timeout or a deadline that interrupts ends it like any attempt.
///
/// If the same pace is the *schedule* of the retry layer, each outcome would be recorded twice, and each retry would
/// wait twice. In that case put this layer **outside**, with [`waits_only`](Self::waits_only). It then delays the first
/// attempt. The schedule delays the retries, within the limits, and records every outcome once.
///
/// ```
/// use reattempt::{RetryLayer, RetryPolicy};
/// use reattempt::pace::PaceLayer;
/// use reattempt::schedule::Responsive;
/// use tower::ServiceBuilder;
///
/// let pace = Responsive::new();
/// let builder = ServiceBuilder::new()
///     .layer(PaceLayer::http(pace.clone()).waits_only())
///     .layer(RetryLayer::new(RetryPolicy::http().backoff(pace)));
/// ```
///
/// Different clients of one service may share a pace in any of these ways.
///
/// # While a call waits
///
/// A waiting call holds the inner service that was readied for it. So it holds its place in a `ConcurrencyLimit` or a
/// `Buffer` inside of this layer. A limit outside counts it too. So each limit on calls under way also bounds the calls
/// that wait. A call that is turned away releases the inner service at once.
///
/// ```
/// use std::convert::Infallible;
/// use std::time::Duration;
/// use http::{Request, Response, StatusCode};
/// use reattempt::pace::PaceLayer;
/// use reattempt::schedule::Responsive;
/// use tokio::time::Instant;
/// use tower::{Layer, Service, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A server that refuses everything.
/// let server = service_fn(|_: Request<String>| async {
///     let mut response = Response::new(String::new());
///     *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
///     Ok::<_, Infallible>(response)
/// });
///
/// let pace = Responsive::new().initial(Duration::from_millis(500))?.randomisation(0.0)?;
/// let mut client = PaceLayer::http(pace.clone()).layer(server);
/// let began = Instant::now();
/// for _ in 0..3 {
///     client.ready().await?.call(Request::new(String::new())).await?;
/// }
/// // The first call was sent at once, the second after 500 ms, the third 750 ms later.
/// assert_eq!(began.elapsed(), Duration::from_millis(1250));
/// assert_eq!(pace.interval(), Duration::from_millis(1125));
/// assert_eq!(pace.metrics().times_slept, 2);
/// # Ok(())
/// # }
/// ```
#[doc(alias("rate_limit", "throttle"))]
pub struct PaceLayer<K = Http, M = <K as Protocol>::Mode>
where
    K: Protocol,
{
    settings: Settings<K>,
    mode: PhantomData<fn() -> M>,
}

/// 30 s is the default limit on elapsed time; 1024 calls wait a fifth of a second at 5,000/s.
const DEFAULT_PATIENCE: Patience = Patience { calls: 1024, time: Duration::from_secs(30) };

impl PaceLayer {
    /// Creates a layer that paces HTTP requests. A 429 lengthens the interval.
    pub fn http(pace: Responsive) -> Self {
        Self::with(pace, Http::new())
    }
}

impl<C: Send + Sync + 'static> PaceLayer<CloneRequest<C>> {
    /// Creates a layer that paces the calls of any service. `classify` classifies the outcomes. A failure of the kind
    /// [`Throttled`](crate::schedule::FailureKind::Throttled) lengthens the interval.
    ///
    /// ```
    /// use std::error::Error;
    /// use reattempt::Verdict;
    /// use reattempt::pace::PaceLayer;
    /// use reattempt::schedule::{Failure, FailureKind, Responsive};
    ///
    /// let layer = PaceLayer::classified(Responsive::new(), |outcome: Result<&u32, &(dyn Error + 'static)>| {
    ///     match outcome {
    ///         Ok(0) => Verdict::NotProcessed(Failure::new(FailureKind::Throttled)),
    ///         Ok(_) => Verdict::Success,
    ///         Err(_) => Verdict::Permanent,
    ///     }
    /// });
    /// ```
    pub fn classified<Response, V>(pace: Responsive, classify: C) -> Self
    where
        C: Fn(Result<&Response, &(dyn Error + 'static)>) -> V,
        V: Into<Classification>,
    {
        Self::with(pace, CloneRequest::new(classify))
    }
}

impl<K: Protocol> PaceLayer<K> {
    /// Creates a layer that paces calls over a protocol with settings of its own, which several layers may share.
    ///
    /// Of the [`CallOptions`](crate::CallOptions) of a request, only the deadline has an effect on the pace.
    ///
    /// ```
    /// use reattempt::{Http, Verdict};
    /// use reattempt::classify::Outcome;
    /// use reattempt::pace::PaceLayer;
    /// use reattempt::schedule::{Failure, FailureKind, Responsive};
    ///
    /// // A table that is being scaled up responds 400 with this header.
    /// let http = Http::new().classify(|outcome: Outcome<'_>| {
    ///     let exceeded = outcome.headers()?.get("x-error")? == "ThroughputExceeded";
    ///     exceeded.then_some(Verdict::NotProcessed(Failure::new(FailureKind::Throttled)))
    /// });
    /// let layer = PaceLayer::with(Responsive::new(), http);
    /// ```
    pub fn with(pace: Responsive, protocol: K) -> Self {
        pace.give_turns();
        let queue = Arc::new(Queue::new(DEFAULT_PATIENCE));
        Self::of(Settings { pace, protocol, records: true, seed: None, queue })
    }
}

/// Settings of every protocol.
impl<K: Protocol, M> PaceLayer<K, M> {
    fn of(settings: Settings<K>) -> Self {
        Self { settings, mode: PhantomData }
    }

    fn set(mut self, change: impl FnOnce(&mut Settings<K>)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Changes the settings of the protocol: classifiers, and verdicts on statuses or codes.
    pub fn protocol(self, change: impl FnOnce(K) -> K) -> Self
    where
        K: Clone,
    {
        self.set(|settings| settings.protocol = change(settings.protocol.clone()))
    }

    /// Makes the layer wait before each call and record no outcome. Use it outside of a retry layer whose schedule is
    /// the same pace: that records the attempts and their outcomes.
    pub fn waits_only(self) -> Self {
        self.set(|settings| settings.records = false)
    }

    /// Sets the most calls that may wait for their turns. Default 1024: at 5,000 calls a second they wait a fifth of a
    /// second.
    ///
    /// One call more is turned away with a [`PaceRefused`](crate::pace::PaceRefused), if the error type can contain it.
    /// Otherwise services are not ready while so many calls wait; each handle that was ready before may still add one.
    pub fn max_waiting(self, calls: usize) -> Self {
        self.bound(|patience| patience.calls = calls)
    }

    /// Sets the longest time for which a call may wait for its turn. Default 30 s, the default limit on elapsed time.
    ///
    /// A call that would wait longer is turned away at once. If the turn of a waiting call moves too far away, that
    /// call is turned away then. If the error type cannot contain that, services are not ready while another call would
    /// wait longer.
    pub fn max_wait(self, wait: Duration) -> Self {
        self.bound(|patience| patience.time = wait)
    }

    fn bound(self, change: impl FnOnce(&mut Patience)) -> Self {
        self.set(|settings| {
            let mut patience = settings.queue.patience();
            change(&mut patience);
            settings.queue = Arc::new(Queue::new(patience));
        })
    }

    /// Makes every move of the interval reproducible, for tests and simulations. Each call draws from a stream of
    /// random numbers of its own, in the order in which calls are made.
    pub fn seed(self, seed: u64) -> Self {
        self.set(|settings| settings.seed = Some(Seed::new(seed)))
    }

    /// Makes the call's error tower's `BoxError`. Inner services whose error is a `BoxError` (behind tower's `Timeout`
    /// or `Buffer`) need it, because that type is not an [`Error`](std::error::Error).
    pub fn boxed_errors(self) -> PaceLayer<K, BoxedError> {
        PaceLayer::of(self.settings)
    }
}

impl<S, K: Protocol + Clone, M> Layer<S> for PaceLayer<K, M> {
    type Service = Pace<S, K, M>;

    fn layer(&self, inner: S) -> Self::Service {
        Pace::new(Arc::new(self.settings.clone()), inner)
    }
}

impl<K: Protocol + Clone, M> Clone for PaceLayer<K, M> {
    fn clone(&self) -> Self {
        Self::of(self.settings.clone())
    }
}

impl<K: Protocol + fmt::Debug, M> fmt::Debug for PaceLayer<K, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaceLayer").field("settings", &self.settings).finish()
    }
}
