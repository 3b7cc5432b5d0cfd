//! The fields of one table. Each is taken by its name and type, and the remaining fields are
//! reported as unknown.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use reattempt::error::ConfigError;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Problem, Problems};

/// A value that was read; durations in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) line: Option<usize>,
    pub(crate) path: String,
    pub(crate) key: &'static str,
    pub(crate) value: f64,
}

/// A table whose fields are being read.
pub(super) struct Fields<'a, 'i> {
    text: &'i str,
    path: String,
    left: BTreeMap<&'a str, &'a Spanned<DeValue<'i>>>,
    /// The lines of the fields taken so far, for later problems.
    lines: BTreeMap<&'a str, usize>,
    problems: &'a mut Problems,
    seen: &'a mut Vec<Seen>,
}

/// A limit, or the absence of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit<T> {
    To(T),
    Unlimited,
}

impl<'a, 'i> Fields<'a, 'i> {
    pub(super) fn new(
        text: &'i str,
        path: String,
        table: &'a DeTable<'i>,
        problems: &'a mut Problems,
        seen: &'a mut Vec<Seen>,
    ) -> Self {
        let left = table.iter().map(|(key, value)| (key.get_ref().as_ref(), value)).collect();
        Self { text, path, left, lines: BTreeMap::new(), problems, seen }
    }

    /// Reports the remaining fields.
    pub(super) fn finish(mut self) {
        while let Some((key, value)) = self.left.pop_first() {
            self.lines.insert(key, line(self.text, value.span()));
            self.problem(key, "is not known here");
        }
    }

    /// Reports a field that is not allowed here, if it is present.
    pub(super) fn forbid(&mut self, key: &'static str, reason: &str) {
        if self.take(key).is_some() {
            self.problem(key, reason);
        }
    }

    /// Reports a problem with a field.
    pub(super) fn problem(&mut self, key: &str, reason: impl Into<String>) {
        let line = self.lines.get(key).copied();
        let path = format!("{}.{key}", self.path);
        self.problems.push(Problem { line, path, reason: reason.into() });
    }

    /// Returns the value, or reports the error at the field that it names.
    pub(super) fn accepted<T>(&mut self, result: Result<T, ConfigError>) -> Option<T> {
        let report = |error: ConfigError| {
            self.problem(error.field(), format!("must be {}, but it is {}", error.allowed(), error.value()));
        };
        result.map_err(report).ok()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.left.contains_key(key)
    }

    pub(super) fn table(&mut self, key: &'static str) -> Option<Fields<'_, 'i>> {
        let DeValue::Table(_) = self.left.get(key)?.get_ref() else { return None };
        let DeValue::Table(table) = self.take(key)?.get_ref() else { return None };
        let path = format!("{}.{key}", self.path);
        Some(Fields::new(self.text, path, table, self.problems, self.seen))
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<&'a str> {
        let value = self.take(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some(text),
            other => self.refuse(key, "a text in quotes", &shown(other)),
        }
    }

