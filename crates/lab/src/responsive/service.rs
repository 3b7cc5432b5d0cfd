//! The simulated services, which refuse calls above a rate.

use std::time::Duration;

use crate::error::LabError;
use crate::events::nanoseconds;

/// A service that is called.
#[derive(Debug)]
pub(super) enum Service {
    Gate(Gate),
    Table(Table),
    Window(Window),
}

impl Service {
    /// Returns `true` if a call at this time is accepted.
    pub(super) fn accepts(&mut self, now: u64) -> bool {
        match self {
            Service::Gate(gate) => gate.accepts(now),
            Service::Table(table) => table.accepts(now),
            Service::Window(window) => window.accepts(now),
        }
    }

    /// Returns the capacity in calls a second; `None` for the gate.
    pub(super) fn capacity(&self) -> Option<f64> {
        match self {
            Service::Gate(_) => None,
            Service::Table(table) => Some(table.capacity),
            Service::Window(window) => Some(f64::from(window.capacity)),
        }
    }
}

/// A service that requires a gap between any two calls.
#[derive(Debug)]
pub(super) struct Gate {
    gap: u64,
    /// The number of calls that are still refused with any gap.
    closed: u32,
    last: Option<u64>,
}

impl Gate {
    pub(super) fn new(gap: Duration, closed: u32) -> Self {
        Self { gap: nanoseconds(gap), closed, last: None }
    }

    fn accepts(&mut self, now: u64) -> bool {
        let gap = self.last.map_or(u64::MAX, |last| now.saturating_sub(last));
        self.last = Some(now);
        if self.closed > 0 {
            self.closed -= 1;
            return false;
        }
        gap > self.gap
    }
}

/// A service with a capacity in calls a second, of which it saves up one second. Like a managed
/// table it adapts slowly to its load.
#[derive(Debug)]
pub(super) struct Table {
    capacity: f64,
    least: f64,
    most: f64,
    tokens: f64,
    refilled: u64,
    adapts: u64,
    adapted: u64,
    used: f64,
    refused: bool,
}

impl Table {
    /// Creates a table with its least capacity.
    pub(super) fn new(capacity: u32, largest: u32, adapts: Duration) -> Result<Self, LabError> {
        if adapts.is_zero() {
            return Err(LabError::new("`adapts` must be above 0, but it is 0s"));
        }
        let capacity = f64::from(capacity);
        Ok(Self {
            capacity,
            least: capacity,
            most: f64::from(largest).max(capacity),
            tokens: capacity,
            refilled: 0,
            adapts: nanoseconds(adapts),
            adapted: 0,
            used: 0.0,
            refused: false,
        })
    }

    fn accepts(&mut self, now: u64) -> bool {
        while now - self.adapted >= self.adapts {
            self.adapted += self.adapts;
            self.adapt();
        }
        let passed = Duration::from_nanos(now - self.refilled).as_secs_f64();
        self.refilled = now;
        self.tokens = (self.tokens + passed * self.capacity).min(self.capacity);
        let accepted = self.tokens >= 1.0;
        if accepted {
            self.tokens -= 1.0;
            self.used += 1.0;
        } else {
            self.refused = true;
        }
        accepted
    }

    fn adapt(&mut self) {
        let possible = self.capacity * Duration::from_nanos(self.adapts).as_secs_f64();
        if self.refused {
            self.capacity = (self.capacity * 1.2).min(self.most);
        } else if self.used < possible / 2.0 {
            self.capacity = (self.capacity * 0.8).max(self.least);
        }
        (self.used, self.refused) = (0.0, false);
    }
}

/// A service that accepts a number of calls in each second of its clock.
#[derive(Debug)]
pub(super) struct Window {
    capacity: u32,
    second: u64,
    taken: u32,
}

impl Window {
    pub(super) fn new(capacity: u32) -> Self {
        Self { capacity, second: 0, taken: 0 }
    }

    fn accepts(&mut self, now: u64) -> bool {
        let second = Duration::from_nanos(now).as_secs();
        if second > self.second {
            (self.second, self.taken) = (second, 0);
        }
        let accepted = self.taken < self.capacity;
        self.taken += u32::from(accepted);
        accepted
    }
}
