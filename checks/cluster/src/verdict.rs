//! The judgement of a scene: what the clients saw against what the servers wrote.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tower::BoxError;

use crate::calls::{Done, Kind};
use crate::client::Attempts;
use reattempt_cluster_check::process::{Cluster, Outage};

/// The least success of calls that may be repeated.
pub(crate) const GOAL: f64 = 0.999;

/// The time in which a client may send on a connection whose server is gone, before it reads that it is closed.
const UNREAD: Duration = Duration::from_millis(100);

/// The figures of a scene, and what is wrong with them.
#[derive(Debug)]
pub(crate) struct Verdict {
    repeatable: usize,
    repeatable_failed: usize,
    keyless: usize,
    keyless_failed: usize,
    carried_out: usize,
    retried: usize,
    /// The median, the 99th percentile and the longest time of the calls that succeeded.
    times: [Duration; 3],
    problems: Vec<String>,
}

impl Verdict {
    pub(crate) fn of(done: &[Done], cluster: &Cluster, attempts: &Attempts, goal: f64) -> Result<Self, BoxError> {
        let (keyless, repeatable): (Vec<_>, Vec<_>) = done.iter().partition(|call| call.kind == Kind::Keyless);
        let failed = |calls: &[&Done]| calls.iter().filter(|call| call.failure.is_some()).count();
        let mut times: Vec<_> =
            done.iter().filter(|call| call.failure.is_none()).map(|call| call.ended - call.began).collect();
        times.sort_unstable();
        let percentile = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
        let mut counts = HashMap::<u64, usize>::new();
        cluster.ledger()?.into_iter().for_each(|call| *counts.entry(call).or_default() += 1);

        let mut this = Self {
            repeatable: repeatable.len(),
            repeatable_failed: failed(&repeatable),
            keyless: keyless.len(),
            keyless_failed: failed(&keyless),
            carried_out: counts.len(),
            retried: done.iter().filter(|call| attempts.of(call.call).len() > 1).count(),
            times: [50, 99, 100].map(|percent| percentile(percent).copied().unwrap_or_default()),
            problems: Vec::new(),
        };
        if this.success() < goal {
            this.problems.push(format!("fewer than {goal} of the calls that may be repeated succeeded"));
            for call in repeatable.iter().filter(|call| call.failure.is_some()) {
                let sent = attempts.of(call.call).into_iter().map(|(to, sent)| (to.port(), sent - call.began));
                let (sent, after) = (sent.collect::<Vec<_>>(), call.ended - call.began);
                this.problems.push(format!("{:?} after {after:?}, sent {sent:?}: {:?}", call.kind, call.failure));
            }
        }
        for call in done {
            let carried_out = counts.get(&call.call).copied().unwrap_or(0);
            if carried_out > 1 {
                this.problems.push(format!("POST {} was carried out {carried_out} times", call.call));
            }
            if call.kind != Kind::Get && call.failure.is_none() && carried_out == 0 {
                this.problems.push(format!("POST {} succeeded, and no server has carried it out", call.call));
            }
            if let (Kind::Keyless, Some(failure)) = (call.kind, &call.failure)
                && !was_in_flight(call, attempts, &cluster.outages)
            {
                let sent = attempts.of(call.call).last().map(|(address, sent)| (*address, call.ended - *sent));
                let problem = format!(
                    "POST {} (carried out: {carried_out}) failed without an outage: {failure}, last attempt {sent:?}",
                    call.call
                );
                this.problems.push(problem);
            }
        }
        Ok(this)
    }

    fn success(&self) -> f64 {
        1.0 - self.repeatable_failed as f64 / (self.repeatable as f64).max(1.0)
    }

    /// Adds a condition of the scene's own.
    pub(crate) fn expect(&mut self, holds: bool, problem: impl Into<String>) {
        if !holds {
            self.problems.push(problem.into());
        }
    }

    /// Expects that no POST failed, because no server went without a notice.
    pub(crate) fn expect_no_loss(&mut self) {
        self.expect(self.keyless_failed == 0 && self.repeatable_failed == 0, "a call was lost");
    }

    pub(crate) fn is_well(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Returns `true` if the last attempt of a call was at a server when that went.
fn was_in_flight(call: &Done, attempts: &Attempts, outages: &[Outage]) -> bool {
    let attempts = attempts.of(call.call);
    let Some((address, sent)) = attempts.last() else { return false };
    let is_of = |outage: &&Outage| outage.address == *address;
    outages.iter().filter(is_of).any(|outage| *sent <= outage.to + UNREAD && call.ended >= outage.from)
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { repeatable, repeatable_failed, keyless, keyless_failed, carried_out, retried, .. } = self;
        let [median, most, longest] = self.times.map(|time| time.as_millis());
        let success = 100.0 * self.success();
        writeln!(f, "   GET, POST with a key   {repeatable:>6} calls, {repeatable_failed} failed: {success:.2} %")?;
        writeln!(f, "   POST without a key     {keyless:>6} calls, {keyless_failed} failed")?;
        writeln!(f, "   ledger                 {carried_out:>6} POSTs carried out")?;
        writeln!(
            f,
            "   time                   median {median} ms, p99 {most} ms, longest {longest} ms; {retried} calls retried"
        )?;
        self.problems.iter().take(20).try_for_each(|problem| writeln!(f, "   WRONG: {problem}"))
    }
}
