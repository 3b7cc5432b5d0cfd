//! A file that changes: what takes effect when, and which state survives.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use http::Request;
use http_body_util::Full;
use reattempt::guard::Refused;
use reattempt::policies::TableBudget;
use reattempt::{Http, RetryBudget};
use reattempt_policy_file::PolicyFileOptions;

use crate::support::{Events, Folder, Ledger, client, get, load};

/// A change applies to the next call of every client, clones and earlier layers included.
#[tokio::test(start_paused = true)]
async fn change_applies_to_the_next_call() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write("[default]\nmax_attempts = 2\nbudget = \"none\"\n");
    let (file, events) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    let mut clone = client.clone();
    client.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 2);

    folder.write("[default]\nmax_attempts = 4\nbudget = \"none\"\n");
    file.reload().unwrap();
    assert_eq!(events.take(), ["the policy file was read again"]);
    client.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 4);
    tower::ServiceExt::ready(&mut clone).await.unwrap();
    tower::Service::call(&mut clone, get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 4);

    file.reload().unwrap();
    assert_eq!(events.take(), [""; 0], "nothing has changed");
}

/// A call in flight finishes under the policy that it started under.
#[tokio::test(start_paused = true)]
async fn call_in_flight_keeps_its_policy() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write("[default]\nmax_attempts = 3\nschedule = \"constant\"\nbase = \"10s\"\nbudget = \"none\"\n");
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    let mut call = Box::pin(client.send(get("http://a/")));
    let waited = tokio::time::timeout(Duration::from_secs(1), &mut call).await;
    assert!(waited.is_err());
    assert_eq!(ledger.count(), 1);

    folder.write("[default]\nmax_attempts = 1\n");
    file.reload().unwrap();
    call.await.unwrap();
    assert_eq!(ledger.count(), 2, "its second and third attempts");
    client.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 1);
}

/// The kill switch ends the retries of later calls, and of those that wait for one.
#[tokio::test(start_paused = true)]
async fn kill_switch_ends_all_retries() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let policy = "[default]\nmax_attempts = 9\nmax_elapsed = \"none\"\nschedule = \"constant\"\nbase = \"10s\"\nbudget = \"none\"\n";
    folder.write(policy);
    let (file, events) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    let mut call = Box::pin(client.send(get("http://a/")));
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut call).await.is_err());

    folder.write(format!("never_retry = true\n{policy}"));
    file.reload().unwrap();
    assert!(file.never_retry());
    assert_eq!(events.take(), ["the policy file was read again; nothing is retried (never_retry)"]);
    client.send(get("http://b/")).await.unwrap();
    assert_eq!(ledger.count(), 2, "one attempt of each call");
    call.await.unwrap();
    assert_eq!(ledger.count(), 1, "the retry that was granted before; none follows");

    folder.write(policy);
    file.reload().unwrap();
    client.send(get("http://b/")).await.unwrap();
    assert_eq!(ledger.count(), 9);
}

/// The switch takes effect even if the file has a mistake elsewhere, and only a good file turns it off.
#[tokio::test(start_paused = true)]
async fn kill_switch_works_in_a_bad_file() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write("[default]\nmax_attempts = 2\nbudget = \"none\"\n");
    let (file, events) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    folder.write("never_retry = true\n[default]\nmax_atempts = 2\n");
    assert!(file.reload().is_err());
    assert_eq!(
        events.take(),
        ["the policy file is not in force, and the former policies stay; nothing is retried (never_retry):\n\
          p.toml:3: default.max_atempts is not known here; did you mean `max_attempts`?"]
    );
    client.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 1);

    folder.write("[default]\nmax_atempts = 2\n");
    assert!(file.reload().is_err() && file.never_retry());
    folder.write("[default]\nmax_attempts = 2\nbudget = \"none\"\n");
    file.reload().unwrap();
    assert!(!file.never_retry());
    client.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 2);
}

/// The tokens of a budget survive, with new numbers too. Another kind starts full.
#[tokio::test(start_paused = true)]
async fn budget_keeps_its_tokens() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let budget =
        |numbers: &str| format!("[default]\nmax_attempts = \"none\"\nmax_elapsed = \"none\"\nbudget = {numbers}\n");
    folder.write(budget("{ ratio = 0.1, capacity = 3, min_per_second = 0 }"));
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    for (numbers, attempts) in [
        ("{ ratio = 0.1, capacity = 3, min_per_second = 0 }", 4),
        ("{ ratio = 0.2, capacity = 30, min_per_second = 0 }", 1),
        ("{ ratio = 0.2, capacity = 30, min_per_second = 0 } # as before", 1),
        ("{ rate = 0.000001, burst = 2 }", 1),
        ("\"aws_quota\"", 101),
        ("{ ratio = 0.1, capacity = 3, min_per_second = 0 }", 4),
    ] {
        folder.write(budget(numbers));
        file.reload().unwrap();
        client.send(get("http://a/")).await.unwrap();
        assert_eq!(ledger.count(), attempts, "{numbers}");
    }
}

