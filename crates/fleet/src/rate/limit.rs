//! The guard's public type, and its requests to the store.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use reattempt_control::{Patience, RateLimit, RateTicket, WaiterId, Wakers};
use reattempt_core::guard::{Admit, Arrival, End, Guard, GuardKind, Reason, Refused, Resume};
use reattempt_core::snapshot::{Inspect, Part};
use reattempt_core::{Recommended, Warning};
use tokio::runtime::Handle;

use super::fetch::Fetch;
use super::portion::{Portion, Supply};
use super::shared::Shared;
use super::stats::{FleetRateEvent, FleetRateStats, RateObserver};
use crate::rate_rule::Rate;
use crate::store::RateStore;

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
/// *A store that fails* must not stop the calls, and *a hiccup* must not double the rate. At any time, either the
/// store's tokens or the process's `local` limit admits the calls, and both in the same queue. The process is *alone*,
/// with its local limit, in these cases:
///
/// | case | until |
/// |---|---|
/// | the store fails | it answers; it is asked again after 0.1 s, then after twice as long each time, up to 1 s |
/// | its answer takes longer than 50 ms | the answer, which is awaited for a second and still counts |
/// | it answers, but has granted no process a token for 10 s | it grants one |
///
/// The local limit starts empty, unless the store has never granted this process a token. The store's next tokens pay
/// for the calls that the local limit has admitted. A process that gets no token because of other processes is not
/// alone. [`on_event`](Self::on_event) reports when a process is alone, and [`stats`](Self::stats) counts its calls.
///
/// # Bound
///
/// From its first call on, the fleet sends at most burst + rate · seconds calls, measured with the store's clock. In
/// any shorter period, it may also spend tokens that were fetched earlier. Tokens that are fetched but not spent are
/// lost, so a fleet of many quiet processes stays below its rate. While the store is down, the bound is the sum of the
/// local limits. If the store loses its data, or its clock is set back by more than 5 s and forward again, the burst is
/// granted again.
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

/// The ticket of a call that a fleet rate limit has admitted or queued.
#[derive(Debug)]
pub struct FleetRateTicket(TicketState);

#[derive(Debug)]
enum TicketState {
    Admitted(Arc<Portion>),
    Waiting(Arc<Portion>, WaiterId),
    /// With a token of the local limit. There is no portion if the table has no room for the destination.
    Alone(RateTicket, Option<Arc<Portion>>),
}

impl FleetRateLimit {
    /// Creates a limit that all processes share, with this `rate` for each destination. While the store is down,
    /// `local` limits this process, so set it to this process's share of the rate. The constructor does not access the
    /// network.
    pub fn new(store: impl RateStore, rate: Rate, local: RateLimit) -> Self {
        let patience = Patience { calls: 1024, time: Duration::from_secs(30) };
        Self(Arc::new(Shared::new(Arc::new(store), rate, local, "reattempt".into(), patience, None)))
    }

    /// Returns a new limit with this prefix for all keys. Default: `reattempt`.
    pub fn prefix(self, prefix: impl Into<Box<str>>) -> Self {
        let Shared { patience, observer, .. } = &*self.0;
        self.with(prefix.into(), *patience, observer.clone())
    }

    /// Returns a new limit with this maximum number of waiting calls and this maximum wait. Default: 1024 calls, 30 s.
    ///
    /// If `calls` is 0, a call that finds no token in this process is refused, and a token is fetched for the next
    /// call.
    #[doc(alias("max_waiting", "max_wait"))]
    pub fn queue(self, calls: usize, time: Duration) -> Self {
        let Shared { prefix, observer, .. } = &*self.0;
        self.with(prefix.clone(), Patience { calls, time }, observer.clone())
    }

    /// Returns a new limit that calls this function when this process is alone with a destination, and when it no
    /// longer is.
    ///
    /// The function runs in the task that asked the store, so it must not block. A panic ends this task and nothing
    /// else. Without a tokio runtime there is no task, so the function runs in the call, which its panic reaches. The
    /// function is not called while a thread unwinds.
    pub fn on_event(self, on: impl Fn(&str, &FleetRateEvent<'_>) + Send + Sync + 'static) -> Self {
        let Shared { prefix, patience, .. } = &*self.0;
        self.with(prefix.clone(), *patience, Some(Arc::new(on)))
    }

    /// Returns the event counts since the limit was created.
    pub fn stats(&self) -> FleetRateStats {
        self.0.tally.stats()
    }

    fn with(&self, prefix: Box<str>, patience: Patience, observer: Option<RateObserver>) -> Self {
        let Shared { store, rate, local, .. } = &*self.0;
        Self(Arc::new(Shared::new(Arc::clone(store), *rate, local.clone(), prefix, patience, observer)))
    }

    /// Decides with the local limit alone, for a destination without a place in the table.
    fn admit_alone(&self, arrival: &Arrival<'_>) -> Admit<FleetRateTicket> {
        self.0.tally.alone.fetch_add(1, Ordering::Relaxed);
        self.0.local.admit(arrival).map(|ticket| FleetRateTicket(TicketState::Alone(ticket, None)))
    }

    /// Takes a token of the local limit, if this process is alone with the destination.
    fn take_alone(&self, supply: &mut Supply, arrival: &Arrival<'_>) -> Option<RateTicket> {
        if !supply.is_alone(&self.0.outage, arrival.now) {
            return None;
        }
        let ticket = supply.take_alone(&self.0.local, arrival)?;
        self.0.tally.alone.fetch_add(1, Ordering::Relaxed);
        Some(ticket)
    }

    /// Asks the store for `wanted` tokens. Without a runtime, the process is alone.
    fn ask(&self, portion: &Arc<Portion>, wanted: Option<u32>, now: Duration) {
        let Some(wanted) = wanted else { return };
        let question = Fetch::new(Arc::clone(&self.0), Arc::clone(portion), wanted, now);
        // If the request is dropped here, it is treated as a failure of the store.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(question.send());
        }
    }
}

