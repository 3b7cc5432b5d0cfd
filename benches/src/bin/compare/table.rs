//! The figures as Markdown.

use std::fmt::Write;

use crate::goals::{AIR, Figure, Goal, Limit, Line};
use crate::measure::Figures;

/// The peers in the order of their columns, with the title of each column.
const PEERS: &[(&str, &str)] = &[
    ("tower", "tower by hand, `TpsBudget`"),
    ("tower-1000", "tower by hand, own bucket"),
    ("tower-20000", "tower by hand, own bucket"),
    ("tower-bucket", "tower by hand, own bucket"),
    ("tower-bucket-half-full", "the same, half full"),
    ("tower-hedge", "tower's hedge"),
    ("tower-balance", "tower's balancer"),
    ("tower-buffered", "tower's balancer in its `Buffer`"),
    ("tower-resilience", "tower-resilience-retry"),
    ("reqwest-own", "reqwest's own"),
    ("reqwest-retry", "reqwest-retry"),
    ("tokio-retry", "tokio-retry"),
    ("backon", "backon"),
    ("backon-without-timer", "backon, no timer for a delay of 0"),
    ("backoff", "backoff"),
    ("retry-policies", "retry-policies"),
    ("exponential-backoff", "exponential-backoff"),
    ("governor", "governor"),
    ("recloser", "recloser"),
    ("failsafe", "failsafe"),
    ("seatbelt", "seatbelt"),
    ("seatbelt-stack", "seatbelt"),
    ("mixed-stack", "mixed: tower and seatbelt"),
    ("tower-limit", "tower's limit"),
    ("tower-acc", "tower-acc"),
    ("least", "least code by hand"),
    ("least-extension", "a deadline in the extensions alone"),
    ("resilience-adaptive", "tower-resilience"),
    ("resilience-breaker", "tower-resilience"),
    ("resilience-bulkhead", "tower-resilience"),
    ("resilience-limiter", "tower-resilience"),
    ("resilience-stack", "tower-resilience"),
];

/// The cell of a contender that is not part of the row.
const NOTHING: &str = "–";
/// The cell of a contender that was not run.
const NOT_MEASURED: &str = "not measured";

