//! The fields of a table. Known fields are taken one by one, and the remaining ones are reported as unknown.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use reattempt::error::ConfigError;

use super::field::{Field, Kind, did_you_mean};
use super::node::{Node, Table, Value, plain, quoted};
use super::{Problem, Problems};

/// A number or duration that was read from the document.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Seen {
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// The path in the document, such as `orders.cap`.
    pub path: String,
    /// The name of the field.
    pub key: &'static str,
    /// The value. Durations are in seconds.
    pub value: f64,
}

/// A table whose fields are being read.
pub(super) struct Fields<'a> {
    path: String,
    left: BTreeMap<&'a str, &'a Node>,
    /// The lines of the fields taken so far, for problems found later.
    lines: BTreeMap<&'a str, usize>,
    problems: &'a mut Problems,
    /// The number of problems in earlier tables.
    before: usize,
    seen: &'a mut Vec<Seen>,
}

/// A limit, or the absence of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit<T> {
    To(T),
    Unlimited,
}

/// The top-level fields of a document. In TOML, a line at the end of the file belongs to the last section.
const FIELDS_AT_THE_TOP: [&str; 2] = ["never_retry", "default"];

/// Returns the end of an error message, which lists the names that are known. The text is empty if there are none.
fn known_names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut listed: Vec<_> = Vec::new();
    for name in names {
        if !listed.contains(&name) {
            listed.push(name);
        }
    }
    match listed.is_empty() {
        true => String::new(),
        false => format!("; known: {}", listed.join(", ")),
    }
}

const DURATION: &str = "a duration like \"1500ms\" or \"5s\"";

impl<'a> Fields<'a> {
    pub(super) fn new(path: String, table: &'a Table, problems: &'a mut Problems, seen: &'a mut Vec<Seen>) -> Self {
        let left = table.iter().map(|(key, value)| (&**key, value)).collect();
        let before = problems.len();
        Self { path, left, lines: BTreeMap::new(), problems, before, seen }
    }

