//! The layers inside the clients of six projects, each against a scripted server.
//!
//! Every part prints what reached its server, and fails if that is not what the README's table states.

mod async_openai;
mod etcd;
mod kube;
mod object_store;
mod octocrab;
mod qdrant;

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use reattempt::schedule::Constant;
use reattempt_faults::Ledger;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// The example of one project.
type Example = Pin<Box<dyn Future<Output = Outcome>>>;

/// The time limit for one project.
const LIMIT: Duration = Duration::from_secs(20);

fn main() -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let projects: [(&str, Example); 6] = [
        ("kube", Box::pin(kube::run())),
        ("octocrab", Box::pin(octocrab::run())),
        ("object_store", Box::pin(object_store::run())),
        ("etcd-client", Box::pin(etcd::run())),
        ("qdrant-client", Box::pin(qdrant::run())),
        ("async-openai", Box::pin(async_openai::run())),
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
