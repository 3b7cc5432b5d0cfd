//! Tests of the conditions of endpoints: ready, serving, terminating.

use reattempt::endpoints::EndpointView;
use reattempt::guard::contract::GuardKind;
use reattempt::guard::{Reason, Refused};
use reattempt_testing_layers::cluster::get;
use serde_json::{Value, json};

use crate::api::Api;
use crate::shop::{Watched, arrive, draining, endpoint, orders, ready, slice};

/// The conditions and whether the endpoint is used beside a ready one, and alone. The API documents absent ones:
/// `ready` is unknown and counts as true, `serving` is `ready`, `terminating` is false.
#[tokio::test(start_paused = true)]
async fn conditions_decide_as_documented() {
    let table = [
        (json!(null), true, true),
        (json!({}), true, true),
        (json!({ "ready": true }), true, true),
        (json!({ "ready": null, "serving": null, "terminating": null }), true, true),
        (json!({ "ready": false }), false, false),
        (json!({ "ready": false, "serving": true }), false, false),
        (json!({ "ready": false, "serving": true, "terminating": true }), false, true),
        (json!({ "ready": false, "serving": false, "terminating": true }), false, false),
        (json!({ "ready": false, "terminating": true }), false, false),
        // A service with `publishNotReadyAddresses` lists a terminating pod as ready.
        (json!({ "ready": true, "serving": true, "terminating": true }), false, true),
        (json!({ "ready": true, "terminating": true }), false, true),
        (json!({ "ready": true, "serving": false, "terminating": true }), false, false),
    ];
    for (conditions, beside, alone) in table {
        let mut this = ready("10.0.0.9");
        this["conditions"] = conditions.clone();
        let count = |others: Vec<Value>| {
            let this = this.clone();
            async move {
                let api = Api::default();
                api.apply(slice("a", others.into_iter().chain([this])));
                let watched = Watched::start(orders(&api)).await;
                watched.addresses().iter().filter(|name| *name == "10.0.0.9:50051").count()
            }
        };
        assert_eq!(count(vec![ready("10.0.0.1")]).await, usize::from(beside), "{conditions} beside a ready one");
        assert_eq!(count(vec![]).await, usize::from(alone), "{conditions} alone");
    }
}

/// A pod that terminates leaves before it refuses connections: the very event removes it.
#[tokio::test(start_paused = true)]
async fn terminating_pod_leaves_at_once() {
    let api = Api::default();
    api.apply(slice("a", [ready("10.0.0.1"), ready("10.0.0.2")]));
    let watched = Watched::start(orders(&api)).await;
    api.apply(slice("a", [draining("10.0.0.1"), ready("10.0.0.2")]));
    arrive().await;
    assert_eq!(watched.addresses(), ["10.0.0.2:50051"]);
}

/// If all pods terminate, those that still answer are used, as by kube-proxy. They keep their connections. They leave
/// with the first ready one.
#[tokio::test(start_paused = true)]
async fn draining_pods_serve_if_alone() {
    let api = Api::default();
    api.apply(slice("a", [ready("10.0.0.1"), ready("10.0.0.2")]));
    let watched = Watched::start(orders(&api)).await;
    watched.connected();
    let ids = |views: Vec<EndpointView>| views.into_iter().map(|view| view.id).collect::<Vec<_>>();
    let before = ids(watched.handle().view());
    api.apply(slice("a", [draining("10.0.0.1"), draining("10.0.0.2")]));
    arrive().await;
    assert_eq!(ids(watched.handle().view()), before);
    assert_eq!(watched.connected(), []);
    api.apply(slice("a", [draining("10.0.0.1"), draining("10.0.0.2"), ready("10.0.0.3")]));
    arrive().await;
    assert_eq!(watched.addresses(), ["10.0.0.3:50051"]);
}

/// Slices that say that no pod is ready empty the set: the addresses may belong to other pods soon.
#[tokio::test(start_paused = true)]
async fn set_is_empty_if_slices_say_so() {
    let api = Api::default();
    api.apply(slice("a", [ready("10.0.0.1"), ready("10.0.0.2")]));
    let watched = Watched::start(orders(&api)).await;
    watched.client.send(get()).await.unwrap();
    api.apply(slice("a", [endpoint("10.0.0.1", false, false, false)]));
    arrive().await;
    assert_eq!(watched.addresses(), Vec::<String>::new());
    let refused = watched.client.send(get()).await.unwrap_err();
    let refused = refused.downcast_ref::<Refused>().unwrap();
    assert_eq!((refused.guard(), refused.reason()), (GuardKind::ENDPOINTS, Reason::Empty));
    // The controller keeps one slice without ports for a service that is scaled to 0.
    let mut empty = slice("a", []);
    empty["ports"] = json!(null);
    empty["endpoints"] = json!(null);
    api.apply(empty);
    arrive().await;
    assert_eq!(watched.addresses(), Vec::<String>::new());
    api.apply(slice("a", [ready("10.0.0.3")]));
    arrive().await;
    watched.client.send(get()).await.unwrap();
    assert_eq!(watched.addresses(), ["10.0.0.3:50051"]);
}

/// A pod of another UID at the same address is another server.
#[tokio::test(start_paused = true)]
async fn address_of_new_pod_is_new_endpoint() {
    let api = Api::default();
    api.apply(slice("a", [ready("10.0.0.1"), ready("10.0.0.2")]));
    let watched = Watched::start(orders(&api)).await;
    let before = watched.handle().view();
    let mut other = ready("10.0.0.1");
    other["targetRef"]["uid"] = json!("another");
    api.apply(slice("a", [other, ready("10.0.0.2")]));
    arrive().await;
    let after = watched.handle().view();
    let id = |views: &[EndpointView], name: &str| views.iter().find(|view| &*view.name == name).unwrap().id;
    assert_ne!(id(&before, "10.0.0.1:50051"), id(&after, "10.0.0.1:50051"));
    assert_eq!(id(&before, "10.0.0.2:50051"), id(&after, "10.0.0.2:50051"));
}
