//! The watch: a thread that finds changes by itself, and ends when it is no longer needed.

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use reattempt_policy_file::{PolicyFile, PolicyFileEvent, PolicyFileOptions};

use crate::support::{Folder, Ledger, client, get};

/// The longest wait for an event, after which a test fails.
const BOUND: Duration = Duration::from_secs(20);

/// Loads the file with a watch, and returns its events.
fn watched(folder: &Folder) -> (PolicyFile, Receiver<PolicyFileEvent>) {
    let (sender, events) = channel();
    let options = PolicyFileOptions::new().observe(move |event| drop(sender.send(event.clone())));
    (options.load(folder.file()).unwrap(), events)
}

/// The switch is on after two looks, which the default interval makes within a second. No runtime is needed for that.
#[test]
fn kill_switch_is_on_within_a_second() {
    let folder = Folder::new();
    folder.write("[default]\n");
    let (file, events) = watched(&folder);
    let interval = format!("{:?}", PolicyFileOptions::new());
    assert!(interval.contains("interval: Some(250ms)"), "{interval}");
    folder.write("never_retry = true\n[default]\n");
    let event = events.recv_timeout(BOUND).unwrap();
    assert!(matches!(event, PolicyFileEvent::Reloaded { never_retry: true, .. }), "{event}");
    assert!(file.never_retry());
}

/// A program that rewrites the file, with another comment each time, does not keep the switch off. The policies wait
/// until two reads find the same content.
#[test]
fn kill_switch_of_rewritten_file_is_on() {
    for every in [10, 100, 1000].map(Duration::from_millis) {
        let folder = Folder::new();
        folder.write("[a]\n");
        let (file, events) = watched(&folder);
        let (_never, wait) = channel::<()>();
        for number in 0..BOUND.as_millis() / every.as_millis() {
            let text = format!("never_retry = true # {number}\n[b]\n");
            // A new file each time, so that no read finds a part of it.
            fs::write(folder.path().join("new"), text).unwrap();
            fs::rename(folder.path().join("new"), folder.file()).unwrap();
            let _ = wait.recv_timeout(every);
            if file.never_retry() {
                break;
            }
        }
        assert!(file.never_retry(), "{every:?}");
        // The former content turns retries on again, although it was in force all the time.
        folder.write("[a]\n");
        let is_off = |event: &PolicyFileEvent| matches!(event, PolicyFileEvent::Reloaded { never_retry: false, .. });
        while !is_off(&events.recv_timeout(BOUND).unwrap()) {}
        assert_eq!((file.names(), file.never_retry()), (vec!["a".to_owned()], false));
    }
}

/// The watch continues after the runtime of the calls has ended, and without a handle.
#[test]
fn watch_outlives_runtime_and_handle() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write("[default]\nmax_attempts = 1\n");
    let (file, events) = watched(&folder);
    let client = client(&file.layer(), ledger.server(503));
    drop(file);
    let call = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(client.send(get("http://a/"))).unwrap();
        ledger.count()
    };
    assert_eq!(call(), 1);
    folder.write("[default]\nmax_attempts = 3\n");
    events.recv_timeout(BOUND).unwrap();
    assert_eq!(call(), 3);
}

/// The thread drops the observer when it ends, right after the last of handles, layers and clients.
#[test]
fn watch_ends_with_the_last_client() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write("[default]\n");
    let (file, events) = watched(&folder);
    let layer = file.layer();
    let client = client(&layer, ledger.server(200));
    let clone = client.clone();
    drop((file, layer, client));
    assert_eq!(events.try_recv().unwrap_err(), std::sync::mpsc::TryRecvError::Empty);
    drop(clone);
    assert_eq!(events.recv_timeout(BOUND).unwrap_err(), RecvTimeoutError::Disconnected);
}

