//! A thousand clients in twenty processes, an outage, and the retry budget that they share.
//!
//! A server of 1.2 times the capacity that its clients need stalls for ten seconds. Each client calls once in eight
//! seconds, so each budget of its own is full when the outage begins. The store of the shared budget is killed in the
//! middle of the outage, and comes back empty.
//!
//! `cargo run --release -p fleet-example --example fleet` runs for two minutes. It needs a `redis-server`.

mod client;
mod server;
mod store;

use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::{Instant, sleep_until};

use client::Budget;
use server::Server;
use store::Store;

/// The processes, and the clients of each.
const PROCESSES: usize = 20;
const CLIENTS: usize = 50;

/// The time from one call of a client to the next, on average.
const BETWEEN_CALLS: Duration = Duration::from_secs(8);

/// The length of a run, and the seconds of the outage and of the store's death.
const RUN: Duration = Duration::from_secs(40);
const OUTAGE: [u64; 2] = [10, 20];
const STORE_DIES: [u64; 2] = [15, 17];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [budget, server, store] = &arguments[..] {
        return client::run(budget.parse()?, server, store).await;
    }
    println!("{:10} {:>10} {:>10} {:>14} {:>14}", "budget", "peak load", "lost", "after outage", "attempts/call");
    for budget in Budget::ALL {
        let outcome = run(budget).await?;
        println!(
            "{:10} {:>10.2} {:>9.1}% {:>13.1}% {:>14.2}",
            budget.name(),
            outcome.peak,
            outcome.lost,
            outcome.lost_after,
            outcome.attempts,
        );
    }
    Ok(())
}

/// The figures of a run.
struct Outcome {
    /// The most arrivals in a second, as a multiple of the normal ones.
    peak: f64,
    /// The calls that failed, in percent: of all, and of those from five seconds after the outage on.
    lost: f64,
    lost_after: f64,
    attempts: f64,
}

/// Runs all processes with one kind of budget.
async fn run(budget: Budget) -> Result<Outcome, Box<dyn Error>> {
    let normal = f64::from(u32::try_from(PROCESSES * CLIENTS)?) / BETWEEN_CALLS.as_secs_f64();
    let server = Server::start(normal * 1.2).await?;
    let mut store = Store::start().await?;
    let program = std::env::current_exe()?;
    let processes: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(&program)
                .args([budget.name(), &server.address, &store.url])
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
        })
        .collect::<Result<_, _>>()?;

    let start = Instant::now();
    let at = |second: u64| sleep_until(start + Duration::from_secs(second));
    at(OUTAGE[0]).await;
    server.stall(true);
    at(STORE_DIES[0]).await;
    store.kill().await?;
    at(STORE_DIES[1]).await;
    store.restart().await?;
    at(OUTAGE[1]).await;
    server.stall(false);

    let mut sums = [0.0; 5];
    for process in processes {
        let output = process.wait_with_output().await?;
        let text = String::from_utf8(output.stdout)?;
        for (sum, figure) in sums.iter_mut().zip(text.split_whitespace()) {
            *sum += figure.parse::<f64>()?;
        }
    }
    let [calls, lost, calls_after, lost_after, attempts] = sums;
    Ok(Outcome {
        peak: f64::from(server.most_in_a_second()) / normal,
        lost: 100.0 * lost / calls,
        lost_after: 100.0 * lost_after / calls_after,
        attempts: attempts / calls,
    })
}
