//! The clients of a process. Each simulates a process of its own: it shares the store's connection with its neighbours,
//! but not its budget.

use std::error::Error;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::RngExt;
use reattempt::budget::Unlimited;
use reattempt::classify::Classification;
use reattempt::operation::Operations;
use reattempt::schedule::{Exponential, Failure, FailureKind};
use reattempt::{RetryBudget, RetryPolicy, Verdict, retry};
use reattempt_redis::{FleetBudget, RedisStore};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::{BETWEEN_CALLS, CLIENTS, process};

/// The budget of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    NoRetry,
    Local,
    Fleet,
}

impl Budget {
    pub(crate) const ALL: [Self; 3] = [Self::NoRetry, Self::Local, Self::Fleet];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoRetry => "none",
            Self::Local => "local",
            Self::Fleet => "fleet",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::NoRetry => "no retries",
            Self::Local => "a budget in each client",
            Self::Fleet => "one budget for the fleet",
        }
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|it| it.name() == name).ok_or(format!("no budget {name}"))
    }
}

/// The clients of one process.
pub(crate) struct Client {
    pub(crate) budget: Budget,
    pub(crate) seconds: u64,
}

/// The counts of a process. Those of calls are per second: calls that started, how many of these were lost, and
/// successes.
#[derive(Clone)]
struct Counts(Arc<[[AtomicU64; 3]]>);

impl Counts {
    fn add(&self, at: Duration, column: usize) {
        let second = usize::try_from(at.as_secs()).unwrap_or(usize::MAX);
        self.0.get(second).map(|row| row[column].fetch_add(1, Ordering::Relaxed));
    }
}

impl Client {
    /// Runs the clients of a process, and prints their counts in one line.
    pub(crate) async fn run(self) -> Result<(), Box<dyn Error>> {
        let (server, store) = process::addresses().await?;
        let store = RedisStore::new(&store)?;
        let counts = Counts((0..self.seconds).map(|_| <[AtomicU64; 3]>::default()).collect());
        let start = Instant::now();
        let (mut clients, mut budgets) = (JoinSet::new(), Vec::new());
        for _ in 0..CLIENTS {
            let policy = RetryPolicy::operations().backoff(Exponential::default());
            let (server, counts, end) = (server.clone(), counts.clone(), Duration::from_secs(self.seconds));
            match self.budget {
                Budget::NoRetry => {
                    clients.spawn(calls(policy.max_attempts(1).budget(Unlimited), server, counts, start, end));
                }
                Budget::Local => {
                    clients.spawn(calls(policy.budget(RetryBudget::cautious()), server, counts, start, end));
                }
                Budget::Fleet => {
                    let budget = FleetBudget::new(store.clone()).prefix("example");
                    budgets.push(budget.clone());
                    clients.spawn(calls(policy.budget(budget), server, counts, start, end));
                }
            }
        }
        while let Some(client) = clients.join_next().await {
            client?;
        }
        let stats = |read: fn(&reattempt_redis::FleetStats) -> u64| -> u64 {
            budgets.iter().map(|budget| read(&budget.stats())).sum()
        };
        let of_budgets = [stats(|it| it.asked), stats(|it| it.granted), stats(|it| it.alone)];
        let of_calls = counts.0.iter().flatten().map(|count| count.load(Ordering::Relaxed));
        let words: Vec<_> = of_budgets.into_iter().chain(of_calls).map(|count| count.to_string()).collect();
        println!("{}", words.join(" "));
        Ok(())
    }
}

/// Makes calls at random times, with a constant mean rate.
async fn calls<B>(
    policy: RetryPolicy<Operations, Exponential, B>,
    server: String,
    counts: Counts,
    start: Instant,
    end: Duration,
) where
    B: reattempt::budget::Budget + Clone,
{
    loop {
        let pause = BETWEEN_CALLS.mul_f64(-f64::ln(1.0 - rand::rng().random::<f64>()));
        sleep(pause.min(end.saturating_sub(start.elapsed()))).await;
        let at = start.elapsed();
        if at >= end {
            return;
        }
        let timed_out = |_: &io::Error| Classification::from(Verdict::Transient(Failure::new(FailureKind::Timeout)));
        let outcome = retry(policy.clone(), || attempt(&server)).classify(timed_out).await;
        counts.add(at, 0);
        match outcome {
            Ok(()) => counts.add(start.elapsed(), 2),
            Err(_) => counts.add(at, 1),
        }
    }
}

/// An attempt, with a time limit of a second.
async fn attempt(server: &str) -> io::Result<()> {
    timeout(Duration::from_secs(1), async { TcpStream::connect(server).await?.read_exact(&mut [0]).await.map(drop) })
        .await?
}
