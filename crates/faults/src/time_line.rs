//! A readable timeline of arrivals.

use std::fmt;

use crate::ledger::Arrival;

/// A table of arrivals, one per line.
pub(crate) struct TimeLine<'a>(pub(crate) &'a [Arrival]);

const TITLES: [&str; 6] = ["time", "connection", "request", "body", "carried out", "answer"];

impl fmt::Display for TimeLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = TITLES.map(str::to_owned);
        let rows: Vec<_> = std::iter::once(titles).chain(self.0.iter().map(cells)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = width(column).unwrap_or_default();
                line.push_str(&match column {
                    0 => format!("  {cell:>width$}"),
                    _ => format!("  {cell:<width$}"),
                });
            }
            f.write_str(line.trim_end())?;
        }
        Ok(())
    }
}

fn cells(arrival: &Arrival) -> [String; TITLES.len()] {
    let connection = match arrival.connection {
        0 => arrival.server.clone(),
        number => format!("{}#{number}", arrival.server),
    };
    let body = match (arrival.whole, arrival.body.len()) {
        (true, 0) => "none".to_owned(),
        (true, length) => format!("{length} B {:016x}", arrival.checksum()),
        (false, length) => format!("{length} B, not whole"),
    };
    let answer = match (&arrival.answer, arrival.open) {
        (Some(answer), _) => answer.clone(),
        (None, true) => "none yet".to_owned(),
        (None, false) => "none: the client left".to_owned(),
    };
    [
        format!("{} ms", arrival.at.as_millis()),
        connection,
        format!("{} {}", arrival.method, arrival.target),
        body,
        if arrival.carried_out { "yes" } else { "no" }.to_owned(),
        answer,
    ]
}
