//! The figures as Markdown.

use std::fmt::Write;

use crate::goals::{Figure, Goal, Limit, Line};
use crate::measure::Figures;

/// The peers in the order of their columns, and how they are called there.
const PEERS: &[(&str, &str)] = &[
    ("tower", "tower by hand"),
    ("tower-1000", "tower by hand"),
    ("tower-100000", "tower by hand"),
    ("tower-resilience", "tower-resilience-retry"),
    ("reqwest-own", "reqwest's own"),
    ("reqwest-retry", "reqwest-retry"),
    ("tokio-retry", "tokio-retry"),
    ("backon", "backon"),
    ("backoff", "backoff"),
    ("retry-policies", "retry-policies"),
    ("exponential-backoff", "exponential-backoff"),
    ("governor", "governor"),
];

/// What stands where nothing was measured.
const NOTHING: &str = "–";

/// One table for each part.
pub(crate) fn markdown(lines: &[&Line], figures: &Figures) -> String {
    let mut text = String::new();
    for part in lines.chunk_by(|one, next| one.part == next.part) {
        let mut peers: Vec<&str> = Vec::new();
        for &(_, title) in PEERS {
            if !peers.contains(&title)
                && part.iter().any(|line| peer(line, title, figures).is_some())
            {
                peers.push(title);
            }
        }
        let columns: String = peers.iter().fold(String::new(), |row, title| row + " | " + title);
        let rules = "|---".repeat(peers.len());
        let _ = writeln!(text, "\n**{}**\n", part[0].part);
        let _ = writeln!(
            text,
            "| row | ours{columns} | reached | goal | |\n|---|---{rules}|---|---|---|"
        );
        for line in part {
            let ours = cell(line.row, line.ours, figures);
            if ours == NOTHING {
                // It is only timed, and nothing was.
                continue;
            }
            let _ = write!(text, "| {} | {ours}", line.title);
            for title in &peers {
                let cell = peer(line, title, figures).map(|name| cell(line.row, name, figures));
                let _ = write!(text, " | {}", cell.unwrap_or_else(|| NOTHING.into()));
            }
            let _ = writeln!(text, " | {} |", verdicts(line, figures).join(" | "));
        }
    }
    text
}

/// A goal that was missed.
pub(crate) struct Missed {
    /// Which, and by how much.
    pub(crate) what: String,
    /// Whether that is known, and no worse than it was.
    pub(crate) known: bool,
}

/// The goals that were missed.
pub(crate) fn missed(lines: &[&Line], figures: &Figures) -> Vec<Missed> {
    let mut missed = Vec::new();
    for line in lines {
        for goal in line.goals {
            if let Some(Verdict { reached, goal, met: false, known }) = verdict(line, goal, figures)
            {
                let what = format!("{} ({}): {reached}, to be {goal}", line.title, line.row);
                missed.push(Missed { what, known });
            }
        }
    }
    missed
}

/// The contender of the line's row that stands in the column of this title.
fn peer(line: &Line, title: &str, figures: &Figures) -> Option<&'static str> {
    let contenders = figures.contenders(line.row);
    // Where contenders come in sizes, each of ours has a peer of its own size.
    let size = line.ours.rsplit_once('-').filter(|(_, size)| size.parse::<u32>().is_ok());
    let named = |name: &str| match size {
        Some((_, size)) if contenders.contains(&format!("tower-{size}").as_str()) => {
            name.ends_with(&format!("-{size}"))
        }
        _ => true,
    };
    let mut fitting = PEERS.iter().filter(|(name, of)| *of == title && named(name));
    fitting.find(|(name, _)| contenders.contains(name)).map(|(name, _)| *name)
}

