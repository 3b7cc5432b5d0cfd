//! The layer, and what a user sets of it.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::Classification;
use reattempt_schedule_responsive::Responsive;
use tower_layer::Layer;

use super::Pace;
use super::queue::{Bounds, Queue};
use super::settings::Settings;
use crate::call::random::Seed;
use crate::error_mode::BoxedError;
use crate::protocol::{CloneRequest, Http, Protocol};

/// Paces the calls of a client: each is sent one interval after the one before it.
///
/// All callers that share the pace share one order of turns, so the rate falls to 1/interval however
/// many they are. While nothing is throttled the interval is 0, and a call costs a few counts: no timer
/// is made and nothing is allocated. See [`Responsive`] for how the interval moves and for its settings;
/// as turns, its `initial` is 10 µs unless it is set. The timer counts in whole milliseconds and rounds
/// up; several turns that are due at once are taken at once.
///
/// # The queue
///
/// Calls are sent in the order in which they came. At most 1024 wait
/// ([`max_waiting`](Self::max_waiting)), each at most 30 s ([`max_wait`](Self::max_wait)). What happens to
/// one call more, or to one whose deadline is before its turn, depends on the types:
///
/// | errors | a call that cannot wait |
/// |---|---|
/// | boxed ([`boxed_errors`](Self::boxed_errors)) | ends at once with a [`PaceRefused`](crate::pace::PaceRefused) that names the reason |
/// | answered by the protocol ([`Answered`](crate::error::Answered)) | is answered at once; the answer's extensions hold the [`PaceRefused`](crate::pace::PaceRefused) |
/// | the inner service's own | cannot be turned away: services are not ready while the queue is full, and deadlines are not looked at. `LoadShed` outside makes that an error |
///
/// A call that is dropped while it waits gives its turn back. Under an open load of twice what a service
/// can take, the service is sent about what it can take (`lab responsive --turns`).
///
/// The share that it serves depends on its way of counting. The laboratory measured these in the second minute of
/// an open load:
///
/// | the service refuses | capacity | load | served |
/// |---|---|---|---|
/// | what is above its capacity in a window of time | 5,000/s | 6,000/s | 100 % |
/// | | 5/s | 6/s | 94 % |
/// | | 1/s | 2/s | 93 % |
/// | each call that follows too soon on the one before | 1/s | 2/s | 92 % |
/// | | 50/s | 60/s | 87 % |
/// | | 500/s | 1,000/s | 61 % |
/// | | 5,000/s | 6,000/s | 31 % |
///
/// So a service that demands an exact gap of a few milliseconds or less serves much less than it could.
///
/// # What moves the interval
///
/// Outcomes are judged as a [`RetryLayer`](crate::RetryLayer) with the same protocol judges them:
///
/// | outcome | what it does |
/// |---|---|
/// | HTTP 429; what a classifier calls a [`Throttled`](crate::schedule::FailureKind::Throttled) failure | up |
/// | a success: 1xx to 3xx, or a response whose status is yet to come | a step towards down; after several refusals, down |
/// | everything else: 503 and UNAVAILABLE, other 5xx, 408, 425, lost connections, timeouts; 404 and whatever else no retry mends | nothing |
///
/// 503 and UNAVAILABLE are left out, because they are signs of an outage at least as often as of too much load. Slower
/// calls do not mend an outage, and the long interval would outlive it by hundreds of calls. For a service that
/// throttles by 503, see the example.
///
/// ```
/// use http::StatusCode;
/// use reattempt::{Http, Verdict};
/// use reattempt::pace::PaceLayer;
/// use reattempt::schedule::{Failure, FailureKind, Responsive};
///
/// let slow_down = Verdict::Unprocessed(Failure::new(FailureKind::Throttled).with_code(503));
/// let http = Http::new().on_status(StatusCode::SERVICE_UNAVAILABLE, slow_down);
/// let layer = PaceLayer::with(Responsive::new(), http);
/// ```
///
/// # Together with retries
///
/// The layer goes **inside** a [`RetryLayer`](crate::RetryLayer), whose own schedule may be any:
/// every attempt is then paced, and the delay before a retry comes on top. The wait is part of the
/// attempt, so a limit on elapsed time does not see it coming; one that interrupts (an attempt
/// timeout, a deadline with boxed errors or with an answer of the protocol) ends it like any attempt.
///
/// A pace that is the *schedule* of the retry layer as well would hear of each outcome twice and make
/// each retry wait twice. Where both are to follow one interval, put this layer **outside** and let
/// it only wait ([`waits_only`](Self::waits_only)): it delays the first attempt, the schedule delays
/// the retries, within the limits, and tells of every outcome once.
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
/// It holds the inner service that was made ready for it, and with it the place in a
/// `ConcurrencyLimit` or a `Buffer` inside of this layer. A limit outside counts it as well, for it is
/// under way. So the most calls under way bound how many wait. A call that is turned away lets go of the
/// inner service at once.
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
/// // The first went at once, the second after 500 ms, the third after 750 ms.
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
const DEFAULT_BOUNDS: Bounds = Bounds { waiting: 1024, wait: Duration::from_secs(30) };

