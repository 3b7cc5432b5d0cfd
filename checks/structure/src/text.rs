//! The rules about lines: gRPC in generic code, doc openings, copies, lengths.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::{Rule, Violation};
use crate::rules::{
    EQUAL_LINES, FILE_LINES, GENERIC, GRPC_ALLOWED, LINE, OPENINGS, PAGE, TEST_NAME,
};
use crate::source::{Source, Sources};

/// Checks the lines of all sources.
pub(crate) fn violations(sources: &Sources) -> Vec<Violation> {
    let mut found = copies(sources);
    for source in sources.values() {
        let mut add = |rule, line, what| {
            found.push(Violation { rule, file: source.path.clone(), line, what });
        };
        grpc(source).for_each(|(line, text)| add(Rule::Grpc, line, format!("`{text}`")));
        for (line, text) in openings(source).filter(|(_, text)| is_bad_opening(text)) {
            add(Rule::Opening, line, format!("a doc comment opens with `{text}`"));
        }
        for (line, name) in test_names(source).filter(|(_, name)| name.len() > TEST_NAME) {
            add(Rule::TestName, line, format!("`{name}` has {} characters", name.len()));
        }
        let comments = source.lines().filter(|(_, line)| line.trim_start().starts_with("//"));
        for (line, length) in long_lines(comments) {
            add(Rule::LineLength, line, format!("{length} characters, at most {LINE}"));
        }
        let length = source.lines().count();
        if !source.is_test && length > FILE_LINES {
            add(Rule::FileLength, length, format!("{length} lines, at most {FILE_LINES}"));
        }
    }
    found
}

/// Finds the lines of generic modules that mention gRPC.
fn grpc(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let generic = source.path.starts_with(GENERIC)
        && !GRPC_ALLOWED.iter().any(|(allowed, _)| source.path.starts_with(allowed));
    let mentions = |line: &str| line.to_ascii_lowercase().contains("grpc");
    let lines = source.lines_outside_tests().filter(move |(_, line)| generic && mentions(line));
    lines.map(|(number, line)| (number, line.trim()))
}

/// Finds the first line of each doc comment.
pub(crate) fn openings(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let mut before = None;
    source.lines().filter_map(move |(number, line)| {
        let doc = |mark| Some((mark, line.trim_start().strip_prefix(mark)?.trim()));
        let Some((mark, text)) = doc("///").or_else(|| doc("//!")) else {
            before = None;
            return None;
        };
        let opens = before != Some(mark) && !text.starts_with('/');
        before = Some(mark);
        opens.then_some((number, text))
    })
}

pub(crate) fn is_bad_opening(text: &str) -> bool {
    let follows = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric());
    OPENINGS.iter().any(|opening| text.strip_prefix(opening).is_some_and(follows))
}

/// Checks the lines of the page that describes the code.
pub(crate) fn page(text: &str) -> Vec<Violation> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let violations = long_lines(lines).map(|(line, length)| Violation {
        rule: Rule::LineLength,
        file: PAGE.to_owned(),
        line,
        what: format!("{length} characters, at most {LINE}"),
    });
    violations.collect()
}

/// Finds the lines that are too long, with their lengths. Rows of tables and links cannot be broken.
fn long_lines<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
) -> impl Iterator<Item = (usize, usize)> {
    let breakable = |line: &str| {
        !line.trim_start_matches(['/', '!', ' ']).starts_with('|') && !line.contains("://")
    };
    let lengths = lines.map(move |(number, line)| (number, line.chars().count(), breakable(line)));
    lengths.filter_map(|(number, length, breakable)| {
        (breakable && length > LINE).then_some((number, length))
    })
}

/// Finds the names of test functions, those inside macro calls too.
fn test_names(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let mut test = false;
    source.lines().filter_map(move |(number, line)| {
        let line = line.trim();
        if line.starts_with("#[test]") || line.starts_with("#[") && line.contains("::test") {
            test = true;
            return None;
        }
        let rest = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
        let name = rest.split(['(', '<']).next()?;
        std::mem::take(&mut test).then_some((number, name))
    })
}

/// Finds runs of equal lines in two files outside tests; one violation for each run. Indentation does not count. Blank
/// lines count where both files have them; one that only one file has does not end a run.
fn copies(sources: &Sources) -> Vec<Violation> {
    let mut found = vec![];
    let mut covered = BTreeSet::new();
    for with_blank in [false, true] {
        let files = sources.values().map(|source| {
            let lines = source.lines_outside_tests().map(|(number, line)| (number, line.trim()));
            let counted = lines.filter(|(_, line)| with_blank || !line.is_empty());
            (source.path.as_str(), counted.collect::<Vec<_>>())
        });
        let files: Vec<_> = files.collect();
        let mut seen = BTreeMap::<Vec<&str>, (&str, usize)>::new();
        for (path, lines) in &files {
            for window in lines.windows(EQUAL_LINES) {
                let key: Vec<_> = window.iter().map(|(_, line)| *line).collect();
                let line = window[0].0;
                let (other, place) = *seen.entry(key).or_insert((path, line));
                if other == *path {
                    continue;
                }
                let known = window.iter().any(|(number, _)| covered.contains(&(*path, *number)));
                covered.extend(window.iter().map(|(number, _)| (*path, *number)));
                if !known {
                    let what = format!("{EQUAL_LINES} lines or more as in {other}:{place}");
                    found.push(Violation {
                        rule: Rule::Copy,
                        file: (*path).to_owned(),
                        line,
                        what,
                    });
                }
            }
        }
    }
    found
}
