//! A circuit breaker's state machine for one destination, over plain values. Time is an argument; there are no atomics
//! or locks.

use std::time::Duration;

use reattempt_core::guard::{GuardKind, Reason, Refused};

use super::super::time::nanos;
use super::changes::BreakerState;
use super::counts::{CountWindow, Counts, Outcome};
use super::failing::Failing;
use super::rules::{Rules, Trip, share};
use super::tally::{BreakerNote, Epoch, NO_TAG, SAMPLE_TAG, tag_of};

/// The state of one destination's breaker.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) state: BreakerState,
    /// The number of generations so far. Each state change and each new fixed window begins one. Results from an
    /// earlier generation are discarded.
    pub(crate) generation: u64,
    pub(crate) window: CountWindow,
    pub(crate) failing: Failing,
    /// The start of the generation.
    pub(crate) start: Duration,
    /// The end of the open time or of the fixed window, if any.
    pub(crate) expiry: Option<Duration>,
    /// The probes that hold a place in the half-open state, with their lease ends.
    pub(crate) probes: Vec<(u64, Duration)>,
    pub(crate) next_probe: u64,
    /// The latest time seen under the lock, because time must not go backwards.
    pub(crate) now: Duration,
    /// The number of generations and buckets so far. A note from another epoch does not belong to the current bucket.
    pub(crate) epoch: u64,
    /// The last epoch in which the latency of a call was sampled.
    pub(crate) sampled: Option<u64>,
    /// The nanosecond before which a closed machine has nothing to do, or 0 if it must check.
    pub(crate) quiet_until: u64,
    /// Changes not yet taken for delivery.
    pub(crate) changed: Vec<(BreakerState, BreakerState)>,
    pub(crate) retired: bool,
}

/// The end of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    /// The delay that the server requested.
    pub(crate) asked: Duration,
    /// The time at which the call was sent.
    pub(crate) sent: Duration,
    pub(crate) now: Duration,
}

impl Machine {
    pub(crate) fn new(rules: &Rules) -> Self {
        Self {
            state: BreakerState::Closed,
            generation: 0,
            window: CountWindow::new(rules.buckets()),
            failing: Failing::default(),
            start: Duration::ZERO,
            expiry: None,
            probes: Vec::new(),
            next_probe: 0,
            now: Duration::ZERO,
            epoch: 0,
            sampled: None,
            quiet_until: 0,
            changed: Vec::new(),
            retired: false,
        }
    }

    /// Advances the state to `now`, and ends expired open times, fixed windows, buckets and leases.
    pub(crate) fn advance(&mut self, rules: &Rules, now: Duration) {
        self.now = self.now.max(now);
        if nanos(self.now) < self.quiet_until {
            return;
        }
        let expired = self.expiry.is_some_and(|expiry| expiry <= self.now);
        match self.state {
            BreakerState::Closed => self.advance_window(rules, expired),
            BreakerState::Open if expired => self.change(BreakerState::HalfOpen, None),
            BreakerState::HalfOpen => self.end_leases(),
            BreakerState::Open | BreakerState::ForcedOpen => {}
        }
    }

    /// Returns the data for a tally, if the machine is closed and admits calls.
    pub(crate) fn open_epoch(&self, rules: &Rules) -> Option<Epoch> {
        let counts = self.state == BreakerState::Closed && !self.retired && rules.last_calls == 0;
        counts.then(|| Epoch {
            number: self.epoch,
            generation: self.generation,
            age: self.window.age(),
            quiet_until: self.quiet_until,
            ends_at: self.expiry.map_or(u64::MAX, nanos),
            // The first success after failures ends their run.
            takes_successes: rules.has_plain_successes() && self.failing.run == 0,
        })
    }

    /// Counts calls that the tally has counted, and the successes among them.
    pub(crate) fn add(&mut self, calls: u64, successes: u64) {
        self.window.add(calls, successes);
        if successes > 0 {
            self.failing.succeed(u32::try_from(successes).unwrap_or(u32::MAX));
        }
    }

