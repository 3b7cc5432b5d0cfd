//! A policy from its table.

use std::time::Duration;

use http::{HeaderName, StatusCode};
use reattempt::budget::Budget;
use reattempt::classify::Hints;
use reattempt::error::Warning;
use reattempt::profile::{self, Profile};
use reattempt::retry::Limits;
use reattempt::schedule::SharedSchedule;
use reattempt::{RetryBudget, Verdict};
use reattempt_core::Combined;

use super::field::{Field, Kind, did_you_mean, field};
use super::fields::{Fields, Limit, Seen};
use super::node::{Node, Value};
use super::{GuardWord, Problem, Problems, budget, profile_named, profile_names, schedule, verdicts};

field! {
    PROFILE = "profile": Kind::Profile, "A well-known policy, whose schedule, limits and budget apply unless they are set here.";
    SCHEDULE = "schedule": Kind::Word(&schedule::KINDS), "The kind of delays. Default \"exponential\", or the profile's.";
    MAX_ATTEMPTS = "max_attempts": Kind::Count, "The most attempts, with the first, or \"none\". Default 3. With 1, nothing is retried.";
    MAX_ELAPSED = "max_elapsed": Kind::DurationOrNone,
        "The most time from a call's start to the start of its last attempt, or \"none\". Default \"30s\".";
    MAX_SERVER_DELAY = "max_server_delay": Kind::Duration,
        "The longest delay that a server may ask for. Default \"60s\".";
    ATTEMPT_TIMEOUT = "attempt_timeout": Kind::Duration,
        "The time limit of each attempt, up to the response head. Default: none.";
    REPEATABLE = "repeatable": Kind::Flag,
        "Declares that every request may be processed twice, or with false that none may. Default: by method and key; over gRPC, none may.";
    RATE_LIMIT = "rate_limit": Kind::Flag,
        "Reads the rate-limit headers of well-known services: the reset of an exhausted limit, and the quota for guards. Default false.";
    DELAY_HEADERS = "delay_headers": Kind::Texts,
        "Further headers that contain a delay, in any form of Retry-After. Default: none.";
    QUOTA_HEADERS = "quota_headers": Kind::Texts,
        "Further headers that contain a quota, as pairs such as \"x-calls-left x-calls-reset\": the remaining calls, and the time until the reset. Default: none.";
    ON_STATUS = "on_status": Kind::Pairs(verdicts::STATUS),
        "Verdicts for single statuses (HTTP), such as \"501 retry\" or \"429 return\"; \"202 pending\" polls, and \"503 not-processed\" also retries requests that must not be repeated. Default: the library's table.";
    ON_CODE = "on_code": Kind::Pairs(verdicts::CODE),
        "Verdicts for single codes (gRPC), such as \"ABORTED retry\" or \"UNAVAILABLE return\". Default: the library's table.";
    GUARDS = "guards": Kind::Guards, "The guards of each attempt, in the order in which they decide. Default: none.";
    ENDPOINTS = "endpoints": Kind::Text, "The name of a section of endpoints, to which the attempts go. Default: none.";
}

/// The fields of a policy, except those of its schedule.
pub(super) static FIELDS: &[&Field] = &[
    &PROFILE,
    &SCHEDULE,
    &MAX_ATTEMPTS,
    &MAX_ELAPSED,
    &MAX_SERVER_DELAY,
    &ATTEMPT_TIMEOUT,
    &REPEATABLE,
    &ON_STATUS,
    &ON_CODE,
    &RATE_LIMIT,
    &DELAY_HEADERS,
    &QUOTA_HEADERS,
    &budget::BUDGET,
    &GUARDS,
    &ENDPOINTS,
];

