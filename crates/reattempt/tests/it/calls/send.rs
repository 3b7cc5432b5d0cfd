//! Tests of calls through a shared handle: `send` clones it, waits until the clone is ready, and calls it.

use bytes::Bytes;
use http::StatusCode;
use http_body_util::Full;
use reattempt::guard::{GuardLayer, Pace};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::schedule::Responsive;
use reattempt::{RetryLayer, check};
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::limit::ConcurrencyLimitLayer;
use tower::{Layer, ServiceBuilder};

use crate::calls::support::{Act, Server, get, ms, policy};

#[tokio::test(start_paused = true)]
async fn send_needs_no_mut_and_retries() {
    let server = Server::statuses([503, 200]);
    let client = RetryLayer::new(policy()).layer(server.clone());
    check::<http::Request<Full<Bytes>>, _>(&client);
    let response = client.send(get()).await.unwrap();
    assert_eq!((response.status(), server.count()), (StatusCode::OK, 2));
}

#[tokio::test(start_paused = true)]
async fn send_from_one_handle_serves_twenty_tasks() {
    let server = Server::statuses([200]);
    let client = RetryLayer::new(policy()).layer(server.clone());
    let calls: Vec<_> = (0..20).map(|_| tokio::spawn(client.send(get()))).collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), StatusCode::OK);
    }
    assert_eq!(server.count(), 20);
}

#[tokio::test(start_paused = true)]
async fn send_waits_until_the_service_is_ready() {
    let server = Server::by(|arrival, _| if arrival == 1 { Act::Hang } else { 200.into() });
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .layer(ConcurrencyLimitLayer::new(1))
        .service(server.clone());
    let mut first = task::spawn(client.send(get()));
    assert_pending!(first.poll());
    let mut second = task::spawn(client.send(get()));
    assert_pending!(second.poll());
    assert_eq!(server.count(), 1);
    drop(first);
    assert!(second.is_woken());
    assert_ready_ok!(second.poll());
    assert_eq!(server.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn hedge_and_pace_send_by_a_shared_handle() {
    let server = Server::by(|arrival, _| if arrival == 1 { Act::Hang } else { 200.into() });
    let hedged = HedgeLayer::new(HedgePolicy::http().delay(ms(50))).layer(server.clone());
    assert_eq!(hedged.send(get()).await.unwrap().status(), StatusCode::OK);
    assert_eq!(server.count(), 2);

    let paced = GuardLayer::http(Pace::new(Responsive::new())).layer(hedged);
    assert_eq!(paced.send(get()).await.unwrap().status(), StatusCode::OK);
    assert_eq!(server.count(), 3);
}