/// A policy under another name starts anew, and one that keeps its name continues wherever it stands in the file.
#[tokio::test(start_paused = true)]
async fn state_belongs_to_the_name() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let policy = |name: &str| {
        format!("[{name}]\nmax_attempts = \"none\"\nbudget = {{ ratio = 0.1, capacity = 1, min_per_second = 0 }}\n")
    };
    folder.write(format!("default = \"a\"\n{}", policy("a")));
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    for (text, attempts) in [
        (format!("default = \"a\"\n{}", policy("a")), 2),
        (format!("default = \"a\"\n{}{}", policy("b"), policy("a")), 1),
        (format!("default = \"b\"\n{}{}", policy("b"), policy("a")), 2),
        (format!("default = \"c\"\n{}", policy("c")), 2),
    ] {
        folder.write(&text);
        file.reload().unwrap();
        client.send(get("http://a/")).await.unwrap();
        assert_eq!(ledger.count(), attempts, "{text}");
    }
}

/// An open breaker stays open under new numbers, and is gone with its word.
#[tokio::test(start_paused = true)]
async fn breaker_stays_open() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let guards = |words: &str| format!("[default]\nmax_attempts = 1\nguards = [{words}]\n");
    folder.write(guards("\"breaker:consecutive_failures=2,min_failing_time=0s\""));
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(500));
    for _ in 0..2 {
        client.send(get("http://a/")).await.unwrap();
    }
    assert_eq!(ledger.count(), 2);
    for (words, is_refused) in [
        ("\"breaker:consecutive_failures=2,min_failing_time=0s\"", true),
        ("\"bulkhead:limit=9\", \"breaker:consecutive_failures=50,min_calls=100\"", true),
        ("\"counting\"", false),
    ] {
        folder.write(guards(words));
        file.reload().unwrap();
        let refused = match client.send(get("http://a/")).await {
            Ok(_) => false,
            Err(error) => error.downcast_ref::<Refused>().is_some(),
        };
        assert_eq!(refused, is_refused, "{words}");
    }
}

/// A rate limit keeps its tokens. The new rate counts from then on.
#[tokio::test(start_paused = true)]
async fn rate_limit_keeps_its_tokens() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let limit = |rate: u32| format!("[default]\nmax_attempts = 1\nguards = [\"rate-limit:rate={rate},burst=2\"]\n");
    folder.write(limit(1));
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(200));
    let mut times = Vec::new();
    for rate in [1, 1, 2, 2] {
        folder.write(limit(rate));
        file.reload().unwrap();
        let began = tokio::time::Instant::now();
        client.send(get("http://a/")).await.unwrap();
        times.push(began.elapsed().as_millis());
    }
    assert_eq!(ledger.count(), 4);
    assert_eq!(times, [0, 0, 500, 500]);
}

/// A place in a bulkhead that a call holds while the file changes is neither lost nor doubled.
#[tokio::test(start_paused = true)]
async fn places_in_use_survive() {
    let folder = Folder::new();
    folder.write("[default]\nmax_attempts = 1\nguards = [\"bulkhead:limit=1\"]\n");
    let (file, _) = load(&folder);
    let (release, gate) = tokio::sync::watch::channel(false);
    let server = tower::service_fn(move |_: crate::support::Sent| {
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|open| *open).await.unwrap();
            Ok::<_, std::convert::Infallible>(http::Response::new(Full::<bytes::Bytes>::default()))
        }
    });
    let client = client(&file.layer(), server);
    let call = tokio::spawn(client.send(get("http://a/")));
    tokio::task::yield_now().await;
    folder.write("[default]\nmax_attempts = 1\nguards = [\"bulkhead:limit=2\"]\n");
    file.reload().unwrap();
    let second = tokio::spawn(client.send(get("http://a/")));
    tokio::task::yield_now().await;
    let third = tokio::time::timeout(Duration::from_secs(1), client.send(get("http://a/"))).await;
    assert!(third.expect("it is refused at once").is_err(), "two places, both in use");
    release.send(true).unwrap();
    drop(call.await.unwrap().unwrap());
    drop(second.await.unwrap().unwrap());
    client.send(get("http://a/")).await.unwrap();
}

