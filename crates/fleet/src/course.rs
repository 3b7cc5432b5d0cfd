//! The course of one question as plain data: the confirmation, the grant, and the end of the retry.
//!
//! Input: the store's answer, the end of the waiting time, and the end of the retry, in any order. Output: the tokens
//! to return to the store. `ask` holds one behind a lock, and the model of a network drives it directly.

use crate::rule::TOKEN;

/// The tokens that a success earns after a retry of one token, in millionths.
const EARNED_BY_RETRY: u64 = 3 * TOKEN;

/// The events so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Course {
    /// The tokens that the retry costs, in millionths.
    cost: u64,
    /// The confirmation, which does not change.
    confirmed: Option<bool>,
    /// `true` if the store has granted the retry, in time or not.
    granted: bool,
    /// The end of the retry, as far as it concerns the store.
    end: Option<End>,
}

/// The end of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// It was not sent.
    Unsent,
    /// It ended its call with a success.
    Succeeded,
    /// It failed, or another attempt ended its call.
    Failed,
}

impl Course {
    /// Creates the course of a question for a retry of this cost, in millionths.
    pub fn new(cost: u64) -> Self {
        Self { cost, confirmed: None, granted: false, end: None }
    }

    /// Returns the confirmation, once there is one.
    pub fn confirmed(&self) -> Option<bool> {
        self.confirmed
    }

    /// Sets the confirmation. Returns `false` if it was set before.
    pub fn confirm(&mut self, confirmed: bool) -> bool {
        let is_first = self.confirmed.is_none();
        self.confirmed = self.confirmed.or(Some(confirmed));
        is_first
    }

    /// Records that the store has granted the retry. Returns the tokens that are due.
    pub fn on_grant(&mut self) -> u64 {
        self.granted = true;
        self.due()
    }

    /// Records the end of the retry. Returns the tokens that are due.
    pub fn on_end(&mut self, end: End) -> u64 {
        self.end = Some(end);
        self.due()
    }

    /// Returns the tokens that are due once the answer and the end are known: not before the last of the two.
    fn due(&self) -> u64 {
        match self.end {
            Some(End::Unsent) if self.granted => self.cost,
            Some(End::Succeeded) if self.granted && self.cost == TOKEN => EARNED_BY_RETRY,
            _ => 0,
        }
    }
}
