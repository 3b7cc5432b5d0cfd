//! Tests of several slices: moves between them, ports, zones, address families, a thousand pods.

use reattempt::RetryLayer;
use reattempt_testing::secs;
use reattempt_testing_layers::cluster::{Does, policy, post};
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::Layer;

use crate::api::Api;
use crate::shop::{Watched, arrive, draining, endpoint, orders, ready, slice, slice6};

/// During a roll the controller writes slices one by one, in any order. A pod that is in two slices for a moment counts
/// once, and one that is in none for a moment keeps its connection if both events arrive together.
#[tokio::test(start_paused = true)]
async fn moving_pod_keeps_its_connection() {
    for delete_first in [true, false] {
        let api = Api::default();
        api.apply(slice("a", [ready("10.0.0.1"), ready("10.0.0.2")]));
        api.apply(slice("b", [ready("10.0.0.3")]));
        let watched = Watched::start(orders(&api)).await;
        assert_eq!(watched.connected().len(), 3);
        let added = slice("c", [ready("10.0.0.2"), ready("10.0.0.1")]);
        if delete_first {
            api.delete("a");
            api.apply(added);
        } else {
            api.apply(added);
            arrive().await;
            assert_eq!(watched.addresses().len(), 3);
            api.delete("a");
        }
        arrive().await;
        assert_eq!(watched.addresses(), ["10.0.0.1:50051", "10.0.0.2:50051", "10.0.0.3:50051"]);
        assert_eq!(watched.connected(), [], "deleted first: {delete_first}");
    }
}

/// A pod that is ready in one slice and terminating in the other is terminating, whichever is first. A terminating pod
/// does not hide a new one that has its address.
#[tokio::test(start_paused = true)]
async fn stale_slice_revives_no_pod() {
    for (one, two) in [(ready("10.0.0.1"), draining("10.0.0.1")), (draining("10.0.0.1"), ready("10.0.0.1"))] {
        let api = Api::default();
        api.apply(slice("a", [one]));
        api.apply(slice("b", [two, ready("10.0.0.2")]));
        let watched = Watched::start(orders(&api)).await;
        assert_eq!(watched.addresses(), ["10.0.0.2:50051"]);
    }
    let api = Api::default();
    let mut new = ready("10.0.0.1");
    new["targetRef"]["uid"] = json!("new");
    api.apply(slice("a", [draining("10.0.0.1")]));
    api.apply(slice("b", [new, ready("10.0.0.2")]));
    let watched = Watched::start(orders(&api)).await;
    assert_eq!(watched.addresses(), ["10.0.0.1:50051", "10.0.0.2:50051"]);
    // Not ready and ready: one of them is out of date, and a pod that is not ready is found out by its failures.
    let api = Api::default();
    api.apply(slice("a", [endpoint("10.0.0.1", false, false, false)]));
    api.apply(slice("b", [ready("10.0.0.1")]));
    let watched = Watched::start(orders(&api)).await;
    assert_eq!(watched.addresses(), ["10.0.0.1:50051"]);
}

/// A named port may have another number in another slice, as it does while a roll changes it.
#[tokio::test(start_paused = true)]
async fn port_differs_by_slice() {
    let api = Api::default();
    api.apply(slice("a", [ready("10.0.0.1")]));
    let mut other = slice("b", [ready("10.0.0.2")]);
    other["ports"] = json!([{ "name": "grpc", "port": 50052, "protocol": "TCP" }]);
    api.apply(other);
    let mut udp = slice("c", [ready("10.0.0.3")]);
    udp["ports"] = json!([{ "name": "grpc", "port": 50053, "protocol": "UDP" }]);
    api.apply(udp);
    let watched = Watched::start(orders(&api)).await;
    assert_eq!(watched.addresses(), ["10.0.0.1:50051", "10.0.0.2:50052"]);
}

