//! Every fault at every point of an exchange, over both versions of HTTP, through both clients.
//!
//! Each cell of the matrix is a server that fails all first attempts in one way, with several calls
//! in parallel. The expectation comes from the README's table. A call's second attempt waits until
//! all first attempts have ended and the server is healthy, so no result depends on speed. In cells
//! that stall, the attempt timeout runs on a clock that only the test advances.

mod call;
mod cell;
mod exchange;
mod expected;
mod http1;
mod http2;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use cell::Cell;

/// Reached only by a cell that hangs.
const HANGS: Duration = Duration::from_secs(60);

/// A cell waits for its sockets most of the time.
const THREADS: usize = 4;

#[test]
fn fault_matrix_is_as_readme_has_it() {
    let cells: Vec<_> = Cell::all().filter(|cell| cell.senseless().is_none()).collect();
    let number = cells.len();
    let queue = Arc::new(Mutex::new(cells.into_iter()));
    let running = Arc::new(Mutex::new(BTreeSet::new()));
    let (done, results) = mpsc::channel();
    for _ in 0..THREADS {
        let (queue, running, done) = (Arc::clone(&queue), Arc::clone(&running), done.clone());
        thread::spawn(move || {
            loop {
                let Some(cell) = queue.lock().unwrap().next() else { return };
                running.lock().unwrap().insert(cell.to_string());
                let result = thread::spawn(move || run::run(cell)).join();
                let result = result.unwrap_or_else(|_| Err("panicked, see above".to_owned()));
                running.lock().unwrap().remove(&cell.to_string());
                // After a hang the receiver is gone.
                let _ = done.send(result.map_err(|failure| format!("{cell}: {failure}")));
            }
        });
    }
    let mut failures = Vec::new();
    for _ in 0..number {
        match results.recv_timeout(HANGS) {
            Ok(result) => failures.extend(result.err()),
            Err(_) => {
                let running = running.lock().unwrap();
                failures.extend(running.iter().map(|cell| format!("{cell}: hangs")));
                break;
            }
        }
    }
    let lines = failures.join("\n");
    assert!(failures.is_empty(), "{} of {number} cells failed\n{lines}", failures.len());
}

/// Few cells are left out, each for a reason.
#[test]
fn fault_matrix_leaves_out_few_cells() {
    let mut reasons = BTreeMap::<_, usize>::new();
    for cell in Cell::all() {
        *reasons.entry(cell.senseless().unwrap_or("run")).or_default() += 1;
    }
    let expected = [("a GET has no body in whose middle to fail", 32), ("run", 736)];
    assert_eq!(reasons, BTreeMap::from(expected));
}
