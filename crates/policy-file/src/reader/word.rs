//! The one-line form of a policy, such as `stripe`, `stripe:max_attempts=5`, `exponential:base=50ms,jitter=equal` or
//! `list:100ms,1s,5s`.

use reattempt::profile;

use super::field::did_you_mean;
use super::node::{Node, Table, Value};
use super::{Problem, Problems, profile_named, profile_names, schedule};

/// The name of the table.
pub(super) const TABLE: &str = "policy";

/// Returns the table equivalent to a one-line form.
pub(super) fn table(word: &str) -> Result<Table, String> {
    let (name, _) = split(word);
    let key = if schedule::KINDS.contains(&name) {
        "schedule"
    } else if profile_named(name).is_some() {
        "profile"
    } else {
        return Err(format!(
            "{name:?} is no kind of schedule ({}) and no profile ({}){}",
            schedule::KINDS.join(", "),
            profile_names(),
            did_you_mean(name, schedule::KINDS.into_iter().chain(profile::all().map(|(name, _)| name)))
        ));
    };
    table_of(key, word).map_err(super::in_a_word)
}

/// Returns the name at the start of a one-line form, and the settings after it.
pub(super) fn split(word: &str) -> (&str, &str) {
    word.split_once(':').unwrap_or((word, ""))
}

/// Returns the table for a one-line form, in which the name is the value of `key`.
pub(super) fn table_of(key: &str, word: &str) -> Result<Table, Problems> {
    let (name, rest) = split(word);
    let (mut table, mut delays, mut budget) = (Table::new(), Vec::new(), Table::new());
    let mut problems = Problems::new();
    let mut add = |table: &mut Table, key: &str, value: &str| {
        if table.iter().any(|(known, _)| known == key) {
            problems.push(Problem::new(None, "", "duplicate key"));
        }
        table.push((key.to_owned(), literal(value)));
    };
    table.push((key.to_owned(), text(name)));
    for part in rest.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some((key, value)) => match key.strip_prefix("budget.") {
                Some(key) => add(&mut budget, key, value),
                None => add(&mut table, key, value),
            },
            None => delays.push(text(part)),
        }
    }
    if !delays.is_empty() {
        table.push(("delays".to_owned(), node(Value::List(delays))));
    }
    if !budget.is_empty() {
        table.push(("budget".to_owned(), node(Value::Table(budget))));
    }
    if problems.is_empty() { Ok(table) } else { Err(problems) }
}

/// Parses numbers and booleans. Everything else becomes text.
fn literal(value: &str) -> Node {
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() => {
            let number = number.to_string();
            node(if number.contains('.') { Value::Number(number) } else { Value::Whole(number) })
        }
        _ if matches!(value, "true" | "false") => node(Value::Flag(value == "true")),
        _ => text(value),
    }
}

fn text(text: &str) -> Node {
    node(Value::Text(text.to_owned()))
}

/// Creates a node on line 1, because the form has only one line.
fn node(value: Value) -> Node {
    Node { line: 1, value }
}
