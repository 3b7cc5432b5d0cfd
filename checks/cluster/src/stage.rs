//! A cluster with a client over it, under load.

use std::net::SocketAddr;
use std::time::Duration;

use reattempt::endpoints::{Balanced, Endpoints, EndpointsHandle, Place};
use reattempt::{RetryBudget, RetryLayer, RetryPolicy};
use tokio::time::{Instant, sleep};
use tower::{BoxError, Layer};

use crate::calls::{Load, Send, sender};
use crate::client::{Attempts, Maker, Node};
use crate::verdict::{GOAL, Verdict};
use reattempt_cluster_check::process::{Cluster, Setup};
use reattempt_cluster_check::tls;

/// 200 calls a second.
pub(crate) const EVERY: Duration = Duration::from_millis(5);
pub(crate) const SERVERS: usize = 5;
pub(crate) const WORK: Duration = Duration::from_millis(25);
pub(crate) const PLAIN: Setup = Setup { https: false, work: WORK };

pub(crate) fn seconds(seconds: f64) -> impl Future<Output = ()> {
    sleep(Duration::from_secs_f64(seconds))
}

/// A cluster and a client over it.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) attempts: Attempts,
    pub(crate) handle: EndpointsHandle<Node>,
    pub(crate) send: Send,
}

pub(crate) async fn five(name: &str, setup: Setup) -> Result<Cluster, BoxError> {
    let mut cluster = Cluster::new(name, setup)?;
    for _ in 0..SERVERS {
        cluster.start().await?;
    }
    Ok(cluster)
}

pub(crate) fn maker(cluster: &Cluster, http2: bool) -> Result<Maker, BoxError> {
    Ok(Maker { attempts: Attempts::default(), tls: tls::client(cluster.store())?, http2 })
}

/// Waits for a condition, for 10 s at most.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) -> Result<(), BoxError> {
    let latest = Instant::now() + Duration::from_secs(10);
    while !holds() {
        if Instant::now() > latest {
            return Err(format!("not within 10 s: {what}").into());
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

impl Stage {
    /// Starts five servers, and makes a client over the list of them.
    pub(crate) async fn listed(name: &str, setup: Setup, http2: bool, budget: RetryBudget) -> Result<Self, BoxError> {
        let cluster = five(name, setup).await?;
        let maker = maker(&cluster, http2)?;
        let attempts = maker.attempts.clone();
        let endpoints = Endpoints::list(cluster.addresses())?.connect(move |address| maker.client_to(address));
        let timeout = setup.work * 2 + Duration::from_millis(500);
        Ok(Self::over(cluster, attempts, endpoints.attempt_timeout(timeout).http(), budget))
    }

    /// Makes a client over the list of the servers, in these places.
    pub(crate) fn placed(
        cluster: Cluster,
        place: impl Fn(&SocketAddr, Place) -> Place + std::marker::Send + Sync + 'static,
    ) -> Result<Self, BoxError> {
        let maker = maker(&cluster, false)?;
        let attempts = maker.attempts.clone();
        let endpoints = Endpoints::list(cluster.addresses())?.connect(move |address| maker.client_to(address));
        // The servers share their ledger, as a database would be shared.
        let endpoints = endpoints.placed(place).tiers_share_state();
        let balanced = endpoints.attempt_timeout(Duration::from_millis(500)).http();
        Ok(Self::over(cluster, attempts, balanced, RetryBudget::default()))
    }

    pub(crate) fn over(cluster: Cluster, attempts: Attempts, balanced: Balanced<Node>, budget: RetryBudget) -> Self {
        let handle = balanced.endpoints();
        let client = RetryLayer::new(RetryPolicy::http().budget(budget).boxed_errors()).layer(balanced);
        Self { cluster, attempts, handle, send: sender(client) }
    }

    pub(crate) fn open(&self) -> Load {
        Load::open(&self.send, self.cluster.setup.https, EVERY)
    }

    pub(crate) fn in_flight(&self, address: SocketAddr) -> usize {
        let name = address.to_string();
        self.handle.view().iter().filter(|view| *view.name == *name).map(|view| view.in_flight).sum()
    }

    pub(crate) async fn verdict(&self, load: Load) -> Result<Verdict, BoxError> {
        self.verdict_by(load, GOAL).await
    }

    pub(crate) async fn verdict_by(&self, load: Load, goal: f64) -> Result<Verdict, BoxError> {
        let done = load.stop().await?;
        Verdict::of(&done, &self.cluster, &self.attempts, goal)
    }
}
