//! A throttle's counts over a sliding window, as plain values.

use std::time::Duration;

use crate::guard::time::nanos;

/// The number of buckets in a window.
const BUCKETS: usize = 16;
const LENGTH: u64 = BUCKETS as u64;

/// The number of requests, and how many of them were refused by the server or the throttle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Requests {
    pub(super) all: u32,
    pub(super) refused: u32,
}

impl Requests {
    pub(super) fn accepts(self) -> u32 {
        self.all.saturating_sub(self.refused)
    }
}

/// Requests over a sliding window.
#[derive(Debug, Clone)]
pub(super) struct RequestWindow {
    total: Requests,
    /// The buckets by age, indexed by age modulo their number.
    buckets: [Requests; BUCKETS],
    /// The age of the current bucket, and the nanosecond at which it ends.
    age: u64,
    end: u64,
    /// The length of a bucket in nanoseconds.
    period: u64,
    /// The latest time seen, and the time of the first request in the window.
    now: u64,
    first: u64,
}

impl RequestWindow {
    /// Creates an empty window. Its buckets are at least a nanosecond long.
    pub(super) fn new(length: Duration) -> Self {
        Self {
            total: Requests::default(),
            buckets: Default::default(),
            age: 0,
            end: 0,
            period: (nanos(length) / LENGTH).max(1),
            now: 0,
            first: 0,
        }
    }

    /// Changes the length and clears the counts.
    pub(super) fn adopt(&mut self, length: Duration) {
        let new = Self::new(length);
        if new.period != self.period {
            *self = new;
        }
    }

    /// Advances the window. Time does not go backwards.
    #[inline]
    pub(super) fn advance(&mut self, now: Duration) {
        self.now = self.now.max(nanos(now));
        if self.now >= self.end {
            self.begin_bucket();
        }
    }

    #[cold]
    fn begin_bucket(&mut self) {
        let age = self.now / self.period;
        self.end = age.saturating_add(1).saturating_mul(self.period);
        if age - self.age >= LENGTH {
            (self.total, self.buckets) = Default::default();
            self.age = age;
        }
        while self.age < age {
            self.age += 1;
            let gone = std::mem::take(self.bucket(self.age));
            self.total.all = self.total.all.saturating_sub(gone.all);
            self.total.refused = self.total.refused.saturating_sub(gone.refused);
        }
        // The window now begins with its oldest bucket.
        let oldest = age.saturating_add(1).saturating_sub(LENGTH).saturating_mul(self.period);
        self.first = self.first.max(oldest);
    }

    /// Counts a request. Returns the age of its bucket.
    #[inline]
    pub(super) fn request(&mut self) -> u64 {
        if self.total.all == 0 {
            self.first = self.now;
        }
        self.total.all = self.total.all.saturating_add(1);
        let bucket = self.bucket(self.age);
        bucket.all = bucket.all.saturating_add(1);
        self.age
    }

    /// Counts a request of age `age` as refused, unless its bucket was dropped.
    pub(super) fn refuse(&mut self, age: u64) {
        self.change(age, |requests| requests.refused = requests.refused.saturating_add(1));
    }

    /// Uncounts a request of age `age`, unless its bucket was dropped.
    pub(super) fn take_back(&mut self, age: u64) {
        self.change(age, |requests| requests.all = requests.all.saturating_sub(1));
    }

    fn change(&mut self, age: u64, change: impl Fn(&mut Requests)) {
        if self.age.checked_sub(age).is_some_and(|past| past < LENGTH) {
            change(&mut self.total);
            change(self.bucket(age));
        }
    }

    #[inline]
    pub(super) fn total(&self) -> Requests {
        self.total
    }

    /// Returns `true` if there are at least `per_second` requests for each second that the window covers.
    #[inline]
    pub(super) fn is_at_rate(&self, per_second: u32) -> bool {
        let covered = u128::from(self.now.saturating_sub(self.first));
        u128::from(self.total.all) * 1_000_000_000 >= u128::from(per_second) * covered
    }

    fn bucket(&mut self, age: u64) -> &mut Requests {
        &mut self.buckets[usize::try_from(age % LENGTH).unwrap_or(0)]
    }
}
