//! The values of a JSON document.
//!
//! Values remain text until they are read, one level at a time. Numbers therefore keep their digits, and repeated keys
//! are found. A value's position in the document is computed from the address of its text.

use std::fmt;

use serde_core::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Problem;
use super::node::{Lines, Node, Table, Value};

/// The maximum depth of a document. The deepest field is at level 4.
const MOST_LEVELS: usize = 16;

/// Returns the fields of a document, and its errors.
pub(super) fn parse(text: &str) -> (Table, Vec<Problem>) {
    let mut reader = Reader { text, lines: Lines::of(text), problems: Vec::new() };
    let raw = match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => raw,
        Err(error) => {
            let problem = Problem::new(Some(error.line()).filter(|line| *line > 0), "", shortened(&error));
            // The part before the error may turn retries off.
            return (reader.table(text, "", 0, 1), vec![problem]);
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

/// Returns the error without its position.
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
        // The value is a slice of the text, so its address determines its position.
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
            Some(b'"') => Value::Text(self.read(text, path, line)),
            Some(b't' | b'f') => Value::Flag(text == "true"),
            Some(b'[') => {
                let items: Vec<&RawValue> = self.read(text, path, line);
                Value::List(items.into_iter().map(|item| self.node(item, path, level + 1)).collect())
            }
            Some(b'{') => Value::Table(self.table(text, path, level + 1, line)),
            Some(b'-' | b'0'..=b'9') if text.contains(['.', 'e', 'E']) => Value::Number(text.to_owned()),
            Some(b'-' | b'0'..=b'9') => Value::Whole(text.to_owned()),
            _ => Value::Null,
        };
        Node { line, value }
    }

    /// Returns a string or a list, and reports one that cannot be read, such as half of a surrogate pair.
    fn read<'d, T: Deserialize<'d> + Default>(&mut self, text: &'d str, path: &str, line: usize) -> T {
        serde_json::from_str(text).unwrap_or_else(|error| {
            self.problems.push(Problem::new(Some(line), path, format!("cannot be read: {}", shortened(&error))));
            T::default()
        })
    }

    fn table(&mut self, text: &str, path: &str, level: usize, line: usize) -> Table {
        let (mut table, mut members) = (Table::new(), Vec::new());
        if let Err(error) = serde_json::Deserializer::from_str(text).deserialize_map(Members(&mut members)) {
            let reason = format!("has a name that cannot be read: {}", shortened(&error));
            self.problems.push(Problem::new(Some(line), path, reason));
        }
        for (key, raw) in members {
            let line = self.line(raw);
            let own = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            if table.iter().any(|(name, _)| *name == key) {
                self.problems.push(Problem::new(Some(line), &*own, "is listed twice"));
            }
            let node = self.node(raw, &own, level);
            table.push((key, node));
        }
        table
    }
}

/// The members of an object in order, including repeated ones, up to the first unreadable one.
struct Members<'m, 'd>(&'m mut Vec<(String, &'d RawValue)>);

impl<'d> Visitor<'d> for Members<'_, 'd> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(member) = map.next_entry()? {
            self.0.push(member);
        }
        Ok(())
    }
}