/// A port that no slice has keeps the last set, and is reported once.
#[tokio::test(start_paused = true)]
async fn missing_port_keeps_the_set() {
    let api = Api::default();
    api.apply(slice("a", [ready("10.0.0.1")]));
    let watched = Watched::start(orders(&api)).await;
    let without = |ports: Value| {
        let mut slice = slice("a", [ready("10.0.0.2")]);
        slice["ports"] = ports;
        slice
    };
    let ports = [json!([]), json!(null), json!([{ "name": "http", "port": 80 }]), json!([{ "name": "grpc" }])];
    for ports in ports.into_iter().chain([json!([{ "name": "grpc", "port": 0 }])]) {
        api.apply(without(ports));
        sleep(secs(5)).await;
        assert_eq!(watched.addresses(), ["10.0.0.1:50051"]);
    }
    let text = "no endpoints found, next look-up in 1s: no EndpointSlice of service `shop/orders` has the port (its \
                name, or only one)";
    assert_eq!(watched.events(), ["endpoints found: 1", text]);
    api.apply(slice("a", [ready("10.0.0.2")]));
    sleep(secs(2)).await;
    assert_eq!(watched.addresses(), ["10.0.0.2:50051"]);
    api.apply(without(json!([])));
    sleep(secs(2)).await;
    assert_eq!(watched.events(), ["endpoints found: 1", text]);
}

/// Without a name, the only TCP port is meant, whatever its name.
#[tokio::test(start_paused = true)]
async fn only_port_needs_no_name() {
    let api = Api::default();
    let mut one = slice("a", [ready("10.0.0.1")]);
    one["ports"] = json!([{ "port": 7 }, { "name": "dns", "port": 53, "protocol": "UDP" }]);
    api.apply(one);
    let source = reattempt_kubernetes::EndpointSlices::new(api.client(), "shop", "orders").unwrap();
    let watched = Watched::start(source).await;
    assert_eq!(watched.addresses(), ["10.0.0.1:7"]);
    api.apply(slice("a", [ready("10.0.0.1")]));
    sleep(secs(2)).await;
    assert_eq!(watched.addresses(), ["10.0.0.1:7"], "two ports");
}

/// Pods of the own zone are the first tier. A pod without a zone is in the second.
#[tokio::test(start_paused = true)]
async fn own_zone_is_the_first_tier() {
    let api = Api::default();
    let (mut other, mut unknown) = (ready("10.0.0.2"), ready("10.0.0.3"));
    other["zone"] = json!("eu-1b");
    unknown["zone"] = json!(null);
    api.apply(slice("a", [ready("10.0.0.1"), other, unknown]));
    let watched = Watched::start(orders(&api).zone("eu-1a")).await;
    let tiers = |first| [("10.0.0.1:50051", first), ("10.0.0.2:50051", 1), ("10.0.0.3:50051", 1)];
    assert_eq!(watched.tiers(), tiers(0).map(|(name, tier)| (name.to_owned(), tier)));
    let pods = watched.connected();
    let pod = &pods[0];
    assert_eq!((pod.name(), pod.uid()), (Some("orders-10.0.0.1"), Some("10.0.0.1")));
    assert_eq!((pod.zone(), pod.node(), pods[2].zone()), (Some("eu-1a"), Some("node-1"), None));
    let watched = Watched::start(orders(&api).zone("")).await;
    assert!(watched.tiers().iter().all(|(_, tier)| *tier == 0), "an empty text is no zone");
    let watched = Watched::start(orders(&api).zone("mars")).await;
    assert_eq!(watched.tiers().len(), 3, "a zone without pods");
}

/// Zones are one service, so a POST with a key that may have been carried out in the own zone is repeated in another.
#[tokio::test(start_paused = true)]
async fn zones_share_keys() {
    let api = Api::default();
    let mut other = ready("10.0.0.2");
    other["zone"] = json!("eu-1b");
    api.apply(slice("a", [ready("10.0.0.1"), other]));
    let watched = Watched::start(orders(&api).zone("eu-1a")).await;
    watched.cluster.set("10.0.0.1:50051", Does::Reset);
    let client = RetryLayer::new(policy(3)).layer(watched.client.clone());
    let mut request = post();
    request.headers_mut().insert("idempotency-key", http::HeaderValue::from_static("\"k\""));
    client.send(request).await.unwrap();
    assert_eq!(watched.cluster.seen(), ["10.0.0.1:50051", "10.0.0.2:50051"]);
}

