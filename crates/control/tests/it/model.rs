//! The budget against a serial model in wide integers. Grants and balances are the same for all settings, orders of
//! calls and times, including past and distant ones.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Failure, FailureKind, Permit};

const TOKEN: u128 = 1_000_000;
const NAMES: [&str; 3] = ["a.example:443", "b.example:443", "c.example:80"];

#[derive(Debug, Clone)]
enum Step {
    Acquire { name: usize, now: Duration, spend: bool },
    GiveBack,
    Succeed { name: usize },
}

struct Model {
    capacity: u128,
    ratio: u128,
    refill: u128,
    buckets: HashMap<usize, ModelBucket>,
    /// The second from which on a take fills every bucket that time has filled up; `None` if there is only one bucket.
    catch_up_at: Option<u64>,
}

struct ModelBucket {
    balance: u128,
    until: u128,
    latest: u128,
    sent: u128,
    earned: u128,
}

impl Model {
    fn bucket(&mut self, name: usize) -> &mut ModelBucket {
        let full = self.capacity;
        self.buckets.entry(name).or_insert(ModelBucket { balance: full, until: 0, latest: 0, sent: 0, earned: 0 })
    }

    /// The amount that time adds from the start to this time.
    fn accrued(&self, moment: u128) -> u128 {
        moment * self.refill / 1_000_000
    }

    fn catch_up(&mut self, now: Duration) {
        let Some(at) = self.catch_up_at.filter(|at| now.as_secs() >= *at) else {
            return;
        };
        self.catch_up_at = Some(at.max(now.as_secs().saturating_add(10)));
        let now = micros(now);
        for name in 0..NAMES.len() {
            let Some(ModelBucket { balance, until, .. }) = self.buckets.get(&name) else {
                continue;
            };
            let (balance, until) = (*balance, *until);
            if now > until && balance + self.accrued(now) - self.accrued(until) >= self.capacity {
                let capacity = self.capacity;
                let bucket = self.bucket(name);
                if balance < capacity {
                    bucket.balance = capacity;
                    bucket.until = now;
                    bucket.latest = bucket.latest.max(now);
                }
            }
        }
    }

    fn acquire(&mut self, name: usize, now: Duration) -> bool {
        self.catch_up(now);
        let now = micros(now);
        let (capacity, refill) = (self.capacity, self.refill);
        let until = self.bucket(name).until;
        let due = if now > until { self.accrued(now) - self.accrued(until) } else { 0 };
        let bucket = self.bucket(name);
        bucket.latest = bucket.latest.max(now);
        let balance = (bucket.balance + due).min(capacity);
        if balance < TOKEN {
            return false;
        }
        bucket.balance = balance - TOKEN;
        bucket.until = until.max(now);
        bucket.sent += 1;
        let bound = capacity + bucket.earned + bucket.latest * refill / 1_000_000;
        assert!(bucket.sent * TOKEN <= bound, "the bound that the budget promises");
        true
    }

    fn add(&mut self, name: usize, amount: u128) {
        let capacity = self.capacity;
        let bucket = self.bucket(name);
        bucket.balance = (bucket.balance + amount).min(capacity);
    }
}

/// A time in microseconds, up to where time stands still.
fn micros(now: Duration) -> u128 {
    u128::from(now.as_secs().min(u64::MAX >> 20)) * 1_000_000 + u128::from(now.subsec_micros())
}

