//! The look-ups of a host name whose addresses are endpoints.
//!
//! A thread of its own makes them, because the system's resolver blocks, and because no runtime need be there when a
//! file changes.

use std::net::{SocketAddr, ToSocketAddrs};
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
                let addresses = name.to_socket_addrs();
                if own.is_over() {
                    // Another name may have taken the place of this one meanwhile.
                    return;
                }
                let found = addresses.is_ok_and(|addresses| replace(addresses, &servers));
                let after = if found { every } else { every.min(AFTER_FAILURE) };
                if own.wait(after) {
                    return;
                }
            }
        };
        let _ = std::thread::Builder::new().name("reattempt-look-up".to_owned()).spawn(job);
        Self { pause }
    }
}

/// Replaces the servers with these addresses. Returns `false` for an empty result, after which they stay.
fn replace(addresses: impl Iterator<Item = SocketAddr>, servers: &EndpointsHandle<BaseUrl>) -> bool {
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
