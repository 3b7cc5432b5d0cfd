//! Delays and counts as text.

use crate::plan::Course;
use crate::text;

/// The most delays that are listed.
const NAMED: usize = 5;

/// Formats the first delays of a course: "0 s to 100 ms, 0 s to 200 ms".
pub(super) fn delays(course: &Course) -> String {
    let time = |seconds: f64| text::brief(text::seconds(seconds));
    let range = |(from, to): (f64, f64)| match from == to {
        true => time(from),
        false => format!("{} to {}", time(from), time(to)),
    };
    let bands = course.bands();
    let mut words: Vec<_> = bands.iter().copied().take(NAMED).map(range).collect();
    if bands.len() > NAMED {
        words.push("…".to_owned());
    }
    words.join(", ")
}

/// Formats a number of retries that may be infinite: "at most 2 times (3 attempts)".
pub(super) fn times(retries: f64) -> String {
    match retries {
        f64::INFINITY => "any number of times".to_owned(),
        1.0 => "at most once (2 attempts)".to_owned(),
        retries => format!("at most {retries} times ({} attempts)", retries + 1.0),
    }
}

/// Joins words: "a, b and c".
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
