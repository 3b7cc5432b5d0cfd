//! Tests that no text in which a URL, a host or a key can stand contains a credential of it.

use std::sync::{Arc, Mutex};

use reattempt::budget::Budget;
use reattempt::endpoints::metrics::EndpointMetrics;
use reattempt::endpoints::{Endpoints, EndpointsHandle, EndpointsLayer};
use reattempt::guard::{CircuitBreaker, GuardLayer};
use reattempt::observe::Event;
use reattempt::schedule::{Failure, FailureKind};
use reattempt::snapshot::Snapshot;
use reattempt::standard::StandardLayer;
use reattempt::{Report, RetryBudget, RetryLayer};
use reattempt_testing::secs;
use reattempt_testing_layers::cluster::{Cluster, Does, Node, WELL, get, policy};
use reattempt_testing_layers::metrics::Reader;
use tower::Layer;

fn names<C>(handle: &EndpointsHandle<C>) -> Vec<String> {
    handle.view().iter().map(|view| view.name.to_string()).collect()
}

/// Each form in which a secret can stand in a URL, a host or a key.
const SEEDED: [&str; 7] = [
    "http://me:s3cret@a/",
    "http://s3cret@a:80",
    "https://me:x/s3cret@a/b?token=s3cret",
    "http://a/?token=s3cret#s3cret",
    "me:s3cret@a:80",
    "s3cret@a",
    "me:s3cret@[::1]:80",
];

/// The secrets of endpoints' keys and of errors are in no event, view, report, error, label, snapshot or
/// `Debug` output.
#[tokio::test(start_paused = true)]
async fn seeded_secrets_are_in_no_text() {
    for seeded in SEEDED {
        let texts = Arc::new(Mutex::new(Vec::new()));
        let log = |texts: &Arc<Mutex<Vec<String>>>| {
            let texts = Arc::clone(texts);
            move |text: String| texts.lock().unwrap().push(text)
        };
        let (of_set, of_calls, of_guards, note) = (log(&texts), log(&texts), log(&texts), log(&texts));
        let (cluster, reader) = (Cluster::of([]), Reader::new());
        cluster.set(seeded, Does::Refuse);
        cluster.set("well", Does::Status(503));
        let (nodes, mut looks) = (cluster.clone(), 0);
        let found = move || {
            looks += 1;
            let failed = format!("no answer from {seeded}, ({seeded})");
            async move { if looks == 2 { Err(std::io::Error::other(failed)) } else { Ok([seeded, "well"]) } }
        };
        let set = Endpoints::look_up(secs(1), found).connect(move |key: &str| -> Node { nodes.client(key) });
        let balanced = set.observe(move |event| of_set(format!("{event} {event:?}"))).http();
        let handle = balanced.endpoints();
        EndpointMetrics::new(&reader.provider).with_endpoints().record("set", &handle);
        let breaker = CircuitBreaker::rate().on_state_change(move |change| of_guards(format!("{change:?}")));
        let observed =
            policy(4).observe_with(move |to: &str, event: &Event<'_>| of_calls(format!("{to} {event} {event:?}")));
        let client = RetryLayer::new(observed).layer(GuardLayer::http(breaker.clone()).layer(balanced));
        for _ in 0..40 {
            match client.send(get()).await {
                Ok(response) => note(format!("{:?}", Report::of(&response))),
                Err(error) => note(format!("{error} {error:?}")),
            }
        }
        note(format!("{client:?} {handle:?} {breaker:?} {:?}", handle.view()));
        let named = RetryBudget::ratio(0.1);
        named.acquire(seeded, &Failure::new(FailureKind::Server), secs(1)).unwrap().spend().succeed();
        let page = Snapshot::new().add(seeded, &handle).add("", &breaker).add("", &named);
        assert!(page.to_string().contains("\n  destination "), "{page}");
        note(format!("{page} {page:?} {}", serde_json::to_string(&page).unwrap()));
        note(format!("{:?} {:?}", reader.of_endpoints("picks"), reader.of_endpoints("ejections")));
        let texts = texts.lock().unwrap().join("\n");
        assert!(texts.contains("is out for") && texts.contains("no answer from"), "{texts}");
        assert!(!texts.contains("s3cret"), "{seeded}: {texts}");
    }
}

/// A key that is a URL names its endpoint without the credentials, and the closure gets the whole key. Keys that differ
/// in their credentials alone are different endpoints.
#[test]
fn names_of_keys_contain_no_credentials() {
    let keys =
        ["http://me:s3cret@a/?key=s3cret", "http://me:s3cret2@a/?key=s3cret", "b", "me:s3/cret@c:80", "s3cret@d"];
    let (cluster, mut seen) = (Cluster::of([WELL]), Vec::new());
    let list = Endpoints::list(keys).unwrap();
    let balanced = list.connect(|key| {
        seen.push(key);
        cluster.client(key)
    });
    let names = names(&balanced.http().endpoints());
    assert!(names[0].starts_with("http://a/?... #") && names[1].starts_with("http://a/?... #"), "{names:?}");
    assert_ne!(names[0], names[1]);
    assert!(names[3].starts_with("c:80 #") && names[4].starts_with("d #"), "{names:?}");
    let concat = names.concat();
    assert_eq!((&*names[2], concat.contains("s3"), concat.contains("cret")), ("b", false, false));
    assert_eq!(seen, keys);
    let twice = Endpoints::list(["http://me:s3cret@a"; 2]).map(drop).unwrap_err().to_string();
    assert!(twice.starts_with("endpoint `http://a #") && !twice.contains("s3cret"), "{twice}");
}

/// Neither errors nor `Debug` of anything that was created from URLs contain credentials or queries.
#[test]
fn no_output_contains_credentials() {
    for url in [
        "http://me:s3cret@a/",
        "http://s3cret@a",
        "me:s3cret@a",
        "http://a/?s3cret",
        "http://a/#s3cret",
        "http://me:s3cret@",
        "http://me:s3cret@a:99999/",
        "ftp://me:s3cret@a",
        "http://a b:s3cret@c",
        "http://me:s3cret@a/../b",
        "http://me:x/s3cret@a",
        "me:x/s3cret@a:80",
        "s3cret@a:80",
        "a:80?s3cret",
    ] {
        let lists = [vec![url], vec!["http://ok", url]];
        let mut errors: Vec<_> = lists.iter().map(|urls| EndpointsLayer::http(urls).map(drop).unwrap_err()).collect();
        let layer = EndpointsLayer::http(["http://ok"]).unwrap();
        errors.push(layer.endpoints().update_urls([url]).unwrap_err());
        errors.push(Endpoints::urls(["http://ok"]).unwrap().or_else_urls([url]).map(drop).unwrap_err());
        errors.push(Endpoints::urls(["http://ok"]).unwrap().base(url).map(drop).unwrap_err());
        errors.push(Endpoints::dns(url, secs(1)).map(drop).unwrap_err());
        for error in errors {
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{url}: {error}, {error:?}");
        }
        let shown = format!("{layer:?} {:?} {:?}", layer.endpoints(), StandardLayer::http());
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
