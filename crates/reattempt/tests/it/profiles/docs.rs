//! Tests of each constructor against the promises in its own docs.

use std::time::Duration;

use reattempt::profile;
use reattempt::profile::Profile;
use reattempt::schedule::SharedSchedule;

use crate::profiles::support::{bounds, ms, secs};

const SOURCE: &str = include_str!("../../../../engine/src/profile.rs");

/// Returns the rows of the table with this header in a constructor's docs, without header and rule.
fn table(constructor: &str, header: &str) -> Option<Vec<Vec<String>>> {
    let (before, _) = SOURCE.split_once(&format!("\npub fn {constructor}(")).unwrap();
    let docs: Vec<_> = before.lines().rev().take_while(|line| line.starts_with("///")).collect();
    let lines = docs.into_iter().rev().map(|line| line.trim_start_matches("///").trim());
    let mut rows = lines.skip_while(|line| !line.starts_with(header)).peekable();
    rows.peek()?;
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    Some(rows.map(cells).collect())
}

/// Parses a duration in the tables' notation; `None` for no limit.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = match text {
        "none" | "no limit" => return None,
        text => text.split_once(' ').unwrap(),
    };
    let number: u64 = number.parse().unwrap();
    Some(match unit {
        "ms" => ms(number),
        "s" => secs(number),
        "min" => secs(60 * number),
        unit => panic!("{unit}"),
    })
}

fn attempts(text: &str) -> u32 {
    if text == "no limit" { u32::MAX } else { text.parse().unwrap() }
}

/// Returns the bounds of a delay in nanoseconds, from its interval and the jitter named in the table.
fn jittered(interval: f64, jitter: &str) -> (f64, f64) {
    match jitter {
        "none" => (interval, interval),
        "full" => (0.0, interval),
        "± 50 %" => (0.5 * interval, 1.5 * interval),
        jitter => panic!("{jitter}"),
    }
}

fn nanos(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}

fn named(name: &str) -> Profile<SharedSchedule> {
    profile::all().into_iter().find(|(other, _)| *other == name).unwrap().1
}

/// Checks delays and limits against a row of base, growth, cap, jitter, attempts and elapsed time.
fn check(name: &str, row: &[String], interval: impl Fn(i32) -> f64) {
    let profile = named(name);
    let cap = duration(&row[2]).map_or(f64::INFINITY, nanos);
    let bounds = bounds(&profile.schedule, 20);
    assert_eq!(bounds.len(), 20, "{name}");
    for (number, (low, high)) in (0..).zip(bounds) {
        let (lowest, highest) = jittered(interval(number).min(cap), &row[3]);
        // To the nearest nanosecond, and to a float's precision for a year.
        let near = |drawn: Duration, bound: f64| (nanos(drawn) - bound).abs() <= 1.0 + bound * 1e-15;
        assert!(near(low, lowest) && near(high, highest), "{name}, retry {number}: {low:?} {high:?}");
    }
    assert_eq!(profile.max_attempts, attempts(&row[4]), "{name}");
    assert_eq!(profile.max_elapsed, duration(&row[5]), "{name}");
}

#[test]
fn exponential_profiles_match_their_tables() {
    let mut checked = 0;
    for (name, _) in profile::all() {
        let Some(rows) = table(name, "| base | factor |") else { continue };
        let [row] = rows.as_slice() else { panic!("one row for {name}") };
        let (base, factor) = (nanos(duration(&row[0]).unwrap()), row[1].parse::<f64>().unwrap());
        check(name, row, |number| base * factor.powi(number));
        checked += 1;
    }
    assert_eq!(checked, 13, "all but two linear ones, and those of Google, Twitter, GitHub and OpenAI");
}

#[test]
fn the_linear_one_does_what_its_table_says() {
    let rows = table("go_backoff_linear", "| base | step |").unwrap();
    let (base, step) = (duration(&rows[0][0]).unwrap(), duration(&rows[0][1]).unwrap());
    check("go_backoff_linear", &rows[0], |number| nanos(base) + nanos(step) * f64::from(number));
}

#[test]
fn what_is_written_out_retry_by_retry_is_so() {
    for (name, retries) in [("cenkalti", 9), ("retryablehttp_linear", 4), ("google", 5), ("openai", 6)] {
        let rows = table(name, "| retry |").unwrap();
        assert_eq!(rows.len(), retries);
        let seen = bounds(&named(name).schedule, u32::try_from(retries).unwrap());
        assert_eq!(seen.len(), retries, "{name}");
        for (row, (low, high)) in rows.iter().zip(seen) {
            let written = |cell: &str| Duration::try_from_secs_f64(cell.parse().unwrap()).unwrap();
            let (lowest, highest) = (written(&row[row.len() - 2]), written(&row[row.len() - 1]));
            // Some end in half a nanosecond.
            assert!(low.abs_diff(lowest) <= Duration::from_nanos(1), "{name}: {low:?}");
            assert!(high.abs_diff(highest) <= Duration::from_nanos(1), "{name}: {high:?}");
        }
    }
    let rows = table("retryablehttp_linear", "| shortest |").unwrap();
    let profile = profile::retryablehttp_linear();
    assert_eq!(profile.max_attempts, attempts(&rows[0][4]));
    assert_eq!(profile.max_elapsed, duration(&rows[0][5]));
}

#[test]
fn the_module_lists_each_of_them_once() {
    let listed: Vec<_> = SOURCE
        .lines()
        .filter_map(|line| line.strip_prefix("//! | [`")?.split_once("`]").map(|(name, _)| name))
        .collect();
    assert_eq!(listed, profile::all().map(|(name, _)| name));
}
