//! The least guards: each gives the guarantee of one of ours by the least code, and so it is the floor of our figure.
//!
//! Each has one exact state, which threads share. What ours has beyond that is absent: no setting can be replaced, no
//! call waits in line, no word is spread over threads, and no destination has a state of its own.

mod breaker;
mod places;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reattempt::guard::contract::{Admit, Arrival, End, Guard, GuardKind, Health};
use reattempt::guard::{Reason, Refused};

pub(crate) use breaker::LeastBreaker;
pub(crate) use places::{LeastAdaptive, LeastBulkhead};

const SECOND: u64 = 1_000_000_000;
/// Times below this many seconds have less than 2⁶⁴ nanoseconds.
const NARROW_SECONDS: u64 = 1 << 34;
/// A token in millionths.
const TOKEN: u64 = 1_000_000;

#[inline]
fn nanos(time: Duration) -> u64 {
    if time.as_secs() < NARROW_SECONDS { time.as_secs() * SECOND + u64::from(time.subsec_nanos()) } else { u64::MAX }
}

#[inline]
fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A rate limit: a bucket of tokens in integers, which loses no fraction. The clock does not go back.
pub(crate) struct LeastLimit {
    per_second: u64,
    /// Millionths.
    burst: u64,
    tokens: Mutex<Tokens>,
}

struct Tokens {
    /// Millionths.
    balance: u64,
    now: u64,
    /// The rest of the last division.
    rest: u64,
}

impl LeastLimit {
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let burst = u64::from(burst) * TOKEN;
        let tokens = Mutex::new(Tokens { balance: burst, now: 0, rest: 0 });
        Self { per_second: per_second.into(), burst, tokens }
    }

    pub(crate) fn allow(&self, now: Duration) -> bool {
        let mut tokens = lock(&self.tokens);
        let now = nanos(now);
        if now > tokens.now {
            let rate = u128::from(self.per_second * TOKEN);
            let sum = u128::from(now - tokens.now) * rate + u128::from(tokens.rest);
            let minted = u64::try_from(sum / u128::from(SECOND)).unwrap_or(u64::MAX);
            tokens.rest = u64::try_from(sum % u128::from(SECOND)).unwrap_or(0);
            tokens.balance = tokens.balance.saturating_add(minted).min(self.burst);
            tokens.now = now;
        }
        let left = tokens.balance.checked_sub(TOKEN);
        tokens.balance = left.unwrap_or(tokens.balance);
        left.is_some()
    }
}

/// The buckets of a throttle's window, and their length in nanoseconds.
const BUCKETS: u64 = 16;
const BUCKET: u64 = 120 * SECOND / BUCKETS;

/// A throttle over 2 minutes, with K = 2.
pub(crate) struct LeastThrottle(Mutex<Requests>);

struct Requests {
    all: u32,
    refused: u32,
    /// The requests of each bucket, and those among them that were refused, at the age modulo their number.
    buckets: [(u32, u32); 16],
    age: u64,
    /// The nanosecond at which the bucket ends.
    end: u64,
    /// The state of a generator (xorshift).
    random: u64,
}

impl LeastThrottle {
    pub(crate) fn new() -> Self {
        let (all, refused, buckets) = Default::default();
        Self(Mutex::new(Requests { all, refused, buckets, age: 0, end: 0, random: 1 }))
    }
}

impl Requests {
    #[inline]
    fn bucket(&mut self, age: u64) -> &mut (u32, u32) {
        &mut self.buckets[(age % BUCKETS) as usize]
    }

    #[cold]
    fn turn(&mut self, now: u64) {
        let age = now / BUCKET;
        for _ in self.age.max(age.saturating_sub(BUCKETS))..age {
            self.age += 1;
            let (all, refused) = std::mem::take(self.bucket(self.age));
            (self.all, self.refused) = (self.all - all, self.refused - refused);
        }
        (self.age, self.end) = (age, (age + 1) * BUCKET);
    }

    #[inline]
    fn refuse(&mut self, age: u64) {
        if self.age - age < BUCKETS {
            self.refused += 1;
            self.bucket(age).1 += 1;
        }
    }

    /// Draws a refusal, unless there are few requests.
    #[cold]
    fn draws_refusal(&mut self) -> bool {
        let covered = (self.age + 1).min(BUCKETS) * BUCKET;
        let is_active = self.all >= 10 && u64::from(self.all) * SECOND >= 5 * covered;
        let accepts = self.all - self.refused;
        let excess = u64::from(self.all).saturating_sub(2 * u64::from(accepts));
        let probability = ((excess << 32) / (u64::from(self.all) + 1)).min((9 << 32) / 10);
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        is_active && self.random >> 32 < probability
    }
}

impl Guard for LeastThrottle {
    /// The age of the bucket.
    type Ticket = u64;

    #[inline]
    fn admit(&self, arrival: &Arrival<'_>) -> Admit<u64> {
        let mut requests = lock(&self.0);
        let now = nanos(arrival.now);
        if now >= requests.end {
            requests.turn(now);
        }
        let is_refused = requests.refused > 0 && requests.draws_refusal();
        let age = requests.age;
        requests.all += 1;
        requests.bucket(age).0 += 1;
        if is_refused {
            requests.refuse(age);
            return Admit::Refused(Refused::new(GuardKind::THROTTLE, Reason::Shed));
        }
        Admit::Admitted(age)
    }

    #[inline]
    fn end_ticket(&self, age: u64, end: &End, now: Duration) -> Option<u64> {
        if let End::Judged { health: Health::Overloaded | Health::Unavailable, .. } = end {
            let mut requests = lock(&self.0);
            let now = nanos(now);
            if now >= requests.end {
                requests.turn(now);
            }
            requests.refuse(age);
        }
        None
    }
}
