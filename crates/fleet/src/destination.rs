//! A process's state for one destination: the store's last refusals, and the tokens to report.

use std::sync::PoisonError;
use std::time::Duration;

use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// The time for which the first refusal is remembered. It doubles with each consecutive refusal, and is a second from
/// the fourth on.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) name: Box<str>,
    pub(crate) key: Box<str>,
    refusals: Mutex<Refusals>,
    /// The earned tokens that are not yet reported, in millionths.
    credit: AtomicU64,
    /// `true` if a report is pending. There is one flag for reports that are due soon, and one for those due later.
    soon: AtomicBool,
    later: AtomicBool,
    /// `true` once a call of this process has succeeded here.
    // FB-2
    has_succeeded: AtomicBool,
    /// The time of the last retry that succeeded, in nanoseconds; 0 if there was none.
    retry_succeeded_at: AtomicU64,
}

/// The time for which a retry that succeeded shows that retries are worthwhile.
// FB-1
const RECENTLY: Duration = Duration::from_secs(2);

/// The number of consecutive refusals, and the time until which the store is not asked.
#[derive(Debug, Default)]
struct Refusals {
    count: u32,
    until: Duration,
}

/// The effect of a destination's refusals on its next retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// The last answer was a grant, so every retry asks the store.
    Clear,
    /// The last refusal has expired. Only this retry asks the store, until it has an answer.
    Probe,
    /// The last refusal has not expired, so the retry is refused.
    Refused,
}

impl Destination {
    pub(crate) fn new(name: &str, key: Box<str>, has_succeeded: bool) -> Self {
        Self {
            name: name.into(),
            key,
            refusals: Mutex::default(),
            credit: AtomicU64::new(0),
            soon: AtomicBool::new(false),
            later: AtomicBool::new(false),
            has_succeeded: AtomicBool::new(has_succeeded),
            retry_succeeded_at: AtomicU64::new(0),
        }
    }

    /// Records that a call succeeded.
    pub(crate) fn on_success(&self) {
        if !self.has_succeeded() {
            self.has_succeeded.store(true, Ordering::Relaxed);
        }
    }

    /// Returns `true` if a call of this process has succeeded here.
    pub(crate) fn has_succeeded(&self) -> bool {
        self.has_succeeded.load(Ordering::Relaxed)
    }

    /// Records that a retry succeeded at `now`.
    pub(crate) fn on_retry_success(&self, now: Duration) {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.retry_succeeded_at.store(now, Ordering::Relaxed);
    }

    /// Returns `true` if a retry succeeded in the last two seconds.
    pub(crate) fn retries_succeed(&self, now: Duration) -> bool {
        let last = self.retry_succeeded_at.load(Ordering::Relaxed);
        last > 0 && now <= Duration::from_nanos(last) + RECENTLY
    }

    /// Returns the effect of the refusals on a retry at `now`. A probe starts the next interval.
    pub(crate) fn remember(&self, now: Duration, random: u64) -> Memory {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        match refusals.count {
            0 => Memory::Clear,
            _ if now < refusals.until => Memory::Refused,
            count => {
                refusals.until = now + interval(count.saturating_add(1), random);
                Memory::Probe
            }
        }
    }

    /// Records that the store refused a retry. `memory` is the effect that earlier refusals had on it.
    pub(crate) fn on_refusal(&self, memory: Memory, now: Duration, random: u64) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if memory == Memory::Probe {
            // The interval started with the probe.
            refusals.count = refusals.count.saturating_add(1);
        } else if refusals.count == 0 {
            *refusals = Refusals { count: 1, until: now + interval(1, random) };
        }
    }

    /// Forgets the refusals, because the store granted a retry or the state of its bucket is no longer known.
    pub(crate) fn forget_refusals(&self) {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).count = 0;
    }

    pub(crate) fn add_credit(&self, amount: u64) {
        let add = |credit: u64| Some(credit.saturating_add(amount));
        let _ = self.credit.fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
    }

    pub(crate) fn has_credit(&self) -> bool {
        self.credit.load(Ordering::Acquire) > 0
    }

    pub(crate) fn take_credit(&self) -> u64 {
        self.credit.swap(0, Ordering::AcqRel)
    }

    /// Returns the flag for the report that is due soon, or for the one that is due later.
    pub(crate) fn is_scheduled(&self, soon: bool) -> &AtomicBool {
        if soon { &self.soon } else { &self.later }
    }

    /// Returns `true` if no refusal is remembered at `now`. If nothing else uses the destination, its tokens are from a
    /// report that failed, and may be lost.
    pub(crate) fn is_idle(&self, now: Duration) -> bool {
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.count == 0 || refusals.until + LONGEST < now
    }
}

/// Returns the time for which consecutive refusal `count` is remembered, ± 25 %, so that processes do not ask
/// simultaneously.
fn interval(count: u32, random: u64) -> Duration {
    let whole = if count < 4 { FIRST * (1 << count.saturating_sub(1)) } else { LONGEST };
    between(whole * 3 / 4, whole * 5 / 4, random)
}

/// Returns a duration between the two, determined by `random`.
pub(crate) fn between(least: Duration, most: Duration, random: u64) -> Duration {
    least + (most.saturating_sub(least) / 1024) * u32::try_from(random % 1025).unwrap_or(0)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A refusal is remembered until its time, and keeps the destination for a second more.
    #[test]
    fn refusal_ends_at_its_time() {
        const MOMENT: Duration = Duration::from_nanos(1);
        let destination = Destination::new("a", "key".into(), false);
        assert!(destination.is_idle(Duration::ZERO));
        destination.on_refusal(Memory::Clear, Duration::ZERO, 0);
        let end = FIRST * 3 / 4;
        assert_eq!(destination.remember(end - MOMENT, 0), Memory::Refused);
        assert!(!destination.is_idle(end + LONGEST));
        assert!(destination.is_idle(end + LONGEST + MOMENT));
        assert_eq!(destination.remember(end, 0), Memory::Probe);
    }
}
