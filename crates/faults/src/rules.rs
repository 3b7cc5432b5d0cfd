//! The rules that a ledger is checked against.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::ledger::{Arrival, Book, Ledger};
use crate::time_line::TimeLine;

/// A rule for clients that is checked for all arrivals in a [`Ledger`].
///
/// [`Ledger::check`] returns an error if a rule is violated. The methods of [`Ledger`] that are named after the rules
/// panic with that error, like an assertion.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Rule {
    /// No call with a non-idempotent method and without a key is carried out more than once.
    NoUnsafeRepeat,
    /// On average, each call arrives at most this many times.
    AmplificationAtMost(f64),
    /// No arrival of a call is later than this time after the call's first arrival. If the first arrival has a shorter
    /// `grpc-timeout`, that limit applies.
    NoArrivalAfterDeadline(Duration),
    /// All complete bodies of a call are equal.
    BodiesIntact,
    /// Each call arrives at most this many times.
    AtMostAttempts(usize),
    /// No exchange is in progress, and no connection is open. First drop the client and await [`Ledger::all_closed`].
    NothingLeftOpen,
}

impl Ledger {
    /// Checks a rule.
    ///
    /// # Errors
    ///
    /// Returns a [`Violation`] with the calls that break the rule.
    pub fn check(&self, rule: Rule) -> Result<(), Violation> {
        self.read(|book| check(book, rule))
    }

    /// Asserts [`Rule::NoUnsafeRepeat`].
    #[track_caller]
    pub fn no_unsafe_repeat(&self) -> &Self {
        self.assert(Rule::NoUnsafeRepeat)
    }

    /// Asserts [`Rule::AmplificationAtMost`].
    #[track_caller]
    pub fn amplification_at_most(&self, arrivals_per_call: f64) -> &Self {
        self.assert(Rule::AmplificationAtMost(arrivals_per_call))
    }

    /// Asserts [`Rule::NoArrivalAfterDeadline`].
    #[track_caller]
    pub fn no_arrival_after_deadline(&self, limit: Duration) -> &Self {
        self.assert(Rule::NoArrivalAfterDeadline(limit))
    }

    /// Asserts [`Rule::BodiesIntact`].
    #[track_caller]
    pub fn bodies_intact(&self) -> &Self {
        self.assert(Rule::BodiesIntact)
    }

    /// Asserts [`Rule::AtMostAttempts`].
    #[track_caller]
    pub fn at_most_attempts(&self, attempts: usize) -> &Self {
        self.assert(Rule::AtMostAttempts(attempts))
    }

    /// Asserts [`Rule::NothingLeftOpen`].
    #[track_caller]
    pub fn nothing_left_open(&self) -> &Self {
        self.assert(Rule::NothingLeftOpen)
    }

    #[track_caller]
    #[allow(clippy::panic, reason = "an assertion fails by panicking")]
    fn assert(&self, rule: Rule) -> &Self {
        match self.check(rule) {
            Ok(()) => self,
            Err(violation) => panic!("{violation}"),
        }
    }
}

/// The error for a violated rule. Its text shows a timeline of the calls that violated the rule.
#[derive(Debug, Clone)]
pub struct Violation {
    rule: Rule,
    what: String,
    arrivals: Vec<Arrival>,
}

impl Violation {
    /// Returns the rule.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// Returns the arrivals of the calls that violated the rule.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        if self.arrivals.is_empty() { Ok(()) } else { write!(f, "\n{}", TimeLine(&self.arrivals)) }
    }
}

impl Error for Violation {}

/// Returns the names of the calls in order of their first arrivals, with the arrivals of each.
fn calls(book: &Book) -> Vec<(&str, Vec<&Arrival>)> {
    let (mut calls, mut places) = (Vec::<(&str, Vec<&Arrival>)>::new(), HashMap::new());
    for arrival in &book.arrivals {
        let place = *places.entry(&*arrival.call).or_insert(calls.len());
        if place == calls.len() {
            calls.push((&arrival.call, Vec::new()));
        }
        calls[place].1.push(arrival);
    }
    calls
}

fn check(book: &Book, rule: Rule) -> Result<(), Violation> {
    let broken = |what: String, concerns: &dyn Fn(&Arrival) -> bool| {
        let arrivals = book.arrivals.iter().filter(|arrival| concerns(arrival)).cloned().collect();
        Err(Violation { rule, what, arrivals })
    };
    match rule {
        Rule::AmplificationAtMost(most) => {
            let (arrivals, calls) = (book.arrivals.len(), calls(book).len());
            let allowed = arrivals as f64 <= most * calls as f64;
            if allowed || calls == 0 {
                return Ok(());
            }
            return broken(format!("{arrivals} arrivals of {calls} calls, at most {most} each"), &|_| true);
        }
        Rule::NothingLeftOpen => {
            let (exchanges, connections) =
                (book.arrivals.iter().filter(|arrival| arrival.open).count(), book.open_connections);
            if (exchanges, connections) == (0, 0) {
                return Ok(());
            }
            let what = format!("{exchanges} exchanges and {connections} connections are open");
            return broken(what, &|arrival| arrival.open);
        }
        _ => {}
    }
    for (call, arrivals) in calls(book) {
        let problem = match rule {
            Rule::NoUnsafeRepeat => unsafe_repeat(&arrivals),
            Rule::NoArrivalAfterDeadline(limit) => late_arrival(&arrivals, limit),
            Rule::BodiesIntact => changed_body(&arrivals),
            Rule::AtMostAttempts(most) => {
                (arrivals.len() > most).then(|| format!("arrived {} times, at most {most} are allowed", arrivals.len()))
            }
            Rule::AmplificationAtMost(_) | Rule::NothingLeftOpen => None,
        };
        if let Some(problem) = problem {
            return broken(format!("call {call:?} {problem}"), &|arrival| arrival.call == call);
        }
    }
    Ok(())
}

fn unsafe_repeat(arrivals: &[&Arrival]) -> Option<String> {
    let harmful = arrivals.iter().filter(|arrival| arrival.is_unsafe() && arrival.carried_out);
    let times = harmful.count();
    (times > 1).then(|| format!("was carried out {times} times, and may not be repeated"))
}

fn late_arrival(arrivals: &[&Arrival], limit: Duration) -> Option<String> {
    let first = arrivals.first()?;
    let limit = grpc_timeout(first).map_or(limit, |timeout| timeout.min(limit));
    let late = arrivals.iter().find(|arrival| arrival.at > first.at + limit)?;
    Some(format!("arrived {:?} after its first arrival, its deadline is {limit:?}", late.at - first.at))
}

/// Returns the value of a gRPC request's `grpc-timeout` header.
fn grpc_timeout(arrival: &Arrival) -> Option<Duration> {
    let value = arrival.headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    let number = digits.parse::<u32>().ok()?.into();
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

fn changed_body(arrivals: &[&Arrival]) -> Option<String> {
    let mut whole = arrivals.iter().filter(|arrival| arrival.whole);
    let first = whole.next()?;
    let other = whole.find(|arrival| arrival.body != first.body)?;
    Some(format!("changed its body from {} to {} bytes", first.body.len(), other.body.len()))
        .filter(|_| first.body.len() != other.body.len())
        .or_else(|| Some("changed the bytes of its body".to_owned()))
}
