//! The budget of a policy, read from its fields, with a description.

use reattempt::RetryBudget;

use super::fields::Fields;

/// Returns the budget and its description; `None` if the policy has none of its own, or a problem
/// was reported.
pub(super) fn of_fields(fields: &mut Fields<'_, '_>) -> Option<(RetryBudget, String)> {
    if let Some(mut inner) = fields.table("budget") {
        let budget = of_table(&mut inner);
        inner.finish();
        return budget;
    }
    let word = fields.word("budget", &["default", "ratio", "aws_quota", "none"])?;
    Some(named(word))
}

fn named(word: &str) -> (RetryBudget, String) {
    match word {
        "none" => (RetryBudget::unlimited(), "no budget limits the retries".to_owned()),
        "aws_quota" => (RetryBudget::aws_quota(), aws_quota()),
        "ratio" => (RetryBudget::percent(10), ratio(0.1, 10.0, 0.01)),
        _ => (RetryBudget::default(), cautious()),
    }
}

/// Describes the budget that a profile has.
pub(super) fn of_profile(name: &str) -> Option<String> {
    match name {
        "aws" => Some(aws_quota()),
        "standard" => Some(cautious()),
        _ => None,
    }
}

/// Describes the quota of AWS's clients.
fn aws_quota() -> String {
    "a retry takes 5 tokens of 500, after a timeout 10; a retried call that succeeds gives back what \
     it paid, any other success 1"
        .to_owned()
}

/// Describes the cautious budget.
fn cautious() -> String {
    "three retries without a success, and two more for each success; a retry takes one of 10 tokens, which \
     its success gives back, and a success gives 0.2"
        .to_owned()
}

fn of_table(fields: &mut Fields<'_, '_>) -> Option<(RetryBudget, String)> {
    if fields.has("rate") {
        let rate = fields.number("rate")?;
        let burst = fields.number("burst").unwrap_or((2.0 * rate).max(1.0));
        let budget = fields.accepted(RetryBudget::rate(rate, burst))?;
        return Some((budget, format!("{rate} retries a second, of which {burst} are saved up")));
    }
    let share = fields.number("ratio").unwrap_or(0.1);
    let capacity = fields.number("capacity").unwrap_or(10.0);
    let trickle = fields.number("min_per_second").unwrap_or(0.01);
    // All three fields are checked, even if one of them has a problem.
    let usual = || RetryBudget::percent(10);
    let checked = [
        fields.accepted(RetryBudget::ratio(share)),
        fields.accepted(usual().capacity(capacity)),
        fields.accepted(usual().min_per_second(trickle)),
    ];
    if checked.iter().any(Option::is_none) {
        return None;
    }
    let budget = RetryBudget::ratio(share)
        .and_then(|budget| budget.capacity(capacity))
        .and_then(|budget| budget.min_per_second(trickle));
    Some((fields.accepted(budget)?, ratio(share, capacity, trickle)))
}

fn ratio(share: f64, capacity: f64, trickle: f64) -> String {
    format!(
        "a retry takes one of {capacity} tokens; a success gives {share}, and a second gives {trickle}"
    )
}
