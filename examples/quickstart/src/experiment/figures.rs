//! The figures of one client, and the line that sums them up.

use std::fmt;

use super::journal::{Journal, Sender};
use super::sending::Sent;

/// The results of all calls of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Figures {
    sender: Sender,
    calls: u32,
    /// Calls whose caller got a 2xx response to its last byte.
    ok: u32,
    /// Attempts that the server saw: the lines of the log.
    attempts: u32,
    /// POSTs without a key that the server received again after it had carried them out.
    unsafe_repeats: u32,
}

impl Figures {
    pub(crate) fn new(sender: Sender, sent: &[Sent], journal: &Journal) -> Self {
        let (mut calls, mut ok) = (0, 0);
        for sent in sent {
            calls += 1;
            ok += u32::from(sent.is_ok());
        }
        Self { sender, calls, ok, attempts: journal.attempts(sender), unsafe_repeats: journal.unsafe_repeats(sender) }
    }

    /// Returns the attempts that the server saw for each call.
    fn amplification(&self) -> f64 {
        f64::from(self.attempts) / f64::from(self.calls.max(1))
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sender, calls, ok, attempts, unsafe_repeats } = self;
        write!(f, "{sender}: calls {calls} ok {ok} attempts {attempts}")?;
        match sender {
            Sender::Unwrapped => Ok(()),
            Sender::Reattempt => {
                let amplification = self.amplification();
                write!(f, " amplification {amplification:.2} unsafe-repeats {unsafe_repeats}")
            }
        }
    }
}