fn moments() -> impl Strategy<Value = Duration> {
    prop_oneof![
        8 => (0..60_000_000_u64).prop_map(Duration::from_micros),
        2 => (0..100_u64).prop_map(Duration::from_secs),
        1 => any::<u64>().prop_map(Duration::from_nanos),
        1 => (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(s, n)| Duration::new(s, n)),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let name = 0..NAMES.len();
    prop_oneof![
        3 => (name.clone(), moments(), any::<bool>())
            .prop_map(|(name, now, spend)| Step::Acquire { name, now, spend }),
        1 => Just(Step::GiveBack),
        3 => name.prop_map(|name| Step::Succeed { name }),
    ]
}

/// Capacity, ratio and refill in millionths: the whole valid range, with the usual values more often.
fn rules() -> impl Strategy<Value = (u64, u64, u64)> {
    (
        prop_oneof![3 => 1_000_000..5_000_000_u64, 1 => 1_000_000..=10_000_000_000_000_u64],
        1..=1_000_000_u64,
        prop_oneof![1 => Just(0), 3 => 0..2_000_000_u64, 1 => 0..=1_000_000_000_000_u64],
    )
}

fn tokens(millionths: u64) -> f64 {
    millionths as f64 / 1e6
}

#[test]
fn bucket_counts_after_two_million_refills() {
    // More than the refill count beside the balance can hold.
    let budget = RetryBudget::rate(1.0, 1.0).shared(true);
    let failure = Failure::new(FailureKind::Network);
    for second in 1..=2_100_000 {
        let now = Duration::from_secs(second);
        assert_eq!(budget.acquire("", &failure, now).map(|permit| permit.spend().cost()), Some(1));
        assert_eq!(budget.balance(""), 0.0);
    }
    assert_eq!(budget.refusals(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_budget_does_what_the_model_does(
        (capacity, ratio, refill) in rules(),
        shared in any::<bool>(),
        steps in proptest::collection::vec(steps(), 1..200),
    ) {
        let budget = RetryBudget::ratio(tokens(ratio));
        let budget = budget.capacity(tokens(capacity));
        let budget = budget.min_per_second(tokens(refill));
        let budget = if shared { budget.shared(true) } else { budget };
        let mut model = Model {
            capacity: capacity.into(),
            ratio: ratio.into(),
            refill: refill.into(),
            buckets: HashMap::new(),
            catch_up_at: (!shared).then_some(0),
        };
        let bucket = |name: usize| if shared { 0 } else { name };
        let failure = Failure::new(FailureKind::Network);
        let mut held: Vec<(usize, Permit)> = Vec::new();
        let mut refusals = 0;

        for step in steps {
            match step {
                Step::Acquire { name, now, spend } => {
                    let permit = budget.acquire(NAMES[name], &failure, now);
                    prop_assert_eq!(permit.is_some(), model.acquire(bucket(name), now));
                    match permit {
                        Some(permit) if spend => prop_assert_eq!(permit.spend().cost(), 1),
                        Some(permit) => held.push((bucket(name), permit)),
                        None => refusals += 1,
                    }
                }
                Step::GiveBack => {
                    if let Some((bucket, permit)) = held.pop() {
                        drop(permit);
                        model.add(bucket, TOKEN);
                        model.bucket(bucket).sent -= 1;
                    }
                }
                Step::Succeed { name } => {
                    budget.on_success(NAMES[name], 0);
                    let ratio = model.ratio;
                    model.add(bucket(name), ratio);
                    model.bucket(bucket(name)).earned += ratio;
                }
            }
            let capacity = model.capacity;
            for (name, destination) in NAMES.into_iter().enumerate() {
                let expected = model.bucket(bucket(name)).balance;
                prop_assert_eq!(budget.balance(destination), expected as f64 / 1e6);
            }
            let full = model.buckets.values().all(|bucket| bucket.balance == capacity);
            prop_assert_eq!(budget.is_full(), full);
            prop_assert_eq!(budget.refusals(), refusals);
        }
    }

    #[test]
    fn short_stretches_add_up_to_one_long(
        refill in 1..=1_000_000_000_000_u64,
        ends in proptest::collection::vec(0..10_000_000_u64, 1..50),
    ) {
        // Capacity for everything; every step takes all tokens.
        let rate = RetryBudget::rate(tokens(refill), 10_000_000.0).shared(true);
        let failure = Failure::new(FailureKind::Network);
        let mut model = Model {
            capacity: 10_000_000 * TOKEN,
            ratio: 0,
            refill: refill.into(),
            buckets: HashMap::new(),
            catch_up_at: None,
        };
        let mut ends = ends;
        ends.sort_unstable();
        for end in ends {
            let now = Duration::from_micros(end);
            let granted = rate.acquire("", &failure, now).map(|permit| permit.spend().cost()).is_some();
            prop_assert_eq!(granted, model.acquire(0, now));
            prop_assert_eq!(rate.balance(""), model.bucket(0).balance as f64 / 1e6);
        }
    }
}
