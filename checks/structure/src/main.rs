//! Checks of the structure of the sources, which `.ci/run` runs.
//!
//! ```text
//! structure [--root FOLDER] [--update | --figures]
//! ```
//!
//! Without an option it prints each broken rule with its place and remedy. A long file and a copy are warnings if a
//! comment there gives the reason. `--update` writes the
//! lists again: `api/CRATE.txt`, and `known.txt`, which only becomes shorter. `--figures` prints
//! the figures of each crate. The lists of the rules are in `rules.rs`.

mod api;
mod costs;
mod figures;
mod graph;
mod imports;
mod limits;
mod modules;
mod names;
mod observers;
mod oldest;
mod report;
mod rules;
mod shells;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod tokens;
mod wall;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use crate::modules::Modules;
use crate::report::{KNOWN, Rule, UPDATE, Violation};
use crate::source::Sources;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut update, mut figures) = (false, false);
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--root" => root = arguments.next().ok_or("--root needs a folder")?.into(),
            "--update" => update = true,
            "--figures" => figures = true,
            other => return Err(format!("{other}: not an option")),
        }
    }
    let mut sources = source::read(&root)?;
    let shells = shells::violations(&sources);
    let observers = observers::violations(&sources);
    let crates = crates(&mut sources)?;
    if figures {
        print!("{}", figures::figures(&sources, &crates));
        return Ok(());
    }
    let mut violations = text::violations(&sources);
    violations.extend(shells);
    violations.extend(observers);
    let (broken, warnings) = limits::violations(&sources);
    violations.extend(broken);
    warnings.iter().for_each(|text| eprintln!("warning: {text}"));
    violations.extend(crates.iter().flat_map(|(_, modules)| cycles(modules)));
    violations.extend(names::violations(&crates));
    let page = |path: &str| read_or_empty(&root.join(path));
    violations.extend(costs::violations(&page(rules::README)?, &page(rules::RESULTS)?));
    violations.extend(oldest::violations(&page(rules::README)?, &page(rules::MANIFEST)?));
    let pages = source::pages(&root)?;
    violations.extend(pages.iter().filter_map(|(path, text)| text::page_opening(path, text)));
    let layered = crates.iter().filter(|(folder, _)| folder == rules::LAYERED);
    for (_, modules) in layered {
        violations.extend(misplaced(modules));
        violations.extend(wall::violation(modules));
    }
    violations.extend(text::page(&page(rules::PAGE)?));
    let mut known = report::parse_known(&read_or_empty(&root.join(KNOWN))?)?;
    if update {
        let first = !root.join(KNOWN).exists();
        known = if first { report::count(&violations) } else { report::shorter(&violations, &known) };
        write(&root.join(KNOWN), &report::list(&known))?;
    }
    let mut texts = report::compare(&violations, &known);
    for (folder, modules) in &crates {
        if folder != rules::FACADE {
            texts.extend(api(&root, folder, modules, update)?);
        }
    }
    texts.extend(api(&root, rules::FACADE, &facade(crates), update)?);
    if texts.is_empty() { Ok(()) } else { Err(texts.join("\n\n")) }
}

/// Reads the modules of each crate, by its folder.
fn crates(sources: &mut Sources) -> Result<Vec<(String, Modules)>, String> {
    let folder = |path: &str| {
        let folder = path.strip_suffix("/src/lib.rs").or(path.strip_suffix("/src/main.rs"))?;
        folder.starts_with(rules::CRATES).then(|| folder.to_owned())
    };
    let roots: Vec<_> = sources.keys().filter_map(|path| Some((folder(path)?, path.clone()))).collect();
    let modules = roots.into_iter().map(|(folder, root)| Ok((folder, Modules::of_crate(sources, &root)?)));
    modules.collect()
}

/// Returns the modules of the facade, and those of the crates whose items it exports.
fn facade(crates: Vec<(String, Modules)>) -> Modules {
    let mut facade = Modules::default();
    let mut below = vec![];
    for (folder, modules) in crates {
        match folder.strip_prefix("crates/") {
            _ if folder == rules::FACADE => facade = modules,
            Some(name) if rules::BELOW_FACADE.contains(&name) => below.push((format!("reattempt_{name}"), modules)),
            _ => {}
        }
    }
    below.into_iter().for_each(|(name, modules)| facade.add_crate(&name, modules));
    facade
}

/// Finds the cycles of a crate, at its root and inside each module.
fn cycles(modules: &Modules) -> Vec<Violation> {
    let graphs = graph::graphs(&imports::references(modules));
    graphs.values().flat_map(graph::Graph::violations).collect()
}

/// Finds the imports that the layers of a crate forbid, and the modules that are in no layer.
fn misplaced(modules: &Modules) -> Vec<Violation> {
    let graphs = graph::graphs(&imports::references(modules));
    let mut found = graphs.get(&vec![]).map(graph::Graph::misplaced).unwrap_or_default();
    for (path, module) in &modules.0 {
        if let [name] = path.as_slice()
            && graph::listed_layer(name).is_none()
        {
            let what = format!("`{name}` is in no layer of checks/structure/src/rules.rs");
            found.push(Violation { rule: Rule::Layer, file: module.file.clone(), line: 1, what });
        }
    }
    found
}

/// Compares the public API of a crate with its list, or writes the list.
fn api(root: &Path, folder: &str, modules: &Modules, update: bool) -> Result<Option<String>, String> {
    let manifest = read_or_empty(&root.join(folder).join("Cargo.toml"))?;
    if manifest.contains("publish = false") {
        return Ok(None);
    }
    let named = manifest.lines().find_map(|line| line.strip_prefix("name = "));
    let name = named.ok_or_else(|| format!("{folder}/Cargo.toml: no name"))?.trim_matches('"');
    let list = api::list(modules, &name.replace('-', "_"));
    let path = format!("api/{name}.txt");
    if update {
        write(&root.join(&path), &list)?;
        return Ok(None);
    }
    let listed = read_or_empty(&root.join(&path))?;
    let missing = |these: &str, those: &str, mark: &str| -> String {
        let those: std::collections::BTreeSet<_> = those.lines().collect();
        these.lines().filter(|line| !those.contains(line)).map(|line| format!("{mark} {line}\n")).collect()
    };
    let changes = missing(&listed, &list, "-") + &missing(&list, &listed, "+");
    Ok((!changes.is_empty()).then(|| {
        format!(
            "{path}: api: the public API is another\n{changes}  remedy: if it is meant, {UPDATE} and review the list"
        )
    }))
}

fn read_or_empty(path: &Path) -> Result<String, String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| format!("{}: {error}", path.display())),
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(path, text)).map_err(|error| format!("{}: {error}", path.display()))
}
