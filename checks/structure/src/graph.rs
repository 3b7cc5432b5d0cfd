//! Cycles among the modules that share a parent.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::Reference;
use crate::report::{Rule, Violation};
use crate::rules::{FORBIDDEN, LAYERS};

/// The name of the node that stands for what the root of the crate itself defines.
const ROOT: &str = "crate root";

/// The modules inside one module, and what they import from each other.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// The first reference of each importing pair.
    pub(crate) edges: BTreeMap<(String, String), Reference>,
}

/// Returns the graph of the modules inside each module, by the parent's path.
pub(crate) fn graphs(references: &[Reference]) -> BTreeMap<Vec<String>, Graph> {
    let mut graphs = BTreeMap::<_, Graph>::new();
    for reference in references {
        let (from, to) = (&reference.from, &reference.to);
        let shared = from.iter().zip(to).take_while(|(from, to)| from == to).count();
        let (from, to) = match (from.get(shared), to.get(shared)) {
            (Some(from), Some(to)) => (from.clone(), to.clone()),
            (Some(from), None) if shared == 0 => (from.clone(), ROOT.to_owned()),
            (None, Some(to)) if shared == 0 => (ROOT.to_owned(), to.clone()),
            _ => continue, // a module and one around it belong together
        };
        let graph = graphs.entry(reference.from[..shared].to_vec()).or_default();
        graph.edges.entry((from, to)).or_insert_with(|| reference.clone());
    }
    graphs
}

/// Returns the layer of a module of `reattempt`, from the ground up. The root of the crate stands above all others.
pub(crate) fn layer(module: &str) -> usize {
    listed_layer(module).unwrap_or(LAYERS.len())
}

/// Returns the layer of a module; `None` if the rules do not list it.
pub(crate) fn listed_layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

impl Graph {
    /// Returns the shortest way between two modules, both included.
    fn way<'a>(&'a self, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
        let mut ways = vec![vec![from]];
        let mut seen = BTreeSet::from([from]);
        while !ways.is_empty() {
            let mut longer = vec![];
            for way in ways {
                let Some(last) = way.last() else { continue };
                if *last == to {
                    return Some(way);
                }
                for (_, next) in self.edges.keys().filter(|(module, _)| module == last) {
                    if seen.insert(next) {
                        longer.push([way.as_slice(), &[next]].concat());
                    }
                }
            }
            ways = longer;
        }
        None
    }

    /// Returns the modules that lie on a cycle.
    pub(crate) fn in_cycles(&self) -> BTreeSet<&str> {
        let cyclic = self.edges.keys().filter(|(from, to)| self.way(to, from).is_some());
        cyclic.flat_map(|(from, to)| [from.as_str(), to]).collect()
    }

    /// Returns one violation for each import of a module above, and for each one that is forbidden.
    pub(crate) fn misplaced(&self) -> Vec<Violation> {
        let misplaced = self.edges.iter().filter_map(|((from, to), reference)| {
            let forbidden = FORBIDDEN.iter().find(|it| (it.0, it.1) == (from, to));
            let why = match forbidden {
                Some((_, _, reason)) => *reason,
                None if layer(to) > layer(from) => "it stands above",
                None => return None,
            };
            Some(Violation {
                rule: Rule::Layer,
                file: reference.file.clone(),
                line: reference.line,
                what: format!("`{}`: `{from}` imports `{to}`: {why}", reference.path),
            })
        });
        misplaced.collect()
    }

    /// Returns one violation for each import that lies on a cycle.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        let cyclic = self.edges.iter().filter_map(|((from, to), reference)| {
            let way = self.way(to, from)?.join("` → `");
            let path = &reference.path;
            Some(Violation {
                rule: Rule::Cycle,
                file: reference.file.clone(),
                line: reference.line,
                what: format!("`{path}`: `{from}` imports `{to}`, which leads back: `{way}`"),
            })
        });
        cyclic.collect()
    }
}
