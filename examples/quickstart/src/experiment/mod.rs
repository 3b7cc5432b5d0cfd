//! The experiment without its output: a script of faults, a server that follows it, the clients,
//! and the figures.
//!
//! | file | content |
//! |---|---|
//! | `clients` | the plain client and the wrapped one: how a `RetryLayer` is put around a client |
//! | `script` | the fault of each attempt |
//! | `server` | how the faults are made |
//! | `names` | how connections are refused |
//! | `sending` | how calls are made, and how they end |
//! | `journal`, `figures` | the attempts that the server saw, and the sums |
//!
//! One seed always gives the same figures. The script is fixed, and each attempt meets its own step,
//! independent of other calls. The retry budget has room for every retry. The time limit of an
//! attempt is far above the time of a prompt answer and far below that of a slow one.

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

/// The time that either client waits for the head of a response.
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);

/// A script, and the server that follows it.
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

    /// Returns new names of the servers, because each client has refusals of its own.
    pub(crate) fn names(&self) -> io::Result<Names> {
        let refusing = self.server.refusing_address()?;
        Ok(Names::new(Arc::clone(&self.script), self.server.address(), refusing))
    }

    /// Stops the server.
    pub(crate) async fn stop(self) {
        self.server.stop().await;
    }
}
