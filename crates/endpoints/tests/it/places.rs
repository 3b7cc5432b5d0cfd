//! Tests of the places that sources give to endpoints.

use std::io::Error;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::stream;
use http::{Method, Request};
use reattempt::endpoints::{Endpoints, EndpointsHandle, EndpointsLayer, Place};
use reattempt::{Http, RetryLayer};
use reattempt_testing::secs;
use reattempt_testing_layers::cluster::{Body, Cluster, Does, WELL, get, policy};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tower::Layer;
use tower::discover::Change;

/// Puts names that begin with "far" into the second tier.
fn by_name(name: &str, place: Place) -> Place {
    if name.contains("far") { place.tier(1) } else { place }
}

/// Returns the names of each tier.
fn tiers<T>(handle: &EndpointsHandle<T>) -> Vec<(usize, String)> {
    handle.view().iter().map(|view| (view.tier, view.name.to_string())).collect()
}

fn expected(tiers: &[(usize, &str)]) -> Vec<(usize, String)> {
    tiers.iter().map(|(tier, name)| (*tier, (*name).to_owned())).collect()
}

/// Lists, base URLs, look-ups, streams of changes and handles place endpoints by the same kind of function.
// W-2
#[tokio::test(start_paused = true)]
async fn every_source_gives_places() {
    let cluster = Cluster::default();
    let nodes = cluster.clone();
    let list = Endpoints::list(["far", "near"]).unwrap().connect(move |name| nodes.client(name));
    let list = list.placed(|name, place| by_name(name, place)).http();
    assert_eq!(tiers(&list.endpoints()), expected(&[(0, "near"), (1, "far")]));
    list.endpoints().update_placed(["a", "far"], by_name, |name| cluster.client(name)).unwrap();
    assert_eq!(tiers(&list.endpoints()), expected(&[(0, "a"), (1, "far")]));

    let nodes = cluster.clone();
    let look_up = Endpoints::look_up(secs(1), || async { Ok::<_, Error>(["far", "near"]) })
        .placed(|name, place| by_name(name, place))
        .connect(move |name| nodes.client(name))
        .http();
    look_up.send(get()).await.unwrap();
    assert_eq!(tiers(&look_up.endpoints()), expected(&[(0, "near"), (1, "far")]));

    let changes = ["far", "near"].map(|name| Ok::<_, Error>(Change::Insert(name, cluster.client(name))));
    let discovered = Endpoints::discover(stream::iter(changes)).placed(|name, place| by_name(name, place)).http();
    discovered.send(get()).await.unwrap();
    assert_eq!(tiers(&discovered.endpoints()), expected(&[(0, "near"), (1, "far")]));

    let urls = Endpoints::urls(["http://far", "http://near"]).unwrap();
    let urls = urls.placed(|url, place| by_name(&url.to_string(), place));
    let layer = EndpointsLayer::with(Http::new(), urls);
    assert_eq!(tiers(&layer.endpoints()), expected(&[(0, "http://near"), (1, "http://far")]));
    layer.endpoints().update_urls(["http://far2", "http://far"]).unwrap();
    assert_eq!(tiers(&layer.endpoints()), expected(&[(1, "http://far2"), (1, "http://far")]));
}

