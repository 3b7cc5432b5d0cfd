//! The pacing guard, which admits each call one interval after the previous one.
//!
//! [`Responsive`] determines the interval and the time of each turn. `queue` determines the order of waiting calls.

mod queue;
mod sync;

use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use reattempt_control::{Limit, Patience, WaiterId};
use reattempt_core::guard::{Admit, Arrival, End, Guard, Health, Refused, Resume};
use reattempt_core::snapshot::{Inspect, Part};
use reattempt_core::{Failure, FailureKind, Schedule, SentAt};
use reattempt_schedule_responsive::{ReservedTurn, Responsive};

use self::queue::{Admission, Queue, Step};
use reattempt_engine::schedule::CallRandom;
use reattempt_engine::wall::Seed;

/// A guard that paces calls: each is admitted one interval after the previous one.
///
/// Use it if a server throttles its callers and all calls of a client should slow down together. All callers that share
/// the interval take turns, so the rate is 1/interval, however many callers there are. While nothing is throttled, the
/// interval is 0, and a call costs only a few counter updates.
///
/// [`Responsive`] documents how the interval changes, and its settings. For a pace, the default of `initial` is 10 µs.
/// The timer has a resolution of 1 ms and rounds up. If several turns are due, they are taken together.
///
/// A pace has one interval for all destinations, so throttling by one destination slows down calls to all others. Give
/// each service a client with its own pace. [`SendRate`](super::SendRate) has a rate per destination, and uses the
/// algorithm of AWS's clients.
///
/// If there are several guards, put it last. If calls waited for another guard after their turns, several might be sent
/// at once.
///
/// ```
/// use http_body_util::Full;
/// use hyper_util::client::legacy::Client;
/// use hyper_util::rt::TokioExecutor;
/// use reattempt::guard::{GuardLayer, Pace};
/// use reattempt::schedule::Responsive;
/// use reattempt::{RetryLayer, RetryPolicy};
/// use tower::ServiceBuilder;
///
/// let client = ServiceBuilder::new()
///     .layer(RetryLayer::new(RetryPolicy::http().boxed_errors()))
///     .layer(GuardLayer::http(Pace::new(Responsive::new())))
///     .service(Client::builder(TokioExecutor::new()).build_http());
/// # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
/// ```
///
/// # The queue
///
/// Calls are admitted in order of arrival, except that a new call may overtake waiting ones when the interval falls to
/// zero. At most 1024 calls wait, each at most 30 s ([`queue`](Self::queue)). A call is refused immediately if the
/// queue is full or its turn comes after its deadline. The refusal contains the time until the turn. A waiting call is
/// also refused if its turn moves too far into the future. Hedges do not wait. They are sent only if their turn has
/// come.
///
/// A call that is dropped while it waits returns its turn. So does a call that took its turn but is not sent, unless
/// another turn was taken after it. If the offered load is twice a service's capacity, the service receives about its
/// capacity (`lab responsive --turns`).
///
/// The share of its capacity that a service then uses depends on how it counts calls. The table contains these shares,
/// measured in the second minute of an open load with responses after 5 ms:
///
/// | the service refuses | capacity | load | served | with a timer of 1 µs |
/// |---|---|---|---|---|
/// | calls above its capacity in a window of time | 5,000/s | 6,000/s | 100 % | |
/// | | 5/s | 6/s | 94 % | |
/// | | 1/s | 1.2/s | 100 % | |
/// | | 1/s | 2/s | 97 % | |
/// | each call that follows the previous one too soon | 1/s | 1.2/s | 90 % | 90 % |
/// | | 1/s | 2/s | 85 % | 85 % |
/// | | 50/s | 60/s | 87 % | 92 % |
/// | | 500/s | 1,000/s | 61 % | 81 % |
/// | | 5,000/s | 6,000/s | 35 % | 57 % |
///
/// A service that requires an exact gap of a few milliseconds or less therefore serves much less than its capacity. One
/// cause is tokio's timer, whose resolution is 1 ms, so several turns are taken at once. The other cause is that
/// refusals arrive late.
///
/// # What changes the interval
///
/// | health of the outcome | the interval |
/// |---|---|
/// | [`Overloaded`](Health::Overloaded): 429 | grows |
/// | [`Served`](Health::Served): a success, or an error caused by the caller such as 404 or 501 | shrinks after ten such outcomes; after several refusals, the first such outcome shrinks it |
/// | everything else: 503, other 5xx, 408, 425, lost connections, timeouts | does not change |
///
/// A 503 does not change the interval, because it signals an outage at least as often as overload. Slower calls do not
/// end an outage, and the interval would stay long for hundreds of calls afterwards. For a service that throttles with
/// 503:
///
/// ```
/// use http::StatusCode;
/// use reattempt::guard::{GuardLayer, Pace};
/// use reattempt::schedule::{Failure, FailureKind, Responsive};
/// use reattempt::{Http, Verdict};
///
/// let slow_down = Verdict::NotProcessed(Failure::new(FailureKind::Throttled).with_code(503));
/// let http = Http::new().on_status(StatusCode::SERVICE_UNAVAILABLE, slow_down);
/// let layer = GuardLayer::with(http, Pace::new(Responsive::new()));
/// ```
///
/// # Together with retries
///
/// Inside a [`RetryLayer`](reattempt_engine::RetryLayer) with any schedule, every attempt waits for its turn, in
/// addition to the delay before a retry. The wait is part of the attempt. The limit on elapsed time therefore does not
/// take it into account in advance, but an attempt timeout or a deadline ends it.
///
/// If the same interval were also the retry layer's *schedule*, each outcome would be recorded twice, and each retry
/// would wait twice. To use it as both, put the guard **outside** the retry layer, with
/// [`waits_only`](Self::waits_only). The guard then delays first attempts. The schedule delays retries, within the
/// limits, and records every outcome once.
///
/// ```
/// use reattempt::guard::{GuardLayer, Pace};
/// use reattempt::schedule::Responsive;
/// use reattempt::{RetryLayer, RetryPolicy};
/// use tower::ServiceBuilder;
///
/// let interval = Responsive::new();
/// let builder = ServiceBuilder::new()
///     .layer(GuardLayer::http(Pace::new(interval.clone()).waits_only(true)))
///     .layer(RetryLayer::new(RetryPolicy::http().backoff(interval)));
/// ```
///
/// Different clients of one service may share an interval in any of these ways. Clones of a pace also share the queue.
/// If outcomes of calls outside the queue have shortened the interval, a waiting call adjusts within a second. Two
/// guards on one interval in the same call would wait twice and record each outcome twice.
///
/// ```
/// use std::convert::Infallible;
/// use std::time::Duration;
/// use http::{Request, Response, StatusCode};
/// use reattempt::guard::{GuardLayer, Pace};
/// use reattempt::schedule::Responsive;
/// use tokio::time::Instant;
/// use tower::{Layer, service_fn};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// // A server that refuses everything.
/// let server = service_fn(|_: Request<String>| async {
///     let mut response = Response::new(String::new());
///     *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
///     Ok::<_, Infallible>(response)
/// });
///
/// let interval = Responsive::new().initial(Duration::from_millis(500)).randomisation(0.0);
/// let client = GuardLayer::http(Pace::new(interval.clone())).layer(server);
/// let began = Instant::now();
/// for _ in 0..3 {
///     client.send(Request::new(String::new())).await?;
/// }
/// // The first call was sent at once, the second after 500 ms, the third 750 ms later.
/// assert_eq!(began.elapsed(), Duration::from_millis(1250));
/// assert_eq!(interval.interval(), Duration::from_millis(1125));
/// assert_eq!(interval.metrics().times_slept, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new guard"]
pub struct Pace {
    responsive: Responsive,
    /// `true` if outcomes change the interval.
    records: bool,
    seed: Option<Seed>,
    queue: Arc<Queue>,
}

