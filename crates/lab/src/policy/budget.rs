//! The budget of a policy, read from its fields, with a description.

use reattempt::RetryBudget;

use super::fields::Fields;

/// Returns the budget, its description, and `true` if many processes share it; `None` if the policy has none of its
/// own, or a problem was reported. `profile` is the name of the policy's profile.
pub(super) fn of_fields(fields: &mut Fields<'_, '_>, profile: Option<&str>) -> Option<(RetryBudget, String, bool)> {
    if let Some(mut inner) = fields.table("budget") {
        let budget = of_table(&mut inner, profile);
        inner.finish();
        return budget.map(|(budget, words)| (budget, words, false));
    }
    let word = fields.word("budget", &["default", "cautious", "ratio", "aws_quota", "fleet", "none"])?;
    let (budget, words) = named(word);
    Some((budget, words, word == "fleet"))
}

fn named(word: &str) -> (RetryBudget, String) {
    match word {
        "none" => (RetryBudget::unlimited(), "no budget limits the retries".to_owned()),
        "aws_quota" => (RetryBudget::aws_quota(), aws_quota(500.0)),
        "ratio" => (RetryBudget::percent(10), ratio(0.1, 10.0, 0.01)),
        "cautious" => (RetryBudget::cautious(), cautious(10.0)),
        "fleet" => (RetryBudget::cautious(), fleet()),
        _ => (RetryBudget::default(), cautious(10.0)),
    }
}

/// Describes the budget that a profile has.
pub(super) fn of_profile(name: &str) -> Option<String> {
    match name {
        "aws" => Some(aws_quota(500.0)),
        "standard" => Some(cautious(10.0)),
        _ => None,
    }
}

/// Describes the quota of AWS's clients.
fn aws_quota(capacity: f64) -> String {
    format!(
        "a retry takes 5 tokens of {capacity}, after a timeout 10; a retried call that succeeds gives back what \
         it paid, any other success 1"
    )
}

/// Describes the budget that many processes share.
fn fleet() -> String {
    format!(
        "{}; all processes together have ten more tokens for each destination, one in two seconds, and three for \
         each retry that succeeds",
        cautious(10.0)
    )
}

/// Describes the cautious budget.
fn cautious(capacity: f64) -> String {
    format!(
        "three retries without a success, and two more for each success; a retry takes one of {capacity} tokens, \
         which its success gives back, and a success gives 0.2"
    )
}

/// Reads a rate budget if there is a rate, and a ratio budget if there is a ratio or a `min_per_second`.
/// A capacity alone is that of the profile's budget, or of the default one.
fn of_table(fields: &mut Fields<'_, '_>, profile: Option<&str>) -> Option<(RetryBudget, String)> {
    let other = ["rate", "ratio", "min_per_second"];
    if fields.has("capacity") && !other.iter().any(|key| fields.has(key)) {
        let capacity = fields.number("capacity")?;
        let (budget, words) = match profile {
            Some("aws") => (RetryBudget::aws_quota(), aws_quota(capacity)),
            _ => (RetryBudget::cautious(), cautious(capacity)),
        };
        return Some((fields.accepted(budget.capacity(capacity))?, words));
    }
    if fields.has("rate") {
        let rate = fields.number("rate")?;
        let burst = fields.number("burst").unwrap_or((2.0 * rate).max(1.0));
        let budget = fields.accepted(RetryBudget::rate(rate, burst))?;
        return Some((budget, format!("{rate} retries a second, of which {burst} are saved up")));
    }
    let share = fields.number("ratio").unwrap_or(0.1);
    let capacity = fields.number("capacity").unwrap_or(10.0);
    let min_per_second = fields.number("min_per_second").unwrap_or(0.01);
    // All three fields are checked, even if one of them has a problem.
    let usual = || RetryBudget::percent(10);
    let checked = [
        fields.accepted(RetryBudget::ratio(share)),
        fields.accepted(usual().capacity(capacity)),
        fields.accepted(usual().min_per_second(min_per_second)),
    ];
    if checked.iter().any(Option::is_none) {
        return None;
    }
    let budget = RetryBudget::ratio(share)
        .and_then(|budget| budget.capacity(capacity))
        .and_then(|budget| budget.min_per_second(min_per_second));
    Some((fields.accepted(budget)?, ratio(share, capacity, min_per_second)))
}

fn ratio(share: f64, capacity: f64, trickle: f64) -> String {
    format!("a retry takes one of {capacity} tokens; a success gives {share}, and a second gives {trickle}")
}
