//! The layers inside the clients of other projects, each against a scripted server.
//!
//! Every part prints what reached its server, and fails if that is not what the README's table states. The feature
//! `first` has six projects, and `more` has five.

#[cfg(feature = "first")]
mod async_openai;
#[cfg(feature = "more")]
mod axiom;
#[cfg(feature = "more")]
mod azure;
#[cfg(feature = "first")]
mod etcd;
#[cfg(feature = "more")]
mod gcloud_storage;
#[cfg(feature = "more")]
mod hf_hub;
#[cfg(feature = "first")]
mod kube;
#[cfg(feature = "first")]
mod object_store;
#[cfg(feature = "first")]
mod octocrab;
#[cfg(feature = "first")]
mod qdrant;
#[cfg(feature = "more")]
mod rattler;

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use reattempt::schedule::Constant;
use reattempt_faults::Ledger;

type Failed = Box<dyn Error + Send + Sync>;
type Outcome = Result<(), Failed>;

/// The example of one project.
type Example = Pin<Box<dyn Future<Output = Outcome>>>;

/// The time limit for one project.
const LIMIT: Duration = Duration::from_secs(20);

fn main() -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let projects: Vec<(&str, Example)> = vec![
        #[cfg(feature = "first")]
        ("kube", Box::pin(kube::run())),
        #[cfg(feature = "first")]
        ("octocrab", Box::pin(octocrab::run())),
        #[cfg(feature = "first")]
        ("object_store", Box::pin(object_store::run())),
        #[cfg(feature = "first")]
        ("etcd-client", Box::pin(etcd::run())),
        #[cfg(feature = "first")]
        ("qdrant-client", Box::pin(qdrant::run())),
        #[cfg(feature = "first")]
        ("async-openai", Box::pin(async_openai::run())),
        #[cfg(feature = "more")]
        ("rattler_networking", Box::pin(rattler::run())),
        #[cfg(feature = "more")]
        ("gcloud-storage", Box::pin(gcloud_storage::run())),
        #[cfg(feature = "more")]
        ("azure_storage_blob", Box::pin(azure::run())),
        #[cfg(feature = "more")]
        ("hf-hub", Box::pin(hf_hub::run())),
        #[cfg(feature = "more")]
        ("axiom-rs", Box::pin(axiom::run())),
    ];
    for (name, project) in projects {
        println!("{name}");
        let limited = async { tokio::time::timeout(LIMIT, project).await };
        runtime.block_on(limited)??;
    }
    Ok(())
}

/// Short delays, in place of those of a profile or of the default.
fn soon() -> Constant {
    Constant::new(Duration::from_millis(5))
}

/// Prints the requests that reached a server, and asserts their methods, in order. No unsafe request may be carried out
/// twice, and the attempts of a call must have the same body.
#[track_caller]
fn assert_arrivals(what: &str, ledger: &Ledger, methods: &[&str]) {
    let arrivals = ledger.arrivals();
    let seen: Vec<_> = arrivals.iter().map(|arrival| arrival.method.as_str()).collect();
    println!("  {what}: {}", seen.join(", "));
    assert_eq!(seen, methods, "{what}");
    ledger.bodies_intact();
}

/// Asserts that the server's delay has passed between the first two requests.
#[cfg(feature = "more")]
#[track_caller]
fn assert_waited(ledger: &Ledger, delay: Duration) {
    let arrivals = ledger.arrivals();
    assert!(arrivals[1].at - arrivals[0].at >= delay, "{ledger:?}");
}
