//! The least bulkhead, and the least adaptive limit upon it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use reattempt::guard::contract::{Admit, Arrival, End, Guard, GuardKind, Health};
use reattempt::guard::{Reason, Refused};

use super::{SECOND, lock, nanos};

/// A bulkhead that frees its places at the head. The count never passes the limit, not even for a moment.
pub(crate) struct LeastBulkhead {
    in_flight: AtomicU32,
    limit: AtomicU32,
}

impl LeastBulkhead {
    pub(crate) fn new(limit: u32) -> Self {
        Self { in_flight: AtomicU32::new(0), limit: AtomicU32::new(limit) }
    }

    /// Takes a place. Returns the calls in flight.
    #[inline]
    fn take(&self) -> Option<u32> {
        let mut word = self.in_flight.load(Ordering::Relaxed);
        while word < self.limit.load(Ordering::Acquire) {
            let (set, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.in_flight.compare_exchange_weak(word, word + 1, set, failed) {
                Ok(_) => return Some(word + 1),
                Err(seen) => word = seen,
            }
        }
        None
    }

    #[inline]
    fn release(&self) {
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Guard for LeastBulkhead {
    type Ticket = ();

    #[inline]
    fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
        match self.take() {
            Some(_) => Admit::Admitted(()),
            None => Admit::Refused(Refused::new(GuardKind::BULKHEAD, Reason::Full)),
        }
    }

    #[inline]
    fn end_ticket(&self, (): (), _: &End, _: Duration) -> Option<()> {
        self.release();
        None
    }
}

const SAMPLES: u64 = 256;
/// A dropped call in the counts. Calls served are below.
const DROPPED: u64 = 1 << 32;

/// An adaptive limit: the samples of a window as ours has them, and a rule of AIMD.
pub(crate) struct LeastAdaptive {
    places: LeastBulkhead,
    counts: AtomicU64,
    most_in_flight: AtomicU32,
    start: AtomicU64,
    /// In microseconds.
    latencies: Box<[AtomicU32]>,
    closing: Mutex<()>,
}

impl LeastAdaptive {
    pub(crate) fn new() -> Self {
        let (counts, most_in_flight, start, closing) = Default::default();
        let latencies = (0..SAMPLES).map(|_| AtomicU32::new(0)).collect();
        let places = LeastBulkhead::new(20);
        Self { places, counts, most_in_flight, start, latencies, closing }
    }

    #[inline]
    fn record(&self, served: bool, latency: Duration, in_flight: u32, now: Duration) {
        let (now, latency) = (nanos(now), nanos(latency));
        let began = now.saturating_sub(latency).max(1);
        let start = match self.start.load(Ordering::Acquire) {
            0 => self.begin(began),
            start => start,
        };
        // A call that began before the window is no sample.
        if began < start {
            return;
        }
        if in_flight > self.most_in_flight.load(Ordering::Relaxed) {
            self.most_in_flight.fetch_max(in_flight, Ordering::Relaxed);
        }
        let counts = self.counts.fetch_add(if served { 1 } else { DROPPED }, Ordering::Relaxed);
        if served {
            let micros = u32::try_from(latency / 1000).unwrap_or(u32::MAX).max(1);
            self.latencies[(counts % SAMPLES) as usize].store(micros, Ordering::Relaxed);
        }
        if is_due(start, counts, now) {
            self.close(now);
        }
    }

    #[cold]
    fn begin(&self, began: u64) -> u64 {
        self.start.fetch_max(began, Ordering::AcqRel).max(began)
    }

    #[cold]
    fn close(&self, now: u64) {
        let _one = lock(&self.closing);
        if !is_due(self.start.load(Ordering::Acquire), self.counts.load(Ordering::Relaxed), now) {
            return;
        }
        self.start.store(now, Ordering::Release);
        let counts = self.counts.swap(0, Ordering::Relaxed);
        let in_flight = self.most_in_flight.swap(0, Ordering::Relaxed);
        let limit = self.places.limit.load(Ordering::Acquire);
        let next = match counts >= DROPPED {
            true => limit * 9 / 10,
            false => limit + u32::from(in_flight * 2 > limit),
        };
        self.places.limit.store(next.clamp(1, 200), Ordering::Release);
    }
}

/// Returns `true` if the window is to be closed: after 1 s with 50 samples, or after 30 s.
#[inline]
fn is_due(start: u64, counts: u64, now: u64) -> bool {
    let open = now.saturating_sub(start);
    let samples = counts % DROPPED + counts / DROPPED;
    open >= SECOND && samples >= 50 || open >= 30 * SECOND
}

impl Guard for LeastAdaptive {
    /// The calls in flight at the start.
    type Ticket = u32;

    #[inline]
    fn admit(&self, _: &Arrival<'_>) -> Admit<u32> {
        match self.places.take() {
            Some(in_flight) => Admit::Admitted(in_flight),
            None => Admit::Refused(Refused::new(GuardKind::ADAPTIVE_LIMIT, Reason::Full)),
        }
    }

    #[inline]
    fn end_ticket(&self, in_flight: u32, end: &End, now: Duration) -> Option<u32> {
        if let End::Judged { health, after, .. } = end {
            match health {
                Health::Served => self.record(true, *after, in_flight, now),
                Health::Overloaded | Health::Unavailable => {
                    self.record(false, *after, in_flight, now);
                }
                _ => {}
            }
        }
        self.places.release();
        None
    }
}
