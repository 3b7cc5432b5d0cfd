//! The guard's public type, and its requests to the store.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use reattempt_control::{Patience, RateLimit, RateTicket, WaiterId, Wakers};
use reattempt_core::guard::{Admit, Arrival, End, Guard, GuardKind, Reason, Refused, Resume};
use reattempt_core::{Recommended, Warning};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use super::portion::Portion;
use crate::key::key_of;
use crate::rate_rule::Rate;
use crate::store::RateStore;
use crate::table::Table;

/// The maximum time that calls wait for the store's answer.
const PATIENCE: Duration = Duration::from_millis(50);

/// The time for which a failed store is not asked again.
const FAILURE_MEMORY: Duration = Duration::from_secs(1);

const KIND: GuardKind = GuardKind::named(&"fleet rate limit");

/// A rate limit per destination that many processes share through a store.
///
/// A process prefetches as many tokens as it uses in 0.2 s. Most calls are therefore admitted immediately, without a
/// message to the store. If the store has fewer tokens than requested, it grants all that it has, and is asked again
/// after 0.1 s ± 25 %. Unspent tokens expire after a second.
///
/// # Failure modes with and without it
///
/// *Without a shared limit*, each process has a fixed share. Busy processes are delayed although quiet ones do not use
/// their share, and additional processes exceed the total limit.
///
/// *A message to the store for each call* would cost each call a round trip. Here, a process with 1,000 calls per
/// second sends about ten messages per second. Prefetching saves messages at 20 or more calls per second. Below ten
/// calls per second, each call sends a message.
///
/// *A store that fails* must not stop the calls. The process then applies its `local` limit, and asks the store again
/// after a second. A call waits at most 50 ms for the store's answer.
///
/// # Bound
///
/// From its first call on, the fleet sends at most burst + rate · seconds calls, measured with the store's clock. In
/// any shorter period, it may also spend tokens that were fetched earlier. Tokens that are fetched but not spent are
/// lost, so a fleet of many quiet processes stays below its rate. While the store is down, the bound is the sum of the
/// local limits. If the store loses its data, the burst is granted again.
///
/// Destinations with names longer than 255 bytes are not shared, as in a [`FleetBudget`](crate::FleetBudget).
///
/// Calls without a token wait in order of arrival: at most 1024 calls, each at most 30 s. A waiting call that is not
/// polled loses its turn after 75 ms, so it does not block later calls. Clones share their state.
///
/// ```
/// use std::num::NonZeroU32;
/// use reattempt_control::{Limit, RateLimit};
/// use reattempt_fleet::MemoryStore;
/// use reattempt_fleet::rate::{FleetRateLimit, Rate};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// # let _guard = runtime.enter();
/// // 1000 calls a second for all processes, and a twentieth of it for each if the store is down.
/// let rate = Rate::new(1000.try_into()?, 2000.try_into()?);
/// let local = RateLimit::new(Limit::per_second(50), 100);
/// let limit = FleetRateLimit::new(MemoryStore::new(), rate, local).prefix("shop");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new limit"]
pub struct FleetRateLimit(Arc<Shared>);

struct Shared {
    store: Arc<dyn RateStore>,
    rate: Rate,
    /// The limit of this process while the store is down.
    local: RateLimit,
    prefix: Box<str>,
    patience: Patience,
    portions: Table<Portion>,
    /// The time until which the store is not asked, in nanoseconds of the guard's clock.
    alone_until: AtomicU64,
    asked: AtomicU64,
    granted: AtomicU64,
    alone: AtomicU64,
    hasher: RandomState,
}

/// A limit's event counts since it was created, for all destinations together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetRateStats {
    /// The number of requests to the store.
    pub asked: u64,
    /// The number of tokens that the store granted in time.
    pub granted: u64,
    /// The number of calls that this process decided on alone, with its own limit.
    pub alone: u64,
}

/// The ticket of a call that a fleet rate limit has admitted or queued.
#[derive(Debug)]
pub struct FleetRateTicket(State);

#[derive(Debug)]
enum State {
    Admitted(Arc<Portion>),
    Waiting(Arc<Portion>, WaiterId),
    Alone(RateTicket),
}

impl FleetRateLimit {
    /// Creates a limit that all processes share, with this `rate` for each destination. While the store is down,
    /// `local` limits this process, so set it to this process's share of the rate. The constructor does not access the
    /// network.
    pub fn new(store: impl RateStore, rate: Rate, local: RateLimit) -> Self {
        let patience = Patience { calls: 1024, time: Duration::from_secs(30) };
        Self::build(Arc::new(store), rate, local, "reattempt".into(), patience)
    }