    /// Adopts new settings. A window with a different bucket layout starts empty.
    pub(crate) fn adopt(&mut self, former: &Rules, rules: &Rules) {
        self.epoch += 1;
        self.quiet_until = 0;
        let buckets = |rules: &Rules| (rules.buckets(), rules.period(), rules.last_calls);
        if buckets(former) != buckets(rules) {
            self.window = CountWindow::new(rules.buckets());
            self.start = self.now;
            self.expiry = if self.state == BreakerState::Closed { None } else { self.expiry };
        }
    }

    fn advance_window(&mut self, rules: &Rules, expired: bool) {
        match (rules.interval, rules.period()) {
            (Duration::ZERO, _) => self.quiet_until = u64::MAX,
            (interval, Duration::ZERO) => {
                if expired {
                    self.begin_generation(None);
                }
                if self.expiry.is_none() {
                    self.expiry = Some(self.now.saturating_add(interval));
                }
                self.quiet_until = self.expiry.map_or(0, nanos);
            }
            (_, period) => {
                let age = (self.now - self.start).as_nanos() / period.as_nanos();
                let age = u64::try_from(age).unwrap_or(u64::MAX);
                self.epoch += u64::from(age != self.window.age());
                self.window.grow(age);
                let bucket_end = nanos(period).saturating_mul(age.saturating_add(1));
                self.quiet_until = nanos(self.start).saturating_add(bucket_end);
            }
        }
    }

    /// Returns the refusal that a call would currently receive, if any. Call [`advance`](Self::advance) first.
    pub(crate) fn would_admit(&self, rules: &Rules) -> Result<(), Refused> {
        let refused = |reason| Refused::new(GuardKind::CIRCUIT_BREAKER, reason);
        match self.state {
            BreakerState::Closed => Ok(()),
            // If no probe is in flight, one more is admitted, even if newly adopted settings have fewer places.
            BreakerState::HalfOpen if self.probes.is_empty() || self.used_probes() < rules.probes => Ok(()),
            BreakerState::HalfOpen => Err(refused(Reason::TooManyRequests)),
            BreakerState::Open => {
                let wait = self.expiry.unwrap_or(self.now).saturating_sub(self.now);
                Err(refused(Reason::Open).after(wait))
            }
            BreakerState::ForcedOpen => Err(refused(Reason::Isolated)),
        }
    }

    /// Returns the number of half-open places in use, by probes that are in flight or have ended.
    fn used_probes(&self) -> u32 {
        let under_way = u32::try_from(self.probes.len()).unwrap_or(u32::MAX);
        under_way.saturating_add(judged(self.window.counts()))
    }

    /// Decides whether to admit a call that takes at most `timeout`, if its layer has a timeout.
    pub(crate) fn admit(
        &mut self,
        rules: &Rules,
        now: Duration,
        timeout: Option<Duration>,
    ) -> Result<BreakerNote, Refused> {
        self.advance(rules, now);
        self.would_admit(rules)?;
        let half_open = self.state == BreakerState::HalfOpen;
        if half_open || rules.last_calls == 0 {
            self.window.request();
        }
        let (generation, age) = (self.generation, self.window.age());
        let mut note = BreakerNote { generation, age, probe: self.next_probe, tag: tag_of(self.epoch) };
        if half_open {
            note.tag = NO_TAG;
            self.next_probe += 1;
            let lease = timeout.unwrap_or_default().max(rules.lease);
            self.probes.push((note.probe, self.now.saturating_add(lease)));
        } else if self.sampled.replace(self.epoch) != Some(self.epoch) {
            // One call of each bucket is not counted by the tally, so that its latency is measured.
            note.tag = SAMPLE_TAG;
        }
        Ok(note)
    }

    /// Records the end of a call.
    ///
    /// Returns the counts for the user's trip rule, which must run without a lock before [`trip`](Self::trip).
    pub(crate) fn end_call(&mut self, rules: &Rules, note: BreakerNote, ending: Ending) -> Option<Counts> {
        let asked = ending.asked;
        self.advance(rules, ending.now);
        if note.generation != self.generation {
            return None;
        }
        let outcome = self.judge_lost(ending);
        match self.state {
            BreakerState::Closed => {
                match rules.calls_of_bucket() {
                    Some(calls) => self.window.record_last(calls, outcome),
                    None => self.window.record(note.age, outcome),
                }
                self.judge(rules, outcome, asked)
            }
            BreakerState::HalfOpen => {
                // The place may already be free: only the place is bounded by the lease, and the result still counts.
                self.probes.retain(|(probe, _)| *probe != note.probe);
                self.window.record(note.age, outcome);
                self.judge_probe(rules, outcome, asked);
                None
            }
            BreakerState::Open | BreakerState::ForcedOpen => None,
        }
    }

