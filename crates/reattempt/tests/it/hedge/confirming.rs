//! Tests of a hedge that a budget confirms later.

use reattempt::hedge::HedgeLayer;
use tower::{Layer, ServiceExt};

use crate::confirming::Asking;
use crate::hedge::support::{Act, Server, get, ms};
use crate::hedge::{policy, report};

/// The question is open while attempts run: the hedge is sent when its time has come and it is confirmed.
#[tokio::test(start_paused = true)]
async fn hedge_leaves_when_confirmed() {
    let budget = Asking::new(ms(30), true);
    let server = Server::by(|_, _| Act::from(200).later(ms(700)));
    let client = HedgeLayer::new(policy().budget(budget)).layer(server.clone());
    client.oneshot(get()).await.unwrap();
    assert_eq!(server.times()[..2], [0, 130]);
}

#[tokio::test(start_paused = true)]
async fn refused_hedge_leaves_others_in_flight() {
    let budget = Asking::new(ms(30), false);
    let server = Server::by(|_, _| Act::from(200).later(ms(700)));
    let client = HedgeLayer::new(policy().budget(budget.clone())).layer(server.clone());
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!((server.times(), report(&answer)), (vec![0], None));
    assert_eq!(budget.log(), ["asked", "returned"]);
}

/// With no attempt in flight, the caller gets the refused response.
// F-5
#[tokio::test(start_paused = true)]
async fn refused_hedge_returns_the_held_response() {
    for answer in [0, 30] {
        let budget = Asking::new(ms(answer), false);
        let server = Server::statuses([503]);
        let client = HedgeLayer::new(policy().budget(budget.clone())).layer(server.clone());
        let answer = client.oneshot(get()).await.unwrap();
        assert_eq!((answer.status().as_u16(), server.count()), (503, 1));
        assert_eq!(budget.log(), ["asked", "returned"]);
    }
}

/// If the outcome comes first, the question is dropped.
#[tokio::test(start_paused = true)]
async fn outcome_drops_the_open_question() {
    let budget = Asking::new(ms(30), true);
    let server = Server::by(|_, _| Act::from(200).later(ms(110)));
    let client = HedgeLayer::new(policy().budget(budget.clone())).layer(server.clone());
    client.oneshot(get()).await.unwrap();
    assert_eq!((server.count(), budget.log()), (1, vec!["asked", "returned"]));
}