/// A handle's update keeps the places of the endpoints that stay, and the tiers of a list are the places that its
/// function gets.
// W-2
#[tokio::test(start_paused = true)]
async fn update_keeps_places() {
    let urls = || Endpoints::urls(["http://a", "http://b"]).unwrap().or_else_urls(["http://c"]).unwrap();
    let layer = EndpointsLayer::with(Http::new(), urls());
    layer.endpoints().update_urls(["http://c", "http://d", "http://a"]).unwrap();
    assert_eq!(tiers(&layer.endpoints()), expected(&[(0, "http://d"), (0, "http://a"), (1, "http://c")]));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let endpoints = urls().placed(move |url, place| {
        noted.lock().unwrap().push((url.to_string(), place));
        place
    });
    let layer = EndpointsLayer::with(Http::new(), endpoints);
    assert_eq!(tiers(&layer.endpoints()), expected(&[(0, "http://a"), (0, "http://b"), (1, "http://c")]));
    let places = [("http://a", 0), ("http://b", 0), ("http://c", 1)];
    assert_eq!(*seen.lock().unwrap(), places.map(|(url, tier)| (url.to_owned(), Place::new().tier(tier))));

    let cluster = Cluster::of([]);
    let nodes = cluster.clone();
    let list = Endpoints::list(["a"]).unwrap().or_else(["b"]).unwrap().connect(move |name| nodes.client(name)).http();
    list.endpoints().update(["b", "c"], |name| cluster.client(name)).unwrap();
    assert_eq!(tiers(&list.endpoints()), expected(&[(0, "c"), (1, "b")]));
}

/// An endpoint whose place changes with a look-up, or with a change in a stream, keeps its state and its client.
// W-2, E-10
#[tokio::test(start_paused = true)]
async fn moved_endpoint_keeps_its_state() {
    let cluster = Cluster::default();
    let tier = Arc::new(AtomicUsize::new(0));
    let place = |tier: &Arc<AtomicUsize>| {
        let tier = Arc::clone(tier);
        move |name: &&'static str, place: Place| {
            if *name == "a" { place.tier(tier.load(Ordering::Relaxed)) } else { place }
        }
    };
    let nodes = cluster.clone();
    let look_up = Endpoints::look_up(secs(1), || async { Ok::<_, Error>(["a", "b"]) })
        .connect(move |name| nodes.client(name))
        .placed(place(&tier))
        .http();
    let (sender, receiver) = mpsc::unbounded_channel();
    let changes = Box::pin(stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|change| (Ok::<_, Error>(change), receiver))
    }));
    for name in ["a", "b"] {
        sender.send(Change::Insert(name, cluster.client(name))).unwrap();
    }
    let discovered = Endpoints::discover(changes).placed(place(&tier)).http();
    for client in [look_up, discovered] {
        tier.store(0, Ordering::Relaxed);
        sender.send(Change::Insert("c", cluster.client("c"))).unwrap();
        sleep(secs(2)).await;
        for _ in 0..30 {
            client.send(get()).await.unwrap();
        }
        let of = |name| client.endpoints().view().into_iter().find(|view| &*view.name == name).unwrap();
        let (before, alive) = (of("a"), cluster.alive());
        assert!(before.latency.is_some() && before.picks > 0 && before.tier == 0);
        tier.store(2, Ordering::Relaxed);
        sender.send(Change::Remove("c")).unwrap();
        sleep(secs(1)).await;
        let after = of("a");
        assert_eq!((after.id, after.tier, after.picks), (before.id, 2, before.picks));
        assert!(after.latency.is_some());
        assert!(cluster.alive() <= alive);
    }
}