/// The ticket of a call that a pace has admitted or queued.
#[derive(Debug)]
pub struct PaceTicket(TicketState);

#[derive(Debug)]
enum TicketState {
    Queued { waiter: WaiterId, since: Duration },
    Admitted(Admitted),
}

/// A call that may be sent: its turn, the number of earlier changes, and its random number stream.
#[derive(Debug)]
struct Admitted {
    turn: ReservedTurn,
    sent_at: SentAt,
    stream: Option<u64>,
}

/// 30 s is the default limit on elapsed time. At 5,000 calls per second, the last of 1024 calls waits 0.2 s.
const DEFAULT_PATIENCE: Patience = Patience { calls: 1024, time: Duration::from_secs(30) };

/// `queue` and `no_queue` return a pace with a new queue; all other setters keep the queue. The interval is always
/// shared.
impl Pace {
    /// Creates a guard that admits calls one interval apart.
    pub fn new(interval: Responsive) -> Self {
        interval.give_turns();
        let queue = Arc::new(Queue::new(DEFAULT_PATIENCE));
        Self { responsive: interval, records: true, seed: None, queue }
    }

    /// Sets whether the guard only delays calls, without recording outcomes. Default: `false`.
    ///
    /// Use it around a retry layer whose schedule is the same interval, because that layer records the attempts and
    /// their outcomes.
    pub fn waits_only(self, on: bool) -> Self {
        Self { records: !on, ..self }
    }

    /// Sets how many calls may wait for their turns, and for how long. Default: 1024 calls for 30 s. The default limit
    /// on elapsed time is 30 s too. At 5,000 calls per second, the last of 1024 waiting calls waits 0.2 s.
    #[doc(alias("max_waiting", "max_wait"))]
    pub fn queue(self, calls: usize, time: Duration) -> Self {
        Self { queue: Arc::new(Queue::new(Patience { calls, time })), ..self }
    }