/// Endpoints that stay keep their state: an ejected server is not tried again because another was added.
#[tokio::test(start_paused = true)]
async fn endpoints_keep_their_state() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let section = |urls: &str| {
        format!("[default]\nmax_attempts = 1\nendpoints = \"o\"\n[endpoints.o]\nbase = \"http://o\"\nurls = [{urls}]\n")
    };
    folder.write(section("\"http://bad\", \"http://good\""));
    let (file, _) = load(&folder);
    let answers = ledger.clone();
    let server = tower::service_fn(move |request: crate::support::Sent| {
        let status = if request.uri().host() == Some("bad") { 500 } else { 200 };
        let answers = answers.clone();
        async move { tower::ServiceExt::oneshot(answers.server(status), request).await }
    });
    let client = client(&file.layer(), server);
    for _ in 0..200 {
        client.send(get("http://o/")).await.unwrap();
    }
    ledger.take();
    folder.write(section("\"http://bad\", \"http://good\", \"http://new\""));
    file.reload().unwrap();
    for _ in 0..20 {
        client.send(get("http://o/")).await.unwrap();
    }
    let sent = ledger.take();
    assert!(sent.contains(&"GET http://new/".to_owned()), "{sent:?}");
    assert!(!sent.contains(&"GET http://bad/".to_owned()), "{sent:?}");
}

/// A bad file changes nothing and is reported once, with all of its problems.
#[tokio::test(start_paused = true)]
async fn bad_file_keeps_the_old_policy() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let good = "[default]\nmax_attempts = 2\nbudget = \"none\"\n";
    folder.write(good);
    let (file, events) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    folder.write("[default]\nmax_attempts = -1\nbase = 1\n");
    let error = file.reload().unwrap_err();
    assert_eq!(error.problems().len(), 2);
    assert!(file.reload().is_err() && file.error().is_some(), "the error stays");
    assert_eq!(
        events.take(),
        ["the policy file is not in force, and the former policies stay:\n\
          p.toml:2: default.max_attempts must be a whole number from 0 to 4294967295, or \"none\", but it is -1\n\
          p.toml:3: default.base must be a duration like \"1500ms\" or \"5s\", but it is 1"]
    );
    client.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 2);

    folder.write(good);
    file.reload().unwrap();
    assert!(file.error().is_none());
    assert_eq!(events.take(), ["the policy file was read again"], "the repair is reported too");
}

/// Layers that were dropped are forgotten, and a client outlives the handle.
#[tokio::test(start_paused = true)]
async fn client_outlives_the_handle() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write("[default]\nmax_attempts = 2\n");
    let (file, _): (_, Events) = load(&folder);
    drop(file.layer());
    let client = client(&file.layer(), ledger.server(503));
    drop(file);
    let put = Request::put("http://a/").body(Full::default()).unwrap();
    client.send(put).await.unwrap();
    assert_eq!(ledger.count(), 2);
}

/// A call in flight is not moved to servers that have nothing in common with its own.
#[tokio::test(start_paused = true)]
async fn unrelated_servers_get_later_calls_only() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let section = |servers: &str| {
        format!(
            "[default]\nmax_attempts = 2\nschedule = \"constant\"\nbase = \"10s\"\nbudget = \"none\"\n\
             endpoints = \"o\"\n[endpoints.o]\nbase = \"http://o\"\n{servers}\n"
        )
    };
    for (former, later) in
        [("urls = [\"http://one\"]", "urls = [\"http://two\"]"), ("urls = [\"http://one\"]", "dns = \"127.0.0.1:2\"")]
    {
        folder.write(section(former));
        let (file, _) = load(&folder);
        let client = client(&file.layer(), ledger.server(503));
        let post = Request::post("http://o/").header("idempotency-key", "1").body(Full::default()).unwrap();
        let mut call = Box::pin(client.send(post));
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut call).await.is_err());
        folder.write(section(later));
        file.reload().unwrap();
        call.await.unwrap();
        assert_eq!(ledger.take(), ["POST http://one/", "POST http://one/"], "{later}");
        client.send(get("http://o/")).await.unwrap();
        let sent = ledger.take();
        assert!(sent.len() == 2 && !sent.contains(&"GET http://one/".to_owned()), "{sent:?}");
    }
}

/// A reload that waits for another change reads the file after it, so it cannot undo a later content.
#[test]
fn waiting_reload_reads_the_latest_content() {
    let folder = Arc::new(Folder::new());
    folder.write("[a]\n");
    let (file, _) = load(&folder);
    folder.write("[b]\n");
    let (reload, waits) = channel();
    let (other, shared, is_first) = (file.clone(), Arc::clone(&folder), AtomicBool::new(true));
    let layer = file.layer_with(Http::new(), move |_, policy| {
        if is_first.swap(false, Ordering::Relaxed) {
            let (other, reload) = (other.clone(), reload.clone());
            let (begun, begins) = channel();
            std::thread::spawn(move || {
                begun.send(()).unwrap();
                reload.send(other.reload()).unwrap();
            });
            begins.recv().unwrap();
            // Time in which the other thread reaches the lock. The test passes without it, too.
            assert_eq!(waits_for(100), RecvTimeoutError::Timeout);
            shared.write("never_retry = true\n[c]\n");
        }
        policy
    });
    waits.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
    assert_eq!((file.names(), file.never_retry()), (vec!["c".to_owned()], true));
    drop(layer);
}

