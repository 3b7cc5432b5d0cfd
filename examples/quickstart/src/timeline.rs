//! The attempts of a few instructive calls, drawn on an axis of time.
//!
//! Input: the retry layer's reports. Output: a line for each attempt, with dots for the wait before
//! it and a bar that ends when the attempt ended.

use std::fmt::{self, Write};
use std::time::Duration;

use reattempt::report::{AttemptOutcome, AttemptReport};
use reattempt::schedule::FailureKind;
use reattempt::{Report, StopReason};

use crate::experiment::script::Kind;
use crate::experiment::sending::{End, Sent};

/// Columns of the axis.
const WIDTH: usize = 48;

/// A condition that selects a call to show.
type Condition = fn(&Sent, &Report) -> bool;

const CAPTIONS: [(&str, Condition); 8] = [
    ("the streamed body was kept while it was sent, and sent again", |sent, report| {
        sent.kind == Kind::Put && sent.is_ok() && failed_by(report, FailureKind::Network)
    }),
    ("refused at first, so nothing can have been carried out", |sent, report| {
        sent.kind == Kind::Post && sent.is_ok() && failed_by(report, FailureKind::Connect)
    }),
    ("too slow: the attempt was abandoned, and another one sent", |sent, report| {
        sent.is_ok() && failed_by(report, FailureKind::Timeout)
    }),
    ("the server asked for a delay of a second, and the layer waited", |sent, report| {
        sent.is_ok() && report.total_delay() >= Duration::from_secs(1)
    }),
    ("safe to repeat, because the server recognises the key", |sent, report| {
        sent.kind == Kind::PostWithKey && sent.is_ok() && failed_by(report, FailureKind::Server)
    }),
    ("not repeated: without a key, it might be carried out twice", |sent, report| {
        sent.kind == Kind::Post && report.stop_reason() == StopReason::NotRepeatable
    }),
    ("not repeated: the caller already has a part of the answer", |sent, _| sent.end == End::BrokenOff),
    ("always fails: the layer stops, and returns the last real answer", |_, report| {
        report.stop_reason() == StopReason::AttemptsExhausted
    }),
];

/// Draws the first call that fits each description, each call once.
pub(crate) fn draw(out: &mut impl Write, sent: &[Sent]) -> fmt::Result {
    let mut drawn = Vec::new();
    for (caption, condition) in CAPTIONS {
        let mut fitting = sent.iter().filter_map(|sent| Some((sent, sent.report.as_ref()?)));
        let found = fitting.find(|(sent, report)| !drawn.contains(&sent.id) && condition(sent, report));
        if let Some((sent, report)) = found {
            writeln!(out, "Call {}, {}: {caption}", sent.id, sent.kind)?;
            draw_call(out, sent, report)?;
            drawn.push(sent.id);
        }
    }
    Ok(())
}

fn failed_by(report: &Report, kind: FailureKind) -> bool {
    report
        .attempts()
        .iter()
        .any(|attempt| matches!(&attempt.outcome, AttemptOutcome::Failed { failure, .. } if failure.kind() == kind))
}

fn draw_call(out: &mut impl Write, sent: &Sent, report: &Report) -> fmt::Result {
    let axis = Axis { length: report.attempts().last().map_or(Duration::ZERO, |last| last.ended) };
    let mut previous: Option<&AttemptReport> = None;
    for attempt in report.attempts() {
        let waited_from = previous.map_or(Duration::ZERO, |previous| previous.ended);
        let delay = previous.and_then(|previous| previous.delay).unwrap_or_default();
        let bar = axis.bar(waited_from, waited_from.saturating_add(delay), attempt.ended);
        write!(out, "  {} |{bar}| {}", attempt.number, outcome(sent, attempt))?;
        match attempt.delay {
            Some(delay) => writeln!(out, ", next in {} ms", delay.as_millis())?,
            None => writeln!(out)?,
        }
        previous = Some(attempt);
    }
    let end = format!("{} ms", axis.length.as_millis());
    let why = match sent.end {
        End::BrokenOff => "the response broke off".to_owned(),
        _ => report.stop_reason().to_string(),
    };
    writeln!(out, "     0{end:>width$}   {why}\n", width = WIDTH - 1)
}

/// The time of one call, from its start.
struct Axis {
    length: Duration,
}

impl Axis {
    /// Draws dots from the first of these moments to the second, and a bar of at least one column
    /// to the third.
    fn bar(&self, waited_from: Duration, began: Duration, ended: Duration) -> String {
        let from = self.column(began).min(WIDTH - 1);
        let to = self.column(ended).max(from + 1);
        let waited_from = self.column(waited_from).min(from);
        let (space, dots, bar) = (waited_from, from - waited_from, to - from);
        let line = format!("{:space$}{:.<dots$}{:=<bar$}", "", "", "");
        format!("{line:WIDTH$}")
    }

    /// Returns the column of a moment, from 0 to `WIDTH`.
    fn column(&self, moment: Duration) -> usize {
        let width = u128::try_from(WIDTH).unwrap_or_default();
        let column = moment.as_micros() * width / self.length.as_micros().max(1);
        usize::try_from(column).map_or(WIDTH, |column| column.min(WIDTH))
    }
}

/// Describes the end of an attempt in a few words.
fn outcome(sent: &Sent, attempt: &AttemptReport) -> String {
    match &attempt.outcome {
        AttemptOutcome::Failed { failure, .. } => match (failure.code(), failure.kind()) {
            (Some(status), _) => status.to_string(),
            (None, FailureKind::Connect) => "connection refused".to_owned(),
            (None, FailureKind::Network) => "connection reset".to_owned(),
            (None, FailureKind::Timeout) => "timed out".to_owned(),
            (None, kind) => format!("{kind:?}"),
        },
        outcome => match sent.end {
            End::Answered(status) => status.as_u16().to_string(),
            End::BrokenOff => "200, then reset".to_owned(),
            _ => outcome.to_string(),
        },
    }
}
