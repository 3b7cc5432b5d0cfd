//! The server's log: one line for each attempt that reached it, in memory and optionally in a file.
//! The figures can be recomputed from that file.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use http::Method;
use serde::Serialize;

use super::script::{Reply, Step};

/// The client that sent an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sender {
    /// The plain client.
    Unwrapped,
    /// The plain client in a `RetryLayer`.
    Reattempt,
}

/// One line of the log.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Line {
    client: Sender,
    call: u32,
    method: String,
    /// `true` if the request had an idempotency key.
    key: bool,
    /// The attempts of this call by this client that the server has seen, this one included.
    attempt_seen: u32,
    /// `true` if the server carried the request out on this attempt.
    executed: bool,
    answer: Answer,
}

/// A status, or `"reset"`, or `"slow"`.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
enum Answer {
    Status(u16),
    Fault(&'static str),
}

/// The server's counts.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    lines: Vec<Line>,
    calls: HashMap<(Sender, u32), Seen>,
    unsafe_repeats: HashMap<Sender, u32>,
}

/// The server's record of one call.
#[derive(Debug, Default)]
struct Seen {
    attempts: u32,
    executed: bool,
}

/// An attempt as it arrives.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) sender: Sender,
    pub(crate) call: u32,
    pub(crate) method: Method,
    pub(crate) key: bool,
}

impl Journal {
    /// Counts an attempt, and returns the step that `step` chooses by its number.
    pub(crate) fn record(&self, arrival: Arrival, step: impl FnOnce(u32) -> Step) -> Step {
        let Arrival { sender, call, method, key } = arrival;
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = &mut *entries;
        let seen = entries.calls.entry((sender, call)).or_default();
        if method == Method::POST && !key && seen.executed {
            *entries.unsafe_repeats.entry(sender).or_default() += 1;
        }
        seen.attempts += 1;
        let step = step(seen.attempts);
        // A known key is answered, but its request is not carried out a second time.
        let executed = step.executed && !(key && seen.executed);
        seen.executed |= executed;
        entries.lines.push(Line {
            client: sender,
            call,
            method: method.to_string(),
            key,
            attempt_seen: seen.attempts,
            executed,
            answer: Answer::of(step.reply),
        });
        step
    }

    /// Returns the number of attempts of this client that reached the server.
    pub(crate) fn attempts(&self, sender: Sender) -> u32 {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_sender = entries.calls.iter().filter(|((other, _), _)| *other == sender);
        of_sender.map(|(_, seen)| seen.attempts).sum()
    }

    /// Returns the number of POSTs without a key that arrived again after the server had carried
    /// them out.
    pub(crate) fn unsafe_repeats(&self, sender: Sender) -> u32 {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.unsafe_repeats.get(&sender).copied().unwrap_or_default()
    }

    /// Writes all lines, by client, call and attempt: the same seed gives the same file.
    pub(crate) fn write_to(&self, mut log: impl Write) -> io::Result<()> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines: Vec<&Line> = entries.lines.iter().collect();
        lines.sort_by_key(|line| (line.client, line.call, line.attempt_seen));
        for line in lines {
            serde_json::to_writer(&mut log, line)?;
            log.write_all(b"\n")?;
        }
        log.flush()
    }
}

impl Answer {
    fn of(reply: Reply) -> Self {
        match reply {
            Reply::Status(status, _) => Answer::Status(status),
            Reply::Reset | Reply::BreakOff => Answer::Fault("reset"),
            Reply::Slow => Answer::Fault("slow"),
        }
    }
}

impl Sender {
    /// Parses the part of a request's path that names the client.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Sender::Unwrapped, Sender::Reattempt].into_iter().find(|sender| sender.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Sender::Unwrapped => "unwrapped",
            Sender::Reattempt => "reattempt",
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