/// The function that changes policies may create layers of its own file. A reload in it has no effect, instead of
/// waiting for itself.
#[test]
fn change_may_use_its_own_file() {
    let folder = Arc::new(Folder::new());
    folder.write("[a]\n");
    let (file, _) = load(&folder);
    let (ends, end) = channel();
    std::thread::spawn(move || {
        let (own, shared) = (file.clone(), Arc::clone(&folder));
        let layer = file.layer_with(Http::new(), move |_, policy| {
            shared.write("[c]\n");
            let _layer = own.layer();
            own.reload().unwrap();
            policy
        });
        assert_eq!(file.names(), ["a"]);
        folder.write("[b]\n");
        file.reload().unwrap();
        assert_eq!(file.names(), ["b"], "the reload in the function has no effect");
        file.reload().unwrap();
        ends.send(file.names()).unwrap();
        drop(layer);
    });
    assert_eq!(end.recv_timeout(Duration::from_secs(20)).unwrap(), ["c"]);
}

fn waits_for(millis: u64) -> RecvTimeoutError {
    let (_sender, never) = channel::<()>();
    never.recv_timeout(Duration::from_millis(millis)).unwrap_err()
}

/// The switch is on before the program's functions run.
#[test]
fn kill_switch_precedes_a_panic() {
    let folder = Folder::new();
    folder.write("[a]\n");
    let options = PolicyFileOptions::new().unwatched().fleet_budget(|name| panic!("no budget for {name}"));
    let file = options.load(folder.file()).unwrap();
    folder.write("never_retry = true\n[a]\nbudget = \"fleet\"\n");
    assert!(catch_unwind(AssertUnwindSafe(|| file.reload())).is_err());
    assert!(file.never_retry());
}

/// The switch also closes a budget that the program sets.
#[tokio::test(start_paused = true)]
async fn kill_switch_closes_the_programs_budget() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let policy = "[default]\nmax_attempts = 9\nschedule = \"constant\"\nbase = \"1s\"\n";
    folder.write(policy);
    let (file, _) = load(&folder);
    let budget = Arc::new(RetryBudget::unlimited()) as TableBudget;
    let change = move |_: &str, policy: reattempt::policies::PolicyStack<Http>| {
        policy.retries(|retries| retries.budget(Arc::clone(&budget)))
    };
    let client = client(&file.layer_with(Http::new(), change), ledger.server(503));
    let mut call = Box::pin(client.send(get("http://a/")));
    assert!(tokio::time::timeout(Duration::from_millis(500), &mut call).await.is_err());
    folder.write(format!("never_retry = true\n{policy}"));
    file.reload().unwrap();
    call.await.unwrap();
    assert_eq!(ledger.count(), 2, "the retry that was granted before; none follows");
}

/// A panic for one layer leaves the others in step, and the content is tried again.
#[tokio::test(start_paused = true)]
async fn panic_for_one_layer_spares_the_others() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write("[default]\nmax_attempts = 1\n");
    let (file, _) = load(&folder);
    let panics = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&panics);
    let first = file.layer_with(Http::new(), move |_, policy| {
        assert!(!flag.load(Ordering::Relaxed), "as the test expects");
        policy
    });
    let (first, second) = (client(&first, ledger.server(503)), client(&file.layer(), ledger.server(503)));
    folder.write("[default]\nmax_attempts = 2\nbudget = \"none\"\n");
    panics.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| file.reload())).is_err());
    let error = file.error().unwrap().to_string();
    assert!(error.ends_with("p.toml: is not in force in every layer, as the program's function panicked"), "{error}");
    second.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 2);
    panics.store(false, Ordering::Relaxed);
    file.reload().unwrap();
    first.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 2);
}

/// A dropped layer is forgotten when the next one is created.
#[test]
fn dropped_layer_is_forgotten() {
    let folder = Folder::new();
    folder.write("[default]\n");
    let (file, _) = load(&folder);
    let (kept, dropped) = channel::<()>();
    drop(file.layer_with(Http::new(), move |_, policy| {
        let _ = &kept;
        policy
    }));
    let _layer = file.layer();
    assert_eq!(dropped.try_recv().unwrap_err(), std::sync::mpsc::TryRecvError::Disconnected);
}
