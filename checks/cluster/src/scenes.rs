//! The scenes: what happens to the servers while calls are made.

use std::net::SocketAddr;
use std::time::Duration;

use reattempt::RetryBudget;
use reattempt::endpoints::Endpoints;
use tokio::time::Instant;
use tower::BoxError;

use crate::calls::{Kind, Load, request};
use crate::client::Attempts;
use crate::dns::Answer::{Code, Servers, Silence};
use crate::dns::{Zone, resolve};
use crate::stage::{PLAIN, Stage, WORK, five, maker, seconds, until};
use crate::verdict::Verdict;
use reattempt_cluster_check::process::{BlackHole, Setup};

/// Something that happens to a cluster under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    Faults,
    Rolling,
    Streams,
    Tls,
    TlsFaults,
    Replaced,
    Zones,
    WrongAnswer,
    Canary,
}

const ALL: [Scene; 9] = [
    Scene::Faults,
    Scene::Rolling,
    Scene::Streams,
    Scene::Tls,
    Scene::TlsFaults,
    Scene::Replaced,
    Scene::Zones,
    Scene::WrongAnswer,
    Scene::Canary,
];

/// Returns the scenes with these names, or all.
pub(crate) fn chosen(names: &[String]) -> Result<Vec<Scene>, BoxError> {
    if names.is_empty() {
        return Ok(ALL.to_vec());
    }
    let scene = |name: &String| ALL.into_iter().find(|scene| scene.name() == name);
    names.iter().map(|name| scene(name).ok_or_else(|| format!("no scene is called {name}").into())).collect()
}

/// Calls in flight at all servers, so about 200 on the one connection to each.
const STREAMS: u32 = 1000;

impl Scene {
    fn name(self) -> &'static str {
        match self {
            Self::Faults => "faults",
            Self::Rolling => "rolling",
            Self::Streams => "streams",
            Self::Tls => "tls",
            Self::TlsFaults => "tls-faults",
            Self::Replaced => "replaced",
            Self::Zones => "zones",
            Self::WrongAnswer => "wrong-answer",
            Self::Canary => "canary",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Faults => "one server is killed and restarted, one is stopped, and the port of one is a black hole",
            Self::Rolling => "each server in turn is killed and restarted on its port",
            Self::Streams => {
                "200 streams on each connection: one server is killed, one is stopped, one ends in good order"
            }
            Self::Tls => "TLS and HTTP/2: each server in turn ends in good order and is restarted on its port",
            Self::TlsFaults => {
                "TLS and HTTP/2: one server is killed and restarted, one is stopped, and the port of one is a black hole"
            }
            Self::Replaced => {
                "each server in turn is replaced by one at another address, as a DNS server answers, which also fails"
            }
            Self::Zones => "three servers are near and two are far: those that are near are killed, and come back",
            Self::WrongAnswer => "a DNS server answers with addresses of nobody for 3 s",
            Self::Canary => "one of five servers should get 5 % of the calls",
        }
    }

    pub(crate) async fn play(self) -> Result<Verdict, BoxError> {
        match self {
            Self::Faults => faults(self.name(), false).await,
            Self::Rolling => rolling().await,
            Self::Streams => streams().await,
            Self::Tls => over_tls().await,
            Self::TlsFaults => faults(self.name(), true).await,
            Self::Replaced => replaced().await,
            Self::Zones => zones().await,
            Self::WrongAnswer => wrong_answer().await,
            Self::Canary => canary().await,
        }
    }
}

/// Over HTTP/1.1, or over TLS and HTTP/2.
async fn faults(name: &str, https: bool) -> Result<Verdict, BoxError> {
    let mut stage = Stage::listed(name, Setup { https, work: WORK }, https, RetryBudget::default()).await?;
    let [killed, stopped, vanishing, ..] = stage.cluster.addresses()[..] else { return Err("five servers".into()) };
    let load = stage.open();
    seconds(1.0).await;
    stage.cluster.kill(killed).await?;
    seconds(1.5).await;
    stage.cluster.start_at(killed).await?;
    seconds(1.0).await;
    stage.cluster.stop(stopped, Duration::from_secs(2)).await?;
    seconds(1.0).await;
    stage.cluster.kill(vanishing).await?;
    let hole = BlackHole::at(vanishing).await?;
    seconds(2.5).await;
    drop(hole);
    stage.cluster.start_at(vanishing).await?;
    // The longest ejection of an endpoint that was out once is 6 s, and each server gets calls again.
    let handle = &stage.handle;
    until("all servers are in service again", || handle.view().iter().all(|view| view.out.is_none())).await?;
    let restarted = stage.cluster.ledger()?.len();
    seconds(1.0).await;
    let mut verdict = stage.verdict(load).await?;
    verdict.expect(stage.cluster.ledger()?.len() > restarted, "no POST was carried out at the end");
    Ok(verdict)
}

