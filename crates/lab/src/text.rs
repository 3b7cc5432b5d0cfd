//! The texts of commands: values of options, and the output as tables, durations and JSON.

use std::io::Write;
use std::time::Duration;

use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use crate::error::LabError;

/// Prints one JSON document on a line.
pub(crate) fn json(out: &mut dyn Write, document: &impl Serialize) -> Result<(), LabError> {
    serde_json::to_writer(&mut *out, document)?;
    writeln!(out)?;
    Ok(())
}

/// Creates a table without lines; all columns but the first are aligned to the right.
pub(crate) fn table<'a>(header: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Prints a table.
pub(crate) fn print_table(out: &mut dyn Write, table: &Table) -> Result<(), LabError> {
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Formats a duration with three digits: "0 s", "63.2 ms", "1.27 s", "15.0 min".
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (value, unit) = match seconds {
        0.0 => return "0 s".to_owned(),
        s if s < 0.000_999_5 => (s * 1e6, "µs"),
        s if s < 0.999_5 => (s * 1e3, "ms"),
        s if s < 599.5 => (s, "s"),
        s if s < 3_597.0 => (s / 60.0, "min"),
        s => (s / 3600.0, "h"),
    };
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// Formats a duration for a sentence, without trailing zeros: "60 s", "2.5 s".
pub(crate) fn brief(length: Duration) -> String {
    let text = duration(length);
    match text.split_once(' ') {
        Some((value, unit)) if value.contains('.') => {
            format!("{} {unit}", value.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Converts seconds to a duration; values out of range become the longest duration.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Formats a number with up to three decimals: "50", "0.125".
pub(crate) fn plain(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a share as a percentage: "100 %", "12.5 %", "< 0.1 %".
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent > 0.0 && percent < 0.1 => "< 0.1 %".to_owned(),
        percent if percent > 99.9 && percent < 100.0 - 1e-9 => "> 99.9 %".to_owned(),
        percent if (percent - percent.round()).abs() < 1e-9 => format!("{percent:.0} %"),
        percent => format!("{percent:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_no_zeros_behind_the_point() {
        let texts = [0.0, 0.1, 1.0, 2.5, 60.0, 1.27].map(|length| brief(seconds(length)));
        assert_eq!(texts, ["0 s", "100 ms", "1 s", "2.5 s", "60 s", "1.27 s"]);
    }

    #[test]
    fn percentage_shows_all_or_nothing() {
        let texts = [0.0, 0.0004, 0.125, 0.5, 0.9996, 1.0].map(percent);
        assert_eq!(texts, ["0 %", "< 0.1 %", "12.5 %", "50 %", "> 99.9 %", "100 %"]);
    }

    #[test]
    fn durations_have_three_digits() {
        let texts = [0.0, 0.0000123, 0.0632, 0.2, 0.9996, 1.274, 30.0, 599.0, 600.0, 3600.0, 86_400.0]
            .map(|seconds| duration(Duration::from_secs_f64(seconds)));
        assert_eq!(
            texts,
            [
                "0 s", "12.3 µs", "63.2 ms", "200 ms", "1.00 s", "1.27 s", "30.0 s", "599 s", "10.0 min", "1.00 h",
                "24.0 h"
            ]
        );
    }
}
