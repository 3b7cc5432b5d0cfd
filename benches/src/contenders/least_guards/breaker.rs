//! The least circuit breaker.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reattempt::guard::contract::{Admit, Arrival, End, Guard, GuardKind, Health};
use reattempt::guard::{Reason, Refused};

use super::{SECOND, lock, nanos};

const BUCKETS: u64 = 10;
const BUCKET: u64 = 6 * SECOND;
const OPEN_TIME: u64 = 30 * SECOND;
/// A call in the word. Successes are below, the epoch above.
const CALL: u64 = 1 << 16;
const CALLS: u64 = 0xffff << 16;
const SUCCESSES: u64 = 0xffff;

/// A circuit breaker that opens at half of at least 20 calls within 60 s, or after 20 failures in a row.
///
/// Its counts are as exact as those of ours: a call counts in the bucket of its admission, and no result counts that
/// is from an earlier state. While it is closed and no call has failed last, it needs no lock. One probe at a time
/// has a lease.
pub(crate) struct LeastBreaker {
    /// The epoch, and calls and successes since the last step; 0 if the machine must decide.
    word: AtomicU64,
    /// The nanosecond at which the epoch's bucket ends.
    quiet_until: AtomicU64,
    /// The nanosecond until which calls are refused.
    gate: AtomicU64,
    machine: Mutex<Machine>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    calls: u64,
    successes: u64,
    failures: u64,
}

#[derive(Default)]
struct Machine {
    /// The number of the bucket. A change of state begins one that shares no window with those before.
    epoch: u64,
    buckets: [Counts; 10],
    /// The nanosecond at which the current bucket ends.
    end: u64,
    failures_in_a_row: u64,
    /// The nanosecond until which it is open; after that it is half-open. 0: closed.
    open_until: u64,
    lease_until: u64,
}

impl Machine {
    fn bucket(&mut self, epoch: u64) -> &mut Counts {
        &mut self.buckets[(epoch % BUCKETS) as usize]
    }

    /// Brings the window up to `now`.
    fn advance(&mut self, now: u64) {
        if self.open_until > 0 || now < self.end {
            return;
        }
        let gone = (now - self.end) / BUCKET + 1;
        for _ in 0..gone.min(BUCKETS) {
            self.epoch += 1;
            let epoch = self.epoch;
            *self.bucket(epoch) = Counts::default();
        }
        self.end += gone * BUCKET;
    }

    fn change(&mut self, open_until: u64, now: u64) {
        let (epoch, end) = (self.epoch + BUCKETS, now + BUCKET);
        *self = Self { epoch, end, open_until, ..Self::default() };
    }

    /// Returns the epoch as the call's ticket.
    fn admit(&mut self, now: u64) -> Option<u64> {
        if self.open_until > 0 {
            if now < self.open_until.max(self.lease_until) {
                return None;
            }
            self.epoch += 1;
            self.lease_until = now + OPEN_TIME;
        }
        let epoch = self.epoch;
        self.bucket(epoch).calls += 1;
        Some(self.epoch)
    }

    fn record(&mut self, ticket: u64, health: Option<Health>, now: u64) {
        let (is_open, is_probe) = (self.open_until > 0, ticket == self.epoch);
        match health {
            Some(Health::Ignored) | None if is_open && is_probe => self.lease_until = 0,
            Some(Health::Ignored) | None => {}
            Some(Health::Served) if is_open && is_probe => self.change(0, now),
            Some(Health::Served) if !is_open && self.epoch - ticket < BUCKETS => {
                self.bucket(ticket).successes += 1;
                self.failures_in_a_row = 0;
            }
            Some(_) if is_open && is_probe => self.change(now + OPEN_TIME, now),
            Some(failure) if !is_open && self.epoch - ticket < BUCKETS => {
                self.bucket(ticket).failures += 1;
                self.failures_in_a_row += u64::from(failure != Health::Overloaded);
                let successes: u64 = self.buckets.iter().map(|bucket| bucket.successes).sum();
                let failures: u64 = self.buckets.iter().map(|bucket| bucket.failures).sum();
                let is_half = failures + successes >= 20 && failures >= successes;
                if is_half || self.failures_in_a_row >= 20 {
                    self.change(now + OPEN_TIME, now);
                }
            }
            Some(_) => {}
        }
    }
}

impl LeastBreaker {
    /// Returns the calls that were admitted within the window.
    #[cfg(feature = "peers")]
    pub(crate) fn calls(&self, now: Duration) -> u64 {
        let sum = |machine: &mut Machine| machine.buckets.iter().map(|bucket| bucket.calls).sum();
        self.step(nanos(now), sum)
    }

    pub(crate) fn new() -> Self {
        let (word, quiet_until, gate) = Default::default();
        Self { word, quiet_until, gate, machine: Mutex::default() }
    }

    #[cold]
    #[inline(never)]
    fn step<R>(&self, now: u64, step: impl FnOnce(&mut Machine) -> R) -> R {
        let mut machine = lock(&self.machine);
        let word = self.word.swap(0, Ordering::AcqRel);
        let epoch = machine.epoch;
        machine.bucket(epoch).calls += (word & CALLS) / CALL;
        machine.bucket(epoch).successes += word & SUCCESSES;
        machine.advance(now);
        let result = step(&mut machine);
        self.quiet_until.store(machine.end, Ordering::Relaxed);
        self.gate.store(machine.open_until, Ordering::Release);
        if machine.open_until == 0 && machine.failures_in_a_row == 0 {
            self.word.store(machine.epoch << 32, Ordering::Release);
        }
        result
    }
}

impl Guard for LeastBreaker {
    /// The epoch.
    type Ticket = u64;

    #[inline]
    fn admit(&self, arrival: &Arrival<'_>) -> Admit<u64> {
        let now = nanos(arrival.now);
        let mut word = self.word.load(Ordering::Acquire);
        while word > 0 && word & CALLS != CALLS && now < self.quiet_until.load(Ordering::Relaxed) {
            let (set, failed) = (Ordering::AcqRel, Ordering::Acquire);
            match self.word.compare_exchange_weak(word, word + CALL, set, failed) {
                Ok(_) => return Admit::Admitted(word >> 32),
                Err(seen) => word = seen,
            }
        }
        let refused = |reason| Refused::new(GuardKind::CIRCUIT_BREAKER, reason);
        let wait = self.gate.load(Ordering::Acquire).saturating_sub(now);
        if wait > 0 {
            return Admit::Refused(refused(Reason::Open).after(Duration::from_nanos(wait)));
        }
        match self.step(now, |machine| machine.admit(now)) {
            Some(epoch) => Admit::Admitted(epoch),
            None => Admit::Refused(refused(Reason::TooManyRequests)),
        }
    }

    #[inline]
    fn end_ticket(&self, ticket: u64, end: &End, now: Duration) -> Option<u64> {
        let health = if let End::Judged { health, .. } = end { Some(*health) } else { None };
        let mut word = self.word.load(Ordering::Acquire);
        while health == Some(Health::Served) && word >> 32 == ticket && word & SUCCESSES != SUCCESSES {
            let (set, failed) = (Ordering::AcqRel, Ordering::Acquire);
            match self.word.compare_exchange_weak(word, word + 1, set, failed) {
                Ok(_) => return None,
                Err(seen) => word = seen,
            }
        }
        let now = nanos(now);
        self.step(now, |machine| machine.record(ticket, health, now));
        None
    }
}
