//! Tests of whole stacks in every order that the table of [`reattempt::order`] allows.
//!
//! The table gives each layer one place, so a stack is a selection of layers. Seven of them are optional ([`Row`]),
//! which makes 128 selections. There are 19 selections of guards ([`GUARDS`]): none, each alone, three in any of their
//! six orders, and a pace in front of or behind each of them and all of them. That makes 2432 stacks. Rows of other
//! crates, and tower's `Buffer`, `LoadShed` and `RateLimit`, are left out. `crate::stacks` draws stacks in any order.
//!
//! No layer may hold anything for a call that has ended, and each outcome follows from the layers.

use std::time::Duration;

use futures_util::future::join_all;
use http_body_util::BodyExt;
use reattempt::fallback::FellBack;
use reattempt::guard::handle::BreakerState;
use reattempt::guard::handle::{CircuitBreakerExt, UsageExt};
use tokio::time::{Instant, sleep, timeout};
use tower::{BoxError, ServiceExt};

use super::stacks::Row::{AttemptTimeout, Fallback, Guards, Hedge, Retry, TotalTimeout};
use super::stacks::{Action, GUARDS, OUTSIDE_IN, PERMITS, Parts, Row, Stack, serves};
use crate::calls::support::{Act, answer, get, ms};
use crate::stacks::erased::{Client, RequestBody};

const HOST: &str = "one.example";
const LONG: Duration = Duration::from_secs(10);

fn fails() -> Act {
    Act::Answer(answer(503, "down"))
}

fn throttles() -> Act {
    Act::Answer(answer(429, "slow down"))
}

fn hangs() -> Act {
    Act::Hang
}

fn is_slow() -> Act {
    serves().later(ms(20))
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Served,
    Failed,
    /// A failure that the fallback replaced.
    Replaced,
    /// The caller dropped the call.
    Dropped,
}

/// Calls the client and reads the body. The caller drops the call after `patience`.
async fn call(client: Client, patience: Duration) -> Outcome {
    let call = async {
        let (head, body) = client.oneshot(get().map(RequestBody::new)).await?.into_parts();
        body.collect().await?;
        Ok::<_, BoxError>(head)
    };
    match timeout(patience, call).await {
        Err(_) => Outcome::Dropped,
        Ok(Ok(head)) if head.extensions.get::<FellBack>().is_some() => Outcome::Replaced,
        Ok(Ok(head)) if head.status == 200 => Outcome::Served,
        Ok(_) => Outcome::Failed,
    }
}

impl Stack {
    fn has(&self, row: Row) -> bool {
        self.rows.contains(&row)
    }

    /// Returns the outcome of a failed call: with a fallback, no caller sees a failure.
    fn failure(&self) -> Outcome {
        if self.has(Fallback) { Outcome::Replaced } else { Outcome::Failed }
    }

    /// Makes concurrent calls. The server follows the script, and then serves. Each call is dropped after its patience.
    /// Asserts that nothing is left of them.
    async fn calls<const N: usize>(&self, script: &[Action], patience: [Duration; N]) -> [Outcome; N] {
        *self.script.lock().unwrap() = script.iter().copied().collect();
        let before = self.server.count();
        let calls = patience.map(|patience| call(self.client.clone(), patience));
        let outcomes = join_all(calls).await;
        let retried = if self.has(Retry) { 3 } else { 1 };
        let most = if self.has(Hedge) { 2 * retried } else { retried };
        let sent = self.server.count() - before;
        assert!(sent <= most * N, "{sent} attempts of {N} calls: {}", self.name);
        self.assert_idle();
        outcomes.try_into().unwrap()
    }

    /// Makes one call, which the caller drops after ten seconds.
    async fn one(&self, script: &[Action]) -> Outcome {
        let [outcome] = self.calls(script, [LONG]).await;
        outcome
    }

    /// Asserts that no layer holds anything for calls that have ended.
    fn assert_idle(&self) {
        let Parts { breaker, rate, places, pace } = &self.parts;
        let usage = places.usage(HOST);
        assert_eq!((usage.in_flight, usage.waiting), (0, 0), "bulkhead: {}", self.name);
        assert_eq!(rate.waiting(HOST), 0, "rate limit: {}", self.name);
        assert_eq!(pace.waiting(), 0, "pace: {}", self.name);
        let counts = breaker.counts(HOST);
        let ended = counts.total_successes + counts.total_failures + counts.total_exclusions;
        assert_eq!(counts.requests, ended, "breaker: {}", self.name);
        let free = [&self.call_limit, &self.attempt_limit].map(|limit| limit.available_permits());
        assert_eq!(free, [PERMITS; 2], "permits of calls and of attempts: {}", self.name);
    }

