//! The source files of the workspace, and the lines of them that are tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::spanned::Spanned;
use syn::{Attribute, Item, Meta, Token, punctuated::Punctuated};

use crate::rules::CRATES;

/// A Rust file.
pub(crate) struct Source {
    /// The path below the workspace, with slashes.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The parsed items, until the modules take them; empty for files of tests.
    pub(crate) items: Vec<Item>,
    pub(crate) is_test: bool,
    /// The lines, counted from zero, that only exist in tests.
    tests: BTreeSet<usize>,
}

impl Source {
    /// Iterates over the lines with their numbers, counted from one.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Iterates over the lines outside tests with their numbers, counted from one.
    pub(crate) fn lines_outside_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines().filter(|(number, _)| !self.is_test && !self.tests.contains(number))
    }
}

/// All Rust files of the workspace by path.
pub(crate) type Sources = BTreeMap<String, Source>;

/// Reads and parses the Rust files below `root`.
pub(crate) fn read(root: &Path) -> Result<Sources, String> {
    let mut texts = BTreeMap::new();
    walk(root, "", ".rs", &mut texts)?;
    parse_all(texts)
}

/// Reads the pages of Markdown among the sources of the crates, which are docs of modules.
pub(crate) fn pages(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut texts = BTreeMap::new();
    walk(&root.join(CRATES), &format!("{CRATES}/"), ".md", &mut texts)?;
    texts.retain(|path, _| path.contains("/src/"));
    Ok(texts)
}

/// Parses files, given by path and text.
pub(crate) fn parse_all(texts: BTreeMap<String, String>) -> Result<Sources, String> {
    let mut sources = Sources::new();
    let mut test_files = BTreeSet::new();
    for (path, text) in texts {
        let is_test = path.split('/').any(|part| part == "tests" || part == "tests.rs");
        let items = if is_test { vec![] } else { parse(&path, &text)? };
        let mut tests = BTreeSet::new();
        mark_tests(&items, &path, &mut tests, &mut test_files);
        sources.insert(path.clone(), Source { path, text, items, is_test, tests });
    }
    for (path, source) in &mut sources {
        let below = |folder: &String| path.starts_with(&format!("{}/", folder.trim_end_matches(".rs")));
        if test_files.contains(path) || test_files.iter().any(below) {
            source.is_test = true;
        }
    }
    Ok(sources)
}

/// Parses one file; an error names the place.
fn parse(path: &str, text: &str) -> Result<Vec<Item>, String> {
    let parsed = syn::parse_file(text)
        .map_err(|error| format!("{path}:{}: {error} (a newer syn may know the syntax)", error.span().start().line));
    Ok(parsed?.items)
}

fn walk(folder: &Path, prefix: &str, ending: &str, texts: &mut BTreeMap<String, String>) -> Result<(), String> {
    let at = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(at)? {
        let entry = entry.map_err(at)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.path().is_dir() {
            if name != "target" && !name.starts_with('.') {
                walk(&entry.path(), &format!("{path}/"), ending, texts)?;
            }
        } else if name.ends_with(ending) {
            texts.insert(path, fs::read_to_string(entry.path()).map_err(at)?);
        }
    }
    Ok(())
}

/// Marks the lines of test items and the files of test modules.
fn mark_tests(items: &[Item], path: &str, lines: &mut BTreeSet<usize>, files: &mut BTreeSet<String>) {
    for item in items {
        let Item::Mod(module) = item else {
            if is_test(attributes(item)) {
                lines.extend(item.span().start().line..=item.span().end().line);
            }
            continue;
        };
        match (&module.content, is_test(&module.attrs)) {
            (Some(_), true) => {
                lines.extend(item.span().start().line..=item.span().end().line);
            }
            (None, true) => {
                let [file, folder] = files_of_module(path, &[], &module.ident.to_string());
                files.extend([file, folder]);
            }
            (Some((_, items)), false) => mark_tests(items, path, lines, files),
            (None, false) => {}
        }
    }
}

/// Returns the file that `#[path = "..."]` names, which is relative to the folder of the declaring file.
pub(crate) fn path_attribute(declared_in: &str, attributes: &[Attribute]) -> Option<String> {
    let folder = declared_in.rsplit_once('/').map_or("", |(folder, _)| folder);
    attributes.iter().filter(|attribute| attribute.path().is_ident("path")).find_map(|attribute| {
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(file), .. }) =
            &attribute.meta.require_name_value().ok()?.value
        else {
            return None;
        };
        Some(format!("{folder}/{}", file.value()))
    })
}

/// Returns the two paths that a module's file may have, given the file that declares it and the
/// inline modules around the declaration.
pub(crate) fn files_of_module(declared_in: &str, inline: &[String], name: &str) -> [String; 2] {
    let (folder, file) = declared_in.rsplit_once('/').unwrap_or(("", declared_in));
    let mut base = folder.to_owned();
    if !["lib.rs", "main.rs", "mod.rs"].contains(&file) {
        base = format!("{base}/{}", file.trim_end_matches(".rs"));
    }
    for module in inline {
        base = format!("{base}/{module}");
    }
    let base = base.trim_start_matches('/');
    [format!("{base}/{name}.rs"), format!("{base}/{name}/mod.rs")]
}

/// Returns `true` if the item exists in tests only.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    fn requires_test(meta: &Meta) -> bool {
        let all = |list: &syn::MetaList| {
            list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).unwrap_or_default()
        };
        match meta {
            Meta::Path(path) => path.is_ident("test") || path.is_ident("doctest"),
            Meta::List(list) if list.path.is_ident("all") => all(list).iter().any(requires_test),
            Meta::List(list) if list.path.is_ident("any") => all(list).iter().all(requires_test),
            _ => false,
        }
    }
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg") && attribute.parse_args::<Meta>().is_ok_and(|meta| requires_test(&meta))
    })
}

/// Returns the attributes of an item.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
