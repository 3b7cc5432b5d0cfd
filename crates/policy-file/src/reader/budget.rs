//! The budget of a policy from its fields, with a description.

use reattempt::RetryBudget;

use super::field::{Field, Kind, Range, field};
use super::fields::Fields;

/// The maximum number of tokens in a bucket.
const MOST_TOKENS: f64 = 10_000_000.0;

static WORDS: [&str; 6] = ["default", "cautious", "ratio", "aws_quota", "fleet", "none"];

field! {
    BUDGET = "budget": Kind::WordOrTable(&WORDS, &[RATIO_FIELDS, RATE_FIELDS]),
        "The retry budget: a kind, or a table with its numbers. Default: the protocol's, or the profile's.";
    RATIO = "ratio": Kind::Number(Range::new(0.000_001, 1.0)), "The retries that each success allows. Default 0.1.";
    CAPACITY = "capacity": Kind::Number(Range::new(1.0, MOST_TOKENS)),
        "The most retries that are saved up, for each destination. Default 10.";
    TRICKLE = "min_per_second": Kind::Number(Range::new(0.0, 1_000_000.0)),
        "The retries that each second allows. Default 0.01.";
    RATE = "rate": Kind::Number(Range::new(0.000_001, 1_000_000.0)), "The retries for each second.";
    BURST = "burst": Kind::Number(Range::new(1.0, MOST_TOKENS)),
        "The most retries that are saved up. Default: those of two seconds, at least 1.";
    // The capacity, for the two kinds with other ranges.
    CAUTIOUS_CAPACITY = "capacity": Kind::Number(Range::new(2.0, 1000.0)), "";
    QUOTA_CAPACITY = "capacity": Kind::Number(Range::new(10.0, MOST_TOKENS)), "";
}

static RATIO_FIELDS: &[&Field] = &[&RATIO, &CAPACITY, &TRICKLE];
static RATE_FIELDS: &[&Field] = &[&RATE, &BURST];

/// Returns the budget, its description, and `true` if many processes share it. Returns `None` if the policy does not
/// set one, or if a problem was reported. `profile` is the name of the policy's profile.
pub(super) fn of_fields(fields: &mut Fields<'_>, profile: Option<&str>) -> Option<(RetryBudget, String, bool)> {
    if let Some(mut inner) = fields.table(&BUDGET) {
        let budget = of_table(&mut inner, profile);
        inner.finish(&[RATIO_FIELDS, RATE_FIELDS]);
        return budget.map(|(budget, words)| (budget, words, false));
    }
    let word = fields.word(&BUDGET)?;
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

/// Describes the budget of a profile.
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
         which its success gives back, and a success gives 0.2; the calls of one lost connection are one failure"
    )
}

/// Reads a rate budget if there is a rate, and a ratio budget if there is a ratio or a `min_per_second`. A capacity
/// alone applies to the profile's budget or to the default one.
fn of_table(fields: &mut Fields<'_>, profile: Option<&str>) -> Option<(RetryBudget, String)> {
    let other = [&RATE, &RATIO, &TRICKLE];
    if fields.has(&CAPACITY) && !other.iter().any(|field| fields.has(field)) {
        let (budget, field, words): (_, _, fn(f64) -> String) = match profile {
            Some("aws") => (RetryBudget::aws_quota(), &QUOTA_CAPACITY, aws_quota),
            _ => (RetryBudget::cautious(), &CAUTIOUS_CAPACITY, cautious),
        };
        let capacity = fields.number(field)?;
        return Some((budget.capacity(capacity), words(capacity)));
    }
    if fields.has(&RATE) {
        let rate = fields.number(&RATE);
        let burst = fields.number(&BURST);
        let rate = rate?;
        let burst = burst.unwrap_or((2.0 * rate).max(1.0));
        let words = format!("{rate} retries a second, of which {burst} are saved up");
        return Some((RetryBudget::rate(rate, burst), words));
    }
    let share = fields.number(&RATIO).unwrap_or(0.1);
    let capacity = fields.number(&CAPACITY).unwrap_or(10.0);
    let trickle = fields.number(&TRICKLE).unwrap_or(0.01);
    let budget = RetryBudget::ratio(share).capacity(capacity).min_per_second(trickle);
    Some((budget, ratio(share, capacity, trickle)))
}

fn ratio(share: f64, capacity: f64, trickle: f64) -> String {
    format!("a retry takes one of {capacity} tokens; a success gives {share}, and a second gives {trickle}")
}
