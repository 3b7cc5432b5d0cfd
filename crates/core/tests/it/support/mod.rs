//! A budget that tests can inspect.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use reattempt_core::{Budget, Evidence, Failure, FailureKind, Permit, PermitIssuer, ServerHint};

pub(crate) const FAILURE: Failure = Failure::new(FailureKind::Server).with_code(503);

/// A token budget with one token per retry, which records every event. Clones share its state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bucket {
    tokens: Arc<Tokens>,
    pub(crate) name: &'static str,
    log: Log,
}

/// The events, in order.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

#[derive(Debug, Default)]
struct Tokens {
    left: Mutex<u32>,
    name: &'static str,
    log: Log,
}

impl Bucket {
    pub(crate) fn of(tokens: u32) -> Self {
        Self::named("", tokens, &Log::default())
    }

    /// Creates a budget that writes to `log` under a name.
    pub(crate) fn named(name: &'static str, tokens: u32, log: &Log) -> Self {
        let log = Arc::clone(log);
        let tokens = Tokens { left: Mutex::new(tokens), name, log: Arc::clone(&log) };
        Self { tokens: Arc::new(tokens), name, log }
    }

    pub(crate) fn tokens(&self) -> u32 {
        *self.tokens.left.lock().unwrap()
    }

    /// Takes the events since the last call.
    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    fn write(&self, event: String) {
        self.log.lock().unwrap().push(format!("{}{event}", self.name));
    }
}

impl Budget for Bucket {
    fn acquire(&self, destination: &str, failure: &Failure, _: Duration) -> Option<Permit> {
        self.write(format!("acquire {destination} {failure}"));
        let left = &mut *self.tokens.left.lock().unwrap();
        *left = left.checked_sub(1)?;
        Some(Permit::new(self.tokens.clone(), 1))
    }

    fn on_failure(&self, destination: &str, failure: &Evidence, _: Duration) {
        self.write(format!("on_failure {destination} {failure}"));
    }

    fn on_success(&self, destination: &str, retries: u32) {
        self.write(format!("on_success {destination} {retries}"));
    }

    fn on_permanent_failure(&self, destination: &str, hint: ServerHint, retries: u32) {
        self.write(format!("on_permanent_failure {destination} {hint:?} {retries}"));
    }
}

impl PermitIssuer for Tokens {
    fn give_back(&self, cost: u32) {
        *self.left.lock().unwrap() += cost;
        self.log.lock().unwrap().push(format!("{}give_back {cost}", self.name));
    }

    fn on_retry_end(&self, cost: u32, succeeded: bool) {
        self.log.lock().unwrap().push(format!("{}on_retry_end {cost} {succeeded}", self.name));
    }
}
