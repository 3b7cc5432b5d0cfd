//! Name lookup, by which a refused connection gets into the script: a name leads to the port where
//! nobody listens as often as its call is to be refused, and then to the server.

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
    deaf: SocketAddr,
    /// The lookups so far of each name that stands for one call.
    lookups: Arc<Mutex<HashMap<u32, u32>>>,
}

impl Names {
    pub(crate) fn new(script: Arc<Script>, server: SocketAddr, deaf: SocketAddr) -> Self {
        Self { script, server, deaf, lookups: Arc::default() }
    }

    /// The name for this call. Only one that is to be refused has a name, and so connections, of
    /// its own; all others share the name of the server and its pooled connections.
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
        if refused { self.deaf } else { self.server }
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
