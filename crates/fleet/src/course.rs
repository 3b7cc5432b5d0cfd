//! The state of one request to the store as plain data: the confirmation, the grant, and the end of the retry.
//!
//! The store's answer, the timeout and the end of the retry may come in any order. The result is the number of tokens
//! to add to the bucket in the store. `ask` holds a `Course` behind a lock, and the network model drives one directly.

use crate::rule::TOKEN;

/// The tokens that a successful retry with a cost of one token earns, in millionths.
const EARNED_BY_RETRY: u64 = 3 * TOKEN;

/// The state of one request to the store and of its retry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Course {
    /// The tokens that the retry costs, in millionths.
    cost: u64,
    /// `true` if the retry may be sent, or `None` until that is decided. The decision does not change.
    confirmed: Option<bool>,
    /// `true` if the store has granted the retry, even if it was too late.
    granted: bool,
    /// The end of the retry, if known.
    end: Option<End>,
}

/// The end of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The retry was not sent.
    Unsent,
    /// The retry succeeded, and so did its call.
    Succeeded,
    /// The retry failed, or another attempt ended the call.
    Failed,
}

impl Course {
    /// Creates the state of a request for a retry that costs `cost` millionths of a token.
    pub fn new(cost: u64) -> Self {
        Self { cost, confirmed: None, granted: false, end: None }
    }

    /// Returns whether the retry may be sent, or `None` until that is decided. The decision does not change.
    pub fn confirmed(&self) -> Option<bool> {
        self.confirmed
    }

    /// Records whether the retry may be sent. Returns `false`, and changes nothing, if that was already decided.
    pub fn confirm(&mut self, confirmed: bool) -> bool {
        let is_first = self.confirmed.is_none();
        self.confirmed = self.confirmed.or(Some(confirmed));
        is_first
    }

    /// Records that the store has granted the retry. Returns the tokens to add to the bucket now.
    pub fn on_grant(&mut self) -> u64 {
        self.granted = true;
        self.due()
    }

    /// Records the end of the retry. Returns the tokens to add to the bucket now.
    pub fn on_end(&mut self, end: End) -> u64 {
        self.end = Some(end);
        self.due()
    }

    /// Returns the tokens to add to the bucket: those of an unsent retry, or those earned by a success. There are none
    /// until both the answer and the end are known.
    fn due(&self) -> u64 {
        match self.end {
            Some(End::Unsent) if self.granted => self.cost,
            Some(End::Succeeded) if self.granted && self.cost == TOKEN => EARNED_BY_RETRY,
            _ => 0,
        }
    }
}
