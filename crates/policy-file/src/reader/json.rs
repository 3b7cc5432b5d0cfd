//! The values of a JSON document.
//!
//! A value remains text until it is read, one level at a time, so numbers keep their digits, and repeated keys are
//! found. The place of a value follows from the address of its text.

use std::fmt;

use serde_core::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Problem;
use super::node::{Lines, Node, Table, Value};

/// The most levels of a document. The deepest field is at level 4.
const MOST_LEVELS: usize = 16;

/// Returns the fields of a document, and its errors.
pub(super) fn parse(text: &str) -> (Table, Vec<Problem>) {
    let mut reader = Reader { text, lines: Lines::of(text), problems: Vec::new() };
    let raw = match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => raw,
        Err(error) => {
            let problem = Problem::new(Some(error.line()).filter(|line| *line > 0), "", shortened(&error));
            return (Table::new(), vec![problem]);
        }
    };
    let node = reader.node(raw, "", 0);
    match node.value {
        Value::Table(table) => (table, reader.problems),
        other => {
            let reason = format!("the document must be an object, but it is {other}");
            reader.problems.push(Problem::new(Some(node.line), "", reason));
            (Table::new(), reader.problems)
        }
    }
}

/// Returns the error without its place.
fn shortened(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

struct Reader<'t> {
    text: &'t str,
    lines: Lines,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn line(&self, raw: &RawValue) -> usize {
        // The value is a part of the text.
        self.lines.line((raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize))
    }

    fn node(&mut self, raw: &RawValue, path: &str, level: usize) -> Node {
        let (line, text) = (self.line(raw), raw.get());
        if level >= MOST_LEVELS && text.starts_with(['[', '{']) {
            self.problems.push(Problem::new(
                Some(line),
                path,
                format!("is nested more than {MOST_LEVELS} levels deep"),
            ));
            return Node { line, value: Value::Null };
        }
        let value = match text.as_bytes().first() {
            Some(b'"') => Value::Text(serde_json::from_str(text).unwrap_or_default()),
            Some(b't' | b'f') => Value::Flag(text == "true"),
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
                Value::List(items.into_iter().map(|item| self.node(item, path, level + 1)).collect())
            }
            Some(b'{') => Value::Table(self.table(text, path, level + 1)),
            Some(b'-' | b'0'..=b'9') if text.contains(['.', 'e', 'E']) => Value::Number(text.to_owned()),
            Some(b'-' | b'0'..=b'9') => Value::Whole(text.to_owned()),
            _ => Value::Null,
        };
        Node { line, value }
    }

    fn table(&mut self, text: &str, path: &str, level: usize) -> Table {
        let mut table = Table::new();
        for (key, raw) in members(text) {
            let line = self.line(raw);
            let own = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            if table.iter().any(|(name, _)| *name == key) {
                self.problems.push(Problem::new(Some(line), own, "is listed twice"));
                continue;
            }
            let node = self.node(raw, &own, level);
            table.push((key, node));
        }
        table
    }
}

/// Returns the members of an object in order, including repeated ones.
fn members(text: &str) -> Vec<(String, &RawValue)> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_map(Members).unwrap_or_default()
}

struct Members;

impl<'d> Visitor<'d> for Members {
    type Value = Vec<(String, &'d RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        std::iter::from_fn(|| map.next_entry().transpose()).collect()
    }
}
