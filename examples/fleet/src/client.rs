//! A process with its clients. Each client stands for a process of its own: it shares the store's connection with its
//! neighbours, but not their budget.

use std::error::Error;
use std::io;
use std::str::FromStr;
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

use crate::{BETWEEN_CALLS, CLIENTS, OUTAGE, RUN};

/// The budget of a client.
#[derive(Clone, Copy)]
pub(crate) enum Budget {
    NoRetry,
    Local,
    Fleet,
}

impl Budget {
    pub(crate) const ALL: [Self; 3] = [Self::NoRetry, Self::Local, Self::Fleet];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoRetry => "no-retry",
            Self::Local => "local",
            Self::Fleet => "fleet",
        }
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|it| it.name() == name).ok_or(format!("no budget {name}"))
    }
}

/// The counts of a client's calls.
#[derive(Default)]
struct Counts {
    calls: u32,
    lost: u32,
    calls_after: u32,
    lost_after: u32,
    attempts: u32,
}

/// Runs the clients of a process, and prints their counts.
pub(crate) async fn run(budget: Budget, server: &str, store: &str) -> Result<(), Box<dyn Error>> {
    let store = RedisStore::new(store)?;
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let policy = RetryPolicy::operations().backoff(Exponential::default());
        let server = server.to_owned();
        match budget {
            Budget::NoRetry => {
                clients.spawn(calls(policy.max_attempts(1).budget(Unlimited), server));
            }
            Budget::Local => {
                clients.spawn(calls(policy.budget(RetryBudget::cautious()), server));
            }
            Budget::Fleet => {
                let budget = FleetBudget::new(store.clone()).prefix("example");
                clients.spawn(calls(policy.budget(budget), server));
            }
        }
    }
    let mut sum = Counts::default();
    while let Some(client) = clients.join_next().await {
        let client = client?;
        sum.calls += client.calls;
        sum.lost += client.lost;
        sum.calls_after += client.calls_after;
        sum.lost_after += client.lost_after;
        sum.attempts += client.attempts;
    }
    let Counts { calls, lost, calls_after, lost_after, attempts } = sum;
    println!("{calls} {lost} {calls_after} {lost_after} {attempts}");
    Ok(())
}

/// Calls at random moments, with the same rate at any time.
async fn calls<B>(policy: RetryPolicy<Operations, Exponential, B>, server: String) -> Counts
where
    B: reattempt::budget::Budget + Clone,
{
    let (start, mut counts) = (Instant::now(), Counts::default());
    loop {
        let pause = BETWEEN_CALLS.mul_f64(-f64::ln(1.0 - rand::rng().random::<f64>()));
        sleep(pause).await;
        if start.elapsed() > RUN {
            return counts;
        }
        let is_after = start.elapsed() > Duration::from_secs(OUTAGE[1] + 5);
        let attempts = &mut counts.attempts;
        let call = || {
            *attempts += 1;
            attempt(&server)
        };
        let timed_out = |_: &io::Error| Classification::from(Verdict::Transient(Failure::new(FailureKind::Timeout)));
        let lost = u32::from(retry(policy.clone(), call).classify(timed_out).await.is_err());
        counts.calls += 1;
        counts.lost += lost;
        counts.calls_after += u32::from(is_after);
        counts.lost_after += if is_after { lost } else { 0 };
    }
}

/// An attempt, with a time limit of a second.
async fn attempt(server: &str) -> io::Result<()> {
    timeout(Duration::from_secs(1), async { TcpStream::connect(server).await?.read_exact(&mut [0]).await.map(drop) })
        .await?
}
