//! The service `shop/orders`, its slices, and a client of its pods.

use std::sync::{Arc, Mutex};

use reattempt::endpoints::{Balanced, EndpointsHandle};
use reattempt_kubernetes::{EndpointSlices, Pod};
use reattempt_testing::secs;
use reattempt_testing_layers::cluster::{Cluster, Node};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::api::Api;

/// Returns the source of the service.
pub(crate) fn orders(api: &Api) -> EndpointSlices {
    EndpointSlices::new(api.client(), "shop", "orders").unwrap().port("grpc")
}

/// Returns a slice with these endpoints, whose port `grpc` is 50051.
pub(crate) fn slice(name: &str, endpoints: impl IntoIterator<Item = Value>) -> Value {
    let endpoints: Vec<_> = endpoints.into_iter().collect();
    json!({
        "metadata": { "name": name, "namespace": "shop", "labels": { "kubernetes.io/service-name": "orders" } },
        "addressType": "IPv4",
        "ports": [{ "name": "grpc", "protocol": "TCP", "port": 50051 }, { "name": "http", "port": 8080 }],
        "endpoints": endpoints,
    })
}

/// Returns a slice of IPv6 addresses.
pub(crate) fn slice6(name: &str, endpoints: impl IntoIterator<Item = Value>) -> Value {
    let mut slice = slice(name, endpoints);
    slice["addressType"] = json!("IPv6");
    slice
}

/// Returns a ready endpoint.
pub(crate) fn ready(address: &str) -> Value {
    endpoint(address, true, true, false)
}

/// Returns an endpoint that is terminating and still answers.
pub(crate) fn draining(address: &str) -> Value {
    endpoint(address, false, true, true)
}

pub(crate) fn endpoint(address: &str, ready: bool, serving: bool, terminating: bool) -> Value {
    json!({
        "addresses": [address],
        "conditions": { "ready": ready, "serving": serving, "terminating": terminating },
        "nodeName": "node-1",
        "zone": "eu-1a",
        "targetRef": { "kind": "Pod", "namespace": "shop", "name": format!("orders-{address}"), "uid": address },
    })
}

/// A client, the pods that it has been given a connection to, and what its observer was told.
pub(crate) struct Watched {
    pub(crate) cluster: Cluster,
    pub(crate) client: Balanced<Node>,
    connected: Arc<Mutex<Vec<Pod>>>,
    events: Arc<Mutex<Vec<String>>>,
}

impl Watched {
    pub(crate) fn new(slices: EndpointSlices) -> Self {
        let cluster = Cluster::default();
        let (connected, events) = (Arc::<Mutex<Vec<Pod>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (pods, seen) = (Arc::clone(&connected), Arc::clone(&events));
        let servers = cluster.clone();
        let endpoints = slices.connect(move |pod: &Pod| {
            pods.lock().unwrap().push(pod.clone());
            servers.client(pod)
        });
        let client = endpoints.observe(move |event| seen.lock().unwrap().push(event.to_string())).http();
        Self { cluster, client, connected, events }
    }

    /// Starts with the slices that the server has.
    pub(crate) async fn start(slices: EndpointSlices) -> Self {
        let this = Self::new(slices);
        sleep(secs(2)).await;
        this
    }

    pub(crate) fn handle(&self) -> EndpointsHandle<Node> {
        self.client.endpoints()
    }

    /// Returns the addresses in the set, in order.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let mut names: Vec<_> = self.handle().view().iter().map(|view| view.name.to_string()).collect();
        names.sort();
        names
    }

    /// Returns the addresses in the set with their tiers, in order.
    pub(crate) fn tiers(&self) -> Vec<(String, usize)> {
        let mut tiers: Vec<_> = self.handle().view().iter().map(|view| (view.name.to_string(), view.tier)).collect();
        tiers.sort();
        tiers
    }

    /// Takes the pods that were connected to, in order.
    pub(crate) fn connected(&self) -> Vec<Pod> {
        std::mem::take(&mut *self.connected.lock().unwrap())
    }

    /// Takes the events.
    pub(crate) fn events(&self) -> Vec<String> {
        std::mem::take(&mut *self.events.lock().unwrap())
    }
}

/// Waits until what was sent has arrived, long before any retry.
pub(crate) async fn arrive() {
    sleep(reattempt_testing::ms(1)).await;
}
