//! The table at the end: cells and failures by protocol, client and stack.

use std::collections::BTreeMap;
use std::fmt;

use crate::cell::{Cell, Library, Protocol, Security, Stack};

const STACKS: [Stack; 4] = [Stack::Retry, Stack::Hedge, Stack::Standard, Stack::Endpoints];

type Row = (Security, Protocol, Library);

/// Counts of cells that have ended.
#[derive(Debug, Default)]
pub(crate) struct Table(BTreeMap<Row, BTreeMap<Stack, Counts>>);

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    cells: usize,
    wrong: usize,
}

impl Table {
    pub(crate) fn add(&mut self, cell: Cell, right: bool) {
        let row = self.0.entry((cell.security, cell.protocol, cell.library)).or_default();
        let counts = row.entry(cell.stack).or_default();
        counts.cells += 1;
        counts.wrong += usize::from(!right);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:32}", "right / cells")?;
        for stack in STACKS {
            write!(f, "{:>14}", format!("{stack:?}"))?;
        }
        for ((security, protocol, library), row) in &self.0 {
            write!(f, "\n{:32}", format!("{protocol:?}, {security:?}, {library:?}"))?;
            for stack in STACKS {
                let Counts { cells, wrong } = row.get(&stack).copied().unwrap_or_default();
                write!(f, "{:>14}", format!("{} / {cells}", cells - wrong))?;
            }
        }
        writeln!(f)
    }
}
