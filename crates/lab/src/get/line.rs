//! The time line of a call's attempts, in a terminal and in a picture.

use std::io::Write;
use std::time::Duration;

use reattempt::report::AttemptOutcome;
use serde::Serialize;

use super::Ended;
use crate::error::LabError;
use crate::picture::{Axis, Figure, Panel, Series, Shape};
use crate::text;

/// The width of the line in a terminal.
const WIDTH: usize = 48;

/// One attempt; times in seconds from the start of the call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Attempt {
    pub(super) number: u32,
    pub(super) began: f64,
    pub(super) ended: f64,
    /// The delay until the next attempt; `None` for the last.
    pub(super) delay: Option<f64>,
    pub(super) outcome: String,
    pub(super) succeeded: bool,
}

/// Returns the attempts of a report, or the only attempt of a call without a report.
pub(super) fn attempts(ended: &Ended) -> Vec<Attempt> {
    let Some(report) = &ended.report else {
        return vec![Attempt {
            number: 1,
            began: 0.0,
            ended: ended.head.as_secs_f64(),
            delay: None,
            outcome: outcome(&AttemptOutcome::Succeeded, ended),
            succeeded: true,
        }];
    };
    let mut began = Duration::ZERO;
    let attempts = report.attempts().iter().map(|attempt| {
        let delay = attempt.delay;
        let line = Attempt {
            number: attempt.number,
            began: began.as_secs_f64(),
            ended: attempt.ended.as_secs_f64(),
            delay: delay.map(|delay| delay.as_secs_f64()),
            outcome: outcome(&attempt.outcome, ended),
            succeeded: attempt.outcome == AttemptOutcome::Succeeded,
        };
        began = attempt.ended.saturating_add(delay.unwrap_or_default());
        line
    });
    attempts.collect()
}

/// Formats an outcome. For the attempt that ended the call, the answer has the full status.
fn outcome(outcome: &AttemptOutcome, ended: &Ended) -> String {
    match (outcome, &ended.answer) {
        (AttemptOutcome::Succeeded, Ok((status, _)))
        | (AttemptOutcome::PermanentFailure { error: None, .. }, Ok((status, _))) => status.to_string(),
        _ => outcome.to_string(),
    }
}

pub(super) fn print(attempts: &[Attempt], out: &mut dyn Write) -> Result<(), LabError> {
    let styles = clap::builder::Styles::styled();
    let (good, bad) = (styles.get_valid(), styles.get_error());
    let end = attempts.last().map_or(0.0, |last| last.ended);
    for attempt in attempts {
        let (before, during, after) = cells(attempt, end);
        let style = if attempt.succeeded { good } else { bad };
        let rest = WIDTH.saturating_sub(before + during + after);
        writeln!(
            out,
            "{:>3}  {}{style}{}{style:#}{}{}  {:>8}  {}",
            attempt.number,
            " ".repeat(before),
            "█".repeat(during),
            "·".repeat(after),
            " ".repeat(rest),
            text::duration(text::seconds(attempt.ended - attempt.began)),
            attempt.outcome,
        )?;
    }
    if let [_, .., _] = attempts {
        let end = text::brief(text::seconds(end));
        writeln!(out, "     0{end:>width$}", width = WIDTH - 1)?;
    }
    Ok(())
}

/// Returns the number of cells before an attempt, in it (at least one), and in the delay after it.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and what it gives is bounded by the width"
)]
fn cells(attempt: &Attempt, end: f64) -> (usize, usize, usize) {
    let at = |seconds: f64| {
        let share = if end > 0.0 { seconds / end } else { 1.0 };
        ((share * WIDTH as f64).round() as usize).min(WIDTH)
    };
    let before = at(attempt.began).min(WIDTH - 1);
    let during = at(attempt.ended).saturating_sub(before).max(1);
    let next = attempt.delay.map_or(0, |delay| at(attempt.ended + delay));
    (before, during, next.saturating_sub(before + during))
}

/// Draws a bar for each attempt, the first at the bottom, and a thin bar for each wait.
pub(super) fn figure(url: &str, attempts: &[Attempt]) -> Figure {
    let bar = |attempt: &Attempt, from: f64, to: f64, half: f64| {
        let row = f64::from(attempt.number);
        (from, to, row - half, row + half)
    };
    let ended = |succeeded: bool| {
        let of_kind = attempts.iter().filter(|attempt| attempt.succeeded == succeeded);
        of_kind.map(|attempt| bar(attempt, attempt.began, attempt.ended, 0.3)).collect()
    };
    let waits =
        attempts.iter().filter_map(|attempt| Some(bar(attempt, attempt.ended, attempt.ended + attempt.delay?, 0.04)));
    let series = [("waiting", 7, waits.collect()), ("failed", 1, ended(false)), ("answered", 2, ended(true))];
    let series = series.into_iter().filter(|(_, _, bars): &(_, _, Vec<_>)| !bars.is_empty());
    let series = series.map(|(name, color, bars)| Series { name: name.to_owned(), color, shape: Shape::Bars(bars) });
    let rows = attempts.last().map_or(1.0, |last| f64::from(last.number));
    let panel = Panel {
        title: String::new(),
        x: Axis::from_zero("time, s"),
        y: Axis::whole("attempt", 0.0, rows + 1.0),
        series: series.collect(),
    };
    Figure { title: format!("GET {url}"), panels: vec![panel], columns: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(number: u32, began: f64, ended: f64, delay: Option<f64>) -> Attempt {
        Attempt { number, began, ended, delay, outcome: "503".to_owned(), succeeded: delay.is_none() }
    }

    #[test]
    fn line_is_to_scale_and_has_every_attempt() {
        let attempts =
            [attempt(1, 0.0, 0.000_1, Some(0.5)), attempt(2, 0.5, 0.75, Some(0.25)), attempt(3, 1.0, 1.0, None)];
        let cells: Vec<_> = attempts.iter().map(|attempt| cells(attempt, 1.0)).collect();
        assert_eq!(cells, [(0, 1, 23), (24, 12, 12), (47, 1, 0)]);
        let mut text = Vec::new();
        print(&attempts, &mut text).unwrap();
        let text = anstream::adapter::strip_bytes(&text).into_vec();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("  1  █·······················  "), "{text}");
        assert!(lines[1].ends_with("············    250 ms  503"), "{text}");
        assert!(lines[3].starts_with("     0") && lines[3].ends_with(" 1 s"), "{text}");
    }

    #[test]
    fn a_call_that_took_no_time_has_a_line_too() {
        let mut text = Vec::new();
        print(&[attempt(1, 0.0, 0.0, None)], &mut text).unwrap();
        assert!(String::from_utf8(text).unwrap().contains('█'));
    }
}
