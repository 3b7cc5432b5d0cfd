//! The output of a budget: for `Debug`, and for a snapshot.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::snapshot::{Inspect, Part, Value};

use super::RetryBudget;
use super::any_bucket::Balance;
use super::settings::{Kind, tokens};
use crate::millionths::units;

/// The maximum number of destinations that `Debug` lists.
const LISTED: usize = 16;

impl Kind {
    /// Returns the name of the rule, and its settings in tokens.
    fn shown(&self) -> (&'static str, Vec<(&'static str, Value)>) {
        let number = |millionths| Value::Number(tokens(millionths));
        match self {
            Self::Unlimited => ("unlimited", Vec::new()),
            Self::Cautious(caution) => ("cautious", vec![("capacity", number(caution.capacity))]),
            Self::Quota(rule, costs) => (
                "quota",
                vec![
                    ("retry", costs.retry.into()),
                    ("after_timeout", costs.after_timeout.into()),
                    ("capacity", number(rule.capacity)),
                    ("min_per_second", number(rule.refill)),
                ],
            ),
            Self::Tokens(rule) if rule.ratio > 0 => (
                "ratio",
                vec![
                    ("ratio", number(rule.ratio)),
                    ("capacity", number(rule.capacity)),
                    ("min_per_second", number(rule.refill)),
                ],
            ),
            Self::Tokens(rule) => ("rate", vec![("per_second", number(rule.refill)), ("burst", number(rule.capacity))]),
        }
    }
}

/// Shows the rule, the refusals, and the balances that are not full, lowest first.
impl fmt::Debug for RetryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RetryBudget");
        let (kind, settings) = self.state.settings.kind.shown();
        debug.field("kind", &format_args!("{kind}"));
        for (name, value) in settings {
            debug.field(name, &value);
        }
        let Some(buckets) = &self.state.buckets else { return debug.finish() };
        debug.field("refusals", &self.refusals());
        let (mut own, others) = buckets.balances();
        if self.state.settings.max_destinations.is_none() {
            return debug.field("balance", &others).finish();
        }
        debug.field("destinations", &own.len());
        own.retain(|(_, balance)| !buckets.is_full_at(*balance));
        own.sort_unstable_by(|(a, low), (b, high)| (low.tokens, a).cmp(&(high.tokens, b)));
        debug.field("not_full", &Listed(&own));
        if !buckets.is_full_at(others) {
            debug.field("others", &others);
        }
        debug.finish()
    }
}

/// Shows the rule, the refusals and all balances, as of the last retry or success.
impl Inspect for RetryBudget {
    fn inspect(&self, _: Duration) -> Part {
        let (kind, settings) = self.state.settings.kind.shown();
        let part = Part::new("budget", "").field("rule", kind);
        let part = settings.into_iter().fold(part, |part, (name, value)| part.field(name, value));
        let Some(buckets) = &self.state.buckets else { return part };
        let (mut own, others) = buckets.balances();
        let others = match self.state.settings.max_destinations {
            None => Some("all_destinations"),
            Some(_) => (!buckets.is_full_at(others)).then_some("other_destinations"),
        }
        .map(|kind| others.inspect(Part::new(kind, "")));
        own.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let own = own.iter().map(|(name, balance)| balance.inspect(Part::new("destination", &**name)));
        part.field("refusals", self.refusals()).parts(others.into_iter().chain(own))
    }
}

impl Balance {
    fn inspect(self, part: Part) -> Part {
        part.field("tokens", units(self.tokens)).field_if("doubt", Some(self.doubt).filter(|doubt| *doubt > 0))
    }
}

/// Shows the tokens, and the doubt if there is any.
impl fmt::Debug for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let balance = units(self.tokens);
        match self.doubt {
            0 => fmt::Debug::fmt(&balance, f),
            doubt => write!(f, "{balance:?} with doubt {doubt}"),
        }
    }
}

/// The first balances, and the number of omitted ones.
struct Listed<'a>(&'a [(Arc<str>, Balance)]);

impl fmt::Debug for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (listed, more) = self.0.split_at(self.0.len().min(LISTED));
        let mut map = f.debug_map();
        map.entries(listed.iter().map(|(name, balance)| (name, balance)));
        if !more.is_empty() {
            map.entry(&format_args!("more"), &more.len());
        }
        map.finish()
    }
}
