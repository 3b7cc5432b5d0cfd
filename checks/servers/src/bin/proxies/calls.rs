//! The load: callers that call again at once, and what became of each call.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;

use reattempt::StopReason;
use reattempt::report::ReportSlot;
use tokio::task::JoinSet;
use tower::BoxError;

/// The callers of each client.
const CALLERS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A GET, or a gRPC call that is marked as repeatable.
    Safe,
    /// A POST with an idempotency key, or a marked gRPC call.
    Keyed,
    /// A POST without a key, or a gRPC call that is not marked.
    Once,
}

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    pub(crate) retries: usize,
    pub(crate) failure: Option<String>,
    /// `true` if the response had begun, and did not end. Such a response is the caller's.
    pub(crate) cut_off: bool,
}

/// Sends the call of this number, with its retries, and reads the response.
pub(crate) type Send = Rc<dyn Fn(Kind, u64, &ReportSlot) -> Result<Answer, BoxError>>;
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<(), BoxError>>>>;

/// Calls that begin until the load is stopped.
#[derive(Debug)]
pub(crate) struct Load {
    stopped: Rc<Cell<bool>>,
    callers: JoinSet<(&'static str, Vec<Done>)>,
}

impl Load {
    /// Starts the callers of all clients.
    pub(crate) fn start(clients: Vec<(&'static str, Send)>) -> Self {
        let (stopped, next, mut callers) = (Rc::<Cell<bool>>::default(), Rc::<Cell<u64>>::default(), JoinSet::new());
        for (name, send) in clients {
            for _ in 0..CALLERS {
                let (send, stopped, next) = (Rc::clone(&send), Rc::clone(&stopped), Rc::clone(&next));
                callers.spawn_local(async move {
                    let mut done = Vec::new();
                    while !stopped.get() {
                        let kind = [Kind::Safe, Kind::Keyed, Kind::Once, Kind::Once][done.len() % 4];
                        done.push(one(&send, kind, next.replace(next.get() + 1)).await);
                    }
                    (name, done)
                });
            }
        }
        Self { stopped, callers }
    }

    /// Begins no other call. Returns the calls of each client when the last has ended.
    pub(crate) async fn stop(mut self) -> Result<BTreeMap<&'static str, Vec<Done>>, BoxError> {
        self.stopped.set(true);
        let mut all = BTreeMap::<_, Vec<_>>::new();
        while let Some(caller) = self.callers.join_next().await {
            let (name, done) = caller?;
            all.entry(name).or_default().extend(done);
        }
        Ok(all)
    }
}

async fn one(send: &Send, kind: Kind, number: u64) -> Done {
    let slot = ReportSlot::default();
    let ended = match send(kind, number, &slot) {
        Ok(answer) => answer.await,
        Err(error) => Err(error),
    };
    let report = slot.take();
    let failure = ended.err().map(|error| match &report {
        Some(report) => format!("{error}; {report}"),
        None => error.to_string(),
    });
    let begun = report.as_ref().is_some_and(|report| report.stop_reason() == StopReason::Succeeded);
    let cut_off = failure.is_some() && begun;
    let retries = report.map_or(0, |report| report.attempts().len().saturating_sub(1));
    Done { number, kind, retries, failure, cut_off }
}
