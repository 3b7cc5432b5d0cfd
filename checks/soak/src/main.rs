//! The soak: an hour of calls that fail, are hedged, limited and cancelled, over HTTP/1.1 and HTTP/2, to servers that
//! come and go and to 10,000 destinations.
//!
//! `reattempt-soak-check [SECONDS] [PICTURE]`. After a warm-up of 100,000 calls, every hundredth of the time the calls
//! pause, and everything is counted. No permit or place may be held then. Allocated and resident memory, descriptors
//! and tasks must stay within 2 % from the first quarter of the time to the last, but for what a few connections need.
//! The picture has their curves.

mod curves;
mod load;
mod server;

use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use curves::{Kind, Sample, growth};
use indicatif::{ProgressBar, ProgressStyle};
use load::Load;
use tokio::time::{Instant, sleep};
use tower::BoxError;

const HOUR: u64 = 3600;
const SERVERS: usize = 4;
const WORKERS: u64 = 64;
const SAMPLES: u32 = 100;

/// The time in which connections and tasks end that no call uses.
const PAUSE: Duration = Duration::from_millis(30);

/// The calls after which all tables, pools and buffers have their greatest sizes.
const WARM_UP: u64 = 100_000;

/// The greatest growth after the warm-up.
const MOST_GROWTH: f64 = 0.02;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    match soak().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns `true` if nothing has grown.
async fn soak() -> Result<bool, BoxError> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments
        .next()
        .map_or(Ok(HOUR), |text| text.parse().map_err(|_| format!("{text}: the duration is a number of seconds")))?;
    let picture = arguments.next();
    let mut servers = Vec::new();
    for _ in 0..SERVERS {
        servers.push(server::start().await?);
    }
    let load = Arc::new(Load::new(servers)?);
    load.visit_all().await?;
    for seed in 0..WORKERS {
        tokio::spawn(Arc::clone(&load).work(seed));
    }
    tokio::spawn(Arc::clone(&load).change_endpoints());

    let bar = ProgressBar::new(SAMPLES.into());
    bar.set_style(ProgressStyle::with_template("{bar:40} {elapsed} of the soak, {eta} left, {msg} calls")?);
    while load.calls() < WARM_UP {
        sleep(PAUSE).await;
    }
    let (began, mut samples) = (Instant::now(), Vec::new());
    for number in 1..=SAMPLES {
        let due = Duration::from_secs(seconds) * number / SAMPLES;
        sleep(due.saturating_sub(began.elapsed())).await;
        // Waits for the calls under way, and lets no other begin.
        let quiet = load.running.write().await;
        sleep(PAUSE).await;
        samples.push(Sample::take(began.elapsed(), load.held())?);
        drop(quiet);
        bar.inc(1);
        bar.set_message(load.calls().to_string());
    }
    bar.finish_and_clear();

    let mut out = stdout().lock();
    writeln!(out, "{} calls, the last {seconds} s of which were counted", load.calls())?;
    let mut grown = false;
    for kind in Kind::ALL {
        let (before, after) = growth(&samples, kind);
        let is_flat = after <= before * (1.0 + MOST_GROWTH) + kind.tolerance();
        grown |= !is_flat;
        writeln!(out, "{kind:14} {before:10.1} → {after:10.1}  {}", if is_flat { "flat" } else { "GROWN" })?;
    }
    let held = samples.iter().map(|sample| sample.held).max().unwrap_or_default();
    writeln!(out, "{held} permits, places or attempts were held while no call was in flight")?;
    if let Some(picture) = picture {
        curves::figure(&samples).save(Path::new(&picture))?;
    }
    Ok(!grown && held == 0)
}
