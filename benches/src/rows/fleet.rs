//! Calls with a budget or a rate limit that many processes share, beside the same calls with one of their own.

use std::num::NonZeroU32;
use std::time::Duration;

use reattempt::budget::Budget;
use reattempt::guard::contract::{Admit, Arrival, End, Guard, Health};
use reattempt::guard::{Limit, RateLimit};
use reattempt::schedule::Constant;
use reattempt::{Http, Retry, RetryBudget, RetryPolicy};
use reattempt_fleet::rate::{FleetRateLimit, Rate};
use reattempt_fleet::{FleetBudget, MemoryStore, RateStore};
use tokio::task::yield_now;

use super::{Row, Work, above, alone, call, once};
use crate::inner::{Answers, FailsFirst};
use crate::requests::{fresh, template};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "fleet",
        title: "first-time success with a budget that processes share, template",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            // A template, because the body of a fresh request costs more or less with the state of the heap.
            alone("bare", || call::each(Answers, template())),
            above("ours-local", "bare", || call::each(with(RetryBudget::cautious(), Answers), template())),
            above("ours", "bare", || call::each(with(shared(), Answers), template())),
        ],
    },
    Row {
        name: "fleet-once",
        title: "fails once, then succeeds, the store in memory, delay 0, paused clock, fresh",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || once::each(Answers, fresh)),
            above("ours-local", "bare", || once::each(with(RetryBudget::cautious(), FailsFirst::default()), fresh)),
            above("ours", "bare", || {
                let runtime = once::paused();
                let budget = runtime.block_on(async { shared() });
                once::each_on(runtime, with(budget, FailsFirst::default()), fresh)
            }),
        ],
    },
    Row {
        name: "fleet-rate",
        title: "a call through a rate limit that processes share, the store in memory",
        operations: 20_000,
        counted: true,
        timed: false,
        contenders: &[
            alone("local", || admissions(local())),
            alone("ours", || admissions(FleetRateLimit::new(MemoryStore::new(), rate(), local()))),
            alone("asks-each-time", asks_each_time),
        ],
    },
];

/// Creates a rate that no measurement reaches.
fn rate() -> Rate {
    let number = |number| NonZeroU32::new(number).expect("not 0");
    Rate::new(number(4_000_000_000), number(100_000))
}

fn local() -> RateLimit {
    RateLimit::new(Limit::per_second(1_000_000), 1_000_000)
}

/// Admits a thousand calls a second, and ends each.
fn admissions(limit: impl Guard) -> Work {
    let (runtime, mut now) = (once::paused(), Duration::ZERO);
    Box::new(move |operations| {
        once::block_on(&runtime, async {
            for _ in 0..operations {
                now += Duration::from_millis(1);
                let admitted = limit.admit(&Arrival::new("https://shop.example", now));
                if let Admit::Admitted(ticket) | Admit::Waiting(ticket) = admitted {
                    limit.end_ticket(ticket, &End::judged(Health::Served, Duration::ZERO), now);
                }
                // The questions are tasks.
                if now.as_millis().is_multiple_of(50) {
                    yield_now().await;
                }
            }
        });
    })
}

/// Asks the store for each call, as clients of redis-cell do: without a network, a server or a driver.
fn asks_each_time() -> Work {
    let runtime = once::paused();
    let store = runtime.block_on(async { MemoryStore::new() });
    Box::new(move |operations| {
        once::block_on(&runtime, async {
            for _ in 0..operations {
                let granted = store.take("reattempt:rate:2:https://shop.example", rate(), 1).await;
                assert_eq!(granted.map(|taken| taken.granted).ok(), Some(1));
            }
        });
    })
}

/// Creates a shared budget whose answers are never late.
fn shared() -> FleetBudget {
    FleetBudget::new(MemoryStore::new()).patience(Duration::from_secs(1))
}

fn with<B: Budget + Clone, S: Clone>(budget: B, inner: S) -> Retry<S, RetryPolicy<Http, Constant, B>> {
    Retry::new(RetryPolicy::http().backoff(Constant::immediate()).budget(budget), inner)
}

/// Checks that each call succeeds, and that the store is asked once for each retry.
pub(super) fn check() {
    let runtime = once::paused();
    let budget = runtime.block_on(async { shared() });
    once::each_on(runtime, with(budget.clone(), FailsFirst::default()), fresh)(10);
    let stats = budget.stats();
    assert_eq!((stats.asked, stats.granted, stats.alone), (10, 10, 0));
}
