//! The limits that serve the code: copies and long files. A comment with a reason turns each into a warning.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::{Rule, Violation};
use crate::rules::{EQUAL_LINES, FILE_LINES, REASON, REASON_WORDS};
use crate::source::{Source, Sources};

/// A broken limit, and its last line.
struct Broken {
    violation: Violation,
    last: usize,
}

/// A comment that gives the reason for a broken limit.
struct Reason<'a> {
    line: usize,
    rule: Option<Rule>,
    text: &'a str,
}

/// Finds the broken limits without a reason, the reasons without a broken limit, and a text for each of the others.
pub(crate) fn violations(sources: &Sources) -> (Vec<Violation>, Vec<String>) {
    let broken: Vec<_> = long_files(sources).chain(copies(sources)).collect();
    let (mut found, mut warnings) = (vec![], vec![]);
    for source in sources.values().filter(|source| !source.is_test) {
        let reasons: Vec<_> = reasons(source).collect();
        let mut used = BTreeSet::new();
        for Broken { violation, last } in broken.iter().filter(|it| it.violation.file == source.path) {
            let explains = |reason: &&Reason<'_>| {
                reason.rule == Some(violation.rule)
                    && (violation.rule == Rule::FileLength || (violation.line..=last + 1).contains(&(reason.line + 1)))
            };
            match reasons.iter().find(explains) {
                Some(reason) => {
                    used.insert(reason.line);
                    warnings.push(format!("{}: {}", violation.text(), reason.text));
                }
                None => found.push(violation.clone()),
            }
        }
        for reason in reasons.iter().filter(|reason| !used.contains(&reason.line)) {
            let (file, line) = (source.path.clone(), reason.line);
            let what = match reason.rule {
                Some(rule) => {
                    format!("no `{}` is broken here, or the reason is too short", rule.name())
                }
                None => "a reason for no rule that may be broken".to_owned(),
            };
            found.push(Violation { rule: Rule::Reason, file, line, what });
        }
    }
    (found, warnings)
}

/// Finds the comments with reasons. One that is too short is for no rule.
fn reasons(source: &Source) -> impl Iterator<Item = Reason<'_>> {
    source.lines_outside_tests().filter_map(|(line, text)| {
        let (name, text) = text.trim().strip_prefix(REASON)?.split_once("): ").unwrap_or_default();
        let rule = [Rule::FileLength, Rule::Copy].into_iter().find(|rule| rule.name() == name);
        let enough = text.split_whitespace().count() >= REASON_WORDS;
        Some(Reason { line, rule: rule.filter(|_| enough), text })
    })
}

fn long_files(sources: &Sources) -> impl Iterator<Item = Broken> {
    sources.values().filter(|source| !source.is_test).filter_map(|source| {
        let last = source.lines().count();
        let what = format!("{last} lines, at most {FILE_LINES}");
        let file = source.path.clone();
        let violation = Violation { rule: Rule::FileLength, file, line: last, what };
        (last > FILE_LINES).then_some(Broken { violation, last })
    })
}

/// Finds runs of equal lines in two files outside tests; one violation for each run. Indentation does not count, and
/// neither do comments with reasons. Blank lines count where both files have them; one that only one file has does not
/// end a run.
fn copies(sources: &Sources) -> Vec<Broken> {
    let mut found: Vec<Broken> = vec![];
    let mut covered = BTreeSet::new();
    for with_blank in [false, true] {
        let files = sources.values().map(|source| {
            let lines = source.lines_outside_tests().map(|(number, line)| (number, line.trim()));
            let counted = lines.filter(|(_, line)| (with_blank || !line.is_empty()) && !line.starts_with(REASON));
            (source.path.as_str(), counted.collect::<Vec<_>>())
        });
        let files: Vec<_> = files.collect();
        let mut seen = BTreeMap::<Vec<&str>, (&str, usize)>::new();
        for (path, lines) in &files {
            for window in lines.windows(EQUAL_LINES) {
                let key: Vec<_> = window.iter().map(|(_, line)| *line).collect();
                let (line, last) = (window[0].0, window[EQUAL_LINES - 1].0);
                let (other, place) = *seen.entry(key).or_insert((path, line));
                if other == *path {
                    continue;
                }
                let known = window.iter().any(|(number, _)| covered.contains(&(*path, *number)));
                covered.extend(window.iter().map(|(number, _)| (*path, *number)));
                if known {
                    let here = |run: &&mut Broken| {
                        run.violation.file == *path && (run.violation.line..=run.last).contains(&line)
                    };
                    if let Some(run) = found.iter_mut().find(here) {
                        run.last = run.last.max(last);
                    }
                    continue;
                }
                let what = format!("{EQUAL_LINES} lines or more as in {other}:{place}");
                let violation = Violation { rule: Rule::Copy, file: (*path).to_owned(), line, what };
                found.push(Broken { violation, last });
            }
        }
    }
    found
}