/// A policy from a file, split into its parts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Policy {
    /// The name of the policy's section, or the one-line form from which it was parsed.
    pub name: String,
    /// The schedule, the limits on attempts and time, and the budget if the policy has one.
    pub profile: Profile<SharedSchedule>,
    /// The maximum delay that a server may ask for.
    pub max_server_delay: Duration,
    /// The time limit of each attempt.
    pub attempt_timeout: Option<Duration>,
    /// `Some(true)` if every request may be processed twice, and `Some(false)` if none may. `None` leaves that to the
    /// protocol.
    pub repeatable: Option<bool>,
    /// `Some(true)` if rate-limit headers are read, `Some(false)` if they are not. `None` leaves that to the program.
    pub rate_limit: Option<bool>,
    /// The verdicts for single statuses, over HTTP.
    pub on_status: Vec<(StatusCode, Verdict)>,
    /// The verdicts for single codes, by name, over gRPC.
    pub on_code: Vec<(&'static str, Verdict)>,
    /// Further headers with a delay.
    pub delay_headers: Vec<HeaderName>,
    /// Further pairs of headers with a quota: the remaining calls, and the time until the reset.
    pub quota_headers: Vec<[HeaderName; 2]>,
    /// The description of the budget, or `None` for the protocol's default.
    pub budget: Option<String>,
    /// `true` if many processes share the budget.
    pub is_fleet: bool,
    /// The guards of each attempt, in the order in which they decide.
    pub guards: Vec<GuardWord>,
    /// The name of the policy's endpoints section.
    pub endpoints: Option<String>,
    /// The numbers and times set in the document, which `lab check` compares with the recommended ranges.
    pub seen: Vec<Seen>,
    /// The line of the budget field, which is checked against the rest of the file and the program.
    pub(crate) budget_line: Option<usize>,
    pub(crate) endpoints_line: Option<usize>,
}

impl Policy {
    /// Creates a policy with the default limits and without guards.
    pub fn new(name: impl Into<String>, profile: Profile<SharedSchedule>) -> Self {
        Self {
            name: name.into(),
            max_server_delay: profile.max_server_delay,
            profile,
            attempt_timeout: None,
            repeatable: None,
            rate_limit: None,
            on_status: Vec::new(),
            on_code: Vec::new(),
            delay_headers: Vec::new(),
            quota_headers: Vec::new(),
            budget: None,
            is_fleet: false,
            guards: Vec::new(),
            endpoints: None,
            seen: Vec::new(),
            budget_line: None,
            endpoints_line: None,
        }
    }

    /// Returns the program's hints with those of the file.
    pub fn hints(&self, mut hints: Hints) -> Hints {
        if let Some(read) = self.rate_limit {
            hints = hints.rate_limit(read);
        }
        hints = self.delay_headers.iter().cloned().fold(hints, Hints::delay_in);
        let pairs = self.quota_headers.iter().cloned();
        pairs.fold(hints, |hints, [remaining, reset]| hints.quota_in(remaining, reset))
    }

    /// Returns the limits for each call.
    pub fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.max_attempts = self.profile.max_attempts;
        limits.max_elapsed = self.profile.max_elapsed;
        limits.max_server_delay = self.max_server_delay;
        limits
    }

    /// Returns a warning for each two settings that contradict each other. Without a budget of its own, the policy has
    /// [`RetryBudget::cautious`], the default for HTTP.
    pub fn contradictions(&self) -> Vec<Warning> {
        let limits = self.limits();
        let default = RetryBudget::cautious();
        let budget = self.profile.budget.as_ref().unwrap_or(&default);
        let granted_retries = budget.most_retries(limits.max_elapsed.unwrap_or(Duration::MAX));
        let (limits, attempt_timeout) = (Some(limits), self.attempt_timeout);
        Combined { limits, granted_retries, attempt_timeout, ..Combined::default() }.validate()
    }
}

