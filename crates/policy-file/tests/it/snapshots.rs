//! Tests of the part of a policy file in a snapshot.

use std::sync::Arc;
use std::time::Duration;

use reattempt::Http;
use reattempt::snapshot::Snapshot;

use crate::support::{Folder, Ledger, client, get, load};

const FILE: &str = "\
default = \"patient\"

[patient]
max_attempts = 2
schedule = \"constant\"
base = \"100ms\"
guards = [\"bulkhead:limit=8\"]
endpoints = \"orders\"

[endpoints.orders]
base = \"http://orders\"
urls = [\"http://a:8080\"]
";

/// The version changes with each content in force, and the problems of one that is not are listed. The hash is FNV-1a,
/// so that it is the same in each process with the same content, also after an upgrade.
#[tokio::test(start_paused = true)]
async fn snapshot_shows_version_and_all_in_force() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write(FILE);
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    client.send(get("http://orders/")).await.unwrap();
    let text = || {
        let page = Snapshot::new().add("shop", &file).to_string();
        page.replace(&format!("{}/", folder.path().display()), "")
    };
    let expected = "\
policy_file shop: path p.toml, version 1, hash f9098ac1cb900f03, age 100ms, up_to_date true, never_retry false, \
default patient, routes 0
  policy patient: max_attempts 2, max_elapsed 30s, max_server_delay 60s, endpoints orders
    budget: rule cautious, capacity 10, refusals 0
      destination orders: tokens 9, doubt 2
    bulkhead bulkhead:limit=8: limit 8
      destination orders: limit 8, in_flight 0, waiting 0, past_head 0
  endpoints orders: in_service 1, out 0, layer 1
    endpoint http://a:8080: tier 0, weight 1, in_flight 0, picks 2, failing 0.233
";
    assert_eq!(text(), expected);

    tokio::time::advance(Duration::from_secs(60)).await;
    folder.write("never_retry = true\n[patient]\nmax_attempt = 1\n[[routes]]\ndestination = \"http://me:s3cret@a b\"\npolicy = \"patient\"\n");
    file.reload().unwrap_err();
    let expected = "\
policy_file shop: path p.toml, version 1, hash f9098ac1cb900f03, age 60.1s, up_to_date false, never_retry true, \
default patient, routes 0
  problem p.toml:3: patient.max_attempt is not known here; did you mean `max_attempts`?
  problem p.toml:5: routes[0].destination must be a host with an optional port and scheme, such as \
\"https://orders.example:8443\", but it is \"http://a b\"
  policy patient: max_attempts 2,";
    assert!(text().starts_with(expected), "{}", text());
    assert!(!text().contains("s3cret"), "{}", text());

    folder.write("[patient]\nmax_attempts = 3\n");
    file.reload().unwrap();
    let expected = "\
policy_file shop: path p.toml, version 2, hash 3bd481059f8b453f, age 0s, up_to_date true, never_retry false, \
default patient, routes 0
  policy patient: max_attempts 3, max_elapsed 30s, max_server_delay 60s
    budget: rule cautious, capacity 10, refusals 0
      destination orders: tokens 9, doubt 2
";
    assert_eq!(text(), expected, "the balance stays");
}

/// The program's callback may take a snapshot while a change is applied.
#[tokio::test(start_paused = true)]
async fn snapshot_in_a_callback_does_not_hang() {
    let folder = Folder::new();
    folder.write(FILE);
    let (file, _) = load(&folder);
    let (own, texts) = (file.clone(), Arc::default());
    let log: Arc<std::sync::Mutex<Vec<String>>> = Arc::clone(&texts);
    let _layer = file.layer_with(Http::new(), move |_, policy| {
        log.lock().unwrap().push(Snapshot::new().add("shop", &own).to_string());
        policy
    });
    folder.write(FILE.replace("limit=8", "limit=9"));
    let (done, ends) = std::sync::mpsc::channel();
    let reload = file.clone();
    std::thread::spawn(move || done.send(reload.reload().is_ok()));
    assert_eq!(ends.recv_timeout(Duration::from_secs(20)), Ok(true));
    let texts = texts.lock().unwrap();
    assert!(texts.iter().any(|text| text.contains("limit 9") && text.contains("endpoint http://a:8080")), "{texts:?}");
}
