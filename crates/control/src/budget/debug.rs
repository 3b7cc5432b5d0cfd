//! The `Debug` output of a budget.

use std::fmt;
use std::sync::Arc;

use super::RetryBudget;
use super::any_bucket::Balance;
use super::settings::{Kind, balance, tokens};

/// The maximum number of destinations listed.
const LISTED: usize = 16;

/// Shows the rule, the refusals, and the balances that are not full, lowest first.
impl fmt::Debug for RetryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RetryBudget");
        let capacity = match self.state.settings.kind {
            Kind::Unlimited => return debug.field("kind", &format_args!("unlimited")).finish(),
            Kind::Cautious(caution) => {
                debug.field("kind", &format_args!("cautious"));
                debug.field("capacity", &tokens(caution.capacity));
                caution.capacity
            }
            Kind::Quota(rule, costs) => {
                debug.field("kind", &format_args!("quota"));
                debug.field("retry", &costs.retry);
                debug.field("after_timeout", &costs.after_timeout);
                debug.field("capacity", &tokens(rule.capacity));
                debug.field("min_per_second", &tokens(rule.refill));
                rule.capacity
            }
            Kind::Tokens(rule) if rule.ratio > 0 => {
                debug.field("kind", &format_args!("ratio"));
                debug.field("ratio", &tokens(rule.ratio));
                debug.field("capacity", &tokens(rule.capacity));
                debug.field("min_per_second", &tokens(rule.refill));
                rule.capacity
            }
            Kind::Tokens(rule) => {
                debug.field("kind", &format_args!("rate"));
                debug.field("per_second", &tokens(rule.refill));
                debug.field("burst", &tokens(rule.capacity));
                rule.capacity
            }
        };
        debug.field("refusals", &self.refusals());
        let is_full = |balance: &Balance| balance.is_full(capacity);
        let Some(buckets) = &self.state.buckets else { return debug.finish() };
        let (mut own, others) = buckets.balances();
        if self.state.settings.max_destinations.is_none() {
            return debug.field("balance", &others).finish();
        }
        debug.field("destinations", &own.len());
        own.retain(|(_, balance)| !is_full(balance));
        own.sort_unstable_by(|(a, low), (b, high)| (low.tokens, a).cmp(&(high.tokens, b)));
        debug.field("not_full", &Listed(&own));
        if !is_full(&others) {
            debug.field("others", &others);
        }
        debug.finish()
    }
}

/// Shows the tokens, and the doubt if there is any.
impl fmt::Debug for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let balance = balance(self.tokens);
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
