//! The values of a TOML document.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::Problem;
use super::node::{Lines, Node, Table, Value};

/// Returns the readable fields of a document, and its errors.
pub(super) fn parse(text: &str) -> (Table, Vec<Problem>) {
    let lines = Lines::of(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    let errors = errors.iter().map(|error| {
        let line = error.span().map(|span| lines.line(span.start));
        Problem::new(line, "", error.message())
    });
    // The parser reports the same error for each level of nesting.
    let mut errors: Vec<_> = errors.collect();
    errors.dedup();
    (table(&lines, document.get_ref()), errors)
}

fn table(lines: &Lines, fields: &DeTable<'_>) -> Table {
    fields.iter().map(|(key, value)| (key.get_ref().clone().into_owned(), node(lines, value))).collect()
}

fn list(lines: &Lines, values: &DeArray<'_>) -> Vec<Node> {
    values.iter().map(|value| node(lines, value)).collect()
}

fn node(lines: &Lines, value: &Spanned<DeValue<'_>>) -> Node {
    let line = lines.line(value.span().start);
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Value::Whole(number.as_str().replace('_', "")),
        DeValue::Integer(number) => Value::Number(number.to_string()),
        DeValue::Float(number) => Value::Number(number.as_str().replace('_', "")),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(values) => Value::List(list(lines, values)),
        DeValue::Table(fields) => Value::Table(table(lines, fields)),
    };
    Node { line, value }
}
