//! The figures of the renovation: imports, cycles, names, docs, tests and lines of each crate.

use std::fmt::Write as _;

use crate::api;
use crate::graph::{graphs, layer};
use crate::imports::references;
use crate::modules::Modules;
use crate::rules::{FACADE, LAYERED};
use crate::source::Sources;
use crate::text::{is_bad_opening, openings};
use crate::wall;

/// Writes the figures of the crates, given by folder and modules.
pub(crate) fn figures(sources: &Sources, crates: &[(String, Modules)]) -> String {
    let (mut text, mut all_names) = (String::new(), String::new());
    for (folder, modules) in crates {
        let references = references(modules);
        let graphs = graphs(&references);
        let children = modules.0.keys().filter(|path| path.len() == 1).count();
        let layered = folder == LAYERED;
        let (mut imports, mut upward, mut cyclic) = (0, String::new(), 0);
        if let Some(graph) = graphs.get(&vec![]) {
            imports = graph.edges.len();
            let upwards = graph.edges.keys().filter(|(from, to)| layer(to) > layer(from)).count();
            if layered {
                upward = format!(", {upwards} upwards");
            }
            cyclic = graph.in_cycles().len();
        }
        let nested: usize =
            graphs.iter().filter(|(path, _)| !path.is_empty()).map(|(_, it)| it.in_cycles().len()).sum();
        let src = format!("{folder}/src/");
        let files = || sources.values().filter(|source| source.path.starts_with(&src));
        let lines: usize = files().map(|source| source.lines().count()).sum();
        let shipped: usize = files().map(|source| source.lines_outside_tests().count()).sum();
        let docs = || files().flat_map(openings);
        let (bad, all) = (docs().filter(|(_, text)| is_bad_opening(text)).count(), docs().count());
        let names = root_names(modules);
        if folder == FACADE {
            all_names = names.join(" ");
        }
        if layered {
            let _ = writeln!(text, "names on the wall: {}", wall::names(modules));
        }
        let _ = writeln!(
            text,
            "{folder}: {children} modules, {imports} imports between them{upward}, {cyclic} in cycles \
             (nested: {nested}); {bad} of {all} doc openings to mend; {lines} lines, {shipped} outside tests; \
             {} root names; {} test binaries",
            names.len(),
            test_binaries(sources, &format!("{folder}/"))
        );
    }
    let _ = writeln!(text, "tests/: {} test binaries", test_binaries(sources, ""));
    let _ = writeln!(text, "root names of reattempt: {all_names}");
    text
}

/// Lists the names at the root of a crate.
fn root_names(modules: &Modules) -> Vec<String> {
    let text = api::list(modules, "root");
    let mut names: Vec<_> = text
        .lines()
        .filter_map(|line| Some(line.strip_prefix("root::")?.split_once(": ")?.0.to_owned()))
        .filter(|name| !name.contains([':', '.']))
        .collect();
    names.dedup();
    names
}

/// Counts the integration tests of a package, by the files that cargo finds.
fn test_binaries(sources: &Sources, package: &str) -> usize {
    let tests = format!("{package}tests/");
    let is_binary = |path: &str| {
        let rest = path.strip_prefix(&tests);
        rest.is_some_and(|rest| !rest.contains('/') || rest.matches('/').count() == 1 && rest.ends_with("/main.rs"))
    };
    sources.keys().filter(|path| is_binary(path)).count()
}