/// A file that is written in pieces is never found half: the first piece alone would be a policy, too.
#[test]
fn file_in_pieces_is_read_whole() {
    let folder = Folder::new();
    folder.write("[a]\n");
    let (sender, events) = channel();
    let options = PolicyFileOptions::new().interval(Duration::from_millis(400));
    let options = options.observe(move |event| drop(sender.send(event.clone())));
    let file = options.load(folder.file()).unwrap();
    let mut text = "default = \"p0\"\n".to_owned();
    // Each piece comes well before the interval ends, and all together take longer than two.
    let (_never, wait) = channel::<()>();
    for number in 0..12 {
        text.push_str(&format!("[p{number}]\nmax_attempts = 2\n"));
        folder.write(&text);
        let _ = wait.recv_timeout(Duration::from_millis(100));
    }
    events.recv_timeout(BOUND).unwrap();
    assert_eq!(file.names().len(), 12);
    assert!(events.try_recv().is_err(), "one event for all pieces");
}

/// A file that disappears for a moment, as it does when an editor saves it, is not reported.
#[test]
fn replaced_file_is_read_once() {
    let folder = Folder::new();
    folder.write("[a]\n");
    let (_file, events) = watched(&folder);
    fs::remove_file(folder.file()).unwrap();
    folder.write("[b]\n");
    let event = events.recv_timeout(BOUND).unwrap();
    assert!(matches!(event, PolicyFileEvent::Reloaded { .. }), "{event}");
    fs::remove_file(folder.file()).unwrap();
    let event = events.recv_timeout(BOUND).unwrap();
    assert!(event.to_string().ends_with("cannot be read: No such file or directory (os error 2)"), "{event}");
    assert_eq!(events.recv_timeout(Duration::from_millis(1)).unwrap_err(), RecvTimeoutError::Timeout, "reported once");
}

/// A panic of the program's own function does not end the watch.
#[test]
fn panic_does_not_end_the_watch() {
    let folder = Folder::new();
    folder.write("[a]\n");
    let (sender, events) = channel();
    let options = PolicyFileOptions::new().observe(move |event| {
        drop(sender.send(event.clone()));
        assert!(matches!(event, PolicyFileEvent::Reloaded { never_retry: false, .. }), "as the test expects");
    });
    let file = options.load(folder.file()).unwrap();
    folder.write("never_retry = true\n");
    events.recv_timeout(BOUND).unwrap();
    folder.write("[b]\n");
    events.recv_timeout(BOUND).unwrap();
    assert_eq!((file.names(), file.never_retry()), (vec!["b".to_owned()], false));
}

/// The addresses of a name become the servers, and the look-ups end with the layer.
#[test]
fn addresses_of_a_name_are_the_servers() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let section =
        |dns: &str| format!("[a]\nmax_attempts = 1\nendpoints = \"o\"\n[endpoints.o]\nbase = \"http://o\"\n{dns}");
    folder.write(section("dns = \"127.0.0.1:81\"\ninterval = \"1s\"\n"));
    let file = PolicyFileOptions::new().unwatched().load(folder.file()).unwrap();
    let client = client(&file.layer(), ledger.server(200));
    let call = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(client.send(get("http://o/x"))).unwrap();
        ledger.take()[0].clone()
    };
    assert_eq!(call(), "GET http://127.0.0.1:81/x");
    // Another name: another set, with look-ups of its own.
    folder.write(section("dns = \"localhost:82\"\n"));
    file.reload().unwrap();
    let begun = tokio::time::Instant::now();
    let is_local = |uri: &str| ["GET http://127.0.0.1:82/x", "GET http://[::1]:82/x"].contains(&uri);
    while !is_local(&call()) {
        assert!(begun.elapsed() < BOUND, "the new name was not looked up");
        std::thread::yield_now();
    }
}

/// The watch forgets a dropped layer, without a change of the file.
#[test]
fn watch_forgets_a_dropped_layer() {
    let folder = Folder::new();
    folder.write("[default]\n");
    let file = PolicyFileOptions::new().interval(Duration::from_millis(10)).load(folder.file()).unwrap();
    let (kept, dropped) = channel::<()>();
    drop(file.layer_with(reattempt::Http::new(), move |_, policy| {
        let _ = &kept;
        policy
    }));
    assert_eq!(dropped.recv_timeout(BOUND).unwrap_err(), RecvTimeoutError::Disconnected);
}