    /// Records the end among the latest failures. Returns its outcome, which is not [`Lost`](Outcome::Lost).
    fn judge_lost(&mut self, ending: Ending) -> Outcome {
        let Ending { outcome, sent, .. } = ending;
        match outcome {
            Outcome::Success => self.failing.succeed(1),
            Outcome::Failure => self.failing.fail(sent, true),
            Outcome::Overload => self.failing.fail(sent, false),
            Outcome::Lost => {
                let in_event = self.failing.lose(sent, self.now);
                // The outcome of a probe decides, and no other attempt is there to show the cause.
                if in_event && self.state != BreakerState::HalfOpen {
                    return Outcome::Excluded;
                }
                // Until the connection was lost, the server may have worked.
                self.failing.fail(self.now, true);
                return Outcome::Failure;
            }
            Outcome::Excluded | Outcome::Abandoned | Outcome::Unsent => {}
        }
        outcome
    }

    fn judge(&mut self, rules: &Rules, outcome: Outcome, asked: Duration) -> Option<Counts> {
        let (Outcome::Failure | Outcome::Overload) = outcome else { return None };
        let counts = *self.window.counts();
        match &rules.trip {
            Trip::Counts(_) => return Some(counts),
            Trip::Rate(rate) if rate.opens(&counts, &self.failing, self.now, rules.last_calls) => {
                self.open(rules, asked);
            }
            Trip::Rate(_) => {}
        }
        None
    }

    fn judge_probe(&mut self, rules: &Rules, outcome: Outcome, asked: Duration) {
        let counts = self.window.counts();
        let (failures, judged) = (counts.total_failures, judged(counts));
        if let Outcome::Failure | Outcome::Overload = outcome
            && share(failures, rules.probes) >= rules.probe_ratio
        {
            self.open(rules, asked);
        } else if judged >= rules.probes {
            if let Trip::Counts(_) = rules.trip {
                self.failing = Failing::default();
            }
            self.change(BreakerState::Closed, None);
            self.advance_window(rules, false);
        }
    }

    /// Opens the breaker, if it is still closed and in the generation for which the trip rule ran.
    pub(crate) fn trip(&mut self, rules: &Rules, generation: u64, asked: Duration) {
        if self.state == BreakerState::Closed && self.generation == generation {
            self.open(rules, asked);
        }
    }

    /// Forces the breaker open, or closes it. The results of calls in flight are then ignored.
    pub(crate) fn force(&mut self, rules: &Rules, state: BreakerState, now: Duration) {
        self.advance(rules, now);
        self.failing = Failing::default();
        self.change(state, None);
        self.advance(rules, now);
    }

    /// Returns `true` if a new machine would behave the same, apart from the run of failures before the window.
    pub(crate) fn is_initial(&self) -> bool {
        self.state == BreakerState::Closed && self.window.counts().requests == 0
    }

    fn open(&mut self, rules: &Rules, asked: Duration) {
        let open = rules.next_open_time(self.failing.openings, self.generation, asked);
        self.failing.openings = self.failing.openings.saturating_add(1);
        self.change(BreakerState::Open, Some(self.now.saturating_add(open)));
    }

    fn change(&mut self, to: BreakerState, expiry: Option<Duration>) {
        self.failing.run = 0;
        if self.state != to {
            self.changed.push((self.state, to));
            self.state = to;
        }
        self.begin_generation(expiry);
    }

    fn begin_generation(&mut self, expiry: Option<Duration>) {
        self.generation += 1;
        self.epoch += 1;
        self.quiet_until = 0;
        self.start = self.now;
        self.expiry = expiry;
        self.probes.clear();
        self.window.clear();
        self.failing.end_event();
    }

    /// Frees the places of probes whose lease has expired.
    fn end_leases(&mut self) {
        let now = self.now;
        self.probes.retain(|(_, lease)| *lease > now);
    }
}

/// Returns the number of calls that succeeded or failed.
fn judged(counts: &Counts) -> u32 {
    counts.total_successes.saturating_add(counts.total_failures)
}
