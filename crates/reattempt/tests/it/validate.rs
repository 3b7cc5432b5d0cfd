//! Tests of warnings for settings outside their recommended ranges.

use std::sync::Arc;
use std::time::Duration;

use reattempt::budget::{Budget, SpendOnly};
use reattempt::error::Warning;
use reattempt::guard::{Bulkhead, CircuitBreaker, GuardLayer, Limit, RateLimit};
use reattempt::hedge::HedgePolicy;
use reattempt::schedule::{Constant, Exponential, Linear, List, Reconnecting, Responsive, ScheduleExt, SharedSchedule};
use reattempt::standard::StandardLayer;
use reattempt::{Http, RetryBudget, RetryLayer, RetryPolicy, profile};
use tower::{Layer, ServiceExt};

use crate::calls::support::{Act, Server, get};

const SECOND: Duration = Duration::from_secs(1);

fn lines(warnings: &[Warning]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn defaults_give_no_warning() {
    assert_eq!(RetryPolicy::http().validate(), []);
    assert_eq!(RetryPolicy::http().never_retry().validate(), []);
    assert_eq!(HedgePolicy::http().validate(), []);
    assert_eq!(CircuitBreaker::rate().validate(), []);
    assert_eq!(CircuitBreaker::counting().validate(), []);
    assert_eq!(RateLimit::new(Limit::per_second(10), 20).validate(), []);
    assert_eq!(StandardLayer::http().validate(), []);
    for budget in [RetryBudget::percent(10), RetryBudget::aws_quota(), RetryBudget::unlimited()] {
        assert_eq!(RetryPolicy::http().budget(budget).validate(), []);
    }
}

#[test]
fn retry_policy_lists_unusual_settings() {
    let schedule = Exponential::from_millis(2).factor(4.0).no_max_delay();
    let policy = RetryPolicy::http()
        .max_attempts(11)
        .max_elapsed(Duration::from_millis(500))
        .budget(RetryBudget::percent(60))
        .backoff(schedule);
    let expected = [
        "`max_attempts` is 11 (recommended: 2 to 10, usually 3 to 5)",
        "`max_elapsed` is 500ms (recommended: 1 s to 1 h, usually 5 s to 30 s)",
        "`base` is 2ms (recommended: 10 ms to 1 s, usually 100 ms)",
        "`factor` is 4 (recommended: 1.5 to 3, usually 2)",
        "`max_delay` is 18446744073709551615.999999999s (recommended: 1 s to 60 s, usually 5 s)",
        "`ratio` is 0.6 (recommended: 0.01 to 0.5, usually 0.1)",
    ];
    assert_eq!(lines(&policy.validate()), expected);
}

/// A call that is alone makes exactly as many attempts as the warning says.
// FIELD 31
#[tokio::test(start_paused = true)]
async fn attempts_beyond_the_budget_are_listed() {
    let budgets = [
        (RetryBudget::cautious(), 4),
        (RetryBudget::cautious().capacity(2.0), 3),
        (RetryBudget::ratio(0.1).capacity(5.0), 6),
        (RetryBudget::rate(0.000_001, 2.0), 3),
        (RetryBudget::aws_quota(), 101),
        (RetryBudget::unlimited(), 150),
    ];
    for (budget, attempts) in budgets {
        let policy = || {
            let policy = RetryPolicy::http().max_elapsed(SECOND * 30).backoff(Constant::new(SECOND / 5));
            policy.budget(budget.clone()).max_attempts(150)
        };
        let server = Server::by(|_, _| Act::from(503));
        drop(RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap());
        assert_eq!(server.count(), attempts, "{budget:?}");
        let expected = format!(
            "`max_attempts` is 150, and the budget grants {attempts} while no call succeeds (recommended: as many as \
             the budget grants)"
        );
        let found = lines(&policy().validate()).contains(&expected);
        assert_eq!(found, attempts < 150, "{:?}", policy().validate());
        let fits = u32::try_from(attempts).unwrap();
        assert!(!policy().max_attempts(fits).validate().iter().any(|warning| warning.value().contains("budget")));
    }
    let earned = Budget::most_retries(&RetryBudget::rate(0.1, 2.0), SECOND * 30);
    assert_eq!(earned, Some(5), "two at once, three within the time");
    let two = (RetryBudget::ratio(0.1).capacity(5.0), RetryBudget::cautious());
    let warnings = lines(&RetryPolicy::http().max_attempts(6).budget(Arc::new(two)).validate());
    assert!(warnings[0].starts_with("`max_attempts` is 6, and the budget grants 4 while"), "{warnings:?}");
    assert_eq!(RetryPolicy::http().max_attempts(None).validate().len(), 1, "not limited is said by the range alone");
}

/// A timeout is not retried if the time for retries is then over.
#[test]
fn timeout_above_max_elapsed_is_listed() {
    let policy = |timeout: u32| RetryPolicy::http().attempt_timeout(SECOND * timeout).max_elapsed(SECOND * 10);
    let expected = "`attempt_timeout` is 10s (recommended: below `max_elapsed`, after which no attempt starts)";
    assert_eq!(lines(&policy(10).validate()), [expected]);
    assert_eq!(policy(9).validate(), []);
    let stack = StandardLayer::http().retry(RetryPolicy::http().max_elapsed(SECOND * 10).boxed_errors());
    assert_eq!(lines(&stack.clone().validate()), [expected]);
    assert_eq!(stack.attempt_timeout(SECOND * 9).validate(), []);
}

/// An error of `checked` is a warning of `validate`.
#[test]
fn contradictions_of_a_stack_are_listed() {
    let stack = StandardLayer::http().total_time(SECOND * 8).attempt_timeout(SECOND * 8);
    let error = stack.clone().checked().unwrap_err();
    assert_eq!(error.to_string(), "`attempt_timeout` must be below `total_time`, but it is 8s");
    assert_eq!(lines(&stack.validate()), ["`attempt_timeout` is 8s (recommended: below `total_time`)"]);
}

#[test]
fn standard_stack_lists_those_of_its_parts() {
    let breaker = CircuitBreaker::rate().failure_ratio(0.9);
    let limit = Arc::new(Some(RateLimit::new(Limit::per_second(10), 100)));
    let stack = StandardLayer::http()
        .total_time(2 * 3600 * SECOND)
        .retry(RetryPolicy::http().max_attempts(11).boxed_errors())
        .guards((breaker, limit));
    let expected = [
        "`max_attempts` is 11 (recommended: 2 to 10, usually 3 to 5)",
        "`max_attempts` is 11, and the budget grants 4 while no call succeeds (recommended: as many as the budget grants)",
        "`failure_ratio` is 0.9 (recommended: 0.3 to 0.7, usually 0.5)",
        "`burst` is 10 times the rate (recommended: 1 to 5, usually 2)",
        "`total_time` is 7200s (recommended: 1 s to 1 h, usually 5 s to 30 s)",
    ];
    assert_eq!(lines(&stack.validate()), expected);
    let hedges = HedgePolicy::http().max_elapsed(SECOND / 2).boxed_errors();
    let expected = [
        "`max_elapsed` is 500ms (recommended: 1 s to 1 h, usually 5 s to 30 s)",
        expected[2],
        expected[3],
        "`attempt_timeout` is 10s (recommended: below `max_elapsed`, after which no attempt starts)",
        expected[4],
    ];
    assert_eq!(lines(&stack.hedge(hedges).validate()), expected);
}

#[test]
fn combined_schedules_are_validated() {
    let odd = Exponential::from_millis(2000);
    let fields = |policy: Vec<Warning>| -> Vec<_> { policy.iter().map(Warning::field).collect() };
    let of = |schedule| fields(RetryPolicy::http().backoff(SharedSchedule::new(schedule)).validate());
    assert_eq!(of(SharedSchedule::new(odd.take(2).then(odd))), ["base", "base"]);
    assert_eq!(of(SharedSchedule::new(Arc::new(odd.for_failures(|_| true, odd)))), ["base", "base"]);
    assert_eq!(of(SharedSchedule::new(Reconnecting::new(Exponential::decorrelated(SECOND * 2)))), ["base"]);
    assert_eq!(of(SharedSchedule::new(Responsive::new())), ["max"], "15 min is above 30 s");
    assert_eq!(of(SharedSchedule::new(Responsive::new().max(SECOND * 10))), [""; 0]);
}

#[test]
fn hedge_policy_lists_unusual_settings() {
    let budget = RetryBudget::rate(2.0, 20.0);
    let policy = HedgePolicy::http().max_elapsed(SECOND * 4000).budget(SpendOnly(budget));
    let expected = [
        "`max_elapsed` is 4000s (recommended: 1 s to 1 h, usually 5 s to 30 s)",
        "`burst` is 10 times the rate (recommended: 1 to 5, usually 2)",
    ];
    assert_eq!(lines(&policy.validate()), expected);
}

/// Policies share a protocol, and hedging does not use some of its settings.
#[test]
fn hedge_policy_lists_what_it_does_not_use() {
    let http = Http::new()
        .generate_idempotency_keys(true)
        .trust_idempotency_keys(false)
        .refused_stream_is_proof(false)
        .redirects_below(true)
        .drain_limit(1);
    let expected = [
        "`generate_idempotency_keys` is true (recommended: the default, because hedging does not use it)",
        "`trust_idempotency_keys` is false (recommended: the default, because hedging does not use it)",
        "`refused_stream_is_proof` is false (recommended: the default, because hedging does not use it)",
        "`redirects_below` is true (recommended: the default, because hedging does not use it)",
    ];
    assert_eq!(lines(&HedgePolicy::with(http.clone()).validate()), expected);
    assert_eq!(RetryPolicy::with(http).validate(), []);
}

#[test]
fn backoff_replaced_by_profile_is_listed() {
    let own = || RetryPolicy::http().backoff(Exponential::from_millis(200));
    let replaced = own().profile(profile::stripe());
    let expected = "`backoff` is replaced by a later `profile` (recommended: set after `profile`)";
    assert!(lines(&replaced.clone().validate()).contains(&expected.to_owned()));
    let fields = |policy: Vec<Warning>| policy.iter().any(|warning| warning.field() == "backoff");
    assert!(fields(replaced.clone().profile(profile::stripe()).validate()));
    assert!(!fields(replaced.backoff(Exponential::from_millis(200)).validate()));
    assert!(!fields(RetryPolicy::http().profile(profile::stripe()).validate()));
}

#[test]
fn guards_list_unusual_settings() {
    let breaker =
        CircuitBreaker::rate().consecutive_failures(5).failure_ratio(0.2).interval(SECOND * 20).open_time(SECOND * 5);
    let expected = [
        "`failure_ratio` is 0.2 (recommended: 0.3 to 0.7, usually 0.5)",
        "`interval` is 20s (recommended: 30 s to 5 min, usually 60 s)",
        "`open_time` is 5s (recommended: 10 s to 2 min, usually 30 s)",
    ];
    assert_eq!(lines(&breaker.validate()), expected);
    let limit = RateLimit::new(Limit::per_second(10), 5);
    assert_eq!(lines(&limit.validate()), ["`burst` is 0.5 times the rate (recommended: 1 to 5, usually 2)"]);
    assert_eq!(RateLimit::new(Limit::INFINITE, 0).validate(), []);
    assert_eq!(RateLimit::new(Limit::every(SECOND * 60), 1).validate(), []);
}

/// The list contains settings with which no call can pass, or that have no effect.
#[test]
fn settings_that_cannot_work_are_listed() {
    let zero = Duration::ZERO;
    assert_eq!(lines(&Bulkhead::new(0).validate()), ["`limit` is 0 (recommended: at least 1, usually 64)"]);
    assert_eq!(Bulkhead::new(1).validate(), []);
    let layer = GuardLayer::http((Bulkhead::new(0), RateLimit::new(Limit::ZERO, 9)));
    assert_eq!(
        lines(&layer.attempt_timeout(zero).validate()),
        [
            "`limit` is 0 (recommended: at least 1, usually 64)",
            "`limit` is 0/s (recommended: above 0)",
            "`attempt_timeout` is 0ns (recommended: above 0)",
        ]
    );
    assert_eq!(GuardLayer::http(Bulkhead::default()).attempt_timeout(SECOND).validate(), []);
    let nothing = RateLimit::new(Limit::every(SECOND * 60), 0);
    assert_eq!(lines(&nothing.validate()), ["`burst` is 0 (recommended: at least 1)"]);
    let policy = RetryPolicy::http().attempt_timeout(zero);
    assert_eq!(lines(&policy.validate()), ["`attempt_timeout` is 0ns (recommended: above 0)"]);
    let error = StandardLayer::http().attempt_timeout(zero).checked().unwrap_err();
    assert_eq!(error.to_string(), "`attempt_timeout` must be above 0, but it is 0ns");
}

#[test]
fn max_elapsed_above_total_time_is_listed() {
    let stack = |elapsed| {
        let policy = RetryPolicy::http().max_elapsed(elapsed).boxed_errors();
        StandardLayer::http().total_time(SECOND * 20).retry(policy)
    };
    let expected = "`max_elapsed` is 40s (recommended: at most `total_time`, which ends the call before)";
    assert_eq!(lines(&stack(SECOND * 40).validate()), [expected]);
    assert_eq!(stack(SECOND * 20).validate(), []);
    assert_eq!(stack(SECOND * 30).validate(), [], "the default");
}

/// A delay that reaches the limit on elapsed time ends every call at its first failure.
#[test]
fn delays_that_allow_no_retry_are_listed() {
    let year = SECOND * 31_536_000;
    let of = |schedule: SharedSchedule| RetryPolicy::http().backoff(schedule).validate();
    let expected = |field: &str| format!("`{field}` is 31536000s (recommended: below `max_elapsed`)");
    assert_eq!(lines(&of(SharedSchedule::new(Constant::new(year)))), [expected("base")]);
    assert_eq!(lines(&of(SharedSchedule::new(Linear::new(year)))), [expected("base")]);
    assert_eq!(lines(&of(SharedSchedule::new(List::ending([year])))), [expected("delays")]);
    for schedule in [Constant::new(SECOND / 10), Constant::immediate(), Constant::new(SECOND * 29)] {
        assert_eq!(of(SharedSchedule::new(schedule)), []);
    }
    assert_eq!(of(SharedSchedule::new(Linear::new(year).max_delay(SECOND))), []);
    let unlimited = RetryPolicy::http().max_elapsed(None).backoff(Constant::new(SECOND * 61));
    let expected = "`base` is 61s (recommended: 1 s to 60 s, usually 5 s)";
    assert_eq!(lines(&unlimited.validate()), [expected]);
}