    /// Returns a new limit with this prefix for all keys. Default: `reattempt`.
    pub fn prefix(self, prefix: impl Into<Box<str>>) -> Self {
        let Shared { store, rate, local, patience, .. } = &*self.0;
        Self::build(Arc::clone(store), *rate, local.clone(), prefix.into(), *patience)
    }

    /// Returns a new limit with this maximum number of waiting calls and this maximum wait. Default: 1024 calls, 30 s.
    ///
    /// If `calls` is 0, a call that finds no token in this process is refused, and a token is fetched for the next
    /// call.
    #[doc(alias("max_waiting", "max_wait"))]
    pub fn queue(self, calls: usize, time: Duration) -> Self {
        let Shared { store, rate, local, prefix, .. } = &*self.0;
        Self::build(Arc::clone(store), *rate, local.clone(), prefix.clone(), Patience { calls, time })
    }

    /// Returns the event counts since the limit was created.
    pub fn stats(&self) -> FleetRateStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FleetRateStats { asked: read(&self.0.asked), granted: read(&self.0.granted), alone: read(&self.0.alone) }
    }

    fn build(store: Arc<dyn RateStore>, rate: Rate, local: RateLimit, prefix: Box<str>, patience: Patience) -> Self {
        Self(Arc::new(Shared {
            store,
            rate,
            local,
            prefix,
            patience,
            portions: Table::new(),
            alone_until: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            granted: AtomicU64::new(0),
            alone: AtomicU64::new(0),
            hasher: RandomState::new(),
        }))
    }

    /// Decides with the local limit of this process.
    fn admit_alone(&self, arrival: &Arrival<'_>) -> Admit<FleetRateTicket> {
        self.0.alone.fetch_add(1, Ordering::Relaxed);
        self.0.local.admit(arrival).map(|ticket| FleetRateTicket(State::Alone(ticket)))
    }

    /// Asks the store for `wanted` tokens. Without a runtime, the process decides alone.
    fn ask(&self, portion: &Arc<Portion>, wanted: Option<u32>, now: Duration) {
        let Some(wanted) = wanted else { return };
        let question =
            Fetch { shared: Arc::clone(&self.0), portion: Arc::clone(portion), wanted, now, is_answered: false };
        // If the request is dropped here, it is treated as a failure of the store.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(question.send());
        }
    }
}

impl Shared {
    fn is_alone(&self, now: Duration) -> bool {
        now < Duration::from_nanos(self.alone_until.load(Ordering::Relaxed))
    }

    /// Returns the portion of a destination, or `None` if there is no room for it.
    fn portion(&self, destination: &str, now: Duration) -> Option<Arc<Portion>> {
        let new = || Portion::new(key_of(&format!("{}:rate", self.prefix), destination), self.patience);
        self.portions.get(destination, || now, Portion::is_idle, new)
    }
}

impl Guard for FleetRateLimit {
    type Ticket = FleetRateTicket;

    fn admit(&self, arrival: &Arrival<'_>) -> Admit<FleetRateTicket> {
        let now = arrival.now;
        let portion = if self.0.is_alone(now) { None } else { self.0.portion(arrival.destination, now) };
        let Some(portion) = portion else { return self.admit_alone(arrival) };
        let mut supply = portion.supply();
        let late = supply.remove_late(now);
        let takes = supply.take(now);
        let refusal = match (takes, arrival.patient, supply.queue.is_full()) {
            (true, ..) | (false, true, false) => None,
            (_, true, true) if self.0.patience.calls > 0 => Some(Reason::Full),
            _ => Some(Reason::RateExceeded),
        };
        let waiter = (!takes && refusal.is_none()).then(|| supply.queue.push(arrival));
        // Even a refused call asks the store, on behalf of the next call.
        let wanted = supply.question(self.0.rate, refusal.is_some(), now);
        drop(supply);
        late.into_iter().for_each(Wakers::wake);
        self.ask(&portion, wanted, now);
        match (refusal, waiter) {
            (Some(reason), _) => Admit::Refused(Refused::new(KIND, reason)),
            (None, Some(waiter)) => Admit::Waiting(FleetRateTicket(State::Waiting(portion, waiter))),
            (None, None) => Admit::Admitted(FleetRateTicket(State::Admitted(portion))),
        }
    }

