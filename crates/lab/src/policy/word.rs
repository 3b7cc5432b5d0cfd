//! A policy in a word, such as `stripe`, `stripe:max_attempts=5`,
//! `exponential:base=50ms,jitter=equal` or `list:100ms,1s,5s`.

use super::{profile_named, profile_names, schedule};

/// The name of the table.
pub(super) const TABLE: &str = "policy";

/// Returns the table, as TOML, that a word stands for.
pub(super) fn table(word: &str) -> Result<String, String> {
    let (name, _) = split(word);
    let key = if schedule::KINDS.contains(&name) {
        "schedule"
    } else if profile_named(name).is_some() {
        "profile"
    } else {
        return Err(format!(
            "{name:?} is no kind of schedule ({}) and no profile ({})",
            schedule::KINDS.join(", "),
            profile_names()
        ));
    };
    Ok(table_of(key, word))
}

/// Returns the name of a word, and its changes.
pub(super) fn split(word: &str) -> (&str, &str) {
    word.split_once(':').unwrap_or((word, ""))
}

/// Returns the table of a word, whose name is the value of `key`.
pub(super) fn table_of(key: &str, word: &str) -> String {
    let (name, rest) = split(word);
    let mut table = format!("[{TABLE}]\n{key} = {}\n", quoted(name));
    let (mut delays, mut budget) = (Vec::new(), Vec::new());
    for part in rest.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some((key, value)) => match key.strip_prefix("budget.") {
                Some(key) => budget.push(format!("{key} = {}", literal(value))),
                None => table += &format!("{key} = {}\n", literal(value)),
            },
            None => delays.push(quoted(part)),
        }
    }
    if !delays.is_empty() {
        table += &format!("delays = [{}]\n", delays.join(", "));
    }
    if !budget.is_empty() {
        table += &format!("[{TABLE}.budget]\n{}\n", budget.join("\n"));
    }
    table
}

/// Returns numbers, true and false unchanged, and everything else as a string.
fn literal(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() => number.to_string(),
        _ if matches!(value, "true" | "false") => value.to_owned(),
        _ => quoted(value),
    }
}

fn quoted(text: &str) -> String {
    // JSON strings are valid TOML strings.
    serde_json::Value::from(text).to_string()
}
