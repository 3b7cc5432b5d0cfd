//! Five servers as processes, a client over all of them, and the fate of its calls when servers are killed, stopped,
//! replaced and restarted.
//!
//! `reattempt-cluster-check [SCENE…]` runs scenes, by default all. With the feature `beside`, `beside [ENVOY]` runs
//! other clients and an Envoy beside ours. With the word `server` the binary is one server. A
//! server writes each POST that it carries out into a ledger that all servers share, so the check is against what
//! happened. Time is real here, because processes are the subject. Every wait has a bound, and its end fails the check.

#[cfg(feature = "beside")]
mod beside;
mod calls;
mod client;
mod dns;
mod scenes;
mod stage;
mod verdict;

use std::process::ExitCode;
use std::time::Duration;

use reattempt_cluster_check::server;
use tokio::time::timeout;
use tower::BoxError;

/// The most time of a scene.
const LONGEST_SCENE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<ExitCode, BoxError> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [word, arguments @ ..] = &arguments[..]
        && word == "server"
    {
        return server::run(arguments).await.map(|()| ExitCode::SUCCESS);
    }
    #[cfg(feature = "beside")]
    if let [word, envoy @ ..] = &arguments[..]
        && word == "beside"
    {
        let is_well = beside::run(envoy.first().map(AsRef::as_ref)).await?;
        return Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let mut all_well = true;
    for scene in scenes::chosen(&arguments)? {
        println!("\n-- {}", scene.title());
        let verdict = timeout(LONGEST_SCENE, scene.play()).await.map_err(|_| "the scene did not end")??;
        print!("{verdict}");
        all_well &= verdict.is_well();
    }
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
