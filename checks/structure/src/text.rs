//! The rules about lines: gRPC in generic code, doc openings, names and lines that are too long.

use crate::report::{Rule, Violation};
use crate::rules::{CELL_WORDS, GENERIC, GRPC_ALLOWED, GRPC_WORDS, LINE, OPENINGS, PAGE, TEST_NAME};
use crate::source::{Source, Sources};

/// Checks the lines of all sources.
pub(crate) fn violations(sources: &Sources) -> Vec<Violation> {
    let mut found = vec![];
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
    }
    found
}

/// Finds the lines of generic modules that mention gRPC.
fn grpc(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let generic = GENERIC.iter().any(|folder| source.path.starts_with(folder))
        && !GRPC_ALLOWED.iter().any(|(allowed, _)| source.path.starts_with(allowed) || source.path.ends_with(allowed));
    let lines = source.lines_outside_tests();
    let found = lines.filter(move |(_, line)| generic && mentions_grpc(line));
    found.map(|(number, line)| (number, line.trim()))
}

fn mentions_grpc(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    let in_any_word = ["grpc", "service config", "service_config", "serviceconfig"];
    let mut words = line.split(|next: char| !next.is_alphanumeric() && next != '_');
    in_any_word.iter().any(|it| lower.contains(it)) || words.any(|word| GRPC_WORDS.contains(&word))
}

/// Finds the first line with text of each doc comment, in all forms that a comment may have.
pub(crate) fn openings(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let (mut before, mut opened, mut in_block) = (None, false, false);
    source.lines().filter_map(move |(number, line)| {
        let line = line.trim();
        let (form, text) = if in_block {
            ("/**", line.trim_start_matches('*'))
        } else if let Some(found) = doc_line(line) {
            found
        } else {
            before = None;
            return None;
        };
        in_block = form == "/**" && !text.contains("*/");
        if before.replace(form) != Some(form) {
            opened = false;
        }
        let text = text.trim_end_matches("*/").trim();
        let opens = !opened && !text.is_empty();
        opened |= opens;
        opens.then_some((number, text))
    })
}

/// Returns the form and the text of a line that begins or continues a doc comment. An attribute has the form of the
/// lines that it may stand among.
fn doc_line(line: &str) -> Option<(&'static str, &str)> {
    if let Some((attribute, value)) = line.split_once("doc = ") {
        let form = if attribute.starts_with("#!") { "//!" } else { "///" };
        let text = value.trim_start_matches(['r', '#']).strip_prefix('"')?;
        let text = text.trim_start_matches("\\n").split('"').next()?;
        return attribute.starts_with('#').then_some((form, text));
    }
    let forms = ["///", "//!", "/**", "/*!"];
    let (form, text) = forms.iter().find_map(|form| Some((*form, line.strip_prefix(form)?)))?;
    let form = if form == "/*!" { "/**" } else { form };
    (!text.starts_with(['/', '*'])).then_some((form, text))
}

/// Returns `true` if a doc comment may not open with this text, in bold or in a heading either.
pub(crate) fn is_bad_opening(text: &str) -> bool {
    let text = text.trim_start_matches(['*', '_', '#', ' ']);
    let follows = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric());
    OPENINGS.iter().any(|opening| text.strip_prefix(opening).is_some_and(follows))
}

/// Checks the opening of a page that is the doc of a module.
pub(crate) fn page_opening(path: &str, text: &str) -> Option<Violation> {
    let mut lines = text.lines().enumerate();
    let (index, line) = lines.find(|(_, line)| !line.trim().is_empty())?;
    is_bad_opening(line).then(|| Violation {
        rule: Rule::Opening,
        file: path.to_owned(),
        line: index + 1,
        what: format!("a page opens with `{line}`"),
    })
}

/// Checks the lines and the tables of the page that describes the code.
pub(crate) fn page(text: &str) -> Vec<Violation> {
    let lines = || text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let of = |rule, line, what| Violation { rule, file: PAGE.to_owned(), line, what };
    let long = long_lines(lines())
        .map(|(line, length)| of(Rule::LineLength, line, format!("{length} characters, at most {LINE}")));
    let rows = lines().filter(|(_, line)| line.starts_with('|'));
    let cells =
        rows.flat_map(|(number, row)| row.split(" | ").map(move |cell| (number, cell.split_whitespace().count())));
    let wordy = cells
        .filter(|(_, words)| *words > CELL_WORDS)
        .map(|(line, words)| of(Rule::Cell, line, format!("{words} words, at most {CELL_WORDS}")));
    long.chain(wordy).collect()
}

/// Finds the lines that are too long, with their lengths. Rows of tables and links cannot be broken.
fn long_lines<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> impl Iterator<Item = (usize, usize)> {
    let breakable = |line: &str| !line.trim_start_matches(['/', '!', ' ']).starts_with('|') && !line.contains("://");
    let lengths = lines.map(move |(number, line)| (number, line.chars().count(), breakable(line)));
    lengths.filter_map(|(number, length, breakable)| (breakable && length > LINE).then_some((number, length)))
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