    /// Takes one of these words.
    pub(super) fn word(&mut self, key: &'static str, words: &[&'static str]) -> Option<&'static str> {
        let text = self.text(key)?;
        match words.iter().find(|word| **word == text) {
            Some(word) => Some(word),
            None => self.refuse(key, &format!("one of {}", words.join(", ")), &format_args!("{text:?}")),
        }
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        match self.take(key)?.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            other => self.refuse(key, "true or false", &shown(other)),
        }
    }

    pub(super) fn number(&mut self, key: &'static str) -> Option<f64> {
        let value = self.take(key)?.get_ref();
        let number = match value {
            DeValue::Integer(number) => number.as_str().replace('_', "").parse().ok(),
            DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        let number = number.or_else(|| self.refuse(key, "a number", &shown(value)))?;
        Some(self.note(key, number))
    }

    /// Takes a number, and reports it unless it is legal. The library would clamp it.
    pub(super) fn number_within(
        &mut self,
        key: &'static str,
        wanted: &str,
        is_legal: impl Fn(f64) -> bool,
    ) -> Option<f64> {
        let number = self.number(key)?;
        if is_legal(number) { Some(number) } else { self.refuse(key, wanted, &number) }
    }

    /// Takes a number from `least` to `most`, and reports any other.
    pub(super) fn number_from(&mut self, key: &'static str, (least, most): (f64, f64)) -> Option<f64> {
        self.number_within(key, &format!("a number from {least} to {most}"), |number| (least..=most).contains(&number))
    }

    /// Takes a whole number, or "none" for no limit.
    pub(super) fn count(&mut self, key: &'static str) -> Option<Limit<u32>> {
        let value = self.take(key)?.get_ref();
        let count = match value {
            DeValue::String(text) if text == "none" => return Some(Limit::Unlimited),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        let wanted = "a whole number from 0 to 4294967295, or \"none\"";
        let count: u32 = count.or_else(|| self.refuse(key, wanted, &shown(value)))?;
        self.note(key, f64::from(count));
        Some(Limit::To(count))
    }

    pub(super) fn duration(&mut self, key: &'static str) -> Option<Duration> {
        match self.limit(key, "a duration like \"1500ms\" or \"5s\"")? {
            Limit::To(duration) => Some(duration),
            Limit::Unlimited => self.refuse(key, "a duration like \"1500ms\" or \"5s\"", &"\"none\""),
        }
    }

    /// Takes a duration, or "none" for no limit.
    pub(super) fn duration_or_none(&mut self, key: &'static str) -> Option<Limit<Duration>> {
        self.limit(key, "a duration like \"1500ms\" or \"5s\", or \"none\"")
    }

    pub(super) fn durations(&mut self, key: &'static str) -> Option<Vec<Duration>> {
        let value = self.take(key)?.get_ref();
        let duration = |value: &Spanned<DeValue<'i>>| match value.get_ref() {
            DeValue::String(text) => humantime::parse_duration(text).ok(),
            _ => None,
        };
        let list = match value {
            DeValue::Array(array) => array.iter().map(duration).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        list.or_else(|| self.refuse(key, "a list of durations like [\"100ms\", \"5s\"]", &shown(value)))
    }

    /// Takes a list of words, each of which `parse` accepts.
    pub(super) fn parsed<T>(&mut self, key: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> Vec<T> {
        let Some(value) = self.take(key).map(Spanned::get_ref) else { return Vec::new() };
        let word = |value: &Spanned<DeValue<'i>>| match value.get_ref() {
            DeValue::String(text) => parse(text).map_err(|reason| format!("has {text:?}: {reason}")),
            other => Err(format!("must be a list of words, but it has {}", shown(other))),
        };
        let list = match value {
            DeValue::Array(array) => array.iter().map(word).collect(),
            other => Err(format!("must be a list of words, but it is {}", shown(other))),
        };
        list.map_err(|reason| self.problem(key, reason)).unwrap_or_default()
    }

    fn limit(&mut self, key: &'static str, wanted: &str) -> Option<Limit<Duration>> {
        let value = self.take(key)?.get_ref();
        let duration = match value {
            DeValue::String(text) if text == "none" => return Some(Limit::Unlimited),
            DeValue::String(text) => humantime::parse_duration(text).ok(),
            _ => None,
        };
        let duration = duration.or_else(|| self.refuse(key, wanted, &shown(value)))?;
        self.note(key, duration.as_secs_f64());
        Some(Limit::To(duration))
    }

    fn take(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'i>>> {
        let value = self.left.remove(key)?;
        self.lines.insert(key, line(self.text, value.span()));
        Some(value)
    }

    fn refuse<T>(&mut self, key: &str, wanted: &str, value: &dyn fmt::Display) -> Option<T> {
        self.problem(key, format!("must be {wanted}, but it is {value}"));
        None
    }

    fn note(&mut self, key: &'static str, value: f64) -> f64 {
        let line = self.lines.get(key).copied();
        self.seen.push(Seen { line, path: format!("{}.{key}", self.path), key, value });
        value
    }
}

/// Returns the line, from 1, on which a piece of text begins.
pub(super) fn line(text: &str, span: Range<usize>) -> usize {
    1 + text.as_bytes().iter().take(span.start).filter(|byte| **byte == b'\n').count()
}

/// Formats a value for a sentence.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
