//! What is compared: a schedule, its limits and a kind of budget, under one name.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use reattempt::schedule::{Constant, Exponential, SharedSchedule};
use reattempt::{Budget, ConfigError, Limits, Profile, RetryBudget, Unlimited, profile};
use reattempt_grpc::{Throttle, Throttling};

/// A way to retry.
#[derive(Debug, Clone)]
pub(super) struct Policy {
    pub(super) name: &'static str,
    /// Without state of its own that calls share.
    pub(super) schedule: SharedSchedule,
    pub(super) limits: Limits,
    budget: Kind,
}

/// A budget of a client's own.
pub(super) type ClientBudget = Arc<dyn Budget + Send + Sync>;

/// What budget a client gets.
#[derive(Debug, Clone)]
enum Kind {
    Unlimited,
    Bucket(RetryBudget),
    Throttle(Throttling),
}

/// The policies of a storm.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Which {
    /// No retry
    None,
    /// Three retries at once
    Naive,
    /// Ours, without a budget
    Unlimited,
    /// Ours, with the default budget
    Ours,
    /// Ours, with the budget for the client's rate of calls
    ForRate,
    /// gRPC's delays and throttle
    Grpc,
    /// The delays and the quota of AWS's clients
    Aws,
}

impl Policy {
    /// The policy of clients that make `rate` calls a second.
    pub(super) fn of_storm(which: Which, rate: f64) -> Result<Self, ConfigError> {
        let standard = || profile::standard().shared();
        let throttle = || Throttling::new(10.0, 0.1).map(Kind::Throttle);
        Ok(match which {
            Which::None => {
                let mut none = standard();
                none.max_attempts = 1;
                Self::new("no retry", none, Kind::Unlimited)
            }
            Which::Naive => {
                let mut naive = Profile::new(Constant::new(Duration::ZERO)).shared();
                naive.max_attempts = 4;
                Self::new("three at once", naive, Kind::Unlimited)
            }
            Which::Unlimited => Self::new("ours, no budget", standard(), Kind::Unlimited),
            Which::Ours => Self::new("ours", standard(), Kind::Bucket(RetryBudget::default())),
            Which::ForRate => {
                let budget = Kind::Bucket(RetryBudget::for_rate(rate)?);
                Self::new("ours, for rate", standard(), budget)
            }
            Which::Grpc => {
                let schedule = Exponential::symmetric(Duration::from_millis(100), 0.2)?;
                let profile = Profile::new(schedule.cap(Duration::from_secs(5))?).shared();
                Self::new("gRPC throttle", profile, throttle()?)
            }
            Which::Aws => {
                let quota = Kind::Bucket(RetryBudget::aws_quota());
                Self::new("AWS quota", profile::aws().shared(), quota)
            }
        })
    }

    /// Our schedule and limits with each kind of budget, for clients of `rate` calls a second.
    pub(super) fn of_budgets(rate: f64) -> Result<[Self; 6], ConfigError> {
        let ours = |name, budget| Self::new(name, profile::standard().shared(), budget);
        let bucket = |name, budget| ours(name, Kind::Bucket(budget));
        Ok([
            ours("none", Kind::Unlimited),
            bucket("ratio", RetryBudget::default()),
            bucket("ratio for rate", RetryBudget::for_rate(rate)?),
            bucket("rate", RetryBudget::rate_for_traffic(rate)?),
            ours("gRPC throttle", Kind::Throttle(Throttling::new(10.0, 0.1)?)),
            bucket("AWS quota", RetryBudget::aws_quota()),
        ])
    }

    fn new(name: &'static str, profile: Profile<SharedSchedule>, budget: Kind) -> Self {
        let Profile { schedule, max_attempts, max_elapsed, .. } = profile;
        let limits = Limits { max_attempts, max_elapsed, ..Limits::default() };
        Self { name, schedule, limits, budget }
    }

    /// A full budget that nobody else has.
    pub(super) fn budget_of_client(&self) -> ClientBudget {
        match &self.budget {
            Kind::Unlimited => Arc::new(Unlimited),
            // All calls go to one server. A setter makes a budget of its own.
            Kind::Bucket(budget) => Arc::new(budget.clone().shared()),
            Kind::Throttle(throttling) => Arc::new(Throttle::from(*throttling)),
        }
    }
}
