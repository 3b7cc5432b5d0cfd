//! The search for shells: the same sequence of functions in several files, around different insides.

use std::collections::{BTreeMap, BTreeSet};

use syn::{ImplItem, Item};

use crate::report::{Rule, Violation};
use crate::rules::{RULES, SHELL_FILES, SHELL_NAMES, SHELLS};
use crate::source::{Source, Sources, attributes, is_test};

/// A function of a file, in the order of the file.
struct Function {
    name: String,
    line: usize,
    /// A method that a trait requires: its name alone is no choice of the file.
    of_trait: bool,
}

/// A run of names, and the files that have it with the line where it begins.
type Shell<'a> = (Vec<&'a str>, BTreeMap<&'a str, usize>);

/// Finds the shells that no entry of the list explains, and the entries that explain none.
pub(crate) fn violations(sources: &Sources) -> Vec<Violation> {
    judged(sources, SHELLS)
}

/// Compares the shells of the sources with a list of explained ones.
pub(crate) fn judged(sources: &Sources, explained: &[(&[&str], &str)]) -> Vec<Violation> {
    let functions: BTreeMap<_, _> = sources
        .values()
        .filter(|source| !source.is_test)
        .map(|source| (source.path.as_str(), functions(source)))
        .collect();
    let shells = shells(&functions);
    let explains = |(files, _): &(&[&str], &str), shell: &Shell<'_>| shell.1.keys().all(|file| files.contains(file));
    let mut found = vec![];
    for shell in &shells {
        let (names, files) = shell;
        let Some((first, line)) = files.first_key_value() else { continue };
        if !explained.iter().any(|entry| explains(entry, shell)) {
            let places: Vec<_> = files.iter().map(|(file, line)| format!("{file}:{line}")).collect();
            let (count, names) = (files.len(), names.join(", "));
            let what = format!("`{names}` in {count} files: {}", places.join(" "));
            found.push(Violation { rule: Rule::Shell, file: (*first).into(), line: *line, what });
        }
    }
    for entry in explained {
        if !shells.iter().any(|shell| explains(entry, shell)) {
            let what = format!("no shell is left in {}: remove the entry", entry.0.join(" "));
            found.push(Violation { rule: Rule::Shell, file: RULES.into(), line: 1, what });
        }
    }
    found
}

/// Finds the runs of names that are in enough files. A run is as long as all these files have it.
fn shells<'a>(functions: &'a BTreeMap<&'a str, Vec<Function>>) -> Vec<Shell<'a>> {
    let mut windows = BTreeMap::<Vec<&str>, BTreeMap<&str, usize>>::new();
    for (file, functions) in functions {
        for window in functions.windows(SHELL_NAMES) {
            if window.iter().any(|function| !function.of_trait) {
                let names = window.iter().map(|function| function.name.as_str()).collect();
                windows.entry(names).or_default().entry(file).or_insert(window[0].line);
            }
        }
    }
    windows.retain(|_, files| files.len() >= SHELL_FILES);
    let mut found: Vec<Shell<'a>> = vec![];
    let mut seen = BTreeSet::new();
    for (file, functions) in functions {
        let mut before = None;
        for window in functions.windows(SHELL_NAMES) {
            let names: Vec<_> = window.iter().map(|function| function.name.as_str()).collect();
            let Some(files) = windows.get(&names) else {
                before = None;
                continue;
            };
            let these: Vec<_> = files.keys().copied().collect();
            if these.first() == Some(file) && seen.insert(names.clone()) {
                match found.last_mut() {
                    Some((run, _)) if before.as_ref() == Some(&these) => {
                        run.extend(names.last());
                    }
                    _ => found.push((names, files.clone())),
                }
            }
            before = Some(these);
        }
    }
    found
}

/// Lists the functions of a file outside tests.
fn functions(source: &Source) -> Vec<Function> {
    let mut found = vec![];
    collect(&source.items, &mut found);
    found
}

fn collect(items: &[Item], found: &mut Vec<Function>) {
    let mut add = |name: &syn::Ident, of_trait| {
        found.push(Function { name: name.to_string(), line: name.span().start().line, of_trait });
    };
    for item in items.iter().filter(|item| !is_test(attributes(item))) {
        match item {
            Item::Fn(item) => add(&item.sig.ident, false),
            Item::Impl(block) => {
                for item in &block.items {
                    if let ImplItem::Fn(method) = item {
                        add(&method.sig.ident, block.trait_.is_some());
                    }
                }
            }
            _ => {}
        }
    }
    for item in items.iter().filter(|item| !is_test(attributes(item))) {
        if let Item::Mod(syn::ItemMod { content: Some((_, items)), .. }) = item {
            collect(items, found);
        }
    }
}