async fn rolling() -> Result<Verdict, BoxError> {
    let mut stage = Stage::listed("rolling", PLAIN, false, RetryBudget::default()).await?;
    let load = stage.open();
    for address in stage.cluster.addresses() {
        seconds(0.7).await;
        stage.cluster.kill(address).await?;
        seconds(0.5).await;
        stage.cluster.start_at(address).await?;
    }
    seconds(1.0).await;
    stage.verdict(load).await
}

async fn streams() -> Result<Verdict, BoxError> {
    let setup = Setup { https: false, work: Duration::from_secs(1) };
    // The calls of a connection are lost at once, and the ten tokens of the default budget would repeat ten of them.
    let budget = RetryBudget::ratio(0.1).capacity(2.0 * f64::from(STREAMS) / 5.0);
    let mut stage = Stage::listed("streams", setup, true, budget).await?;
    let [killed, stopped, ending, ..] = stage.cluster.addresses()[..] else { return Err("five servers".into()) };
    let load = Load::closed(&stage.send, false, STREAMS);
    seconds(3.0).await;
    let in_flight = stage.in_flight(killed);
    stage.cluster.kill(killed).await?;
    seconds(2.0).await;
    stage.cluster.start_at(killed).await?;
    seconds(1.0).await;
    stage.cluster.stop(stopped, Duration::from_secs(4)).await?;
    seconds(1.0).await;
    stage.cluster.terminate(ending).await?;
    stage.cluster.start_at(ending).await?;
    seconds(2.0).await;
    let mut verdict = stage.verdict(load).await?;
    println!("   {in_flight} streams were open on the connection to the server that was killed");
    verdict.expect(in_flight >= 150, "too few streams");
    Ok(verdict)
}

async fn over_tls() -> Result<Verdict, BoxError> {
    let mut stage = Stage::listed("tls", Setup { https: true, work: WORK }, true, RetryBudget::default()).await?;
    let load = stage.open();
    for address in stage.cluster.addresses() {
        seconds(0.7).await;
        stage.cluster.terminate(address).await?;
        seconds(0.3).await;
        stage.cluster.start_at(address).await?;
    }
    seconds(1.0).await;
    let mut verdict = stage.verdict(load).await?;
    verdict.expect_no_loss();
    let other = (stage.send)(request("https", "other.example", u64::MAX, Kind::Get)?).await;
    verdict.expect(other.is_err(), "a name that the certificate does not have was accepted");
    Ok(verdict)
}

async fn replaced() -> Result<Verdict, BoxError> {
    let cluster = five("replaced", PLAIN).await?;
    let zone = Zone::of(cluster.addresses()).await?;
    let server = zone.address();
    let look_up = move || resolve(server);
    let maker = maker(&cluster, false)?;
    let attempts = maker.attempts.clone();
    let endpoints =
        Endpoints::look_up(Duration::from_secs(1), look_up).connect(move |address| maker.client_to(address));
    let balanced = endpoints.attempt_timeout(Duration::from_millis(500)).http();
    let mut stage = Stage::over(cluster, attempts, balanced, RetryBudget::default());
    let load = stage.open();
    seconds(1.0).await;
    // Look-ups that fail or find nothing change nothing.
    let nothing = [None, Some(Silence), Some(Code(2)), Some(Code(3)), Some(Servers(Vec::new()))];
    for (old, nothing) in stage.cluster.addresses().into_iter().zip(nothing) {
        if let Some(nothing) = nothing {
            zone.set(nothing);
            seconds(1.2).await;
        }
        let new = stage.cluster.start().await?;
        let mut addresses = stage.cluster.addresses();
        addresses.retain(|address| *address != old);
        zone.set(Servers(addresses));
        let handle = &stage.handle;
        let is_listed = |address: SocketAddr| handle.view().iter().any(|view| *view.name == *address.to_string());
        until("the answer is used", || is_listed(new) && !is_listed(old)).await?;
        stage.cluster.terminate(old).await?;
    }
    seconds(1.0).await;
    let mut verdict = stage.verdict(load).await?;
    verdict.expect_no_loss();
    Ok(verdict)
}

