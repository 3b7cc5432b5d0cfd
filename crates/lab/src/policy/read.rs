//! Parsing of a document, which has a table for each policy.

use reattempt::profile::Profile;
use reattempt::retry::Limits;
use reattempt::schedule::SharedSchedule;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::{Fields, Limit, line};
use super::{GuardWord, Policy, Problem, Problems, budget, profile_named, profile_names, schedule};

/// Returns the policies of a text, in its order, or all of its problems.
pub(crate) fn read(text: &str) -> Result<Vec<Policy>, Problems> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut problems: Problems = errors
        .iter()
        .map(|error| Problem {
            line: error.span().map(|span| line(text, span)),
            path: String::new(),
            reason: error.message().to_owned(),
        })
        .collect();
    if !problems.is_empty() {
        problems.sort_by_key(|problem| problem.line);
        return Err(problems);
    }
    let mut policies = Vec::new();
    for (name, value) in document.get_ref() {
        match value.get_ref() {
            DeValue::Table(table) => {
                policies.extend(policy(text, name.get_ref(), table, &mut problems));
            }
            _ => problems.push(not_a_policy(text, name.get_ref(), value)),
        }
    }
    if policies.is_empty() && problems.is_empty() {
        let reason = "the document has no policy: each is a table, such as [orders]".to_owned();
        problems.push(Problem { line: None, path: String::new(), reason });
    }
    problems.sort_by_key(|problem| problem.line);
    if problems.is_empty() { Ok(policies) } else { Err(problems) }
}

fn not_a_policy(text: &str, name: &str, value: &Spanned<DeValue<'_>>) -> Problem {
    Problem {
        line: Some(line(text, value.span())),
        path: name.to_owned(),
        reason: "must be a table, for each policy is one, such as [orders]".to_owned(),
    }
}

fn policy(text: &str, name: &str, table: &DeTable<'_>, problems: &mut Problems) -> Option<Policy> {
    let mut seen = Vec::new();
    let mut fields = Fields::new(text, name.to_owned(), table, problems, &mut seen);
    let base = profile(&mut fields);
    let kind = fields.word("schedule", &schedule::KINDS);
    let mut own = None;
    let mut profile = match (base, kind) {
        (Some((base, name)), kind) => {
            own = Some(name);
            match kind {
                Some(kind) => schedule::of_kind(kind, &mut fields).map(|schedule| {
                    let mut profile = base;
                    profile.schedule = schedule;
                    profile
                }),
                None => {
                    let reason = "belongs to a `schedule`, and here the profile's is used";
                    schedule::FIELDS.iter().for_each(|key| fields.forbid(key, reason));
                    Some(base)
                }
            }
        }
        (None, kind) => schedule::of_kind(kind.unwrap_or("exponential"), &mut fields).map(Profile::new),
    };
    let limits = Limits::default();
    let max_server_delay = fields.duration("max_server_delay").unwrap_or(limits.max_server_delay);
    let attempt_timeout = fields.duration("attempt_timeout");
    let (max_attempts, max_elapsed) = (fields.count("max_attempts"), fields.duration_or_none("max_elapsed"));
    let budget = budget::of_fields(&mut fields, own.as_deref());
    let guards = fields.parsed("guards", GuardWord::parse);
    fields.finish();

    let profile = profile.as_mut()?;
    match max_attempts {
        Some(Limit::To(attempts)) => profile.max_attempts = attempts,
        Some(Limit::Unlimited) => profile.max_attempts = u32::MAX,
        None => {}
    }
    match max_elapsed {
        Some(Limit::To(elapsed)) => profile.max_elapsed = Some(elapsed),
        Some(Limit::Unlimited) => profile.max_elapsed = None,
        None => {}
    }
    let mut words = own.as_deref().and_then(budget::of_profile);
    let is_fleet = budget.as_ref().is_some_and(|(.., is_fleet)| *is_fleet);
    if let Some((budget, of_budget, _)) = budget {
        profile.budget = Some(budget);
        words = Some(of_budget);
    }
    Some(Policy {
        name: name.to_owned(),
        profile: profile.clone(),
        max_server_delay,
        attempt_timeout,
        budget: words,
        is_fleet,
        guards,
        seen,
    })
}

/// Returns the named profile with its name.
fn profile(fields: &mut Fields<'_, '_>) -> Option<(Profile<SharedSchedule>, String)> {
    let name = fields.text("profile")?;
    let profile = profile_named(name);
    if profile.is_none() {
        let reason = format!("must be one of {}, but it is {name:?}", profile_names());
        fields.problem("profile", reason);
    }
    profile.map(|profile| (profile, name.to_owned()))
}
