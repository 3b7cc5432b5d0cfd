//! The search for types of one name in one crate, which a reader who searches for the name would confuse.

use std::collections::BTreeMap;

use proc_macro2::Ident;
use syn::Item;

use crate::modules::Modules;
use crate::report::{Rule, Violation};
use crate::rules::{MODULES_OWN, RULES, SAME_NAMES, UNNAMED};

/// Finds the structs and enums that have the name of an earlier one of their crate, without those of tests.
pub(crate) fn violations(crates: &[(String, Modules)]) -> Vec<Violation> {
    judged(crates, SAME_NAMES)
}

/// Compares the names with a list of explained ones, by crate. An entry whose name occurs once is reported.
pub(crate) fn judged(crates: &[(String, Modules)], explained: &[(&str, &str, &str)]) -> Vec<Violation> {
    let mut found = vec![];
    let mut unused: Vec<_> = explained.iter().collect();
    for (folder, modules) in crates.iter().filter(|(folder, _)| folder != UNNAMED) {
        let mut first = BTreeMap::<String, String>::new();
        for (ident, file) in types(modules) {
            let (name, line) = (ident.to_string(), ident.span().start().line);
            let place = format!("{file}:{line}");
            // A file that is two modules has the same types twice.
            let Some(other) = first.get(&name).filter(|other| **other != place) else {
                first.insert(name, place);
                continue;
            };
            unused.retain(|(of, known, _)| (*of, *known) != (folder, &name));
            if !explained.iter().any(|(of, known, _)| (*of, *known) == (folder, &name)) {
                let what = format!("`{name}` is the name of a type at {other}, too");
                found.push(Violation { rule: Rule::TypeName, file: file.to_owned(), line, what });
            }
        }
    }
    for (folder, name, _) in unused {
        let what = format!("`{name}` is the name of one type of {folder}: remove the entry");
        found.push(Violation { rule: Rule::TypeName, file: RULES.to_owned(), line: 1, what });
    }
    found
}

/// Lists the structs and enums of a crate, each with its file. [`MODULES_OWN`] is not among them.
fn types(modules: &Modules) -> impl Iterator<Item = (&Ident, &str)> {
    modules.0.values().flat_map(|module| {
        let idents = module.items.iter().filter_map(|item| match item {
            Item::Enum(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            _ => None,
        });
        idents.filter(|ident| *ident != MODULES_OWN).map(|ident| (ident, module.file.as_str()))
    })
}