/// Returns the policy of a section, or `None` if a problem was reported.
pub(super) fn read(name: &str, node: &Node, problems: &mut Problems) -> Option<Policy> {
    let Value::Table(table) = &node.value else { return None };
    let (mut seen, before) = (Vec::new(), problems.len());
    let mut fields = Fields::new(super::node::plain(name), table, problems, &mut seen);
    let base = profile(&mut fields);
    let kind = fields.word(&SCHEDULE);
    let (mut own, mut known) = (None, schedule::all_fields());
    let mut profile = match (base, kind) {
        (Some((base, name)), kind) => {
            own = Some(name);
            match kind {
                Some(kind) => {
                    known = schedule::fields_of(kind).to_vec();
                    schedule::of_kind(kind, &mut fields).map(|schedule| {
                        let mut profile = base;
                        profile.schedule = schedule;
                        profile
                    })
                }
                None => {
                    let reason = "belongs to a `schedule`, and here the profile's is used";
                    known.iter().for_each(|field| fields.forbid(field, reason));
                    known.clear();
                    Some(base)
                }
            }
        }
        (None, kind) => {
            let kind = kind.unwrap_or("exponential");
            known = schedule::fields_of(kind).to_vec();
            schedule::of_kind(kind, &mut fields).map(Profile::new)
        }
    };
    let max_server_delay = fields.duration(&MAX_SERVER_DELAY);
    let attempt_timeout = fields.duration(&ATTEMPT_TIMEOUT);
    if attempt_timeout.is_some_and(|timeout| timeout.is_zero()) {
        fields.problem(
            ATTEMPT_TIMEOUT.name,
            "must be above 0s, because every attempt would fail; without it there is no limit",
        );
    }
    let repeatable = fields.flag(&REPEATABLE);
    let rate_limit = fields.flag(&RATE_LIMIT);
    let on_status = fields.parsed(&ON_STATUS, verdicts::of_status);
    let on_code = fields.parsed(&ON_CODE, verdicts::of_code);
    let delay_headers = fields.parsed(&DELAY_HEADERS, header);
    let quota_headers = fields.parsed(&QUOTA_HEADERS, headers);
    let (max_attempts, max_elapsed) = (fields.count(&MAX_ATTEMPTS), fields.duration_or_none(&MAX_ELAPSED));
    let budget = budget::of_fields(&mut fields, own.as_deref());
    let guards = fields.parsed(&GUARDS, GuardWord::parse);
    let endpoints = fields.text(&ENDPOINTS).map(str::to_owned);
    let lines = (fields.line(&budget::BUDGET), fields.line(&ENDPOINTS));
    fields.finish(&[FIELDS, &known]);

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
    if problems.len() > before {
        return None;
    }
    let mut policy = Policy::new(name, profile.clone());
    policy.max_server_delay = max_server_delay.unwrap_or(policy.max_server_delay);
    (policy.attempt_timeout, policy.budget, policy.is_fleet) = (attempt_timeout, words, is_fleet);
    (policy.repeatable, policy.rate_limit) = (repeatable, rate_limit);
    (policy.on_status, policy.on_code) = (on_status, on_code);
    (policy.delay_headers, policy.quota_headers) = (delay_headers, quota_headers);
    (policy.guards, policy.endpoints, policy.seen) = (guards, endpoints, seen);
    (policy.budget_line, policy.endpoints_line) = lines;
    Some(policy)
}

fn header(name: &str) -> Result<HeaderName, String> {
    name.parse().map_err(|_| "it is no name of a header".to_owned())
}

/// Returns the headers of a quota.
fn headers(pair: &str) -> Result<[HeaderName; 2], String> {
    match *pair.split_whitespace().collect::<Vec<_>>() {
        [remaining, reset] => Ok([header(remaining)?, header(reset)?]),
        _ => Err("it must be two headers, the remaining calls and the reset".to_owned()),
    }
}

/// Returns the named profile with its name.
fn profile(fields: &mut Fields<'_>) -> Option<(Profile<SharedSchedule>, String)> {
    let name = fields.text(&PROFILE)?;
    let profile = profile_named(name);
    if profile.is_none() {
        let hint = did_you_mean(name, profile::all().map(|(name, _)| name));
        let reason = format!("must be one of {}, but it is {}{hint}", profile_names(), super::node::quoted(name));
        fields.problem("profile", reason);
    }
    profile.map(|profile| (profile, name.to_owned()))
}

/// Returns the problem for a value that should be the table of a policy.
pub(super) fn not_a_table(name: &str, node: &Node, hint: Option<&str>) -> Problem {
    let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    let reason = format!("must be a table, for each policy is one, such as [orders]{hint}");
    Problem::new(Some(node.line), super::node::plain(name), reason)
}
