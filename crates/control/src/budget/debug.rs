//! What a budget says of itself to whoever looks at it in the night.

use std::fmt;
use std::sync::Arc;

use super::RetryBudget;
use super::retry_budget::Buckets;
use super::settings::tokens;

/// How many destinations are listed, the emptiest first.
const LISTED: usize = 16;

/// The rule, the refusals, and the balances that are not full, the emptiest first.
impl fmt::Debug for RetryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RetryBudget");
        let Some(rule) = self.state.settings.rule else {
            return debug.field("kind", &format_args!("unlimited")).finish();
        };
        if let Some(quota) = self.state.settings.quota {
            debug.field("kind", &format_args!("quota"));
            debug.field("retry", &quota.retry);
            debug.field("after_timeout", &quota.after_timeout);
            debug.field("capacity", &tokens(rule.capacity));
            debug.field("trickle", &tokens(rule.refill));
        } else if rule.ratio > 0 {
            debug.field("kind", &format_args!("ratio"));
            debug.field("ratio", &tokens(rule.ratio));
            debug.field("capacity", &tokens(rule.capacity));
            debug.field("trickle", &tokens(rule.refill));
        } else {
            debug.field("kind", &format_args!("rate"));
            debug.field("per_second", &tokens(rule.refill));
            debug.field("burst", &tokens(rule.capacity));
        }
        debug.field("refusals", &self.refusals());
        match &self.state.buckets {
            Buckets::None => {}
            Buckets::One(_) => {
                debug.field("balance", &self.balance(""));
            }
            Buckets::Each(destinations) => {
                let mut balances = destinations.balances();
                debug.field("destinations", &balances.len());
                balances.retain(|(_, balance)| *balance < rule.capacity);
                balances.sort_unstable_by(|(a, low), (b, high)| (low, a).cmp(&(high, b)));
                debug.field("not_full", &Listed(&balances));
                let others = destinations.balance_of_others();
                if others < rule.capacity {
                    debug.field("others", &tokens(others));
                }
            }
        }
        debug.finish()
    }
}

/// The first few balances, and how many more there are.
struct Listed<'a>(&'a [(Arc<str>, u64)]);

impl fmt::Debug for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (listed, more) = self.0.split_at(self.0.len().min(LISTED));
        let mut map = f.debug_map();
        map.entries(listed.iter().map(|(name, balance)| (name, tokens(*balance))));
        if !more.is_empty() {
            map.entry(&format_args!("more"), &more.len());
        }
        map.finish()
    }
}