    fn resume(&self, ticket: &mut FleetRateTicket, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        let (portion, waiter) = match &mut ticket.0 {
            State::Admitted(_) => return Resume::Admitted,
            State::Alone(local) => return self.0.local.resume(local, arrival, waker),
            State::Waiting(portion, waiter) => (Arc::clone(portion), *waiter),
        };
        let now = arrival.now;
        let mut supply = portion.supply();
        if self.0.is_alone(now) {
            let until = supply.queue.waits_until(waiter);
            let next = supply.queue.leave(waiter);
            drop(supply);
            next.wake();
            // The call has already waited, so it waits no longer than it would have here.
            let mut arrival = *arrival;
            arrival.latest = Some(arrival.latest.map_or(until, |latest| latest.min(until)));
            let arrival = &arrival;
            return match self.admit_alone(arrival) {
                Admit::Admitted(admitted) => {
                    *ticket = admitted;
                    Resume::Admitted
                }
                Admit::Waiting(waiting) => {
                    *ticket = waiting;
                    self.resume(ticket, arrival, waker)
                }
                Admit::Refused(refused) => Resume::Refused(refused),
            };
        }
        let late = supply.remove_late(now);
        let turn = supply.take_turn(waiter, now);
        let wanted = supply.question(self.0.rate, false, now);
        let resume = if turn.is_some() {
            Resume::Admitted
        } else if supply.queue.waits_until(waiter) <= now {
            Resume::Refused(Refused::new(KIND, Reason::WaitTooLong))
        } else {
            Resume::Waiting { until: Some(supply.next_look(waiter, now)) }
        };
        let left = match resume {
            Resume::Refused(_) => Some(supply.queue.leave(waiter)),
            _ => None,
        };
        // The replaced waker is dropped after the lock is released.
        let _former = supply.queue.set_waker(waiter, waker);
        drop(supply);
        let (first, next) = turn.unzip();
        [late, left, first].into_iter().flatten().for_each(Wakers::wake);
        next.into_iter().flatten().for_each(Waker::wake);
        self.ask(&portion, wanted, now);
        if resume == Resume::Admitted {
            ticket.0 = State::Admitted(portion);
        }
        resume
    }

    fn end_ticket(&self, ticket: FleetRateTicket, end: &End, now: Duration) -> Option<FleetRateTicket> {
        match ticket.0 {
            State::Alone(local) => {
                return self.0.local.end_ticket(local, end, now).map(|local| FleetRateTicket(State::Alone(local)));
            }
            State::Waiting(portion, waiter) => {
                let next = portion.supply().queue.leave(waiter);
                next.wake();
            }
            State::Admitted(portion) if *end == End::Unsent => {
                let woken = portion.supply().give_back(now);
                woken.into_iter().for_each(Waker::wake);
            }
            State::Admitted(_) => {}
        }
        None
    }

    /// Returns the ticket unchanged, because the call already has its token.
    fn renew(&self, ticket: FleetRateTicket, arrival: &Arrival<'_>) -> Result<FleetRateTicket, Refused> {
        match ticket.0 {
            State::Alone(local) => self.0.local.renew(local, arrival).map(|local| FleetRateTicket(State::Alone(local))),
            _ => Ok(ticket),
        }
    }

    fn times_success(&self, ticket: &FleetRateTicket) -> bool {
        match &ticket.0 {
            State::Alone(local) => self.0.local.times_success(local),
            _ => false,
        }
    }

    /// Returns a warning if the burst is unusual for the rate. Tokens beyond the burst are lost.
    fn validate(&self) -> Vec<Warning> {
        let (burst, per_second) = (self.0.rate.burst(), self.0.rate.per_second());
        let warning = Recommended::burst("burst", burst.into(), per_second.into());
        self.0.local.validate().into_iter().chain(warning).collect()
    }
}

/// A request to the store for tokens. If it is dropped without an answer, the process decides alone.
struct Fetch {
    shared: Arc<Shared>,
    portion: Arc<Portion>,
    wanted: u32,
    /// The time of the request on the guard's clock.
    now: Duration,
    is_answered: bool,
}

impl Fetch {
    async fn send(mut self) {
        let start = Instant::now();
        self.shared.asked.fetch_add(1, Ordering::Relaxed);
        let answer = {
            let taking = self.shared.store.take(&self.portion.key, self.shared.rate, self.wanted);
            // The tokens of a late answer are lost.
            timeout(PATIENCE, taking).await
        };
        self.now += start.elapsed();
        if let Ok(Ok(granted)) = answer {
            self.shared.granted.fetch_add(granted.into(), Ordering::Relaxed);
            self.is_answered = true;
            self.record_answer(Some(granted));
        }
    }

    fn record_answer(&self, granted: Option<u32>) {
        let random = self.shared.hasher.hash_one(self.now);
        let woken = self.portion.supply().answer(granted, self.wanted, self.now, random);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        if !self.is_answered {
            let until = u64::try_from((self.now + FAILURE_MEMORY).as_nanos()).unwrap_or(u64::MAX);
            self.shared.alone_until.store(until, Ordering::Relaxed);
            self.record_answer(None);
        }
    }
}

impl fmt::Debug for FleetRateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetRateLimit")
            .field("rate", &self.0.rate)
            .field("prefix", &self.0.prefix)
            .field("local", &self.0.local)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