async fn zones() -> Result<Verdict, BoxError> {
    let cluster = five("zones", PLAIN).await?;
    let addresses = cluster.addresses();
    let far: Vec<_> = addresses[3..].to_vec();
    let is_far = far.clone();
    let mut stage = Stage::placed(cluster, move |address, place| place.tier(is_far.contains(address).into()))?;
    let load = stage.open();
    let share_of_far = |attempts: &Attempts, from: Instant| {
        let sent = attempts.since(from);
        let far = sent.iter().filter(|(address, _)| far.contains(address)).count();
        100 * far / sent.len().max(1)
    };
    let began = Instant::now();
    seconds(1.0).await;
    let before = share_of_far(&stage.attempts, began);
    for near in &addresses[..3] {
        stage.cluster.kill(*near).await?;
    }
    seconds(0.5).await;
    let outage = Instant::now();
    seconds(2.0).await;
    let during = share_of_far(&stage.attempts, outage);
    for near in &addresses[..3] {
        stage.cluster.start_at(*near).await?;
    }
    let handle = &stage.handle;
    until("all servers are in service again", || handle.view().iter().all(|view| view.out.is_none())).await?;
    seconds(0.5).await;
    let back = Instant::now();
    seconds(1.0).await;
    let after = share_of_far(&stage.attempts, back);
    // Three servers that are lost within milliseconds look like an outage of the whole service until the first success
    // at a far one, so up to five calls are not repeated.
    let mut verdict = stage.verdict_by(load, 0.994).await?;
    println!("   {before}, {during} and {after} % of the attempts were far, before, during and after the outage");
    verdict.expect(before == 0 && after == 0, "calls went far although servers were near");
    // A server that refuses connections is asked again after 1, 2 and 4 s.
    verdict.expect(during >= 95, "calls went to dead servers");
    Ok(verdict)
}

async fn wrong_answer() -> Result<Verdict, BoxError> {
    let cluster = five("wrong-answer", PLAIN).await?;
    let right = cluster.addresses();
    let zone = Zone::of(right.clone()).await?;
    let server = zone.address();
    let maker = maker(&cluster, false)?;
    let attempts = maker.attempts.clone();
    let endpoints = Endpoints::look_up(Duration::from_secs(1), move || resolve(server))
        .keep_absent(Duration::from_secs(30))
        .connect(move |address| maker.client_to(address));
    let balanced = endpoints.attempt_timeout(Duration::from_millis(500)).http();
    let mut stage = Stage::over(cluster, attempts, balanced, RetryBudget::default());
    // Servers that have ended leave ports at which nobody listens.
    let mut nobody = Vec::new();
    for _ in 0..2 {
        let address = stage.cluster.start().await?;
        stage.cluster.terminate(address).await?;
        nobody.push(address);
    }
    let load = stage.open();
    seconds(1.0).await;
    zone.set(Servers(nobody.clone()));
    let handle = &stage.handle;
    let is_listed = |address: &SocketAddr| handle.view().iter().any(|view| *view.name == *address.to_string());
    until("the answer is used", || nobody.iter().all(is_listed)).await?;
    seconds(3.0).await;
    zone.set(Servers(right));
    until("the answer is used", || !nobody.iter().any(is_listed)).await?;
    seconds(1.0).await;
    let mut verdict = stage.verdict(load).await?;
    verdict.expect_no_loss();
    Ok(verdict)
}

async fn canary() -> Result<Verdict, BoxError> {
    let cluster = five("canary", PLAIN).await?;
    let canary = cluster.addresses()[0];
    let stage = Stage::placed(cluster, move |address, place| place.weight(if *address == canary { 5 } else { 24 }))?;
    let load = stage.open();
    let began = Instant::now();
    seconds(8.0).await;
    let sent = stage.attempts.since(began);
    let share = 100.0 * sent.iter().filter(|(address, _)| *address == canary).count() as f64 / sent.len() as f64;
    println!("   {share:.1} % of the attempts were at the canary");
    let mut verdict = stage.verdict(load).await?;
    verdict.expect((2.0..=8.0).contains(&share), "not 5 % ± 3");
    verdict.expect_no_loss();
    Ok(verdict)
}