/// Writes one table for each part.
pub(crate) fn markdown(lines: &[&Line], figures: &Figures) -> String {
    let mut text = String::new();
    for part in lines.chunk_by(|one, next| one.part == next.part) {
        let mut peers: Vec<&str> = Vec::new();
        for &(_, title) in PEERS {
            if !peers.contains(&title) && part.iter().any(|line| peer(line, title, figures).is_some()) {
                peers.push(title);
            }
        }
        let columns: String = peers.iter().fold(String::new(), |row, title| row + " | " + title);
        let rules = "|---".repeat(peers.len());
        let _ = writeln!(text, "\n**{}**\n", part[0].part);
        let _ = writeln!(text, "| row | ours{columns} | reached | goal | |\n|---|---{rules}|---|---|---|");
        for line in part {
            let ours = cell(line.row, line.ours, figures);
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

/// Returns the goals that were missed.
pub(crate) fn missed(lines: &[&Line], figures: &Figures) -> Vec<String> {
    in_state(State::Missed, lines, figures)
}

/// Returns the goals with too little margin: another checkout could miss them.
pub(crate) fn without_air(lines: &[&Line], figures: &Figures) -> Vec<String> {
    in_state(State::NoAir, lines, figures)
}

fn in_state(state: State, lines: &[&Line], figures: &Figures) -> Vec<String> {
    let all = verdicts_of(lines, figures).into_iter();
    all.filter(|(_, verdict)| verdict.state == state).map(|(line, verdict)| describe(line, &verdict)).collect()
}

/// Returns the goals whose figure is absent from a run that should have measured it.
pub(crate) fn absent(lines: &[&Line], figures: &Figures, counts_only: bool) -> Vec<String> {
    let goals = lines.iter().flat_map(|line| line.goals.iter().map(move |goal| (line, goal)));
    goals
        .filter(|(_, goal)| !(counts_only && goal.figure.is_slow()))
        .filter(|(line, goal)| verdict(line, goal, figures).is_none())
        .map(|(line, goal)| format!("{} ({}): {:?}", line.title, line.row, goal.figure))
        .collect()
}

/// Returns the share of calls that may fail once before ours costs more than the better tower
/// policy.
pub(crate) fn shares(figures: &Figures) -> Vec<String> {
    let pairs = [("template", "once", "cloned from a template"), ("fresh", "once-fresh", "built anew")];
    let share = |success: &str, failure: &str| {
        let get = |row, contender| figures.get(row, contender, Figure::Instructions);
        let (ours, ours_failing) = (get(success, "ours")?, get(failure, "ours")?);
        let of = |peer| {
            let saved = get(success, peer)? - ours;
            let lost = ours_failing - get(failure, peer)?;
            Some(if saved <= 0.0 { 0.0 } else { saved / (saved + lost) })
        };
        ["tower", "tower-bucket"].into_iter().filter_map(of).reduce(f64::min)
    };
    let found = pairs.into_iter().filter_map(|(success, failure, requests)| {
        let percent = 100.0 * share(success, failure)?;
        Some(format!(
            "Requests {requests}: ours costs fewer instructions than the better policy on tower as long \
             as fewer than {percent:.1} % of the calls fail once."
        ))
    });
    found.collect()
}

fn verdicts_of<'a>(lines: &[&'a Line], figures: &Figures) -> Vec<(&'a Line, Verdict)> {
    let goals = lines.iter().flat_map(|line| line.goals.iter().map(move |goal| (*line, goal)));
    goals.filter_map(|(line, goal)| Some((line, verdict(line, goal, figures)?))).collect()
}

fn describe(line: &Line, verdict: &Verdict) -> String {
    format!("{} ({}): {}, to be {}", line.title, line.row, verdict.reached, verdict.goal)
}

/// Returns the contender of the line's row in the column of this title.
fn peer(line: &Line, title: &str, figures: &Figures) -> Option<&'static str> {
    let contenders = figures.contenders(line.row);
    // Contenders with a size in their names have a peer of the same size.
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

/// Writes the figures of one contender.
fn cell(row: &str, contender: &str, figures: &Figures) -> String {
    let get = |figure| figures.get(row, contender, figure);
    let bytes = |figure| get(figure).map(|bytes| format!("{} B", number(bytes)));
    let mut parts = Vec::new();
    match row {
        "size" | "retry-size" => {
            parts.extend(bytes(Figure::Size));
            let boxed = get(Figure::Boxed).filter(|bytes| *bytes > 0.0);
            parts.extend(boxed.map(|bytes| format!("{bytes:.0} B boxed")));
        }
        "waiting-bytes" | "in-flight-bytes" => parts.extend(bytes(Figure::Saved)),
        "wire" | "wire-h2" | "wire-reqwest" => {
            parts.extend(over_bare(row, contender, Figure::Whole, figures));
            parts.extend(allocations(row, contender, figures));
        }
        "build" | "build-retry" => {
            parts.extend(get(Figure::Crates).map(|crates| format!("{crates:.0} crates")));
            parts.extend(get(Figure::CpuSeconds).map(|time| format!("{time:.0} CPU s")));
            parts.extend(bytes(Figure::Stripped));
        }
        _ if row.starts_with("in-flight-") => {
            parts.extend(over_bare(row, contender, Figure::Time, figures));
        }
        "two-threads" | "two-threads-breaker" => parts.extend(get(Figure::Time).map(|_| "timed".into())),
        _ => {
            parts.extend(get(Figure::Instructions).map(number));
            parts.extend(allocations(row, contender, figures));
        }
    }
    if parts.is_empty() { NOT_MEASURED.into() } else { parts.join(", ") }
}

/// Returns the cost of a call above the bare client, in percent.
fn over_bare(row: &str, contender: &str, figure: Figure, figures: &Figures) -> Option<String> {
    let whole = figures.get(row, contender, figure)?;
    let bare = figures.get(row, "bare", figure)?;
    Some(format!("{:+.1} %", 100.0 * (whole / bare - 1.0)))
}

fn allocations(row: &str, contender: &str, figures: &Figures) -> Option<String> {
    let count = round(figures.get(row, contender, Figure::Allocations)?);
    Some(format!("{count} {}", singular(count, "allocs")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Shown,
    Met,
    NoAir,
    Missed,
}

struct Verdict {
    reached: String,
    goal: String,
    state: State,
    misses_aim: bool,
}

/// Writes three cells: the figures reached, their limits, and the verdict.
fn verdicts(line: &Line, figures: &Figures) -> [String; 3] {
    if line.goals.is_empty() {
        return ["", "stated", ""].map(Into::into);
    }
    let cells: Vec<[String; 3]> = line
        .goals
        .iter()
        .map(|goal| match verdict(line, goal, figures) {
            None => [NOT_MEASURED.into(), limit(goal), String::new()],
            Some(verdict) => {
                let state = match verdict.state {
                    State::Shown => "",
                    State::Met => "met",
                    State::NoAir => "met, without 3 % of air",
                    State::Missed => "**missed**",
                };
                let aim = if verdict.misses_aim { ", aim missed" } else { "" };
                [verdict.reached, verdict.goal, format!("{state}{aim}")]
            }
        })
        .collect();
    [0, 1, 2].map(|column| {
        let column: Vec<&str> = cells.iter().map(|cell| cell[column].as_str()).collect();
        column.join("<br>")
    })
}

fn unit(figure: Figure) -> &'static str {
    match figure {
        Figure::Instructions | Figure::Whole => "instructions",
        Figure::Allocations => "allocations",
        Figure::Saved | Figure::Size | Figure::Stripped => "bytes",
        Figure::Boxed => "bytes boxed",
        Figure::StrippedFat => "bytes with fat LTO",
        Figure::Further => "bytes for a further client type",
        Figure::Time => "CPU time",
        Figure::Crates => "crates",
        Figure::CpuSeconds => "CPU seconds",
    }
}

/// Writes the limit.
fn limit(goal: &Goal) -> String {
    let unit = unit(goal.figure);
    let limit = match goal.limit {
        Limit::AtMost(most) => format!("≤ {} {}", number(most), singular(most, unit)),
        Limit::Times(times, peers) => format!("≤ {times} × {unit} of {}", best(peers)),
        Limit::Above(more, than) => format!("≤ {more} {unit} more than {than}"),
        Limit::Shown([]) => "stated".into(),
        Limit::Shown(peers) => format!("beside {}", best(peers)),
    };
    goal.aim.map_or(limit.clone(), |aim| format!("{limit}; aim {aim}"))
}

fn best(peers: &[&str]) -> String {
    match peers {
        [one] => (*one).into(),
        several => format!("the better of {}", several.join(" and ")),
    }
}

/// Compares a figure with its goal; `None` if it, or that of all its peers, was not measured.
fn verdict(line: &Line, goal: &Goal, figures: &Figures) -> Option<Verdict> {
    let get = |contender: &str| figures.get(line.row, contender, goal.figure);
    let value = get(line.ours)?;
    let unit = unit(goal.figure);
    let lowest = |peers: &[&str]| peers.iter().filter_map(|peer| get(peer)).reduce(f64::min);
    let plain = || format!("{} {}", number(value), singular(round(value), unit));
    let (reached, compared, most) = match goal.limit {
        Limit::AtMost(most) => (plain(), round(value), Some(most)),
        Limit::Shown([]) => (plain(), value, None),
        Limit::Times(times, peers) => {
            let ratio = value / lowest(peers)?;
            (format!("{} × {unit}", ratio_of(ratio, goal.figure)), ratio, Some(times))
        }
        Limit::Shown(peers) => {
            let ratio = value / lowest(peers)?;
            (format!("{} × {unit}", ratio_of(ratio, goal.figure)), ratio, None)
        }
        Limit::Above(more, than) => {
            let above = round(value - get(than)?);
            (format!("{above} {} more", singular(above, unit)), above, Some(more))
        }
    };
    let state = match most {
        None => State::Shown,
        Some(most) if compared > most => State::Missed,
        Some(most) if lacks_air(goal.figure, compared, most) => State::NoAir,
        Some(_) => State::Met,
    };
    let misses_aim = goal.aim.is_some_and(|aim| compared > aim);
    Some(Verdict { reached, goal: limit(goal), state, misses_aim })
}

/// Formats a ratio; those of whole calls are close to one, so they get three decimals.
fn ratio_of(ratio: f64, figure: Figure) -> String {
    match figure {
        Figure::Whole | Figure::Time => format!("{ratio:.3}"),
        _ => format!("{ratio:.2}"),
    }
}

/// Returns `true` if a goal is met by less than the margin. Only counts of instructions need one,
/// because they move with the path of the checkout; of whole calls, the part above bare.
fn lacks_air(figure: Figure, value: f64, most: f64) -> bool {
    match figure {
        Figure::Instructions => value * (1.0 + AIR) > most,
        Figure::Whole => (value - 1.0) * (1.0 + AIR) > most - 1.0,
        _ => false,
    }
}

fn singular(count: f64, unit: &'static str) -> &'static str {
    if count == 1.0 { unit.trim_end_matches('s') } else { unit }
}

/// Rounds a mean of counts to tenths.
fn round(mean: f64) -> f64 {
    (mean * 10.0).round() / 10.0
}

/// Formats a count with separated thousands; small counts with tenths.
fn number(value: f64) -> String {
    if value.abs() < 200.0 {
        return format!("{}", round(value));
    }
    let digits = format!("{:.0}", value.abs());
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or_default()).collect();
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{}", groups.join(","))
}