/// What stands in the column of a contender.
fn cell(row: &str, contender: &str, figures: &Figures) -> String {
    let get = |figure| figures.get(row, contender, figure);
    let mut parts = Vec::new();
    match row {
        "size" => {
            parts.extend(get(Figure::Size).map(|bytes| format!("{bytes:.0} B")));
            let boxed = get(Figure::Boxed).filter(|bytes| *bytes > 0.0);
            parts.extend(boxed.map(|bytes| format!("{bytes:.0} B boxed")));
        }
        "waiting-bytes" => parts.extend(get(Figure::Kept).map(|bytes| format!("{bytes:.0} B"))),
        "wire" | "wire-reqwest" => {
            let bare = figures.bare_of(row, contender).unwrap_or(contender);
            if let (Some(whole), Some(bare)) =
                (get(Figure::Whole), figures.get(row, bare, Figure::Whole))
            {
                parts.push(format!("{:+.1} %", 100.0 * (whole / bare - 1.0)));
            }
        }
        _ => parts.extend(get(Figure::Instructions).map(number)),
    }
    if !["size", "waiting-bytes"].contains(&row) {
        let allocations = get(Figure::Allocations).filter(|_| get(Figure::Instructions).is_some());
        parts.extend(allocations.map(|count| match round(count) {
            1.0 => "1 alloc".into(),
            count => format!("{count} allocs"),
        }));
        parts.extend(get(Figure::Nanoseconds).map(|time| format!("{time:.1} ns")));
    }
    if parts.is_empty() { NOTHING.into() } else { parts.join(", ") }
}

struct Verdict {
    reached: String,
    goal: String,
    met: bool,
    /// Whether that it is missed is known, and no worse than it was.
    known: bool,
}

/// Three cells: what was reached, what was to be reached, and whether it was.
fn verdicts(line: &Line, figures: &Figures) -> [String; 3] {
    let all: Vec<Verdict> =
        line.goals.iter().filter_map(|goal| verdict(line, goal, figures)).collect();
    if all.is_empty() {
        return ["", "stated", ""].map(Into::into);
    }
    let join = |cell: fn(&Verdict) -> &str| all.iter().map(cell).collect::<Vec<_>>().join("<br>");
    [
        join(|verdict| &verdict.reached),
        join(|verdict| &verdict.goal),
        join(|verdict| if verdict.met { "met" } else { "**missed**" }),
    ]
}

/// `None` where the figure was not measured.
fn verdict(line: &Line, goal: &Goal, figures: &Figures) -> Option<Verdict> {
    let value = figures.get(line.row, line.ours, goal.figure)?;
    let unit = match goal.figure {
        Figure::Instructions | Figure::Whole => "instructions",
        Figure::Allocations => "allocations",
        Figure::Kept | Figure::Size => "bytes",
        Figure::Boxed => "bytes boxed",
        Figure::Nanoseconds => "time",
    };
    let known = |value: f64| goal.known.is_some_and(|known| value <= known);
    Some(match goal.limit {
        Limit::AtMost(most) => Verdict {
            reached: format!("{} {}", number(value), singular(round(value), unit)),
            goal: format!("≤ {most} {}", singular(most, unit)),
            met: round(value) <= most,
            known: known(value),
        },
        Limit::Times(times, peer) => {
            let ratio = value / figures.get(line.row, peer, goal.figure)?;
            Verdict {
                reached: format!("{ratio:.2} × {unit}"),
                goal: format!("≤ {times:.2} × {peer}'s {unit}"),
                met: ratio <= times,
                known: known(ratio),
            }
        }
    })
}

fn singular(count: f64, unit: &'static str) -> &'static str {
    if count == 1.0 { unit.trim_end_matches('s') } else { unit }
}

/// Counts of allocations and instructions are means: a hundredth is no part of them.
fn round(mean: f64) -> f64 {
    (mean * 10.0).round() / 10.0
}

/// A count with its thousands apart; tenths where they matter.
fn number(value: f64) -> String {
    if value.abs() < 200.0 {
        return format!("{}", round(value));
    }
    let digits = format!("{:.0}", value.abs());
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{}", groups.join(","))
}
