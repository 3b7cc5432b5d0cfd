//! The tests behind the rules of gRPC, of evidence and of a shared budget, and behind the traps, kept up to date in the
//! docs.
//!
//! ```text
//! citations [--update]
//! ```
//!
//! A test cites what it proves in one comment line above it, and in this form only:
//!
//! ```text
//! // HG-4, HG-7, trap 27
//! #[test]
//! fn …
//! ```
//!
//! `docs/RULES.md`, `docs/EVIDENCE.md` and `docs/FLEET.md` have a table row for each rule, `docs/TRAPS.md` a heading
//! for each trap. This program writes the tests that cite them there (`--update`), or fails where they differ. A rule
//! or trap without a test keeps the reason that is written in its place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

const RULES: &str = "docs/RULES.md";
const TRAPS: &str = "docs/TRAPS.md";
const FLEET: &str = "docs/FLEET.md";
const EVIDENCE: &str = "docs/EVIDENCE.md";
const REMEDY: &str = "cargo run -p reattempt-structure --bin citations -- --update";

/// The section of cases from the field, of which only some have tests.
const FIELD: &str = "field";

/// The tests that cite an id, by file, both sorted.
type Tests = BTreeMap<String, BTreeSet<String>>;

fn main() -> ExitCode {
    let update = env::args().any(|argument| argument == "--update");
    match run(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.."), update) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path, update: bool) -> Result<(), String> {
    let mut pages = vec![];
    for path in [RULES, TRAPS, FLEET, EVIDENCE] {
        pages.push((path, read(&root.join(path))?));
    }
    let ids: BTreeSet<String> = pages.iter().flat_map(|(_, text)| text.lines()).filter_map(id_of).collect();
    let mut cited = BTreeMap::new();
    for file in sources(root)? {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string().replace('\\', "/");
        for (id, test) in citations(&read(&file)?, &ids).map_err(|text| format!("{name}:{text}"))? {
            cited.entry(id).or_insert_with(Tests::new).entry(name.clone()).or_default().insert(test);
        }
    }
    let mut errors = gaps(&ids);
    for (path, old) in pages {
        let new = written(&old, &cited, &mut errors);
        if update && new != old {
            fs::write(root.join(path), new).map_err(|error| format!("{path}: {error}"))?;
        } else if new != old {
            let differs = old.lines().zip(new.lines()).position(|(old, new)| old != new);
            let line = differs.map_or(0, |line| line + 1);
            errors.push(format!("{path}:{line}: the tests have changed; run `{REMEDY}`"));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the Rust files in which tests are looked for, sorted.
fn sources(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut folders = vec![root.join("crates"), root.join("tests"), root.join("checks/mistakes")];
    let mut files = vec![];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the id that a line of the docs is about: a table row of a rule, or the heading of a trap.
fn id_of(line: &str) -> Option<String> {
    if let Some(heading) = line.strip_prefix("### ") {
        let number = heading.split(' ').next()?;
        return number.parse::<u32>().is_ok().then(|| format!("trap {number}"));
    }
    let id = line.strip_prefix("| ")?.split(" |").next()?;
    numbered(id).map(|_| id.to_owned())
}

/// Returns the section and the number of an id: `HG-4`, `trap 07`.
fn numbered(id: &str) -> Option<(&str, u32)> {
    let (section, number) = id.split_once(['-', ' '])?;
    let upper = !section.is_empty() && section.bytes().all(|byte| byte.is_ascii_uppercase());
    (upper || ["trap", FIELD].contains(&section)).then_some((section, number.parse().ok()?))
}

/// Returns an error for each number that is missing between the ids of a section.
fn gaps(ids: &BTreeSet<String>) -> Vec<String> {
    let mut sections = BTreeMap::<&str, BTreeSet<u32>>::new();
    for (section, number) in ids.iter().filter_map(|id| numbered(id)).filter(|(section, _)| *section != FIELD) {
        sections.entry(section).or_default().insert(number);
    }
    let missing = |(section, numbers): (&str, BTreeSet<u32>)| {
        (1..numbers.last().copied().unwrap_or(0))
            .filter(|number| !numbers.contains(number))
            .map(|number| format!("{section} {number} is missing in the docs"))
            .collect::<Vec<_>>()
    };
    sections.into_iter().flat_map(missing).collect()
}

/// Returns each id with a test that cites it.
fn citations(source: &str, ids: &BTreeSet<String>) -> Result<Vec<(String, String)>, String> {
    let (mut found, mut comments, mut is_test, mut in_attribute) = (vec![], vec![], false, false);
    for (number, line) in source.lines().map(str::trim).enumerate() {
        if in_attribute || line.starts_with("#[") {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            in_attribute = !line.ends_with(']');
        } else if let Some(comment) = line.strip_prefix("// ") {
            comments.push((number + 1, comment));
        } else if line.strip_prefix("/// ").is_some_and(mentions_trap) {
            comments.push((number + 1, line));
        } else if !line.starts_with("//") {
            let function = line.trim_start_matches("async ").strip_prefix("fn ");
            let name = function.and_then(|function| function.split(['(', '<']).next());
            for (number, comment) in comments.drain(..).filter(|_| is_test) {
                let cited = cited_in(comment, ids).map_err(|text| format!("{number}: {text}"))?;
                found.extend(cited.into_iter().filter_map(|id| Some((id, name?.to_owned()))));
            }
            is_test = false;
        }
    }
    Ok(found)
}

/// Returns the ids that a comment cites: none unless it begins with one.
fn cited_in(comment: &str, ids: &BTreeSet<String>) -> Result<Vec<String>, String> {
    let sections: BTreeSet<&str> = ids.iter().filter_map(|id| numbered(id)).map(|id| id.0).collect();
    let begins = comment.split_once(['-', ' ']).is_some_and(|(section, number)| {
        sections.contains(section) && number.starts_with(|first: char| first.is_ascii_digit())
    });
    if !begins && !mentions_trap(comment) {
        return Ok(vec![]);
    }
    match comment.split(", ").find(|id| !ids.contains(*id)) {
        Some(id) => Err(format!("`{id}` is no rule or trap; the form is `// HG-4, trap 07`")),
        None => Ok(comment.split(", ").map(str::to_owned).collect()),
    }
}

/// Returns `true` if a comment names a trap by its number, in whatever form.
fn mentions_trap(comment: &str) -> bool {
    let mut words = comment.split_whitespace().skip_while(|word| {
        let word = word.trim_matches(|other: char| !other.is_alphanumeric());
        !["trap", "traps"].contains(&word.to_lowercase().as_str())
    });
    words.nth(1).is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
}

/// Returns the docs with the tests written into them.
fn written(docs: &str, cited: &BTreeMap<String, Tests>, errors: &mut Vec<String>) -> String {
    let (mut text, mut id) = (String::new(), String::new());
    for line in docs.lines() {
        id = id_of(line).unwrap_or(id);
        let row = line.strip_suffix(" |").filter(|_| line.starts_with("| ") && id_of(line).is_some());
        let place = match (row, line.strip_prefix("Tests: ")) {
            (Some(row), _) => row.rsplit_once("| ").map(|(head, old)| (head, "| ", old, " |")),
            (None, Some(old)) => Some(("", "Tests: ", old, "")),
            (None, None) => None,
        };
        match (place, cited.get(&id)) {
            (Some((head, before, _, after)), Some(tests)) => {
                let names = if row.is_some() { by_name(tests) } else { by_file(tests) };
                text.extend([head, before, &names, after]);
            }
            (Some((_, _, old, _)), None) => {
                if old.starts_with('[') || !old.ends_with('.') {
                    errors.push(format!("{id} has no test: cite it, or write the reason in the docs"));
                }
                text.push_str(line);
            }
            (None, _) => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// Writes the files with the names of their tests.
fn by_name(tests: &Tests) -> String {
    let entries = tests.iter().map(|(file, names)| {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        format!("{}: {}", link(file), names.join(", "))
    });
    entries.collect::<Vec<_>>().join("; ")
}

/// Writes the files with the number of their tests.
fn by_file(tests: &Tests) -> String {
    let entries = tests.iter().map(|(file, names)| format!("{} ({})", link(file), names.len()));
    entries.collect::<Vec<_>>().join(", ")
}

fn link(file: &str) -> String {
    format!("[{}](../{file})", file.trim_start_matches("crates/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCS: &str = "| HG-1 | First. | – |\n| HG-2 | Second. | A remark. |\n### 01 A trap\n\nTests: –\n";

    fn ids() -> BTreeSet<String> {
        DOCS.lines().filter_map(id_of).collect()
    }

    #[test]
    fn citation_above_a_test_is_found() {
        let source = "/// Doc.\n// HG-1, trap 01\n#[tokio::test(\n    a\n)]\nasync fn one() {\n// HG-2\nlet a;\n}\n";
        let found = citations(source, &ids()).unwrap_or_default();
        let one = |id: &str| (id.to_owned(), "one".to_owned());
        assert_eq!(found, [one("HG-1"), one("trap 01")]);
    }

    #[test]
    fn unknown_id_is_an_error() {
        for comment in ["HG-3", "HG-1 and more", "trap 1", "trap 01: text", "HG-1, SPEC", "Trap 01", "see (trap 01)."] {
            assert!(cited_in(comment, &ids()).is_err(), "{comment}");
        }
        for comment in ["UTF-8 is text", "trapped", "a trap of 1", "HG is a section", "see HG-1"] {
            assert_eq!(cited_in(comment, &ids()), Ok(vec![]), "{comment}");
        }
    }

    #[test]
    fn tests_are_written_into_the_docs() {
        let tests = Tests::from([("crates/a/b.rs".to_owned(), BTreeSet::from(["one".to_owned()]))]);
        let cited = BTreeMap::from([("HG-1".to_owned(), tests.clone()), ("trap 01".to_owned(), tests)]);
        let mut errors = vec![];
        let text = written(DOCS, &cited, &mut errors);
        assert!(
            text.starts_with("| HG-1 | First. | [a/b.rs](../crates/a/b.rs): `one` |\n| HG-2 | Second. | A remark. |\n")
        );
        assert!(text.ends_with("Tests: [a/b.rs](../crates/a/b.rs) (1)\n"));
        assert_eq!(written(&text, &cited, &mut errors), text);
        assert_eq!(errors, Vec::<String>::new());
    }

    #[test]
    fn lost_test_and_lost_rule_are_errors() {
        let mut errors = vec![];
        let lost = "| HG-1 | First. | [a/b.rs](../crates/a/b.rs): `one` |\n";
        assert_eq!(written(lost, &BTreeMap::new(), &mut errors), lost);
        assert_eq!(errors.len(), 1);
        assert_eq!(gaps(&BTreeSet::from(["HG-3".to_owned(), "HG-1".to_owned()])).len(), 1);
    }
}
