//! A thousand clients in twenty processes, an outage, and a shared retry budget.
//!
//! A server with 1.2 times the capacity that its clients need stalls for ten seconds. Each client calls once every
//! eight seconds, so its own budget is full when the outage starts. The shared budget's store is killed during the
//! outage, and restarts empty. Clients without retries, with their own budgets and with the shared budget meet the same
//! outage at the same time, each kind with its own server.
//!
//! `cargo run --release -p fleet-example --example fleet` runs for 40 s and needs a `redis-server`. With
//! `-- --seconds 120 --plot fleet.svg` it runs longer and plots the results.

mod client;
mod figures;
mod process;
mod server;
mod store;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use client::{Budget, Client};
use figures::Figures;
use process::Process;
use server::Server;
use store::Store;

/// The number of processes, and of clients in each.
const PROCESSES: usize = 20;
const CLIENTS: usize = 50;

/// The mean time between two calls of a client.
const BETWEEN_CALLS: Duration = Duration::from_secs(8);

/// The server's capacity, as a multiple of the normal load.
const CAPACITY: f64 = 1.2;

/// The start and end of the outage, and of the store's failure, in seconds.
const OUTAGE: [u64; 2] = [10, 20];
const STORE_DIES: [u64; 2] = [14, 16];

/// The time after the end of a run within which all processes must end.
const END: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [role, budget, seconds] = &arguments[..]
        && role == "client"
    {
        Client { budget: budget.parse()?, seconds: seconds.parse()? }.run().await?;
        return Ok(ExitCode::SUCCESS);
    }
    let (mut seconds, mut picture) = (40, None);
    for pair in arguments.chunks(2) {
        match pair {
            [name, value] if name == "--seconds" => seconds = value.parse::<u64>()?.clamp(35, 600),
            [name, value] if name == "--plot" => picture = Some(PathBuf::from(value)),
            _ => return Err(format!("{pair:?} is not --seconds NUMBER or --plot FILE").into()),
        }
    }

    let bound = Duration::from_secs(seconds) + END;
    let [none, local, fleet] = Budget::ALL.map(|budget| run(budget, seconds));
    let (none, local, fleet) = timeout(bound, async { tokio::try_join!(none, local, fleet) }).await??;
    let all = [none, local, fleet];
    figures::print(&all);
    if let Some(path) = picture {
        figures::draw(&all, &path)?;
    }
    let [none, local, fleet] = &all;
    let holds = fleet.lost() < local.lost() && fleet.lost_after() < none.lost_after() + 10.0;
    if !holds {
        eprintln!("the shared budget did not keep the outage short");
    }
    Ok(ExitCode::from(u8::from(!holds)))
}

/// Runs all processes with one kind of budget.
async fn run(budget: Budget, seconds: u64) -> Result<Figures, Box<dyn Error>> {
    let mut store = Store::start(budget.name()).await?;
    let mut processes = Vec::new();
    for _ in 0..PROCESSES {
        processes.push(Process::start(budget, seconds)?);
    }
    let server = Server::start(seconds).await?;
    for process in &mut processes {
        process.begin(&server.address, &store.url).await?;
    }

    let start = Instant::now();
    let at = |second: u64| sleep_until(start + Duration::from_secs(second));
    at(OUTAGE[0]).await;
    server.stall(true);
    at(STORE_DIES[0]).await;
    store.kill().await?;
    at(STORE_DIES[1]).await;
    store.restart()?;
    at(OUTAGE[1]).await;
    server.stall(false);

    let mut counts = Vec::new();
    for process in processes {
        counts.push(process.read_counts().await?);
    }
    Ok(Figures::new(budget, server.arrivals(), &counts))
}