    /// Reports the remaining fields. `known` lists the fields that are allowed here.
    pub(super) fn finish(mut self, known: &[&[&'static Field]]) {
        while let Some((key, node)) = self.left.pop_first() {
            self.lines.insert(key, node.line);
            let names = known.iter().flat_map(|fields| fields.iter()).map(|field| field.name);
            let hint = match FIELDS_AT_THE_TOP.contains(&key) {
                true => "; it must be above the first section of the file".to_owned(),
                false => match did_you_mean(key, names.clone()) {
                    none if none.is_empty() => known_names(names),
                    similar => similar,
                },
            };
            self.problem(key, format!("is not known here{hint}"));
        }
    }

    /// Reports a field that is not allowed here, if it is present.
    pub(super) fn forbid(&mut self, field: &'static Field, reason: &str) {
        if self.take(field).is_some() {
            self.problem(field.name, reason);
        }
    }

    /// Reports a problem with a field.
    pub(super) fn problem(&mut self, key: &str, reason: impl Into<String>) {
        let line = self.lines.get(key).copied();
        let key = plain(key);
        let path = if self.path.is_empty() { key } else { format!("{}.{key}", self.path) };
        self.problems.push(Problem::new(line, path, reason));
    }

    /// Returns the value, or reports the error for the field that the error names.
    pub(super) fn accepted<T>(&mut self, result: Result<T, ConfigError>) -> Option<T> {
        let report = |error: ConfigError| {
            self.problem(error.field(), format!("must be {}, but it is {}", error.allowed(), error.value()));
        };
        result.map_err(report).ok()
    }

    pub(super) fn has(&self, field: &'static Field) -> bool {
        self.left.contains_key(field.name)
    }

    /// Returns `true` if no problem was found in this table so far.
    pub(super) fn is_right(&self) -> bool {
        self.problems.len() == self.before
    }

    /// Returns the line of a field that was taken.
    pub(super) fn line(&self, field: &'static Field) -> Option<usize> {
        self.lines.get(field.name).copied()
    }

    pub(super) fn table(&mut self, field: &'static Field) -> Option<Fields<'_>> {
        let Value::Table(table) = &self.left.get(field.name)?.value else { return None };
        self.take(field);
        let path = format!("{}.{}", self.path, field.name);
        Some(Fields::new(path, table, self.problems, self.seen))
    }

    pub(super) fn text(&mut self, field: &'static Field) -> Option<&'a str> {
        let value = self.take(field)?;
        match value {
            Value::Text(text) => Some(text),
            other => self.refuse(field, "a text in quotes", other),
        }
    }

    /// Takes a word that the field allows.
    pub(super) fn word(&mut self, field: &'static Field) -> Option<&'static str> {
        let (Kind::Word(words) | Kind::WordOrTable(words, _)) = field.kind else { return None };
        let text = self.text(field)?;
        match words.iter().find(|word| **word == text) {
            Some(word) => Some(word),
            None => {
                let value = format!("{}{}", quoted(text), did_you_mean(text, words.iter().copied()));
                self.refuse(field, &format!("one of {}", words.join(", ")), &value)
            }
        }
    }

    pub(super) fn flag(&mut self, field: &'static Field) -> Option<bool> {
        match self.take(field)? {
            Value::Flag(flag) => Some(*flag),
            other => self.refuse(field, "true or false", other),
        }
    }

    /// Takes a number, and reports it if it is outside the field's range, where the library would clamp it.
    pub(super) fn number(&mut self, field: &'static Field) -> Option<f64> {
        let value = self.take(field)?;
        let number = match value {
            Value::Whole(number) | Value::Number(number) => number.parse().ok(),
            _ => None,
        };
        let number = number.or_else(|| self.refuse(field, "a number", value))?;
        let number = self.note(field, number);
        match &field.kind {
            Kind::Number(range) if !range.contains(number) => self.refuse(field, &range.wanted(), &number),
            _ => Some(number),
        }
    }

    /// Takes a whole number, or "none" for no limit.
    pub(super) fn count(&mut self, field: &'static Field) -> Option<Limit<u32>> {
        let value = self.take(field)?;
        let count = match value {
            Value::Text(text) if text == "none" => return Some(Limit::Unlimited),
            Value::Whole(number) => number.trim_start_matches('+').parse().ok(),
            _ => None,
        };
        let wanted = "a whole number from 0 to 4294967295, or \"none\"";
        let count: u32 = count.or_else(|| self.refuse(field, wanted, value))?;
        self.note(field, f64::from(count));
        if matches!(field.kind, Kind::CountFromOne) && count == 0 {
            return self.refuse(field, "at least 1", &count);
        }
        Some(Limit::To(count))
    }

    pub(super) fn duration(&mut self, field: &'static Field) -> Option<Duration> {
        match self.limit(field, DURATION)? {
            Limit::To(duration) => Some(duration),
            Limit::Unlimited => self.refuse(field, DURATION, &"\"none\""),
        }
    }

    /// Takes a duration, or "none" for no limit.
    pub(super) fn duration_or_none(&mut self, field: &'static Field) -> Option<Limit<Duration>> {
        self.limit(field, &format!("{DURATION}, or \"none\""))
    }

    /// Takes a length in bytes.
    pub(super) fn bytes(&mut self, field: &'static Field) -> Option<usize> {
        let value = self.take(field)?;
        let bytes = match value {
            Value::Whole(number) => number.trim_start_matches('+').parse().ok(),
            Value::Text(text) => length(text),
            _ => None,
        };
        bytes.or_else(|| self.refuse(field, "a length like \"64 KiB\", or a whole number of bytes", value))
    }

    pub(super) fn durations(&mut self, field: &'static Field) -> Option<Vec<Duration>> {
        let value = self.take(field)?;
        let duration = |node: &Node| match &node.value {
            Value::Text(text) => humantime::parse_duration(text).ok(),
            _ => None,
        };
        let list = match value {
            Value::List(list) => list.iter().map(duration).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        list.or_else(|| self.refuse(field, "a list of durations like [\"100ms\", \"5s\"]", value))
    }

    /// Takes a list of words and parses each with `parse`.
    pub(super) fn parsed<T>(&mut self, field: &'static Field, parse: impl Fn(&str) -> Result<T, String>) -> Vec<T> {
        let Some(value) = self.take(field) else { return Vec::new() };
        let word = |node: &Node| match &node.value {
            Value::Text(text) => parse(text).map_err(|reason| format!("has {}: {reason}", quoted(text))),
            other => Err(format!("must be a list of words, but it has {other}")),
        };
        let list = match value {
            Value::List(list) => list.iter().map(word).collect(),
            Value::Text(text) if matches!(field.kind, Kind::TextOrTexts) => parse(text)
                .map(|value| vec![value])
                .map_err(|reason| format!("must be a word or a list of words: {reason}")),
            other => Err(format!("must be a list of words, but it is {other}")),
        };
        list.map_err(|reason| self.problem(field.name, reason)).unwrap_or_default()
    }

    fn limit(&mut self, field: &'static Field, wanted: &str) -> Option<Limit<Duration>> {
        let value = self.take(field)?;
        let duration = match value {
            Value::Text(text) if text == "none" => return Some(Limit::Unlimited),
            Value::Text(text) => humantime::parse_duration(text).ok(),
            _ => None,
        };
        let duration = duration.or_else(|| self.refuse(field, wanted, value))?;
        self.note(field, duration.as_secs_f64());
        Some(Limit::To(duration))
    }

    fn take(&mut self, field: &'static Field) -> Option<&'a Value> {
        let (key, node) = self.left.remove_entry(field.name)?;
        self.lines.insert(key, node.line);
        Some(&node.value)
    }

    fn refuse<T>(&mut self, field: &'static Field, wanted: &str, value: &dyn fmt::Display) -> Option<T> {
        self.problem(field.name, format!("must be {wanted}, but it is {value}"));
        None
    }

    fn note(&mut self, field: &'static Field, value: f64) -> f64 {
        let line = self.line(field);
        self.seen.push(Seen { line, path: format!("{}.{}", self.path, field.name), key: field.name, value });
        value
    }
}

/// Parses a whole number with a unit of bytes.
fn length(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim_start() {
        "B" => 1,
        "kB" => 1000,
        "KiB" => 1024,
        "MB" => 1_000_000,
        "MiB" => 1024 * 1024,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}
