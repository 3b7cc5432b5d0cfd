//! Name lookup, which adds refused connections to the script. A name first leads to a port without
//! a listener, as often as its call is to be refused, and then to the server.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::iter::{Once, once};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tower::Service;

use super::script::{Call, Script};

/// A resolver for the connector of one client.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    script: Arc<Script>,
    server: SocketAddr,
    refusing: SocketAddr,
    /// The number of lookups of each name that belongs to one call.
    lookups: Arc<Mutex<HashMap<u32, u32>>>,
}

impl Names {
    pub(crate) fn new(script: Arc<Script>, server: SocketAddr, refusing: SocketAddr) -> Self {
        Self { script, server, refusing, lookups: Arc::default() }
    }

    /// Returns the name for this call. A call with refusals has its own name, and so its own
    /// connections; all other calls share the server's name and its pooled connections.
    pub(crate) fn name_for(id: u32, call: &Call) -> String {
        if call.refuses(0) { format!("call-{id}.test") } else { "server.test".to_owned() }
    }

    fn look_up(&self, name: &str) -> SocketAddr {
        let id = name.strip_prefix("call-").and_then(|rest| rest.strip_suffix(".test"));
        let Some(id) = id.and_then(|id| id.parse().ok()) else {
            return self.server;
        };
        let mut lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        let lookups = lookups.entry(id).or_default();
        let refused = self.script.call(id).is_some_and(|call| call.refuses(*lookups));
        *lookups += 1;
        if refused { self.refusing } else { self.server }
    }
}

impl Service<Name> for Names {
    type Response = Once<SocketAddr>;
    type Error = Infallible;
    type Future = Ready<Result<Once<SocketAddr>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        ready(Ok(once(self.look_up(name.as_str()))))
    }
}