/// A set has one address family. The other one is used if no pod is ready in the preferred one.
#[tokio::test(start_paused = true)]
async fn set_has_one_family() {
    let api = Api::default();
    api.apply(slice6("a6", [ready("fd00::1"), ready("fd00::2")]));
    api.apply(slice("b4", [ready("10.0.0.1"), ready("10.0.0.2")]));
    let (four, six) = (["10.0.0.1:50051", "10.0.0.2:50051"], ["[fd00::1]:50051", "[fd00::2]:50051"]);
    let watched = Watched::start(orders(&api)).await;
    let watched6 = Watched::start(orders(&api).prefer_ipv6()).await;
    assert_eq!(watched.addresses(), four);
    assert_eq!(watched6.addresses(), six);
    api.apply(slice("b4", [draining("10.0.0.1")]));
    arrive().await;
    assert_eq!(watched.addresses(), six, "ready ones of the other family before draining ones");
    api.delete("a6");
    arrive().await;
    assert_eq!(watched.addresses(), ["10.0.0.1:50051"]);
    assert_eq!(watched6.addresses(), ["10.0.0.1:50051"]);
}

/// A thousand pods in ten slices, listed in pages, then a roll that replaces all of them, slice by slice.
#[tokio::test(start_paused = true)]
async fn thousand_pods_roll() {
    let api = Api::default();
    api.pages_of(3);
    let pods = |network: u8, slice: u8| (0..100).map(move |pod| ready(&format!("10.{network}.{slice}.{pod}")));
    for number in 0..10 {
        api.apply(slice(&format!("old-{number}"), pods(0, number)));
    }
    let watched = Watched::start(orders(&api)).await;
    assert_eq!(watched.addresses().len(), 1000);
    assert_eq!(watched.connected().len(), 1000);
    for number in 0..10 {
        api.apply(slice(&format!("new-{number}"), pods(1, number)));
        api.delete(&format!("old-{number}"));
        arrive().await;
        assert_eq!(watched.addresses().len(), 1000);
        assert_eq!(watched.connected().len(), 100);
    }
    assert!(watched.addresses().iter().all(|name| name.starts_with("10.1.")));
    let lists = api.requests().iter().filter(|uri| !uri.contains("watch=true")).count();
    assert_eq!(lists, 4, "ten slices in pages of three");
}

/// Slices by hand may have one endpoint each. More of them in a list than are taken at once are all found.
#[tokio::test(start_paused = true)]
async fn long_list_is_taken_in_parts() {
    let api = Api::default();
    for number in 0..2500 {
        api.apply(slice(&format!("slice-{number}"), [ready(&format!("10.0.{}.{}", number / 250, number % 250))]));
    }
    let watched = Watched::start(orders(&api)).await;
    assert_eq!(watched.addresses().len(), 2500);
}

/// Garbage inside a slice costs its own endpoint at most.
#[tokio::test(start_paused = true)]
async fn unreadable_address_is_skipped() {
    let api = Api::default();
    let odd = [json!({ "addresses": [] }), json!({}), json!({ "addresses": ["pod-7.example"] })];
    let mut slice_of_names = slice("names", [ready("10.0.0.7")]);
    slice_of_names["addressType"] = json!("FQDN");
    api.apply(slice_of_names);
    api.apply(slice("a", odd.into_iter().chain([ready("10.0.0.1"), ready("10.0.0.1")])));
    let watched = Watched::start(orders(&api)).await;
    assert_eq!(watched.addresses(), ["10.0.0.1:50051"]);
}