impl PaceLayer {
    /// Paces HTTP requests: throttled is 429.
    pub fn http(pace: Responsive) -> Self {
        Self::with(pace, Http::new())
    }
}

impl<C: Send + Sync + 'static> PaceLayer<CloneRequest<C>> {
    /// Paces the calls of any service, judged by `judge`: throttled is a failure of the kind
    /// [`Throttled`](crate::schedule::FailureKind::Throttled).
    ///
    /// ```
    /// use std::error::Error;
    /// use reattempt::Verdict;
    /// use reattempt::pace::PaceLayer;
    /// use reattempt::schedule::{Failure, FailureKind, Responsive};
    ///
    /// let layer = PaceLayer::classified(Responsive::new(), |outcome: Result<&u32, &(dyn Error + 'static)>| {
    ///     match outcome {
    ///         Ok(0) => Verdict::Unprocessed(Failure::new(FailureKind::Throttled)),
    ///         Ok(_) => Verdict::Success,
    ///         Err(_) => Verdict::Permanent,
    ///     }
    /// });
    /// ```
    pub fn classified<Response, V>(pace: Responsive, judge: C) -> Self
    where
        C: Fn(Result<&Response, &(dyn Error + 'static)>) -> V,
        V: Into<Classification>,
    {
        Self::with(pace, CloneRequest::new(judge))
    }
}

impl<K: Protocol> PaceLayer<K> {
    /// Paces calls over a protocol with settings of its own. Several layers may share them.
    ///
    /// Of the overrides for a single call ([`CallOptions`](crate::CallOptions)) only the deadline has an effect
    /// on the pace.
    ///
    /// ```
    /// use reattempt::{Http, Verdict};
    /// use reattempt::classify::Outcome;
    /// use reattempt::pace::PaceLayer;
    /// use reattempt::schedule::{Failure, FailureKind, Responsive};
    ///
    /// // A table that is scaled up answers 400 with this header.
    /// let http = Http::new().classify(|outcome: Outcome<'_>| {
    ///     let exceeded = outcome.headers()?.get("x-error")? == "ThroughputExceeded";
    ///     exceeded.then_some(Verdict::Unprocessed(Failure::new(FailureKind::Throttled)))
    /// });
    /// let layer = PaceLayer::with(Responsive::new(), http);
    /// ```
    pub fn with(pace: Responsive, protocol: K) -> Self {
        pace.give_turns();
        let queue = Arc::new(Queue::new(DEFAULT_BOUNDS));
        Self::of(Settings { pace, protocol, tells: true, seed: None, queue })
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

    /// Waits before each call and tells the pace of nothing but the wait: for a layer outside of a
    /// retry layer whose schedule is the same pace, which then counts the attempts and tells of
    /// their outcomes.
    pub fn waits_only(self) -> Self {
        self.set(|settings| settings.tells = false)
    }

    /// The most calls that may wait for their turns. Default 1024.
    ///
    /// One call more is turned away with [`PaceRefused`](crate::pace::PaceRefused), where the error type has
    /// room for that. Where it has none, services are not ready while so many calls wait; each handle
    /// that was ready before may still add one.
    pub fn max_waiting(self, calls: usize) -> Self {
        self.bound(|bounds| bounds.waiting = calls)
    }

    /// The longest that a call may wait for its turn. Default 30 s.
    ///
    /// A call that would have to wait longer is turned away at once; one whose turn moves further
    /// away, as soon as that is known. Where the error type has no room for that, services are not ready
    /// while another call would have to wait longer.
    pub fn max_wait(self, wait: Duration) -> Self {
        self.bound(|bounds| bounds.wait = wait)
    }

    fn bound(self, change: impl FnOnce(&mut Bounds)) -> Self {
        self.set(|settings| {
            let mut bounds = settings.queue.bounds;
            change(&mut bounds);
            settings.queue = Arc::new(Queue::new(bounds));
        })
    }

    /// Makes every move of the interval reproducible: the calls, in the order in which they are
    /// made, draw from streams of their own. For tests and simulations.
    pub fn seed(self, seed: u64) -> Self {
        self.set(|settings| settings.seed = Some(Seed::new(seed)))
    }

    /// Makes the call's error tower's `BoxError`: needed where the inner service's error is one
    /// already (behind tower's Timeout or Buffer), for a `BoxError` is itself no
    /// [`Error`](std::error::Error).
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
