//! The counts of a circuit breaker, and the window of buckets that they are taken over.

/// The counts of calls by which a trip rule decides, as in sony/gobreaker. All of them saturate.
///
/// A call counts in the bucket of the moment at which it was admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Calls that were admitted, those under way included.
    pub requests: u32,
    /// Calls that succeeded.
    pub total_successes: u32,
    /// Calls that failed.
    pub total_failures: u32,
    /// Calls that neither succeeded nor failed: excluded, abandoned, or a probe that did not end in the open time.
    pub total_exclusions: u32,
    /// Successes since the last failure.
    pub consecutive_successes: u32,
    /// Failures since the last success; under the rate rule without 429 and RESOURCE_EXHAUSTED.
    pub consecutive_failures: u32,
}

impl Counts {
    /// Returns the requests that are not excluded.
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
            Outcome::Excluded | Outcome::Abandoned => {
                self.total_exclusions = self.total_exclusions.saturating_add(1);
                return;
            }
            Outcome::Unsent => {
                self.requests = self.requests.saturating_sub(1);
                return;
            }
        };
        *other = 0;
        // A server that limits its callers is not a server that is down.
        *own = own.saturating_add(u32::from(outcome != Outcome::Overload));
    }

    fn subtract(&mut self, gone: &Self) {
        self.requests = self.requests.saturating_sub(gone.requests);
        self.total_successes = self.total_successes.saturating_sub(gone.total_successes);
        self.total_failures = self.total_failures.saturating_sub(gone.total_failures);
        self.total_exclusions = self.total_exclusions.saturating_sub(gone.total_exclusions);
        // A run that began in the bucket that has gone is as long as what is left of it.
        self.consecutive_successes = self.consecutive_successes.min(self.total_successes);
        self.consecutive_failures = self.consecutive_failures.min(self.total_failures);
    }
}

/// The end of a call as the breaker counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Failure,
    /// A failure that does not lengthen the run of failures.
    Overload,
    Excluded,
    Abandoned,
    /// Takes the request back.
    Unsent,
}

/// Counts over the last few buckets of time; with one bucket, since the last clearing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    total: Counts,
    abandoned: u32,
    /// The bucket of each age, with its abandoned calls, at the age modulo their number.
    buckets: Vec<(Counts, u32)>,
    age: u64,
}

impl Window {
    /// Creates an empty window of at least one bucket.
    pub(crate) fn new(buckets: usize) -> Self {
        let buckets = vec![Default::default(); buckets.max(1)];
        Self { total: Counts::default(), abandoned: 0, buckets, age: 0 }
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.total
    }

    /// Returns the age of the current bucket: a call that begins now belongs to it.
    pub(crate) fn age(&self) -> u64 {
        self.age
    }

    /// Returns how many calls were abandoned, if no call of the window ended otherwise or is under way.
    pub(crate) fn all_abandoned(&self) -> Option<u32> {
        (self.abandoned > 0 && self.abandoned == self.total.requests).then_some(self.abandoned)
    }

    pub(crate) fn clear(&mut self) {
        self.total = Counts::default();
        self.abandoned = 0;
        self.buckets.fill(Default::default());
        self.age = 0;
    }

    pub(crate) fn request(&mut self) {
        let current = self.place(self.age);
        for counts in [&mut self.total, &mut self.buckets[current].0] {
            counts.requests = counts.requests.saturating_add(1);
        }
    }

    /// Counts calls that began in the current bucket, and successes among its calls after which no call has failed.
    #[inline]
    pub(crate) fn add(&mut self, calls: u64, successes: u64) {
        if calls == 0 && successes == 0 {
            return;
        }
        let [calls, successes] =
            [calls, successes].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let current = self.place(self.age);
        for counts in [&mut self.total, &mut self.buckets[current].0] {
            counts.requests = counts.requests.saturating_add(calls);
            counts.total_successes = counts.total_successes.saturating_add(successes);
            counts.consecutive_successes = counts.consecutive_successes.saturating_add(successes);
        }
    }

    /// Records the end of a call that began at `age`, unless its bucket has gone.
    pub(crate) fn record(&mut self, age: u64, outcome: Outcome) {
        let gone = self.age.checked_sub(age).is_none_or(|past| past >= self.length());
        if gone {
            return;
        }
        let place = self.place(age);
        let (counts, abandoned) = &mut self.buckets[place];
        counts.add(outcome);
        self.total.add(outcome);
        if outcome == Outcome::Abandoned {
            *abandoned = abandoned.saturating_add(1);
            self.abandoned = self.abandoned.saturating_add(1);
        }
    }

    /// Moves the window on to `age`. An earlier age changes nothing.
    pub(crate) fn grow(&mut self, age: u64) {
        if age.saturating_sub(self.age) >= self.length() {
            self.clear();
            self.age = age;
        }
        while self.age < age {
            self.age += 1;
            let oldest = self.place(self.age);
            let (counts, abandoned) = std::mem::take(&mut self.buckets[oldest]);
            self.total.subtract(&counts);
            self.abandoned = self.abandoned.saturating_sub(abandoned);
        }
    }

    fn length(&self) -> u64 {
        self.buckets.len() as u64
    }

    fn place(&self, age: u64) -> usize {
        usize::try_from(age % self.length()).unwrap_or(0)
    }
}
