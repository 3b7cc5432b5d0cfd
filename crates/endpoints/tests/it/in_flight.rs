//! Tests of the count of calls in flight, and of the lifetime of services.

use std::pin::pin;
use std::time::Duration;

use http_body_util::BodyExt;
use reattempt::RetryLayer;
use reattempt::endpoints::Endpoints;
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Body, Cluster, Does, WELL, get, policy};
use tokio::time::timeout;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt};

/// A call is in flight until its body ends or is dropped. A call that was never polled, or that panics, leaves nothing
/// behind.
// E-9
#[tokio::test(start_paused = true)]
async fn in_flight_is_exact_on_every_end() {
    let cluster = Cluster::of([WELL]);
    let balanced = cluster.balanced();
    let handle = balanced.endpoints();
    let in_flight = || handle.view()[0].in_flight;

    let response = balanced.send(get()).await.unwrap();
    assert_eq!(in_flight(), 1, "the body is not read");
    response.collect().await.unwrap();
    assert_eq!(in_flight(), 0);
    drop(balanced.send(get()).await.unwrap());
    assert_eq!(in_flight(), 0, "the body was dropped");

    drop(balanced.clone().call(get()));
    assert_eq!(in_flight(), 0, "never polled");
    {
        let mut call = pin!(balanced.clone().call(get()));
        assert!(timeout(ms(1), call.as_mut()).await.is_err());
        assert_eq!(in_flight(), 1);
    }
    assert_eq!(in_flight(), 0, "dropped under way");
    assert_eq!(handle.view()[0].failing, 0.0);

    cluster.set("0", Does::Panic);
    let panicked = tokio::spawn(balanced.send(get())).await;
    assert!(panicked.unwrap_err().is_panic());
    assert_eq!((in_flight(), handle.view()[0].failing), (0, 0.0), "a panic");
    cluster.set("0", WELL);
    assert!(balanced.send(get()).await.is_ok(), "the set goes on");
}

/// A caller that hangs up neither ejects an endpoint nor makes it look faster.
// E-11
#[tokio::test(start_paused = true)]
async fn abandoned_attempts_eject_nothing() {
    let cluster = Cluster::of([Does::Answer(ms(100))]);
    let balanced = cluster.balanced();
    let handle = balanced.endpoints();
    balanced.send(get()).await.unwrap();
    let known = handle.view()[0].latency.unwrap();
    for _ in 0..50 {
        assert!(timeout(Duration::from_micros(10), balanced.send(get())).await.is_err());
    }
    let view = &handle.view()[0];
    assert_eq!((view.failing, view.out), (0.0, None));
    assert!(view.latency.unwrap() * 2 > known, "{view:?}");
}

/// An idle readied handle holds no permit of any endpoint's client.
// E-17
#[tokio::test(start_paused = true)]
async fn idle_handle_holds_no_permit() {
    let cluster = Cluster::of([WELL]);
    let endpoints = Endpoints::list(["0"]).unwrap();
    let nodes = cluster.clone();
    let limited = endpoints.connect(move |name| ConcurrencyLimit::new(nodes.client(name), 1));
    let balanced = limited.http();
    let mut idle = balanced.clone();
    ServiceExt::<http::Request<Body>>::ready(&mut idle).await.unwrap();
    assert!(timeout(secs(1), balanced.send(get())).await.is_ok());
}

/// Dropping the last handle drops every service.
// E-19
#[tokio::test(start_paused = true)]
async fn last_handle_drops_services() {
    let cluster = Cluster::of([WELL, WELL, WELL]);
    let client = RetryLayer::new(policy(2)).layer(cluster.balanced());
    let response = client.send(get()).await.unwrap();
    drop(client);
    assert_eq!(cluster.alive(), 3, "a body is not read yet");
    drop(response);
    assert_eq!(cluster.alive(), 0);
}
