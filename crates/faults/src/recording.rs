//! Recordings of real calls' outcomes, which can be replayed as scripts.

use std::fmt::Write;
use std::time::Duration;

use crate::script::{Script, Step};
use crate::service::ServiceFault;
use crate::toml::{ScriptError, parse};
use crate::words;

/// The outcomes of the calls to one destination over time, as a script that repeats the destination's outages.
///
/// A `Recorder` (feature `record`), an observer of reattempt's layers, creates recordings. [`Recording::to_toml`]
/// returns the text of a file for [`Script::from_toml`] and for `lab replay FILE` in the repository, which simulates
/// other policies.
///
/// An outcome applies until the next one: a request gets the fault that was last recorded before it. Recordings
/// therefore have limitations:
///
/// - The server's load is not simulated. A policy with more attempts would have made an overloaded server worse.
/// - Nothing is known about the time between two calls. If no calls follow a failure for a while, that time appears as
///   an outage.
/// - The duration of attempts, delays that the server asked for, and the content of requests are not recorded. All
///   requests are assumed to be repeatable.
/// - Of several outcomes within a millisecond, only the last is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    destination: String,
    calls: Vec<u64>,
    /// Each outcome that differs from the previous one, with its time in milliseconds.
    changes: Vec<(u64, ServiceFault)>,
    end: u64,
}

impl Recording {
    #[cfg(feature = "record")]
    pub(crate) fn new(destination: &str) -> Self {
        Self { destination: destination.to_owned(), calls: Vec::new(), changes: Vec::new(), end: 0 }
    }

    /// Records the outcome of an attempt. The first attempt also adds a call. Returns the number of new entries.
    #[cfg(feature = "record")]
    pub(crate) fn add(&mut self, at: u64, outcome: ServiceFault, is_first: bool) -> usize {
        self.end = self.end.max(at);
        if is_first {
            self.calls.push(at);
        }
        let changes = match self.changes.last_mut() {
            Some((earlier, last)) if *earlier == at => {
                *last = outcome;
                false
            }
            last => last.is_none_or(|(_, last)| *last != outcome),
        };
        if changes {
            self.changes.push((at, outcome));
        }
        usize::from(is_first) + usize::from(changes)
    }

    /// Reads a recording in TOML.
    ///
    /// # Errors
    ///
    /// Returns a [`ScriptError`] with the position of the error if the text is not a script with a recording.
    pub fn from_toml(text: &str) -> Result<Self, ScriptError> {
        let parsed = parse::<ServiceFault>(text)?;
        let missing = "`recording` is missing: only a recorded script can be simulated";
        let raw = parsed.recording.ok_or_else(|| ScriptError::new(text, 0..0, missing))?;
        let (span, raw) = (raw.span(), raw.into_inner());
        if raw.calls_ms.iter().any(|at| *at > raw.end_ms) {
            return Err(ScriptError::new(text, span, "a call of `calls-ms` is later than `end-ms`"));
        }
        let mut changes = Vec::<(u64, ServiceFault)>::new();
        let mut pass_from = 0;
        for (step, span) in parsed.script.steps.iter().zip(parsed.spans) {
            let Some(period) = step.recorded_period() else {
                let problem = "a recorded step has `from-ms`, `to-ms` and `always`, and nothing else";
                return Err(ScriptError::new(text, span, problem));
            };
            let [from, to] = [period.start, period.end].map(milliseconds);
            if from < pass_from {
                return Err(ScriptError::new(text, span, "a recorded step begins before the previous one ends"));
            }
            if from > pass_from {
                changes.push((pass_from, ServiceFault::NoFault));
            }
            changes.push((from, step.fault));
            pass_from = to;
        }
        changes.push((pass_from, ServiceFault::NoFault));
        Ok(Self { destination: raw.destination, calls: raw.calls_ms, changes, end: raw.end_ms })
    }

    /// Returns the recording as a script in TOML.
    pub fn to_toml(&self) -> String {
        let Self { destination, calls, end, .. } = self;
        let mut text = format!(
            "# {} calls in {end} ms. A request meets the outcome that was last recorded before it.\n\
             may-remain = true\n\n[recording]\ndestination = {}\nend-ms = {end}\ncalls-ms = {calls:?}\n",
            calls.len(),
            toml::Value::from(destination.as_str()),
        );
        for (from, to, fault) in self.faults() {
            let fault = words_of(fault);
            // Writing to a string does not fail.
            let _ = write!(text, "\n[[step]]\nfault = {fault}\nfrom-ms = {from}\nto-ms = {to}\nalways = true\n");
        }
        text
    }

    /// Returns the recording as a script, whose faults depend only on the time.
    pub fn script(&self) -> Script<ServiceFault> {
        let time = Duration::from_millis;
        let step = |(from, to, fault)| Step::new(fault).during(time(from)..time(to)).always();
        Script::new(self.faults().map(step)).may_remain()
    }

    /// Returns each fault with its start and end.
    fn faults(&self) -> impl Iterator<Item = (u64, u64, ServiceFault)> {
        let ends = self.changes.iter().skip(1).map(|(at, _)| *at).chain([self.end + 1]);
        let periods = self.changes.iter().zip(ends).map(|((from, fault), to)| (*from, to, *fault));
        periods.filter(|(_, _, fault)| *fault != ServiceFault::NoFault)
    }

    /// Returns the destination, by default the host and port.
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// Returns the time of each call's first outcome, measured from the recorder's first outcome.
    ///
    /// The recorder's first outcome may belong to another destination.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = Duration> {
        self.calls.iter().copied().map(Duration::from_millis)
    }

    /// Returns the time of the last outcome, at which the recording ends.
    pub fn end(&self) -> Duration {
        Duration::from_millis(self.end)
    }

    /// Returns the fault for a request at this time, measured from the recorder's first outcome.
    pub fn fault_at(&self, at: Duration) -> ServiceFault {
        let at = milliseconds(at);
        let known = self.changes.partition_point(|(from, _)| *from <= at);
        self.changes[..known].last().map_or(ServiceFault::NoFault, |(_, fault)| *fault)
    }
}

/// Returns a recorded fault as TOML.
fn words_of(fault: ServiceFault) -> String {
    match fault {
        ServiceFault::Status(status) => format!("{{ status = {} }}", status.as_u16()),
        ServiceFault::Grpc(code) => format!("{{ grpc = {code} }}"),
        ServiceFault::Error(kind) => format!("{{ error = \"{}\" }}", words::name_of_kind(kind)),
        _ => "\"no-fault\"".to_owned(),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
