//! The table of results, by kind and by client, and the reasons of the remaining failures.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use reattempt::RetryBudget;

use crate::experiment::script::Kind;
use crate::experiment::sending::{End, Sent};

/// Writes the table, the refused connections, the reasons and the state of the budget.
pub(crate) fn write(out: &mut impl Write, unwrapped: &[Sent], reattempt: &[Sent], budget: &RetryBudget) -> fmt::Result {
    writeln!(out, "{:24}{:>8}{:>20}{:>20}", "", "calls", "unwrapped", "reattempt")?;
    writeln!(out, "{:24}{:>8}{:>12}{:>8}{:>12}{:>8}", "", "", "ok", "failed", "ok", "failed")?;
    for kind in Kind::ALL {
        row(out, &kind.to_string(), unwrapped, reattempt, |sent| sent.kind == kind)?;
    }
    row(out, "all", unwrapped, reattempt, |_| true)?;
    let refused = [unwrapped, reattempt].map(|calls| calls.iter().map(Sent::refused).sum::<u32>());
    writeln!(out, "{:24}{:>28}{:>20}  (not counted as attempts)\n", "refused connections", refused[0], refused[1])?;
    write_reasons(out, reattempt)?;
    writeln!(
        out,
        "The retry budget had room for every retry (the default one may have none) and refused {}.",
        budget.refusals()
    )
}

fn row(
    out: &mut impl Write,
    name: &str,
    unwrapped: &[Sent],
    reattempt: &[Sent],
    belongs: impl Fn(&Sent) -> bool,
) -> fmt::Result {
    let [plain, wrapped] = [unwrapped, reattempt].map(|calls| {
        let (ok, failed): (Vec<&Sent>, Vec<&Sent>) =
            calls.iter().filter(|sent| belongs(sent)).partition(|sent| sent.is_ok());
        (ok.len(), failed.len())
    });
    let calls = plain.0 + plain.1;
    let (ok, failed) = plain;
    write!(out, "{name:24}{calls:>8}{ok:>12}{failed:>8}")?;
    let (ok, failed) = wrapped;
    writeln!(out, "{ok:>12}{failed:>8}")
}

/// Writes the reasons why calls failed in spite of the retries, the commonest first.
fn write_reasons(out: &mut impl Write, reattempt: &[Sent]) -> fmt::Result {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for sent in reattempt.iter().filter(|sent| !sent.is_ok()) {
        *counts.entry(reason(sent)).or_default() += 1;
    }
    if counts.is_empty() {
        return writeln!(out, "No call failed in spite of the retries.\n");
    }
    let mut counts: Vec<(String, u32)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    writeln!(out, "Why calls failed in spite of the retries:")?;
    for (reason, count) in counts {
        writeln!(out, "{count:>8}  {reason}")?;
    }
    writeln!(out)
}

fn reason(sent: &Sent) -> String {
    match (sent.end, sent.stop_reason()) {
        (End::BrokenOff, _) => "the response broke off when its head had reached the caller".to_owned(),
        (_, Some(reason)) => reason.to_string(),
        (end, None) => format!("{end:?}"),
    }
}
