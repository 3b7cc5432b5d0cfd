//! The table of rules, src/rules.md, against the tests of the workspace: no rule is left out, every test
//! that it names is there, and every test that has rules in its name stands beside each of them.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The sections of the rules, and how many each has.
const SECTIONS: [(&str, u32); 17] = [
    ("CALL", 8),
    ("COM", 7),
    ("BUF", 12),
    ("OUT", 4),
    ("TR", 9),
    ("RET", 6),
    ("BK", 7),
    ("PB", 12),
    ("RPH", 5),
    ("THR", 11),
    ("HG", 15),
    ("DL", 9),
    ("SC", 24),
    ("ST", 5),
    ("OBS", 6),
    ("RI", 4),
    ("TN", 12),
];

/// A section and a number in it.
type Rule = (&'static str, u32);

/// A file, from the root of the workspace, and a function in it.
type Test = (String, String);

/// What the table says of a rule.
struct Row {
    statement: String,
    /// Tests, or why there are none.
    last: String,
    tests: BTreeSet<Test>,
}

fn section(name: &str) -> Option<&'static str> {
    SECTIONS.iter().map(|(section, _)| *section).find(|section| *section == name)
}

/// Reads the table. What is in the last column begins with a file's name, by which the tests after it are
/// to be found.
fn table() -> BTreeMap<Rule, Row> {
    let mut rows = BTreeMap::new();
    for line in include_str!("../src/rules.md").lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, id, statement, last, _] = *cells else { continue };
        let Some((name, number)) = id.split_once('-') else { continue };
        let Some(section) = section(name) else { continue };
        let (mut tests, mut file) = (BTreeSet::new(), None);
        for quoted in last.split('`').skip(1).step_by(2) {
            match (quoted.ends_with(".rs"), file) {
                (true, _) => file = Some(quoted),
                (false, Some(file)) => {
                    tests.insert((file.to_owned(), quoted.to_owned()));
                }
                (false, None) => {}
            }
        }
        let row = Row { statement: statement.to_owned(), last: last.to_owned(), tests };
        let former = rows.insert((section, number.parse().unwrap()), row);
        assert!(former.is_none(), "{id} is there twice");
    }
    rows
}

/// All files of Rust below a directory.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.extension() {
            _ if path.is_dir() => sources(&path, found),
            Some(extension) if extension == "rs" => found.push(path),
            _ => {}
        }
    }
}

/// All tests of the workspace: functions after an attribute that makes them one.
fn tests() -> BTreeSet<Test> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for directory in ["crates", "tests"] {
        sources(&root.join(directory), &mut files);
    }
    let mut tests = BTreeSet::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        let mut is_test = false;
        for line in fs::read_to_string(&file).unwrap().lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some(function) = line.trim_start_matches("async ").strip_prefix("fn ") {
                let ends = |letter: char| letter != '_' && !letter.is_ascii_alphanumeric();
                if let (true, Some(function)) = (is_test, function.split(ends).next()) {
                    tests.insert((name.clone(), function.to_owned()));
                }
                is_test = false;
            }
        }
    }
    tests
}

/// The rules that the name of a test begins with: `tr_2_tr_4_a_refused_stream` has two.
fn rules_of(name: &str) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut words = name.split('_');
    while let (Some(word), Some(number)) = (words.next(), words.next()) {
        let Ok(number) = number.parse() else { break };
        match section(&word.to_ascii_uppercase()) {
            Some(section) => rules.push((section, number)),
            // The number of a trap may stand among them.
            None if word == "trap" => {}
            None => break,
        }
    }
    rules
}

#[test]
fn the_table_has_every_rule_once_and_no_other() {
    let expected: BTreeSet<Rule> = SECTIONS
        .into_iter()
        .flat_map(|(section, most)| (1..=most).map(move |number| (section, number)))
        .collect();
    let listed: BTreeSet<Rule> = table().into_keys().collect();
    let missing: Vec<_> = expected.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&expected).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing {missing:?}, unknown {unknown:?}");
    assert_eq!(listed.len(), 156);
}

#[test]
fn every_rule_says_what_it_asks_for_and_has_tests_or_a_reason() {
    for (rule, row) in table() {
        assert!(row.statement.ends_with('.'), "{rule:?} has no statement");
        assert!(!row.tests.is_empty() || row.last.ends_with('.'), "{rule:?} has neither");
    }
}

#[test]
fn every_test_of_the_table_exists() {
    let tests = tests();
    assert!(tests.len() > 500, "only {} tests were found", tests.len());
    let named: BTreeSet<Test> = table().into_values().flat_map(|row| row.tests).collect();
    assert!(named.len() > 200, "only {} tests are named", named.len());
    let gone: Vec<_> = named.difference(&tests).collect();
    assert!(gone.is_empty(), "no such tests: {gone:#?}");
}

#[test]
fn every_test_with_rules_in_its_name_is_in_the_table_beside_each_of_them() {
    let table = table();
    let mut forgotten = Vec::new();
    for test in tests() {
        for rule in rules_of(&test.1) {
            if !table.get(&rule).is_some_and(|row| row.tests.contains(&test)) {
                forgotten.push(format!("{}-{}: `{}` `{}`", rule.0, rule.1, test.0, test.1));
            }
        }
    }
    assert!(forgotten.is_empty(), "not in the table: {forgotten:#?}");
}

#[test]
fn the_rules_of_a_name_are_its_first_words() {
    assert_eq!(rules_of("tr_2_tr_4_a_refused_stream"), [("TR", 2), ("TR", 4)]);
    assert_eq!(rules_of("hg_6_trap_29_pb_3_stop"), [("HG", 6), ("PB", 3)]);
    assert_eq!(rules_of("st_1_in_an_answer_of_sc_2_frames"), [("ST", 1)]);
    for name in ["an_answer", "tr_is_no_rule", "trap_29_stop", "against_60_ms", "", "tr_2x"] {
        assert_eq!(rules_of(name), [], "{name}");
    }
}
