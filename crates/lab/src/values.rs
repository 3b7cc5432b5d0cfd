//! Values of options: durations, rates and shares, with their ranges.

use std::time::Duration;

/// The longest duration, because curves have a value for each second.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Parses a duration.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(length) if length <= LONGEST => Ok(length),
        Ok(_) => Err("must be at most 24 h".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses a rate.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let legal = |number| (0.0001..=1e6).contains(&number);
    number(text, legal, "must be from 0.0001 to 1000000")
}

/// Parses the requests per second that an API allows.
pub(crate) fn allowed(text: &str) -> Result<f64, String> {
    number(text, |number| (10.0..=1e6).contains(&number), "must be from 10 to 1000000 requests per second")
}

/// Parses a number from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    number(text, |number| (0.0..=1.0).contains(&number), "must be from 0 to 1")
}

/// Parses the load as a share of the server's capacity.
pub(crate) fn load(text: &str) -> Result<f64, String> {
    number(text, |number| (0.0001..=2.0).contains(&number), "must be from 0.0001 to 2")
}

/// Parses the cost of a refusal.
pub(crate) fn cost(text: &str) -> Result<f64, String> {
    number(text, |number| (0.0..=100.0).contains(&number), "must be from 0 to 100")
}

fn number(text: &str, legal: fn(f64) -> bool, rule: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if legal(number) => Ok(number),
        Ok(_) => Err(rule.to_owned()),
        Err(_) => Err("not a number".to_owned()),
    }
}
