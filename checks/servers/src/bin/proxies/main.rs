//! Two back ends as processes behind a real proxy, which are restarted in turn and killed while calls are made.
//!
//! `reattempt-proxies-check NAME PROGRAM ROUNDS` starts the proxy NAME (envoy, haproxy, nginx or caddy). Clients of
//! hyper-util, reqwest and tonic call through it at the same time. Of the calls that may be repeated, at most one of
//! each thousand may fail, and the response of at most five be cut off after it has begun, which haproxy does to gRPC.
//! No other call may be carried out twice by the back ends, which write each into a ledger.
//! With the name squid, the calls go through its CONNECT. With the word `server` the binary is one back end.

mod calls;
mod clients;
mod connect;
mod proxy;

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

use calls::{Done, Kind, Load};
use proxy::Proxy;
use reattempt_cluster_check::process::{Cluster, Setup};
use reattempt_cluster_check::server;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};
use tower::BoxError;

/// The time in which a back end answers, so that each restart finds requests under way.
const WORK: Duration = Duration::from_millis(5);

/// The time in which a back end is gone.
const GONE: Duration = Duration::from_millis(300);

/// The time between two outages.
const PAUSE: Duration = Duration::from_millis(500);

/// The most time of a round, which only a hang exceeds.
const ROUND: Duration = Duration::from_secs(60);

/// The most calls that may be repeated and fail nevertheless: one of each so many, and of the rest.
const FAILED: usize = 1000;

/// The most responses that are cut off after they have begun, one of each so many. No retry can mend them.
const CUT_OFF: usize = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, BoxError> {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let holds = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", ..] => return server::run(&arguments[1..]).await.map(|()| ExitCode::SUCCESS),
        ["squid", program, _] => connect::check(program).await?,
        [name, program, rounds] => LocalSet::new().run_until(check(name, program, rounds.parse()?)).await?,
        _ => return Err("usage: reattempt-proxies-check NAME PROGRAM ROUNDS".into()),
    };
    println!("{}", if holds { "all of it holds" } else { "not all of it holds" });
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn check(name: &str, program: &str, rounds: u32) -> Result<bool, BoxError> {
    let mut cluster = Cluster::new(name, Setup { https: false, work: WORK })?;
    let back_ends = [cluster.start().await?, cluster.start().await?];
    let proxy = Proxy::start(name, program, &back_ends).await?;
    let load = Load::start(clients::all(&proxy)?);
    for _ in 0..rounds {
        timeout(ROUND, round(&mut cluster)).await.map_err(|_| "a round did not end")??;
    }
    let done = timeout(ROUND, load.stop()).await.map_err(|_| "a call did not end")??;
    let mut carried_out = HashMap::<u64, u32>::new();
    cluster.ledger()?.into_iter().for_each(|call| *carried_out.entry(call).or_default() += 1);
    println!("{name}, {rounds} rounds of outages; {} POSTs and gRPC calls were carried out", carried_out.len());
    let mut holds = true;
    for (client, done) in done {
        holds &= judge(client, &done, &carried_out);
    }
    Ok(holds)
}

/// Ends each back end in good order, then kills each, then kills both.
async fn round(cluster: &mut Cluster) -> Result<(), BoxError> {
    let back_ends = cluster.addresses();
    for back_end in &back_ends {
        sleep(PAUSE).await;
        cluster.terminate(*back_end).await?;
        sleep(GONE).await;
        cluster.start_at(*back_end).await?;
    }
    let (first, second) = back_ends.split_at(1);
    for killed in [first, second, &back_ends] {
        sleep(PAUSE).await;
        for back_end in killed {
            cluster.kill(*back_end).await?;
        }
        sleep(GONE).await;
        for back_end in killed {
            cluster.start_at(*back_end).await?;
        }
    }
    sleep(PAUSE).await;
    Ok(())
}

/// Prints the figures of a client. Returns `true` if they are right.
fn judge(client: &str, done: &[Done], carried_out: &HashMap<u64, u32>) -> bool {
    let (once, repeatable): (Vec<&Done>, Vec<&Done>) = done.iter().partition(|call| call.kind == Kind::Once);
    let failed = |calls: &[&Done]| calls.iter().filter(|call| call.failure.is_some()).count();
    let twice = once.iter().filter(|call| carried_out.get(&call.number).is_some_and(|times| *times > 1));
    let twice = twice.collect::<Vec<_>>();
    let retries = done.iter().map(|call| call.retries).sum::<usize>();
    let cut_off = repeatable.iter().filter(|call| call.cut_off).count();
    let lost = failed(&repeatable) - cut_off;
    println!(
        "{client:<22} repeatable: {lost} of {} failed, {cut_off} cut off; others: {} of {}, {} carried out twice; {retries} retries",
        repeatable.len(),
        failed(&once),
        once.len(),
        twice.len()
    );
    let reasons = repeatable.iter().filter_map(|call| call.failure.as_ref());
    reasons.take(3).for_each(|reason| println!("  failed: {reason}"));
    twice.iter().take(3).for_each(|call| println!("  carried out twice: {call:?}"));
    let calls = repeatable.len();
    lost <= calls.div_ceil(FAILED) && cut_off <= calls.div_ceil(CUT_OFF) && twice.is_empty()
}
