//! Measurements of endpoints: in service, out, in flight, picked, ejected, resolved.

use std::sync::{Arc, Mutex};

use reattempt::endpoints::Endpoints;
use reattempt::endpoints::metrics::EndpointMetrics;
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Cluster, Does, WELL, get};
use reattempt_testing_layers::metrics::Reader;
use tokio::time::sleep;

fn line(labels: &str, value: u64) -> (String, u64) {
    (labels.to_owned(), value)
}

/// A set has one time series of each instrument, whatever its endpoints.
// D-16
#[tokio::test(start_paused = true)]
async fn set_of_endpoints_is_measured() {
    let reader = Reader::new();
    let cluster = Cluster::of([Does::Refuse, WELL, WELL]);
    let client = cluster.balanced();
    let handle = client.endpoints();
    EndpointMetrics::new(&reader.provider).record("stock", &handle);
    let read = |name| reader.of_endpoints(name);
    assert_eq!((read("in_service"), read("out")), (vec![line("name=stock", 3)], vec![line("name=stock", 0)]));
    let mut calls = 0;
    while handle.view().iter().all(|view| view.out.is_none()) {
        let _ = client.send(get()).await;
        calls += 1;
    }
    assert_eq!((read("in_service"), read("out")), (vec![line("name=stock", 2)], vec![line("name=stock", 1)]));
    assert_eq!(read("ejections"), [line("name=stock reason=no_connection", 1)]);
    assert_eq!(read("picks"), [line("name=stock", calls)]);
    assert_eq!(read("in_flight"), [line("name=stock", 0)]);
    let held = client.send(get()).await.unwrap();
    assert_eq!(read("in_flight"), [line("name=stock", 1)]);
    drop(held);
    // What has left is still counted.
    let nodes = cluster.clone();
    handle.update(["9"], move |name| nodes.client(name)).unwrap();
    assert_eq!(read("picks"), [line("name=stock", calls + 1)]);
    assert_eq!(read("in_service"), [line("name=stock", 1)]);
}

/// Each endpoint has time series of its own, if that is asked for.
// D-16
#[tokio::test(start_paused = true)]
async fn endpoints_are_labels_if_asked_for() {
    let reader = Reader::new();
    let cluster = Cluster::of([Does::Refuse, WELL]);
    let client = cluster.balanced();
    EndpointMetrics::new(&reader.provider).with_endpoints().record("stock", &client.endpoints());
    while client.endpoints().view().iter().all(|view| view.out.is_none()) {
        let _ = client.send(get()).await;
    }
    let seen = cluster.seen();
    let of = |name: &str| seen.iter().filter(|other| *other == name).count() as u64;
    let expected = [line("endpoint=0 name=stock", of("0")), line("endpoint=1 name=stock", of("1"))];
    assert_eq!(reader.of_endpoints("picks"), expected);
    assert_eq!(reader.of_endpoints("ejections"), [line("endpoint=0 name=stock reason=no_connection", 1)]);
}

/// The label of an endpoint with a long name is its hash.
// D-16
#[tokio::test(start_paused = true)]
async fn long_names_are_hashed_in_labels() {
    let reader = Reader::new();
    let cluster = Cluster::of([]);
    let long = "l".repeat(256);
    cluster.set(&long, WELL);
    let client = cluster.balanced();
    EndpointMetrics::new(&reader.provider).with_endpoints().record("stock", &client.endpoints());
    client.send(get()).await.unwrap();
    let labels = reader.of_endpoints("picks");
    assert!(labels.len() == 1 && labels[0].0.len() < 60 && labels[0].0.starts_with("endpoint=#"), "{labels:?}");
}

/// The answers of a discovery are counted, and its failures.
// D-16
#[tokio::test(start_paused = true)]
async fn look_ups_are_counted() {
    let reader = Reader::new();
    let cluster = Cluster::of([WELL; 2]);
    let answers = Arc::new(Mutex::new(vec![Ok(vec!["0", "1"]), Err("no"), Ok(vec!["0"])]));
    let look_up = move || {
        let answer = answers.lock().unwrap().pop().unwrap_or(Ok(vec!["0", "1"]));
        async move { answer }
    };
    let endpoints = Endpoints::look_up(secs(60), look_up).connect(move |name: &str| cluster.client(name));
    let client = endpoints.http();
    EndpointMetrics::new(&reader.provider).record("stock", &client.endpoints());
    sleep(ms(500)).await;
    assert_eq!(reader.of_endpoints("resolved"), [line("name=stock", 1)]);
    sleep(secs(62)).await;
    assert_eq!(reader.of_endpoints("resolve_failures"), [line("name=stock", 1)]);
    assert_eq!(reader.of_endpoints("resolved"), [line("name=stock", 2)]);
}

/// Instruments do not keep a set.
// D-16, E-19
#[tokio::test(start_paused = true)]
async fn instruments_keep_no_set() {
    let reader = Reader::new();
    let cluster = Cluster::of([WELL]);
    let client = cluster.balanced();
    EndpointMetrics::new(&reader.provider).record("stock", &client.endpoints());
    assert_eq!(reader.of_endpoints("in_service"), [line("name=stock", 1)]);
    drop(client);
    assert_eq!(cluster.alive(), 0);
}
