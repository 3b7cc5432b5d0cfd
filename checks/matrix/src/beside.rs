//! The client alone beside the layer and the standard stack, in the same scenes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::cell::{Cell, Stack};
use crate::run::Counts;

/// The stacks that run each scene.
pub(crate) const STACKS: [Stack; 3] = [Stack::Bare, Stack::Retry, Stack::Standard];

/// The counts of each fault, by stack.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    rows: BTreeMap<String, BTreeMap<Stack, Counts>>,
    /// The calls that were served in scenes that not all stacks have run.
    open: HashMap<String, Vec<(Stack, usize)>>,
}

impl Beside {
    /// Adds a cell. Returns a failure if it is the last of its scene, and the client alone has served more calls.
    pub(crate) fn add(&mut self, cell: Cell, counts: Counts) -> Option<String> {
        let row = self.rows.entry(format!("{:?}", cell.fault)).or_default();
        let sum = row.entry(cell.stack).or_default();
        *sum = Counts {
            calls: sum.calls + counts.calls,
            served: sum.served + counts.served,
            attempts: sum.attempts + counts.attempts,
            repeats: sum.repeats + counts.repeats,
        };
        let scene = Cell { stack: Stack::Bare, ..cell }.to_string();
        let served = self.open.entry(scene.clone()).or_default();
        served.push((cell.stack, counts.served));
        if served.len() < STACKS.len() {
            return None;
        }
        let served = self.open.remove(&scene).unwrap_or_default();
        let bare = served.iter().find(|(stack, _)| *stack == Stack::Bare).map_or(0, |(_, served)| *served);
        let is_worse = served.iter().any(|(_, served)| *served < bare);
        is_worse.then(|| format!("{scene}: the client alone serves more calls: {served:?}"))
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:24}{:>8}", "served, attempts, repeats", "calls")?;
        for stack in STACKS {
            write!(f, "{:>24}", format!("{stack:?}"))?;
        }
        for (fault, row) in &self.rows {
            let calls = row.values().map(|counts| counts.calls).max().unwrap_or_default();
            write!(f, "\n{fault:24}{calls:>9}")?;
            for stack in STACKS {
                let Counts { served, attempts, repeats, .. } = row.get(&stack).copied().unwrap_or_default();
                write!(f, "{:>24}", format!("{served}, {attempts}, {repeats}"))?;
            }
        }
        writeln!(f)
    }
}
