//! A policy of a storm: a schedule, its limits, a kind of budget and guards, under one name.
//!
//! Input: the names of well-known policies, and policies in a word or a file. Output: the schedule,
//! the limits, the budget and the guards of each client.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use reattempt::budget::{Budget, Unlimited};
use reattempt::profile::Profile;
use reattempt::retry::Limits;
use reattempt::schedule::{Constant, Exponential, Schedule, SharedSchedule};
use reattempt::{RetryBudget, profile};
use reattempt_grpc::{RetryThrottle, RetryThrottling};

use super::fleet::StoreSettings;
use super::tick::ticks;
use crate::error::LabError;
use crate::former::FormerBudget;
use crate::policy::{self as written, GuardWord, Policy as Written};

/// A retry policy with a name.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) name: String,
    /// A schedule without state that calls share.
    pub(crate) schedule: SharedSchedule,
    pub(crate) limits: Limits,
    /// The time limit of an attempt in ticks, if the policy sets one.
    pub(crate) timeout: Option<u64>,
    budget: Kind,
    /// The guards inside the retries, in the order in which they decide.
    pub(crate) guards: Vec<GuardWord>,
}

/// The budget of one client.
pub(crate) type ClientBudget = Arc<dyn Budget + Send + Sync>;

/// The kind of budget that each client gets.
#[derive(Debug, Clone)]
enum Kind {
    Unlimited,
    Bucket(RetryBudget),
    /// The former rule of the cautious budget.
    Former,
    Throttle(RetryThrottling),
    /// A budget that all clients share.
    Fleet(StoreSettings),
}

/// A policy on the command line, with its guards.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    retries: Retries,
    guards: Vec<GuardWord>,
}

#[derive(Debug, Clone)]
enum Retries {
    Known(Which),
    Written(Box<Written>),
}

/// The policies of a storm.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Which {
    None,
    Naive,
    Unlimited,
    Ours,
    ForRate,
    GrpcThrottle,
    AwsQuota,
    Ratio,
    Fleet,
    Former,
}

pub(super) const HELP: &str = "Policies:
  none           no retry
  naive          three retries at once
  unlimited      ours, without a budget
  ours           the defaults: with the cautious budget
  for-rate       ours, with the budget for the client's rate of calls
  grpc-throttle  gRPC's delays and throttle
  aws-quota      the delays and the quota of AWS's clients
  ratio          ours, with a budget of a tenth of the successes
  fleet          ours, with a budget that all clients share through a store
  former         ours, with the rule that the cautious budget had before it counted events
  and profiles and schedules as for `lab plan`, with changed values, such as
  stripe, standard:budget.capacity=2, exponential:base=50ms,jitter=equal,budget=none

Guards of each client follow a plus, such as ours+breaker, none+vegas:most=50 or
standard:budget.ratio=0.2+breaker:open_time=5s+bulkhead:limit=8. They decide about every attempt, in
that order:
  breaker        a circuit breaker by a rate of failures: failure_ratio, min_calls,
                 consecutive_failures, min_failing_time, interval, bucket_period, first_open_time,
                 open_time, max_open_time, spread, last_calls, probes, probe_failure_ratio,
                 slow_after
  counting       as sony/gobreaker: consecutive_failures, interval, bucket_period, open_time,
                 probes
  rate-limit     a bucket of tokens, without a queue: rate (for each second), burst
  bulkhead       a limit on calls in flight: limit
  aimd, vegas, gradient2
                 adaptive limits: initial, least, most; aimd: backoff
  throttle       refuses part of the calls while the server refuses many: multiplier,
                 max_probability, window
