//! The comparison of README's table of costs with the results of the benchmarks, from which its rows are copied.

use crate::report::{Rule, Violation};
use crate::rules::{COST_COLUMNS, COST_ROWS, README, RESULTS};

/// A row of a table, by the names of its columns.
struct Row<'a> {
    line: usize,
    cells: Vec<(&'a str, &'a str)>,
}

impl<'a> Row<'a> {
    /// Returns the text in the first column.
    fn name(&self) -> &'a str {
        self.cells.first().map_or("", |(_, name)| name)
    }

    fn cell(&self, column: &str) -> Option<&'a str> {
        self.cells.iter().find(|(name, _)| *name == column).map(|(_, cell)| *cell)
    }
}

/// Reads the rows of all tables whose first column is `row`.
fn rows(text: &str) -> Vec<Row<'_>> {
    let mut columns: Vec<&str> = vec![];
    let mut rows = vec![];
    for (index, line) in text.lines().enumerate() {
        let Some(cells) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            columns.clear();
            continue;
        };
        let cells: Vec<_> = cells.split('|').map(str::trim).collect();
        if columns.is_empty() {
            columns = cells;
        } else if columns[0] == "row" && !cells[0].starts_with("---") {
            let cells = columns.iter().copied().zip(cells).collect();
            rows.push(Row { line: index + 1, cells });
        }
    }
    rows
}

/// Finds the cells of README's table that the results do not have, and the rows that are missing.
pub(crate) fn violations(readme: &str, results: &str) -> Vec<Violation> {
    let (shown, measured) = (rows(readme), rows(results));
    let mut found = vec![];
    let mut add = |line, what| {
        found.push(Violation { rule: Rule::Cost, file: README.to_owned(), line, what });
    };
    for (name, _) in COST_ROWS {
        if !shown.iter().any(|row| row.name() == *name) {
            add(1, format!("the table of costs has no row `{name}`"));
        }
    }
    for row in shown {
        let source = COST_ROWS.iter().find(|(name, _)| *name == row.name());
        let source = source.and_then(|(_, name)| measured.iter().find(|it| it.name() == *name));
        let Some(source) = source else {
            add(row.line, format!("`{}` is no row of {RESULTS}", row.name()));
            continue;
        };
        for (column, cell) in row.cells.iter().skip(1) {
            let name = COST_COLUMNS.iter().find(|(name, _)| name == column);
            let expected = source.cell(name.map_or(column, |(_, name)| name)).unwrap_or("–");
            if *cell != expected {
                let (row_name, at) = (row.name(), source.line);
                let what = format!("`{row_name}`, {column}: `{cell}`, and `{expected}` in {RESULTS}:{at}");
                add(row.line, what);
            }
        }
    }
    found
}
