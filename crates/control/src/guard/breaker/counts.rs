//! A circuit breaker's counts, and the window of buckets that they cover.

/// The call counts on which a trip rule decides, as in sony/gobreaker. All of them saturate.
///
/// A call is counted in the bucket during which it was admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Calls that were admitted, including those in flight.
    pub requests: u32,
    /// Calls that succeeded.
    pub total_successes: u32,
    /// Calls that failed.
    pub total_failures: u32,
    /// Calls that neither succeeded nor failed: excluded or abandoned.
    pub total_exclusions: u32,
    /// Successes since the last failure.
    pub consecutive_successes: u32,
    /// Failures in the window since the last success. The rate rule's own run of failures continues across windows.
    /// Under that rule, 429 and RESOURCE_EXHAUSTED do not count here.
    pub consecutive_failures: u32,
}

impl Counts {
    /// Returns the number of requests that are not excluded.
    pub fn valid_requests(&self) -> u32 {
        self.requests.saturating_sub(self.total_exclusions)
    }

    fn add(&mut self, outcome: Outcome) {
        let (own, other) = match outcome {
            Outcome::Success => {
                self.total_successes = self.total_successes.saturating_add(1);
                (&mut self.consecutive_successes, &mut self.consecutive_failures)
            }
            Outcome::Failure | Outcome::Overload => {
                self.total_failures = self.total_failures.saturating_add(1);
                (&mut self.consecutive_failures, &mut self.consecutive_successes)
            }
            Outcome::Excluded | Outcome::Abandoned | Outcome::Lost => {
                self.total_exclusions = self.total_exclusions.saturating_add(1);
                return;
            }
            Outcome::Unsent => {
                self.requests = self.requests.saturating_sub(1);
                return;
            }
        };
        *other = 0;
        // A server that rate-limits its callers is not down.
        *own = own.saturating_add(u32::from(outcome != Outcome::Overload));
    }

    fn subtract(&mut self, gone: &Self) {
        self.requests = self.requests.saturating_sub(gone.requests);
        self.total_successes = self.total_successes.saturating_sub(gone.total_successes);
        self.total_failures = self.total_failures.saturating_sub(gone.total_failures);
        self.total_exclusions = self.total_exclusions.saturating_sub(gone.total_exclusions);
        // A run that began in a dropped bucket cannot be longer than the rest of the window.
        self.consecutive_successes = self.consecutive_successes.min(self.total_successes);
        self.consecutive_failures = self.consecutive_failures.min(self.total_failures);
    }
}

/// The end of a call, as counted by the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Failure,
    /// A lost connection. The machine decides whether it is a failure, or excluded because its event has counted.
    Lost,
    /// A failure that does not extend the run of consecutive failures.
    Overload,
    Excluded,
    Abandoned,
    /// A request that was never sent, and is no longer counted.
    Unsent,
}

/// Counts over the last few buckets, or, with one bucket, since they were last cleared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CountWindow {
    total: Counts,
    /// The buckets by age, indexed by age modulo their number.
    buckets: Vec<Counts>,
    age: u64,
}

impl CountWindow {
    /// Creates an empty window of at least one bucket.
    pub(crate) fn new(buckets: usize) -> Self {
        let buckets = vec![Counts::default(); buckets.max(1)];
        Self { total: Counts::default(), buckets, age: 0 }
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.total
    }

    /// Returns the age of the current bucket, in which new calls are counted.
    pub(crate) fn age(&self) -> u64 {
        self.age
    }

    /// Clears the counts.
    pub(crate) fn clear(&mut self) {
        self.total = Counts::default();
        self.buckets.fill(Counts::default());
        self.age = 0;
    }

    pub(crate) fn request(&mut self) {
        let current = self.bucket_of(self.age);
        for counts in [&mut self.total, &mut self.buckets[current]] {
            counts.requests = counts.requests.saturating_add(1);
        }
    }

    /// Counts calls that began in the current bucket, and the successes among them. No failure may have come after
    /// these successes.
    #[inline]
    pub(crate) fn add(&mut self, calls: u64, successes: u64) {
        if calls == 0 && successes == 0 {
            return;
        }
        let [calls, successes] = [calls, successes].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let current = self.bucket_of(self.age);
        for counts in [&mut self.total, &mut self.buckets[current]] {
            counts.requests = counts.requests.saturating_add(calls);
            counts.total_successes = counts.total_successes.saturating_add(successes);
            counts.consecutive_successes = counts.consecutive_successes.saturating_add(successes);
        }
    }

    /// Records the end of a call that began at `age`, unless its bucket was dropped.
    pub(crate) fn record(&mut self, age: u64, outcome: Outcome) {
        let gone = self.age.checked_sub(age).is_none_or(|past| past >= self.length());
        if gone {
            return;
        }
        let bucket = self.bucket_of(age);
        self.buckets[bucket].add(outcome);
        self.total.add(outcome);
    }

    /// Records an outcome in a window of the last calls, with `calls` per bucket. Calls in flight are not counted.
    pub(crate) fn record_last(&mut self, calls: u32, outcome: Outcome) {
        if let Outcome::Success | Outcome::Failure | Outcome::Overload = outcome {
            if self.buckets[self.bucket_of(self.age)].requests >= calls {
                self.grow(self.age.saturating_add(1));
            }
            self.request();
            self.record(self.age, outcome);
        }
    }

    /// Advances the window to `age`. An earlier age changes nothing.
    pub(crate) fn grow(&mut self, age: u64) {
        if age.saturating_sub(self.age) >= self.length() {
            self.clear();
            self.age = age;
        }
        while self.age < age {
            self.age += 1;
            let oldest = self.bucket_of(self.age);
            let counts = std::mem::take(&mut self.buckets[oldest]);
            self.total.subtract(&counts);
        }
    }

    fn length(&self) -> u64 {
        self.buckets.len() as u64
    }

    fn bucket_of(&self, age: u64) -> usize {
        usize::try_from(age % self.length()).unwrap_or(0)
    }
}
