//! Violations, and the list of known ones, which only becomes shorter.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A rule for the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    Cycle,
    Layer,
    Grpc,
    Opening,
    Copy,
    TestName,
    FileLength,
    LineLength,
    Cost,
    Oldest,
    Shell,
    Reason,
    Wall,
    Cell,
    TypeName,
    Observer,
}

impl Rule {
    const ALL: [Rule; 16] = [
        Rule::Cycle,
        Rule::Layer,
        Rule::Grpc,
        Rule::Opening,
        Rule::Copy,
        Rule::TestName,
        Rule::FileLength,
        Rule::LineLength,
        Rule::Cost,
        Rule::Oldest,
        Rule::Shell,
        Rule::Reason,
        Rule::Wall,
        Rule::Cell,
        Rule::TypeName,
        Rule::Observer,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Rule::Cycle => "cycle",
            Rule::Layer => "layer",
            Rule::Grpc => "grpc",
            Rule::Opening => "opening",
            Rule::Copy => "copy",
            Rule::TestName => "test-name",
            Rule::FileLength => "file-length",
            Rule::LineLength => "line-length",
            Rule::Cost => "cost",
            Rule::Oldest => "oldest",
            Rule::Shell => "shell",
            Rule::Reason => "reason",
            Rule::Wall => "wall",
            Rule::Cell => "cell",
            Rule::TypeName => "type-name",
            Rule::Observer => "observer",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Rule::Cycle => "move what both need into a module below them",
            Rule::Layer => "move what both need into a module below, such as `call`",
            Rule::Grpc => "move it to the crate's `grpc`; generic code knows a trait or a value",
            Rule::Opening => "open with a noun phrase (type) or a third-person verb (function)",
            Rule::Copy => {
                "move the shared lines into one function, or give a reason in the copy: \
                 `// structure(copy): …`"
            }
            Rule::TestName => "name it subject_condition_result; the rest is a doc line above it",
            Rule::LineLength => "break the line; only tables and links may be longer",
            Rule::Oldest => "the table in README.md has the versions of Cargo.toml, to the letter",
            Rule::Cost => "copy the row from benches/RESULTS.md, which `benches/compare` writes",
            Rule::FileLength => {
                "find the second thing in the file and give it one of its own; if there is none, \
                 write the reason: `// structure(file-length): …`"
            }
            Rule::Shell => {
                "make it one mechanism with a value for each file, or list the files with the \
                 reason in checks/structure/src/rules.rs"
            }
            Rule::Wall => "give the layer a function that does more, or make functions methods of one type",
            Rule::TypeName => "give it the word that a reader would search for, such as `BreakerNote`",
            Rule::Observer => {
                "call it inside `user_code::notify`, or list the file with the reason in checks/structure/src/rules.rs"
            }
            Rule::Cell => "make the cell a paragraph below the table",
            Rule::Reason => "write `// structure(file-length): …` or `// structure(copy): …` where that rule is broken",
        }
    }
}

/// A place where a rule is broken.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) rule: Rule,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl Violation {
    /// Returns the place, the rule and what breaks it.
    pub(crate) fn text(&self) -> String {
        format!("{}:{}: {}: {}", self.file, self.line, self.rule.name(), self.what)
    }
}

/// The number of known violations of a rule in a file.
pub(crate) type Known = BTreeMap<(Rule, String), usize>;

/// The file of known violations.
pub(crate) const KNOWN: &str = "checks/structure/known.txt";

/// The command that writes the lists.
pub(crate) const UPDATE: &str = "run `cargo run -p reattempt-structure -- --update`";

/// Reads the list of known violations: a rule, a file and a number on each line.
pub(crate) fn parse_known(text: &str) -> Result<Known, String> {
    let mut known = Known::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let entry = || {
            let mut words = line.split_whitespace();
            let name = words.next()?;
            let rule = Rule::ALL.into_iter().find(|rule| rule.name() == name)?;
            Some(((rule, words.next()?.to_owned()), words.next()?.parse().ok()?))
        };
        let (key, count) = entry().ok_or_else(|| format!("{KNOWN}:{}: not a rule, file and number", index + 1))?;
        known.insert(key, count);
    }
    Ok(known)
}

/// Counts the violations of each rule in each file.
pub(crate) fn count(violations: &[Violation]) -> Known {
    let mut known = Known::new();
    for violation in violations {
        *known.entry((violation.rule, violation.file.clone())).or_default() += 1;
    }
    known
}

/// Returns a text for each rule and file whose violations differ from the known ones.
pub(crate) fn compare(violations: &[Violation], known: &Known) -> Vec<String> {
    let found = count(violations);
    let mut texts = vec![];
    for key in known.keys().chain(found.keys().filter(|key| !known.contains_key(key))) {
        let (rule, file) = key;
        let (now, listed) = (found.get(key).unwrap_or(&0), known.get(key).unwrap_or(&0));
        if now > listed {
            let mut text = String::new();
            for violation in violations.iter().filter(|it| it.rule == *rule && it.file == *file) {
                let _ = writeln!(text, "{}", violation.text());
            }
            if *listed > 0 {
                let _ = writeln!(text, "  {listed} of these are known, {} too many", now - listed);
            }
            let _ = write!(text, "  remedy: {}", rule.remedy());
            texts.push(text);
        } else if now < listed {
            texts.push(format!("{file}: {}: {now} now, {listed} in {KNOWN}\n  remedy: {UPDATE}", rule.name()));
        }
    }
    texts
}

/// Returns the list that replaces `known`. A rule may be broken in other files than before, as
/// after a move, but not more often: otherwise its part of the list stays.
pub(crate) fn shorter(violations: &[Violation], known: &Known) -> Known {
    let found = count(violations);
    let total =
        |of: &Known, rule| -> usize { of.iter().filter(|((it, _), _)| *it == rule).map(|(_, count)| count).sum() };
    let mut list = Known::new();
    for rule in Rule::ALL {
        let grows = total(&found, rule) > total(known, rule);
        let kept = if grows { known } else { &found };
        list.extend(kept.iter().filter(|((it, _), _)| *it == rule).map(|(it, n)| (it.clone(), *n)));
    }
    list
}

/// Writes the list of known violations.
pub(crate) fn list(known: &Known) -> String {
    let mut text = String::from(
        "# Violations that are older than the rule: rule, file, number. The command\n\
         # `cargo run -p reattempt-structure -- --update` writes this list, and only makes it shorter.\n",
    );
    for ((rule, file), count) in known {
        let _ = writeln!(text, "{} {file} {count}", rule.name());
    }
    text
}