impl Guard for FleetRateLimit {
    type Ticket = FleetRateTicket;

    fn admit(&self, arrival: &Arrival<'_>) -> Admit<FleetRateTicket> {
        let now = arrival.now;
        let Some(portion) = self.0.portion(arrival.destination, now) else { return self.admit_alone(arrival) };
        let mut supply = portion.supply();
        let late = supply.remove_late(now);
        let takes = supply.take(now);
        let may_ask_own = !takes && supply.queue.is_empty();
        let own = if may_ask_own { self.take_alone(&mut supply, arrival) } else { None };
        let refusal = match (takes || own.is_some(), arrival.patient, supply.queue.is_full()) {
            (true, ..) | (false, true, false) => None,
            (_, true, true) if self.0.patience.calls > 0 => Some(Reason::Full),
            _ => Some(Reason::RateExceeded),
        };
        let waiter = (!takes && own.is_none() && refusal.is_none()).then(|| supply.queue.push(arrival));
        // Even a refused call asks the store, on behalf of the next call.
        let wanted = supply.question(self.0.rate, refusal.is_some() || own.is_some(), &self.0.outage, now);
        drop(supply);
        late.into_iter().for_each(Wakers::wake);
        self.ask(&portion, wanted, now);
        let state = match (refusal, waiter, own) {
            (Some(reason), ..) => return Admit::Refused(Refused::new(KIND, reason)),
            (_, Some(waiter), _) => return Admit::Waiting(FleetRateTicket(TicketState::Waiting(portion, waiter))),
            (.., Some(own)) => TicketState::Alone(own, Some(portion)),
            _ => TicketState::Admitted(portion),
        };
        Admit::Admitted(FleetRateTicket(state))
    }

    fn resume(&self, ticket: &mut FleetRateTicket, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        let (portion, waiter) = match &mut ticket.0 {
            TicketState::Admitted(_) | TicketState::Alone(_, Some(_)) => return Resume::Admitted,
            TicketState::Alone(local, None) => return self.0.local.resume(local, arrival, waker),
            TicketState::Waiting(portion, waiter) => (Arc::clone(portion), *waiter),
        };
        let now = arrival.now;
        let mut supply = portion.supply();
        let late = supply.remove_late(now);
        let mut turn = supply.take_turn(waiter, now);
        let has_turn_alone = turn.is_none() && supply.has_turn_alone(waiter, now);
        let own = if has_turn_alone { self.take_alone(&mut supply, arrival) } else { None };
        if own.is_some() {
            turn = Some((supply.queue.leave(waiter), Vec::new()));
        }
        let wanted = supply.question(self.0.rate, own.is_some(), &self.0.outage, now);
        let resume = if turn.is_some() {
            Resume::Admitted
        } else if supply.queue.waits_until(waiter) <= now {
            Resume::Refused(Refused::new(KIND, Reason::WaitTooLong))
        } else {
            Resume::Waiting { until: Some(supply.next_look(waiter, &self.0.outage, now)) }
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
            ticket.0 = match own {
                Some(own) => TicketState::Alone(own, Some(portion)),
                None => TicketState::Admitted(portion),
            };
        }
        resume
    }

    fn end_ticket(&self, ticket: FleetRateTicket, end: &End, now: Duration) -> Option<FleetRateTicket> {
        match ticket.0 {
            TicketState::Alone(local, portion) => {
                let local = self.0.local.end_ticket(local, end, now);
                if let (Some(portion), End::Unsent) = (&portion, end) {
                    let woken = portion.supply().give_back_alone(now);
                    woken.into_iter().for_each(Waker::wake);
                }
                return local.map(|local| FleetRateTicket(TicketState::Alone(local, portion)));
            }
            TicketState::Waiting(portion, waiter) => {
                let next = portion.supply().queue.leave(waiter);
                next.wake();
            }
            TicketState::Admitted(portion) if *end == End::Unsent => {
                let woken = portion.supply().give_back(now);
                woken.into_iter().for_each(Waker::wake);
            }
            TicketState::Admitted(_) => {}
        }
        None
    }

    /// Returns the ticket unchanged, because the call already has its token.
    fn renew(&self, ticket: FleetRateTicket, arrival: &Arrival<'_>) -> Result<FleetRateTicket, Refused> {
        match ticket.0 {
            TicketState::Alone(local, portion) => {
                self.0.local.renew(local, arrival).map(|local| FleetRateTicket(TicketState::Alone(local, portion)))
            }
            _ => Ok(ticket),
        }
    }

    fn times_success(&self, ticket: &FleetRateTicket) -> bool {
        match &ticket.0 {
            TicketState::Alone(local, _) => self.0.local.times_success(local),
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

/// Shows the rate, whether the store fails, the counts since the start, each destination's tokens in this process, and
/// the limit for when it is alone.
impl Inspect for FleetRateLimit {
    fn inspect(&self, now: Duration) -> Part {
        let (shared, stats) = (&*self.0, self.stats());
        Part::new("fleet_rate_limit", "")
            .field("prefix", &*shared.prefix)
            .field("per_second", shared.rate.per_second())
            .field("burst", shared.rate.burst())
            .field("store_fails", shared.outage.is_on())
            .field("asked", stats.asked)
            .field("granted", stats.granted)
            .field("alone", stats.alone)
            .field("late", stats.late)
            .field("failed", stats.failed)
            .parts(shared.portions().iter().map(|portion| portion.inspect(now)))
            .parts([shared.local.inspect(now).named("local")])
    }
}