An attempt that a guard refuses is not sent and is counted apart. Its call is lost, unless the guard
has a known wait that the retries allow. In a file: guards = [\"breaker:open_time=5s\", \"bulkhead\"]";

/// Parses a policy in a word, with its guards.
pub(crate) fn parse(text: &str) -> Result<Choice, String> {
    let mut words = text.split('+');
    let retries = parse_retries(words.next().unwrap_or_default())?;
    let guards = words.map(GuardWord::parse).collect::<Result<_, _>>()?;
    Ok(Choice { retries, guards })
}

fn parse_retries(word: &str) -> Result<Retries, String> {
    match Which::from_str(word, false) {
        Ok(which) => Ok(Retries::Known(which)),
        Err(_) => match written::parse_word(word) {
            Ok(policy) => Ok(Retries::Written(Box::new(policy))),
            Err(reason) if word.contains(':') => Err(reason),
            Err(reason) => {
                let known = Which::value_variants().iter().filter_map(Which::to_possible_value);
                let known: Vec<_> = known.map(|value| value.get_name().to_owned()).collect();
                let hint = written::did_you_mean(word, known.iter().map(String::as_str));
                // One hint is enough, at the end.
                let (reason, other) = reason.split_at(reason.find("; did you mean").unwrap_or(reason.len()));
                let hint = if hint.is_empty() { other } else { &hint };
                Err(format!("{reason}, nor one of {}{hint}", known.join(", ")))
            }
        },
    }
}

/// Returns the chosen policies, for clients that make `rate` calls a second.
pub(crate) fn chosen(choices: &[Choice], file: Option<&Path>, rate: f64) -> Result<Vec<Policy>, LabError> {
    let mut policies = Vec::new();
    for choice in choices {
        let policy = match &choice.retries {
            Retries::Known(which) => Policy::known(*which, rate),
            Retries::Written(policy) => Policy::written(policy)?,
        };
        policies.push(policy.guarded(&choice.guards));
    }
    for policy in file.map_or(Ok(Vec::new()), written::load)? {
        policies.push(Policy::written(&policy)?.guarded(&policy.guards));
    }
    Ok(policies)
}

impl Policy {
    /// Returns all policies of a storm, for clients that make `rate` calls a second.
    pub(super) fn all(rate: f64) -> Vec<Self> {
        let own = Which::value_variants().iter().filter(|which| !matches!(which, Which::Fleet | Which::Former));
        own.map(|which| Self::known(*which, rate)).collect()
    }

    fn known(which: Which, rate: f64) -> Self {
        let standard = || profile::standard().shared();
        match which {
            Which::None => {
                let mut none = standard();
                none.max_attempts = 1;
                Self::new("no retry", none, Kind::Unlimited)
            }
            Which::Naive => {
                let mut naive = Profile::new(Constant::immediate()).shared();
                naive.max_attempts = 4;
                Self::new("three at once", naive, Kind::Unlimited)
            }
            Which::Unlimited => Self::new("ours, no budget", standard(), Kind::Unlimited),
            Which::Ours => Self::new("ours", standard(), Kind::Bucket(RetryBudget::default())),
            Which::ForRate => {
                let budget = Kind::Bucket(RetryBudget::ratio_for_traffic(rate));
                Self::new("ours, for rate", standard(), budget)
            }
            Which::Ratio => Self::new("ours, ratio", standard(), Kind::Bucket(RetryBudget::percent(10))),
            Which::Fleet => Self::new("fleet", standard(), Kind::Fleet(StoreSettings::default())),
            Which::Former => Self::new("former rule", standard(), Kind::Former),
            Which::GrpcThrottle => {
                let schedule = Exponential::symmetric(Duration::from_millis(100), 0.2);
                let profile = Profile::new(schedule.max_delay(Duration::from_secs(5))).shared();
                Self::new("gRPC throttle", profile, throttle())
            }
            Which::AwsQuota => {
                let quota = Kind::Bucket(RetryBudget::aws_quota());
                Self::new("AWS quota", profile::aws().shared(), quota)
            }
        }
    }

    /// Returns our schedule and limits with each kind of budget, for clients of `rate` calls a
    /// second.
    pub(super) fn of_budgets(rate: f64) -> [Self; 7] {
        let ours = |name, budget| Self::new(name, profile::standard().shared(), budget);
        let bucket = |name, budget| ours(name, Kind::Bucket(budget));
        [
            ours("none", Kind::Unlimited),
            bucket("cautious", RetryBudget::default()),
            bucket("ratio", RetryBudget::percent(10)),
            bucket("ratio for rate", RetryBudget::ratio_for_traffic(rate)),
            bucket("rate", RetryBudget::rate_for_traffic(rate)),
            ours("gRPC throttle", throttle()),
            bucket("AWS quota", RetryBudget::aws_quota()),
        ]
    }

    /// Returns no retry, and our schedule and limits with each budget that a client may have, each with its code. Those
    /// that need less from the program are first.
    pub(super) fn of_capacity() -> Vec<(&'static str, Self)> {
        let bucket = |code, name, budget| (code, Self::of_bucket(name, budget));
        let ours = |code, name, budget| (code, Self::new(name, profile::standard().shared(), budget));
        vec![
            ("RetryLayer::http().max_attempts(1)", Self::known(Which::None, 1.0)),
            bucket("RetryBudget::default()", "default", RetryBudget::default()),
            bucket("RetryBudget::ratio(0.1)", "ratio 0.1", RetryBudget::ratio(0.1)),
            bucket("RetryBudget::ratio(0.2)", "ratio 0.2", RetryBudget::ratio(0.2)),
            bucket("RetryBudget::aws_quota()", "500 tokens", RetryBudget::aws_quota()),
            ours(
                "FleetBudget of reattempt-fleet: one bucket for all clients, instead of one each",
                "fleet",
                Kind::Fleet(StoreSettings::default()),
            ),
            ours("RetryBudget::unlimited()", "unlimited", Kind::Unlimited),
        ]
    }

    /// Our schedule and limits with a budget of one's own.
    pub(super) fn of_bucket(name: &str, budget: RetryBudget) -> Self {
        Self::new(name, profile::standard().shared(), Kind::Bucket(budget))
    }

    /// Our schedule and limits with gRPC's throttle.
    pub(super) fn of_throttle(name: &str) -> Self {
        Self::new(name, profile::standard().shared(), throttle())
    }

    fn new(name: &str, profile: Profile<SharedSchedule>, budget: Kind) -> Self {
        let Profile { schedule, max_attempts, max_elapsed, .. } = profile;
        // Attempts are counted in 16 bits.
        let max_attempts = max_attempts.min(u16::MAX.into());
        let mut limits = Limits::default();
        limits.max_attempts = max_attempts;
        limits.max_elapsed = max_elapsed;
        let (name, guards) = (name.to_owned(), Vec::new());
        Self { name, schedule, limits, timeout: None, budget, guards }
    }

    /// Adds guards inside the retries.
    fn guarded(self, guards: &[GuardWord]) -> Self {
        let name = guards.iter().fold(self.name, |name, guard| format!("{name} + {}", guard.name));
        Self { name, guards: guards.to_vec(), ..self }
    }

    /// Converts a policy in a word or a file; it gets the default budget if it names none.
    pub(super) fn written(policy: &Written) -> Result<Self, LabError> {
        let Written { name, profile, attempt_timeout, .. } = policy;
        if !profile.schedule.is_stateless() {
            return Err(LabError::new(format!(
                "{name}: its schedule has a state that calls share, which a storm does not follow"
            )));
        }
        let budget = match policy.is_fleet {
            true => Kind::Fleet(StoreSettings::default()),
            false => Kind::Bucket(profile.budget.clone().unwrap_or_default()),
        };
        Ok(Self { timeout: attempt_timeout.map(ticks), ..Self::new(name, profile.clone(), budget) })
    }

    /// Returns `true` if all clients share the budget.
    pub(crate) fn is_fleet(&self) -> bool {
        self.store().is_some()
    }

    /// Returns `true` for the former rule, under which guards and endpoints counted each failed call too.
    pub(crate) fn is_former(&self) -> bool {
        matches!(self.budget, Kind::Former)
    }

    /// Returns the store of the budget, if all clients share one.
    pub(super) fn store(&self) -> Option<&StoreSettings> {
        match &self.budget {
            Kind::Fleet(store) => Some(store),
            _ => None,
        }
    }

    /// Sets the store of the budget, if all clients share one.
    pub(super) fn with_store(mut self, settings: &StoreSettings) -> Self {
        if let Kind::Fleet(store) = &mut self.budget {
            *store = settings.clone();
        }
        self
    }

    /// Creates a full budget for one client. One that clients share is the simulation's.
    pub(crate) fn budget_of_client(&self) -> ClientBudget {
        match &self.budget {
            Kind::Unlimited | Kind::Fleet(_) => Arc::new(Unlimited),
            // All calls go to one server, so one bucket is enough. A setter creates separate state.
            Kind::Bucket(budget) => Arc::new(budget.clone().shared(true)),
            Kind::Former => Arc::new(FormerBudget::default()),
            Kind::Throttle(throttling) => Arc::new(RetryThrottle::from(*throttling)),
        }
    }
}

/// Returns gRPC's throttle with its usual numbers.
fn throttle() -> Kind {
    Kind::Throttle(RetryThrottling::new(10.0, 0.1))
}
