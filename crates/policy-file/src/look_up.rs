//! The look-ups of a host name whose addresses are endpoints.
//!
//! A thread of its own makes them, because the system's resolver blocks, and because no runtime need be there when a
//! file changes.

use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::Duration;

use reattempt::endpoints::{BaseUrl, EndpointsHandle};

use crate::pause::Pause;

/// The longest time between two look-ups after one that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// The look-ups of one name. Dropping it ends them.
pub(crate) struct LookUp {
    pause: Arc<Pause>,
}

impl LookUp {
    /// Starts the thread. Without one, the base URL stays the only server.
    pub(crate) fn start(name: String, every: Duration, servers: EndpointsHandle<BaseUrl>) -> Self {
        let pause = Arc::new(Pause::default());
        let own = Arc::clone(&pause);
        let job = move || {
            loop {
                let after = match look_up(&name, &servers) {
                    true => every,
                    false => every.min(AFTER_FAILURE),
                };
                if own.wait(after) {
                    return;
                }
            }
        };
        let _ = std::thread::Builder::new().name("reattempt-look-up".to_owned()).spawn(job);
        Self { pause }
    }
}

/// Replaces the servers with the addresses of a name. After an error or an empty result they stay.
fn look_up(name: &str, servers: &EndpointsHandle<BaseUrl>) -> bool {
    let Ok(addresses) = name.to_socket_addrs() else { return false };
    let mut urls: Vec<_> = addresses.map(|address| format!("http://{address}")).collect();
    urls.sort_unstable();
    urls.dedup();
    servers.update_urls(urls).is_ok()
}

impl Drop for LookUp {
    fn drop(&mut self) {
        self.pause.end();
    }
}
