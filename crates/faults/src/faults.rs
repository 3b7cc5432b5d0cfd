//! A running script, which a test owns.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::arriving::Arriving;
use crate::ledger::Ledger;
use crate::script::{Fault, Player, Script};

/// A running script, and the ledger of arrivals.
///
/// The test owns the `Faults` while the client runs. Dropping them panics if a step of the script was not used, unless
/// [`Script::may_remain`] allows that. [`Faults::finish`] returns an error instead.
///
/// `F` is the kind of fault. With [`ServiceFault`](crate::ServiceFault), [`Faults::layer`] returns a tower layer.
#[derive(Debug)]
pub struct Faults<F: Fault> {
    pub(crate) shared: Arc<Shared<F>>,
}

#[derive(Debug)]
pub(crate) struct Shared<F> {
    player: Mutex<Player<F>>,
    pub(crate) ledger: Ledger,
    pub(crate) server: String,
}

impl<F: Fault> Faults<F> {
    /// Starts a script, with a new ledger.
    pub fn new(script: impl Into<Script<F>>) -> Self {
        Self::in_cluster(script, "server", &Ledger::new())
    }

    /// Starts the script of one server in a cluster, with the ledger that all servers in the cluster share.
    pub fn in_cluster(script: impl Into<Script<F>>, server: impl Into<String>, ledger: &Ledger) -> Self {
        let player = Mutex::new(Player::new(script.into()));
        let (ledger, server) = (ledger.clone(), server.into());
        Self { shared: Arc::new(Shared { player, ledger, server }) }
    }
}

impl<F: Fault> Faults<F> {
    /// Returns the ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.shared.ledger
    }

    /// Ends the script.
    ///
    /// # Errors
    ///
    /// Returns the steps that were not used, if any.
    pub fn finish(self) -> Result<(), Unused> {
        let unused = self.unused();
        self.shared.player().allow_rest();
        unused.map_or(Ok(()), Err)
    }

    /// Ends all faults. Every later arrival passes through, or gets the fault set with [`Script::otherwise`]. Unused
    /// steps still fail the test.
    pub fn recover(&self) {
        self.shared.player().recover();
    }

    pub(crate) fn find(&self, is: impl Fn(&F) -> bool) -> Option<Option<usize>> {
        self.shared.player().find(is)
    }

    fn unused(&self) -> Option<Unused> {
        let steps = self.shared.player().unused();
        (!steps.is_empty()).then_some(Unused { steps })
    }
}

impl<F: Fault> Drop for Faults<F> {
    #[allow(clippy::panic, reason = "a test fails by panicking")]
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Some(unused) = self.unused()
        {
            panic!("{unused}");
        }
    }
}

impl<F: Fault, S: Into<Script<F>>> From<S> for Faults<F> {
    fn from(script: S) -> Self {
        Self::new(script)
    }
}

impl<F> Shared<F> {
    fn player(&self) -> std::sync::MutexGuard<'_, Player<F>> {
        self.player.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Fault> Shared<F> {
    /// Takes the fault for an arrival, with the delay before it.
    pub(crate) fn take(&self, call: Option<&str>, connection: usize, accepts: impl Fn(&F) -> bool) -> (F, Duration) {
        let arriving = Arriving { call, connection, at: self.ledger.elapsed() };
        self.player().take(&arriving, accepts)
    }

    /// Takes the next step before a request is known, if `accepts` returns `true` for its fault.
    pub(crate) fn take_early(&self, connection: usize, accepts: impl Fn(&F) -> bool) -> Option<(F, Duration)> {
        let arriving = Arriving { call: None, connection, at: self.ledger.elapsed() };
        self.player().take_if(&arriving, accepts)
    }
}

/// The error for a script whose steps were not all used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    steps: Vec<String>,
}

impl Unused {
    /// Returns each unused step as text, with the number of the step in the script.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the script was not used up: {}", self.steps.join("; "))
    }
}

impl Error for Unused {}