    async fn assert_serves(&self) {
        assert_eq!(self.one(&[]).await, Outcome::Served, "{}", self.name);
    }

    async fn walk(&self) {
        self.assert_serves().await;
        self.failures().await;
        self.hang().await;
        self.drops().await;
        self.crowd().await;
        if self.parts.breaker.counts(HOST).requests > 0 {
            self.open_breaker().await;
        }
    }

    async fn failures(&self) {
        let served = if self.has(Retry) { Outcome::Served } else { self.failure() };
        assert_eq!(self.one(&[fails, fails]).await, served, "{}", self.name);
        self.assert_serves().await;
        // It moves the pace, so attempts wait from here on.
        let outcome = self.one(&[throttles]).await;
        assert!(outcome == served || self.has(Hedge), "{outcome:?}: {}", self.name);
        self.assert_serves().await;
    }

    async fn hang(&self) {
        let failed = self.parts.breaker.counts(HOST).total_failures;
        let timed = self.has(AttemptTimeout);
        let expected = match () {
            () if self.has(Hedge) || self.has(Retry) && timed => Outcome::Served,
            () if self.has(TotalTimeout) || timed => self.failure(),
            () => Outcome::Dropped,
        };
        assert_eq!(self.one(&[hangs]).await, expected, "{}", self.name);
        let counts = self.parts.breaker.counts(HOST);
        if counts.requests > 0 {
            let counted = counts.total_failures - failed;
            assert_eq!(counted, u32::from(timed && !self.has(Hedge)), "{}", self.name);
        }
        self.assert_serves().await;
    }

    /// Makes calls that are dropped at their start, in an attempt, in a backoff or beside a hedge.
    async fn drops(&self) {
        let script: [Action; 6] = [fails, hangs, hangs, hangs, hangs, hangs];
        for patience in [0, 30, 120].map(ms) {
            self.calls(&script, [patience]).await;
            self.calls(&script[1..], [patience]).await;
        }
        self.assert_serves().await;
    }

    /// Makes more concurrent calls than any limit admits. Two are dropped while they run or wait.
    async fn crowd(&self) {
        let patience = [LONG, ms(5), LONG, LONG, ms(15), LONG];
        let [first, _, third, fourth, _, last] = self.calls(&[is_slow as Action; 24], patience).await;
        for outcome in [first, third, fourth, last] {
            assert_eq!(outcome, Outcome::Served, "{}", self.name);
        }
        self.assert_serves().await;
    }

    async fn open_breaker(&self) {
        let state = || self.parts.breaker.state(HOST);
        let script: [Action; 6] = [fails; 6];
        for _ in 0..5 {
            if state() == BreakerState::Closed {
                assert_eq!(self.one(&script).await, self.failure(), "{}", self.name);
            }
        }
        assert_eq!(state(), BreakerState::Open, "{}", self.name);
        let (before, began) = (self.server.count(), Instant::now());
        assert_eq!(self.one(&[]).await, self.failure(), "{}", self.name);
        assert_eq!(self.server.count(), before, "the breaker refuses: {}", self.name);
        assert!(began.elapsed() < ms(50), "the call does not wait: {}", self.name);
        sleep(LONG).await;
        self.assert_serves().await;
        assert_eq!(state(), BreakerState::Closed, "{}", self.name);
    }
}

#[tokio::test(start_paused = true)]
async fn every_permitted_stack_leaks_nothing() {
    let mut walked = 0;
    for guards in GUARDS {
        for choice in 0..128 {
            let optional = OUTSIDE_IN.into_iter().filter(|row| *row != Guards);
            let chosen = optional.enumerate().filter(|(bit, _)| choice >> bit & 1 == 1);
            Stack::new(chosen.map(|(_, row)| row).collect(), guards).walk().await;
            walked += 1;
        }
    }
    assert_eq!(walked, 2432);
}