    /// Refuses calls whose turn has not come, instead of queueing them.
    pub fn no_queue(self) -> Self {
        self.queue(0, Duration::ZERO)
    }

    /// Makes every change of the interval reproducible, for tests and simulations. Each call gets its own stream of
    /// random numbers, assigned in the order of admission.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(Seed::new(seed)), ..self }
    }

    /// Returns the shared interval, for example to read its value or its counts.
    pub fn responsive(&self) -> &Responsive {
        &self.responsive
    }

    /// Returns the rate of one call per interval, which is infinite while the interval is 0.
    pub fn limit(&self) -> Limit {
        Limit::every(self.responsive.interval())
    }

    /// Returns the number of waiting calls.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    #[inline]
    fn admitted(&self, turn: ReservedTurn) -> Admitted {
        if !self.records {
            return Admitted { turn, sent_at: SentAt::default(), stream: None };
        }
        let stream = self.seed.as_ref().map(Seed::next_stream);
        Admitted { turn, sent_at: self.responsive.on_send(), stream }
    }

    /// Records the outcome of a call.
    fn record(&self, admitted: &Admitted, health: Health) {
        let mut random = CallRandom::unseeded(admitted.stream);
        match health {
            Health::Served => {
                let interval = self.responsive.interval();
                self.responsive.on_success(admitted.sent_at, &mut random);
                if !interval.is_zero() && self.responsive.interval() < interval {
                    self.queue.wake_first();
                }
            }
            Health::Overloaded => {
                let throttled = Failure::new(FailureKind::Throttled);
                self.responsive.on_failure(admitted.sent_at, &throttled, &mut random);
            }
            _ => {}
        }
    }

    /// Returns the turn of an admitted call that is not sent.
    fn give_back(&self, admitted: Admitted) {
        if self.records {
            self.responsive.not_sent();
        }
        if self.responsive.give_back(admitted.turn) {
            self.queue.wake_first();
        }
    }
}

impl Guard for Pace {
    type Ticket = PaceTicket;

    #[inline]
    fn admit(&self, arrival: &Arrival<'_>) -> Admit<PaceTicket> {
        let place = match self.responsive.interval().is_zero() {
            true => Admit::Admitted(Admission::Reserved(ReservedTurn::default())),
            false => self.queue.admit(&self.responsive, arrival),
        };
        place.map(|place| {
            PaceTicket(match place {
                Admission::Reserved(turn) => TicketState::Admitted(self.admitted(turn)),
                Admission::Queued(waiter) => TicketState::Queued { waiter, since: arrival.now },
            })
        })
    }

    fn end_ticket(&self, ticket: PaceTicket, end: &End, _: Duration) -> Option<PaceTicket> {
        match (ticket.0, *end) {
            (TicketState::Admitted(admitted), End::Judged { health, .. }) if self.records => {
                self.record(&admitted, health);
            }
            (TicketState::Admitted(admitted), End::Unsent) => self.give_back(admitted),
            (TicketState::Queued { waiter, .. }, _) => self.queue.leave(waiter),
            _ => {}
        }
        None
    }

    #[inline]
    fn times_success(&self, _: &PaceTicket) -> bool {
        false
    }

    fn resume(&self, ticket: &mut PaceTicket, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        let TicketState::Queued { waiter, since } = ticket.0 else { return Resume::Admitted };
        match self.queue.resume(&self.responsive, waiter, arrival, waker) {
            Step::Waiting(due) => Resume::Waiting { until: Some(due) },
            Step::Refused(refused) => Resume::Refused(refused),
            Step::Reserved(turn) => {
                let waited = arrival.now.saturating_sub(since);
                if !waited.is_zero() {
                    self.responsive.slept(waited);
                }
                ticket.0 = TicketState::Admitted(self.admitted(turn));
                Resume::Admitted
            }
        }
    }

    /// Keeps the turn. The call is sent later than it was admitted, so the time at which it is sent is recorded again.
    fn renew(&self, ticket: PaceTicket, _: &Arrival<'_>) -> Result<PaceTicket, Refused> {
        Ok(match ticket.0 {
            TicketState::Admitted(admitted) if self.records => {
                self.responsive.not_sent();
                let sent_at = self.responsive.on_send();
                PaceTicket(TicketState::Admitted(Admitted { sent_at, ..admitted }))
            }
            state => PaceTicket(state),
        })
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        match self.responsive.interval().is_zero() {
            true => Ok(()),
            false => self.queue.would_admit(&self.responsive, arrival),
        }
    }
}

/// Shows the interval, the waiting calls, and the counts since the start.
impl Inspect for Pace {
    fn inspect(&self, _: Duration) -> Part {
        let metrics = self.responsive.metrics();
        Part::new("pace", "")
            .field("interval", self.responsive.interval())
            .field("waiting", self.waiting())
            .field("calls", metrics.invocations)
            .field("times_up", metrics.times_up)
            .field("times_down", metrics.times_down)
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace")
            .field("interval", &self.responsive)
            .field("records", &self.records)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
