//! A helper guard that follows instructions and records its inputs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

use http::Request;
use reattempt::guard::contract::{Admit, Arrival, End, Guard, GuardKind, Resume};
use reattempt::guard::{Reason, Refused};
use reattempt_replay::ReplayBody;

use crate::calls::{Body, request};

/// A guard with a log. Clones share it.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<RecorderState>>);

#[derive(Default)]
struct RecorderState {
    log: Vec<String>,
    latencies: Vec<Duration>,
    holds: bool,
    refuses: Option<Refused>,
    queues: bool,
    until: Option<Duration>,
    waiting: VecDeque<Waker>,
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, RecorderState> {
        self.0.lock().unwrap()
    }

    /// Creates a guard that holds tickets until bodies end.
    pub fn holding() -> Self {
        let this = Self::default();
        this.lock().holds = true;
        this
    }

    /// Creates a guard that queues every attempt until [`release`](Self::release).
    pub fn queueing() -> Self {
        let this = Self::default();
        this.lock().queues = true;
        this
    }

    /// Sets a time at which waiting attempts are to be polled.
    pub fn until(&self, until: Duration) {
        self.lock().until = Some(until);
    }

    pub fn admit(&self) {
        self.lock().refuses = None;
    }

    pub fn refuse(&self, refused: Refused) {
        self.lock().refuses = Some(refused);
    }

    /// Admits all waiting attempts, and later ones.
    pub fn release(&self) {
        let wakers = {
            let mut state = self.lock();
            state.queues = false;
            std::mem::take(&mut state.waiting)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    pub fn log(&self) -> Vec<String> {
        self.lock().log.clone()
    }

    /// Returns the latencies of the attempts whose outcome is known.
    pub fn latencies(&self) -> Vec<Duration> {
        self.lock().latencies.clone()
    }
}

pub fn refused() -> Refused {
    Refused::new(GuardKind::UNNAMED, Reason::Full)
}

impl Guard for Recorder {
    type Ticket = ();

    fn admit(&self, arrival: &Arrival<'_>) -> Admit<()> {
        let mut state = self.lock();
        if let Some(refused) = state.refuses {
            state.log.push("refused".into());
            return Admit::Refused(refused);
        }
        if state.queues {
            if !arrival.patient {
                state.log.push("impatient".into());
                return Admit::Refused(refused());
            }
            state.log.push("waiting".into());
            return Admit::Waiting(());
        }
        state.log.push("admitted".into());
        Admit::Admitted(())
    }

    fn end_ticket(&self, (): (), end: &End, _: Duration) -> Option<()> {
        let mut state = self.lock();
        if let End::Judged { after, .. } = end {
            state.latencies.push(*after);
        }
        state.log.push(match end {
            End::Judged { health, .. } => format!("{health:?}"),
            End::Abandoned { .. } => "abandoned".into(),
            End::Unsent => "unsent".into(),
            End::Over(body) => format!("{body:?}"),
            other => format!("{other:?}"),
        });
        (state.holds && matches!(end, End::Judged { .. })).then_some(())
    }

    fn resume(&self, (): &mut (), _: &Arrival<'_>, waker: &Waker) -> Resume {
        let mut state = self.lock();
        if let Some(refused) = state.refuses {
            return Resume::Refused(refused);
        }
        if state.queues {
            let until = state.until;
            state.waiting.push_back(waker.clone());
            return Resume::Waiting { until };
        }
        Resume::Admitted
    }

    fn renew(&self, (): (), _: &Arrival<'_>) -> Result<(), Refused> {
        let mut state = self.lock();
        state.log.push("renewed".into());
        state.refuses.map_or(Ok(()), Err)
    }
}

/// Returns a GET as a retry layer would send it.
pub fn attempt(uri: &str) -> Request<ReplayBody<Body>> {
    request("GET", uri, "").map(ReplayBody::passthrough)
}

/// Returns the default breaker, but as it opens at once and for its whole open time. Most tests fail their calls at one
/// instant, and the default breaker opens only if they have failed for some time (C-14).
pub fn timeless() -> reattempt::guard::CircuitBreaker {
    let breaker = reattempt::guard::CircuitBreaker::rate();
    breaker.min_failing_time(std::time::Duration::ZERO).first_open_time(std::time::Duration::ZERO)
}