/// If the function that places endpoints panics, the set stays as it is, observers are notified, and it is called
/// again. It may use the set.
// W-2, E-16
#[tokio::test(start_paused = true)]
async fn panic_of_place_changes_nothing() {
    let cluster = Cluster::default();
    let panics = Arc::new(AtomicUsize::new(0));
    let place = |panics: &Arc<AtomicUsize>| {
        let panics = Arc::clone(panics);
        move |_: &&'static str, place: Place| {
            let left = panics.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            assert!(left.is_err(), "no place");
            place.tier(1)
        }
    };
    let events = Arc::<Mutex<Vec<String>>>::default();
    let observer = |events: &Arc<Mutex<Vec<String>>>| {
        let events = Arc::clone(events);
        move |event: &reattempt::endpoints::EndpointEvent| events.lock().unwrap().push(event.to_string())
    };
    let nodes = cluster.clone();
    panics.store(1, Ordering::Relaxed);
    let look_up = Endpoints::look_up(secs(1), || async { Ok::<_, Error>(["a"]) })
        .placed(place(&panics))
        .connect(move |name| nodes.client(name))
        .observe(observer(&events))
        .http();
    sleep(secs(3)).await;
    look_up.send(get()).await.unwrap();
    let said = ["no endpoints found, next look-up in 1s: the discovery panicked", "endpoints found: 1"];
    assert_eq!(std::mem::take(&mut *events.lock().unwrap()), said);
    assert_eq!(tiers(&look_up.endpoints()), expected(&[(1, "a")]));

    panics.store(1, Ordering::Relaxed);
    let changes = stream::iter([Ok::<_, Error>(Change::Insert("a", cluster.client("a")))]);
    let changes = futures_util::StreamExt::chain(changes, stream::pending());
    let discovered = Endpoints::discover(changes).placed(place(&panics)).observe(observer(&events)).http();
    sleep(secs(3)).await;
    discovered.send(get()).await.unwrap();
    assert_eq!(*events.lock().unwrap(), said);

    // On a handle's thread, the panic is the caller's.
    let handle = discovered.endpoints();
    let of_set = handle.clone();
    let update = || handle.update_placed(["a", "b"], |_, _| panic!("no place"), |name| cluster.client(name));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(update)).is_err());
    assert_eq!(tiers(&handle), expected(&[(1, "a")]));
    let inside = |_: &str, place: Place| place.tier(of_set.view().len());
    handle.update_placed(["a", "b"], inside, |name| cluster.client(name)).unwrap();
    assert_eq!(tiers(&handle), expected(&[(1, "a"), (1, "b")]));
}

/// Zones with one database are tiers that share their state: a share of the calls goes to the next zone from the start,
/// and a POST with a key is retried there.
// W-3, E-2
#[tokio::test(start_paused = true)]
async fn zones_spill_and_share_keys() {
    reattempt::endpoints::seed_picks(1);
    let cluster = Cluster::of([WELL, WELL, WELL]);
    let urls = Endpoints::urls(["http://0", "http://1", "http://2"]).unwrap();
    let zones = urls
        .placed(|url, place| place.tier(usize::from(url.to_string() != "http://0")).weight(2))
        .spill(0.1)
        .tiers_share_state();
    let layer = EndpointsLayer::with(Http::new(), zones);
    assert!(layer.endpoints().view().iter().all(|view| view.weight == 2));
    let client = RetryLayer::new(policy(3)).layer(layer.layer(cluster.client("")));
    let request = |method: Method| {
        let request = Request::builder().method(method).uri("http://0/").header("idempotency-key", "\"k\"");
        request.body(Body::from("charge")).unwrap()
    };
    for _ in 0..1000 {
        client.send(request(Method::GET)).await.unwrap();
    }
    let spilled = cluster.seen().iter().filter(|name| *name != "0").count();
    assert!((70..130).contains(&spilled), "{spilled}");
    cluster.set("0", Does::Reset);
    for _ in 0..20 {
        client.send(request(Method::POST)).await.unwrap();
    }
    assert!(cluster.seen().contains(&"0".to_owned()));
}

/// Clients with indices share the servers evenly, and a random subset is warned of.
// S-1, S-2
#[tokio::test(start_paused = true)]
async fn clients_with_indices_share_servers() {
    let names: Vec<_> = (0..10).map(|number| format!("http://{number}")).collect();
    let urls = || Endpoints::urls(&names).unwrap();
    let most = NonZeroUsize::new(2).unwrap();
    let mut seen: Vec<_> = (0..5)
        .flat_map(|index| EndpointsLayer::with(Http::new(), urls().subset_of(most, index)).endpoints().view())
        .map(|view| view.name.to_string())
        .collect();
    seen.sort();
    assert_eq!(seen, names);
    let layer = EndpointsLayer::with(Http::new(), urls().subset(most));
    assert!(layer.validate()[0].to_string().contains("2 of 10 endpoints"));
}
