//! The `Debug` output of a budget.

use std::fmt;
use std::sync::Arc;

use super::RetryBudget;
use super::destination_bucket::DestinationBucket;
use super::retry_budget::Buckets;
use super::settings::{Kind, tokens};
use super::store::Store;

/// The number of destinations that are listed, the emptiest first.
const LISTED: usize = 16;

/// The rule, the refusals, and the balances that are not full, the emptiest first.
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
            Kind::Quota(rule, quota) => {
                debug.field("kind", &format_args!("quota"));
                debug.field("retry", &quota.retry);
                debug.field("after_timeout", &quota.after_timeout);
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
        match &self.state.buckets {
            Buckets::None => {}
            Buckets::Tokens(store) => balances(&mut debug, store, capacity),
            Buckets::Cautious(store) => balances(&mut debug, store, capacity),
        }
        debug.finish()
    }
}

fn balances<B: DestinationBucket>(
    debug: &mut fmt::DebugStruct<'_, '_>,
    store: &Store<B>,
    capacity: u64,
) {
    let destinations = match store {
        Store::Each(destinations) => destinations,
        Store::One(bucket) => {
            let balance = bucket.balance().unwrap_or_default();
            debug.field("balance", &Shown { balance, doubt: bucket.doubt() });
            return;
        }
    };
    let mut balances = destinations.balances();
    debug.field("destinations", &balances.len());
    balances.retain(|(_, balance, doubt)| *balance < capacity || *doubt > 0);
    balances.sort_unstable_by(|(a, low, _), (b, high, _)| (low, a).cmp(&(high, b)));
    debug.field("not_full", &Listed(&balances));
    let (balance, doubt) = destinations.balance_of_others();
    if balance < capacity || doubt > 0 {
        debug.field("others", &Shown { balance, doubt });
    }
}

/// The tokens of a bucket, and the doubt if there is any.
struct Shown {
    balance: u64,
    doubt: u64,
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let balance = tokens(self.balance);
        match self.doubt {
            0 => fmt::Debug::fmt(&balance, f),
            doubt => write!(f, "{balance:?} with doubt {doubt}"),
        }
    }
}

/// The first few balances, and how many more there are.
struct Listed<'a>(&'a [(Arc<str>, u64, u64)]);

impl fmt::Debug for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (listed, more) = self.0.split_at(self.0.len().min(LISTED));
        let mut map = f.debug_map();
        map.entries(
            listed
                .iter()
                .map(|(name, balance, doubt)| (name, Shown { balance: *balance, doubt: *doubt })),
        );
        if !more.is_empty() {
            map.entry(&format_args!("more"), &more.len());
        }
        map.finish()
    }
}
