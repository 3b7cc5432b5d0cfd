//! Models of a window of samples: it is closed once, and no count is lost.

#[allow(clippy::module_inception, dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/guard/adaptive/window.rs"]
mod window;

use std::time::Duration;

use loom::sync::{Arc, Mutex};
use loom::thread;
use window::SampleWindow;

const NOW: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(31);
const LATENCY: Duration = Duration::ZERO;

/// Records a call, and closes the window if it should be closed. Returns the number of calls in the window that this
/// thread closed.
fn record(window: &(SampleWindow, Mutex<()>), served: bool) -> u32 {
    if !window.0.record(served, LATENCY, 3, LATER) {
        return 0;
    }
    let _one = window.1.lock().unwrap();
    let closed = window.0.close(LATER);
    closed.map_or(0, |window| window.served + window.dropped)
}

#[test]
fn it_is_closed_once_and_loses_no_call() {
    loom::model(|| {
        let window = Arc::new((SampleWindow::new(), Mutex::new(())));
        assert!(!window.0.record(true, LATENCY, 3, NOW));
        let other = Arc::clone(&window);
        let other = thread::spawn(move || record(&other, false));
        let (own, other) = (record(&window, true), other.join().unwrap());
        assert!(own == 0 || other == 0, "{own} {other}");
        let rest = window.0.close(LATER * 2).map_or(0, |rest| rest.served + rest.dropped);
        assert_eq!(own + other + rest, 3);
    });
}
