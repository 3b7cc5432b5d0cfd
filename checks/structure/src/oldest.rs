//! The comparison of README's table of the oldest supported versions with the manifest.

use crate::report::{Rule, Violation};
use crate::rules::{MANIFEST, OLDEST, README};

/// Returns the version that the manifest's first requirement of `name` begins with.
fn required<'a>(manifest: &'a str, name: &str) -> Option<&'a str> {
    let key = if name == "Rust" { "rust-version" } else { name };
    let value = manifest.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
    let version = value.strip_prefix("{ version = ").unwrap_or(value);
    version.strip_prefix('"')?.split_once('"').map(|(version, _)| version)
}

/// Finds the versions in README's table that differ from the manifest's, and the columns that are missing.
pub(crate) fn violations(readme: &str, manifest: &str) -> Vec<Violation> {
    let cells =
        |line: &str| -> Vec<String> { line.trim_matches('|').split('|').map(|it| it.trim().to_owned()).collect() };
    let lines: Vec<_> = readme.lines().collect();
    let head = lines.iter().position(|line| line.starts_with("| Rust |"));
    let columns = head.map(|at| cells(lines[at])).unwrap_or_default();
    let shown = head.and_then(|at| lines.get(at + 2)).map(|line| cells(line)).unwrap_or_default();
    let found = OLDEST.iter().filter_map(|name| {
        let cell = columns.iter().position(|column| column == name).and_then(|at| shown.get(at));
        let expected = required(manifest, name);
        let what = match (cell, expected) {
            (Some(cell), Some(expected)) if cell == expected => return None,
            (Some(cell), Some(expected)) => format!("{name}: `{cell}`, and `{expected}` in {MANIFEST}"),
            (None, _) => format!("the table of the oldest versions has no column `{name}`"),
            (_, None) => format!("{MANIFEST} has no version of `{name}`"),
        };
        let line = head.map_or(1, |at| at + 3);
        Some(Violation { rule: Rule::Oldest, file: README.to_owned(), line, what })
    });
    found.collect()
}
