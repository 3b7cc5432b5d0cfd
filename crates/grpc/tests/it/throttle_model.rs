//! Tests of the throttle against a serial model in fractions, for any settings and any order of events.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use reattempt_grpc::{RetryThrottle, RetryThrottling};

#[derive(Debug, Clone)]
enum Step {
    Fail,
    Succeed,
    Configure(Option<RetryThrottling>),
}

/// The rules as documented, in thousandths, with room to spare.
#[derive(Default)]
struct Model {
    tokens: i128,
    settings: Option<RetryThrottling>,
}

impl Model {
    fn max(&self) -> i128 {
        self.settings.map_or(0, |settings| settings.max_tokens_thousandths().into())
    }

    fn throttled(&self) -> bool {
        self.settings.is_some() && self.tokens <= self.max() / 2
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Fail => self.tokens -= 1000,
            Step::Succeed => {
                let ratio = |settings: RetryThrottling| i128::from(settings.token_ratio_thousandths());
                self.tokens += self.settings.map_or(0, ratio);
            }
            Step::Configure(settings) if *settings == self.settings => {}
            Step::Configure(settings) => {
                let (old, old_max) = (self.tokens, self.max());
                let new = self.settings.is_none();
                self.settings = *settings;
                self.tokens = if new { self.max() } else { old * self.max() / old_max };
            }
        }
        self.tokens = self.tokens.clamp(0, self.max());
    }
}

fn settings() -> impl Strategy<Value = RetryThrottling> {
    let max = prop_oneof![1_u32..=20, 1_u32..=1_000_000, Just(1_000_000)];
    let ratio = prop_oneof![1_u32..=2_000, 1_u32..=u32::MAX];
    (max, ratio).prop_map(|(max, ratio)| RetryThrottling::new(f64::from(max) / 1000.0, f64::from(ratio) / 1000.0))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Fail),
        8 => Just(Step::Succeed),
        1 => prop::option::weighted(0.9, settings()).prop_map(Step::Configure),
    ]
}

fn config() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..<_>::default() }
}

proptest! {
    #![proptest_config(config())]

    // THR-2, THR-3, THR-4, THR-5, THR-10
    #[test]
    fn whatever_happens_it_agrees_with_rules(
        first in settings(),
        steps in vec(step(), 1..200),
    ) {
        let throttle = RetryThrottle::new(Some(first));
        let mut model = Model::default();
        model.step(&Step::Configure(Some(first)));
        for step in &steps {
            model.step(step);
            match step {
                Step::Fail => prop_assert_eq!(throttle.failed(), !model.throttled()),
                Step::Succeed => throttle.succeeded(),
                Step::Configure(settings) => throttle.configure(*settings),
            }
            prop_assert_eq!(throttle.is_throttled(), model.throttled(), "after {:?}", step);
            let left = throttle.tokens_thousandths();
            prop_assert_eq!(left.is_some(), model.settings.is_some());
            prop_assert_eq!(i128::from(left.unwrap_or(0)), model.tokens, "after {:?}", step);
        }
    }
}
