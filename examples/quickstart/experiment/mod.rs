//! The experiment without its looks: a script of faults, a server that plays it, clients that meet
//! it, and the figures of what came of it.
//!
//! | file | what it has |
//! |---|---|
//! | `clients` | the plain client and the wrapped one: how a `RetryLayer` is put around a client |
//! | `script` | which fault meets which attempt |
//! | `server` | how the faults are made |
//! | `names` | how connections come to be refused |
//! | `sending` | how calls are made, and how they end |
//! | `journal`, `figures` | what the server saw, and the sums |
//!
//! Same seed, same figures: the script is fixed, each attempt meets its own step whatever the others
//! do, the retry budget has room for all, and the time limit of an attempt is far from both what a
//! prompt answer takes and how long a slow one lasts.

pub(crate) mod clients;
pub(crate) mod figures;
pub(crate) mod journal;
pub(crate) mod names;
pub(crate) mod script;
pub(crate) mod sending;
pub(crate) mod server;
pub(crate) mod upload;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use journal::Journal;
use names::Names;
use script::Script;
use server::Server;

/// How long either client waits for the head of a response.
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);

/// A script, and the server that plays it.
#[derive(Debug)]
pub(crate) struct Experiment {
    pub(crate) script: Arc<Script>,
    pub(crate) journal: Arc<Journal>,
    server: Server,
}

impl Experiment {
    /// Draws the script and starts the server.
    pub(crate) async fn start(seed: u64, calls: u32) -> io::Result<Self> {
        let script = Arc::new(Script::draw(seed, calls));
        let journal = Arc::new(Journal::default());
        let server = Server::start(Arc::clone(&script), Arc::clone(&journal)).await?;
        Ok(Self { script, journal, server })
    }

    /// The names of the servers, afresh for each client: each is to be refused as often.
    pub(crate) fn names(&self) -> io::Result<Names> {
        let deaf = self.server.deaf_address()?;
        Ok(Names::new(Arc::clone(&self.script), self.server.address(), deaf))
    }

    /// Stops the server.
    pub(crate) async fn stop(self) {
        self.server.stop().await;
    }
}
