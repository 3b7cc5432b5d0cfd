//! Tests of the budget that must grant every hedge.

use std::io::ErrorKind::ConnectionReset;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reattempt::hedge::HedgeLayer;
use reattempt_core::{Budget, Evidence, Failure, Permit, PermitIssuer};
use tower::{Layer, ServiceExt};

use crate::hedge::support::{Act, Server, get, ms, post, tokens};
use crate::hedge::{policy, report};

// THR-6, HG-8
#[tokio::test(start_paused = true)]
async fn refused_hedge_leaves_those_in_flight() {
    let server = Server::by(|_, _| Act::from(200).later(ms(700)));
    let policy = policy().budget(tokens(1.0));
    let client = HedgeLayer::new(policy.clone()).layer(server.clone());
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!((server.times(), report(&answer)), (vec![0, 100], Some((2, 1))));
    assert!(policy.budget_ref().balance("one.example") < 1.0, "it was spent");
}

// HG-8
#[tokio::test(start_paused = true)]
async fn nothing_in_flight_makes_failure_outcome() {
    let server = Server::statuses([503]);
    let client = HedgeLayer::new(policy().budget(tokens(1.0))).layer(server.clone());
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), report(&answer), server.count()), (503, Some((2, 2)), 2));
}

// trap 16
#[tokio::test(start_paused = true)]
async fn budget_is_asked_when_hedge_is_due() {
    let heard = Heard::default();
    let server = Server::by(|_, _| Act::from(200).later(ms(150)));
    let client = HedgeLayer::new(policy().budget(heard.clone())).layer(server.clone());
    client.clone().oneshot(get()).await.unwrap();
    // The hedge has lost.
    assert_eq!(heard.lines(), ["asked for timeout", "hedge ended 7 false", "credited 1"]);
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).later(ms(20)),
        _ => 200.into(),
    });
    let heard = Heard::default();
    let client = HedgeLayer::new(policy().budget(heard.clone())).layer(server.clone());
    client.oneshot(get()).await.unwrap();
    let asked = ["failed with server (503)", "asked for server (503)"];
    assert_eq!(heard.lines(), [&asked[..], &["hedge ended 7 true", "credited 1"]].concat());
}

#[tokio::test(start_paused = true)]
async fn only_hedgeable_calls_are_credited() {
    let heard = Heard::default();
    let server = Server::statuses([200]);
    let client = HedgeLayer::new(policy().budget(heard.clone())).layer(server);
    client.clone().oneshot(post()).await.unwrap();
    assert!(heard.lines().is_empty());
    client.oneshot(get()).await.unwrap();
    assert_eq!(heard.lines(), ["credited 0"]);
}

// trap 39
#[tokio::test(start_paused = true)]
async fn hedged_call_with_an_error_earns_none() {
    let heard = Heard::default();
    let server = Server::by(|_, _| Act::Error(std::io::Error::other("of an unknown type")));
    let client = HedgeLayer::new(policy().budget(heard.clone())).layer(server);
    client.oneshot(get()).await.unwrap_err();
    assert!(!heard.lines().iter().any(|line| line.starts_with("credited")), "{:?}", heard.lines());
}

/// Each attempt that fails has its own time of sending, so those that share a connection are one event.
// C-4, CI-5
#[tokio::test(start_paused = true)]
async fn hedges_have_their_times_of_sending() {
    let sent = Sent::default();
    // The first two attempts are lost with their connection at 150 ms, and the third follows at once.
    let server = Server::by(|arrival, _| Act::from(ConnectionReset).later(ms([150, 50, 10][arrival - 1])));
    let client = HedgeLayer::new(policy().budget(sent.clone())).layer(server);
    client.oneshot(get()).await.unwrap_err();
    assert_eq!(sent.times(), [ms(0), ms(100), ms(151)]);
}

/// A budget that grants everything, and records the times at which failed attempts were sent.
#[derive(Clone, Default)]
pub(crate) struct Sent(Arc<Mutex<Vec<Duration>>>);

impl Sent {
    /// Returns the times since the first one.
    pub(crate) fn times(&self) -> Vec<Duration> {
        let times = self.0.lock().unwrap();
        times.iter().map(|time| *time - times[0]).collect()
    }
}

impl Budget for Sent {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        Some(Permit::free())
    }

    fn on_failure(&self, _: &str, evidence: &Evidence, _: Duration) {
        self.0.lock().unwrap().push(evidence.sent);
    }
}

/// A budget that grants everything at a cost of seven, and records its events.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl PermitIssuer for Heard {
    fn give_back(&self, cost: u32) {
        self.note(format!("given back {cost}"));
    }

    fn on_retry_end(&self, cost: u32, succeeded: bool) {
        self.note(format!("hedge ended {cost} {succeeded}"));
    }
}

impl Budget for Heard {
    fn acquire(&self, destination: &str, failure: &Failure, _: Duration) -> Option<Permit> {
        assert_eq!(destination, "one.example");
        self.note(format!("asked for {failure}"));
        Some(Permit::new(Arc::new(self.clone()), 7))
    }

    fn on_success(&self, _: &str, retries: u32) {
        self.note(format!("credited {retries}"));
    }

    fn on_failure(&self, _: &str, failure: &Evidence, _: Duration) {
        self.note(format!("failed with {failure}"));
    }
}
