//! Tests of invalid names, requests, texts and the end of a watch.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;

use reattempt_kubernetes::{EndpointSlices, Pod, SliceChanges, SlicesError};
use reattempt_testing::secs;
use reattempt_testing_layers::cluster::{Cluster, get};
use tokio::time::sleep;
use tower::discover::{Change, Discover};

use crate::api::{Api, Fault};
use crate::shop::{Watched, arrive, orders, ready, slice};

/// A name becomes a part of the URL or of the selector, so it must not be able to change either.
#[tokio::test(start_paused = true)]
async fn invalid_name_is_an_error() {
    let client = Api::default().client();
    let long = "a".repeat(64);
    for bad in ["", "-a", "a-", "A", "a.b", "a/../b", "a,b=c", "a b", "ä", &long] {
        let error = EndpointSlices::new(client.clone(), bad, "orders").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("namespace `{bad}` is invalid (1 to 63 characters of a-z, 0-9 and -, no - at the ends)")
        );
        assert!(!error.is_watch() && !error.is_no_slice() && !error.is_no_port());
        let error = EndpointSlices::new(client.clone(), "shop", bad).unwrap_err();
        assert!(error.to_string().starts_with(&format!("service `{bad}` is invalid")), "{error}");
    }
    for good in ["a", "0", "a-0", &"a".repeat(63)] {
        assert!(EndpointSlices::new(client.clone(), good, good).is_ok(), "{good}");
    }
}

/// One list and one watch are sent, for this service only.
#[tokio::test(start_paused = true)]
async fn requests_select_the_service() {
    let api = Api::default();
    api.apply(slice("a", [ready("10.0.0.1")]));
    let _watched = Watched::start(orders(&api)).await;
    let requests = api.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    for uri in &requests {
        assert!(uri.starts_with("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices?"), "{uri}");
        assert!(uri.contains("labelSelector=kubernetes.io%2Fservice-name%3Dorders"), "{uri}");
    }
    assert!(requests[1].contains("watch=true") && requests[1].contains("resourceVersion=2"), "{requests:?}");
    assert!(requests[1].contains("allowWatchBookmarks=true"), "{requests:?}");
}

/// The watch has no task of its own, and ends with the last client and handle.
// E-19
#[tokio::test(start_paused = true)]
async fn watch_ends_with_the_last_handle() {
    let api = Api::default();
    api.apply(slice("a", [ready("10.0.0.1")]));
    let Watched { cluster, client, .. } = Watched::start(orders(&api)).await;
    let handle = client.endpoints();
    drop(client);
    arrive().await;
    assert_eq!(api.watches(), 1);
    drop(handle);
    arrive().await;
    assert_eq!(api.watches(), 0);
    assert_eq!(cluster.alive(), 0);
}

/// The first calls wait for the first list, and a client that is never called watches, too.
#[tokio::test(start_paused = true)]
async fn first_call_waits_for_the_list() {
    let api = Api::default();
    api.apply(slice("a", [ready("10.0.0.1")]));
    let watched = Watched::new(orders(&api));
    watched.client.send(get()).await.unwrap();
    assert_eq!(watched.cluster.seen(), ["10.0.0.1:50051"]);
}

/// A program that reads the changes itself can tell the errors apart.
#[tokio::test(start_paused = true)]
async fn errors_are_told_apart() {
    let api = Api::default();
    api.next_list(Fault::Status(403));
    let mut changes = orders(&api).changes(Pod::address);
    let mut next = async || poll_fn(|cx| Pin::new(&mut changes).poll_discover(cx)).await.unwrap();
    let error = next().await.unwrap_err();
    assert!(error.is_watch() && !error.is_no_slice());
    assert!(error.source().unwrap().is::<kube::runtime::watcher::Error>());
    let error = next().await.unwrap_err();
    assert!(error.is_no_slice() && !error.is_watch(), "{error}");
    let mut without = slice("a", [ready("10.0.0.1")]);
    without["ports"] = serde_json::json!([]);
    api.apply(without);
    let error = next().await.unwrap_err();
    assert!(error.is_no_port() && !error.is_no_slice(), "{error}");
    api.apply(slice("a", [ready("10.0.0.1")]));
    assert!(matches!(next().await, Ok(Change::Insert(pod, address)) if pod.address() == address));
    api.apply(slice("a", []));
    assert!(matches!(next().await, Ok(Change::Remove(_))));
}

/// A connection that panics ends the source. The set stays, and calls go on.
#[tokio::test(start_paused = true)]
async fn panic_in_connect_ends_the_source() {
    let api = Api::default();
    api.apply(slice("a", [ready("10.0.0.1")]));
    let cluster = Cluster::default();
    let servers = cluster.clone();
    let endpoints = orders(&api).connect(move |pod: &Pod| {
        assert_ne!(pod.to_string(), "10.0.0.2:50051", "scripted");
        servers.client(pod)
    });
    let client = endpoints.http();
    sleep(secs(1)).await;
    api.apply(slice("a", [ready("10.0.0.1"), ready("10.0.0.2")]));
    sleep(secs(60)).await;
    client.send(get()).await.unwrap();
    assert_eq!(cluster.seen(), ["10.0.0.1:50051"]);
    assert_eq!(api.watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn debug_shows_the_service() {
    let api = Api::default();
    let source = orders(&api).zone("eu-1a");
    assert_eq!(
        format!("{source:?}"),
        "EndpointSlices { service: \"shop/orders\", wanted: Wanted { port: Some(\"grpc\"), ipv6_first: false }, zone: \
         Some(\"eu-1a\") }"
    );
    let error = EndpointSlices::new(api.client(), "shop", "?").unwrap_err();
    assert!(format!("{error:?}").starts_with("SlicesError"));
    assert!(error.source().is_none());
}

#[test]
fn types_are_send_and_sync() {
    fn both<T: Send + Sync>() {}
    fn send<T: Send>() {}
    both::<Pod>();
    both::<SlicesError>();
    both::<EndpointSlices>();
    send::<SliceChanges<fn(&Pod)>>();
}
