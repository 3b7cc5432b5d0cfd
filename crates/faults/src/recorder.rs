//! An observer of reattempt's layers that records the outcomes of calls.

use std::collections::HashMap;
use std::fmt;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use reattempt::observe::{Event, Observer};
use reattempt::report::AttemptOutcome;
use reattempt::schedule::{Failure, FailureKind};
use tokio::time::Instant;

use crate::recording::Recording;
use crate::service::ServiceFault;

/// The maximum number of entries in a recorder: calls and changes of the outcome.
const MOST_ENTRIES: usize = 1_000_000;

/// An observer that records the outcomes of real calls, one [`Recording`] for each destination.
///
/// ```
/// use reattempt::RetryPolicy;
/// use reattempt_faults::Recorder;
///
/// let recorder = Recorder::new();
/// let policy = RetryPolicy::http().observe_with(recorder.clone());
/// // … a day later, in an administrator's endpoint
/// if let Some(recording) = recorder.recording("orders.example") {
///     std::fs::write("orders.toml", recording.to_toml())?; // lab replay orders.toml
/// }
/// # drop(policy);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Clones share the recordings. Paths, headers, bodies and error texts are not recorded. A recorder uses at most 24 MB.
/// It stops recording after a total of a million calls and changes of the outcome ([`Recorder::is_full`]).
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<Tape>>);

#[derive(Default)]
struct Tape {
    start: Option<Instant>,
    recordings: HashMap<String, (Recording, Replaced)>,
    entries: usize,
}

/// The number of first attempts that were replaced and whose replacement has not ended.
type Replaced = usize;

impl Recorder {
    /// Creates an empty recorder, whose clock starts at the first outcome.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the recording for a destination. A destination is the key of budgets and guards: by default, the host
    /// and port.
    pub fn recording(&self, destination: &str) -> Option<Recording> {
        self.tape().recordings.get(destination).map(|(recording, _)| recording.clone())
    }

    /// Returns all destinations, sorted by name.
    pub fn destinations(&self) -> Vec<String> {
        let mut names = self.tape().recordings.keys().cloned().collect::<Vec<_>>();
        names.sort();
        names
    }

    /// Returns `true` if the recorder is full and has stopped recording.
    pub fn is_full(&self) -> bool {
        self.tape().entries >= MOST_ENTRIES
    }

    fn tape(&self) -> MutexGuard<'_, Tape> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Recorder {
    fn on_event(&self, destination: &str, event: &Event<'_>) {
        match event {
            Event::AttemptFailed { attempt, outcome, .. } => {
                if let Some(fault) = fault_of(outcome) {
                    self.tape().add(destination, *attempt, fault);
                }
            }
            Event::Succeeded { attempts, .. } => self.tape().add(destination, *attempts, ServiceFault::NoFault),
            Event::WillReplace { attempt: 1, .. } => {
                if let Some((_, replaced)) = self.tape().recordings.get_mut(destination) {
                    *replaced += 1;
                }
            }
            _ => {}
        }
    }
}

impl Tape {
    fn add(&mut self, destination: &str, attempt: u32, outcome: ServiceFault) {
        if self.entries >= MOST_ENTRIES {
            return;
        }
        let now = Instant::now();
        let start = *self.start.get_or_insert(now);
        let at = u64::try_from(now.saturating_duration_since(start).as_millis()).unwrap_or(u64::MAX);
        if !self.recordings.contains_key(destination) {
            self.recordings.insert(destination.to_owned(), (Recording::new(destination), 0));
        }
        if let Some((recording, replaced)) = self.recordings.get_mut(destination) {
            let replaces = attempt == 1 && *replaced > 0;
            *replaced -= usize::from(replaces);
            self.entries += recording.add(at, outcome, attempt == 1 && !replaces);
        }
    }
}

/// Returns the fault that causes this outcome, or `None` if the server did not cause it.
fn fault_of(outcome: &AttemptOutcome) -> Option<ServiceFault> {
    match outcome {
        AttemptOutcome::Succeeded => Some(ServiceFault::NoFault),
        AttemptOutcome::Failed { failure, .. } => Some(failure.code().map_or_else(|| of_kind(failure), of_code)),
        AttemptOutcome::PermanentFailure { code: Some(code), .. } => Some(of_code(*code)),
        // A rejected certificate, an invalid URI, or an error in the caller's own body.
        _ => None,
    }
}

fn of_kind(failure: &Failure) -> ServiceFault {
    ServiceFault::Error(match failure.kind() {
        FailureKind::Connect => ErrorKind::ConnectionRefused,
        FailureKind::Timeout => ErrorKind::TimedOut,
        _ => ErrorKind::ConnectionReset,
    })
}

/// Returns the fault that responds with this code: an HTTP status, or a gRPC code, which is always smaller.
fn of_code(code: u16) -> ServiceFault {
    StatusCode::from_u16(code).map_or(ServiceFault::Grpc(code.into()), ServiceFault::Status)
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("destinations", &self.destinations()).finish_non_exhaustive()
    }
}
