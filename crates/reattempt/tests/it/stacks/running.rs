//! The runner of a plan, under a paused clock in its own runtime.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use reattempt::resume::NotContinued;
use reattempt::{CallOptions, Deadline};
use reattempt_testing::{ms, secs};
use tokio::runtime::Builder;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};
use tower::{BoxError, ServiceExt};

use super::building::Stack;
use super::cluster::{Arrival, CALL, Cluster, Ledger, Place};
use super::erased::{AnyBody, Client, RequestBody};
use super::file;
use super::oracle;
use super::plan::{Call, Content, Kind, Layer, Mark, Method, Plan, TARGETS};

/// The time after which a call that has not ended never will.
const BOUND: std::time::Duration = secs(600);
/// The number of times at which permits are counted while calls are in flight.
const LOOKS: usize = 100;

/// The end of a call as seen by its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Status(u16),
    /// The text of the error.
    Failed(String),
    Panicked,
    /// The caller dropped the call, as planned.
    Dropped,
    /// The call did not end in time.
    Stuck,
}

/// The part of a file that a caller read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
    /// The text of the break that ended the body.
    pub(crate) error: Option<String>,
}

/// Everything that the oracle needs from a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) ends: Vec<End>,
    /// The files that callers read, with the number of the call.
    pub(crate) reads: Vec<(usize, Read)>,
    pub(crate) ledger: Ledger,
    /// Permits in use although no attempt was in flight, with the index of the limit's layer.
    pub(crate) missing: Vec<(usize, usize)>,
    /// Permits still in use after all calls have ended.
    pub(crate) missing_at_end: Vec<(usize, usize)>,
    pub(crate) leaks: Vec<String>,
    pub(crate) probe: End,
    /// `true` if the primary has carried out the probe.
    pub(crate) probe_arrived: bool,
    /// Tasks, server instances and permits that outlive the client.
    pub(crate) left: (usize, usize, usize),
}

/// Runs the plan and returns what is wrong: the rule and the case.
pub(crate) fn run(plan: &Plan) -> Result<(), (&'static str, String)> {
    oracle::judge(plan, &record(plan))
}

/// Runs the plan and returns what happened.
pub(crate) fn record(plan: &Plan) -> Record {
    reattempt::endpoints::seed_picks(plan.seed);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        // The send rate counts in half seconds on the guards' clock, so each run begins at a whole one. Whole
        // milliseconds, like timers.
        let past = u64::try_from(reattempt::guard::handle::now().as_millis() % 1000).unwrap();
        tokio::time::advance(Duration::from_millis(1000 - past)).await;
        observe(plan).await
    })
}

async fn observe(plan: &Plan) -> Record {
    let cluster = Cluster::new(plan);
    let stack = Stack::build(plan, &cluster);
    let ends = {
        let mut calls = JoinSet::new();
        for (number, call) in plan.calls.iter().enumerate() {
            calls.spawn(make(stack.client.clone(), *call, number));
        }
        let (mut ends, mut reads) = (vec![End::Panicked; plan.calls.len()], Vec::new());
        let (mut missing, mut looks) = (Vec::new(), 0);
        loop {
            tokio::select! {
                biased;
                joined = calls.join_next() => match joined {
                    None => break (ends, reads, missing),
                    Some(Ok((number, end, read))) => {
                        ends[number] = end;
                        reads.extend(read.map(|read| (number, read)));
                    }
                    Some(Err(_)) => {}
                },
                () = sleep(ms(7)), if looks < LOOKS => {
                    looks += 1;
                    look(plan, &cluster, &stack, &mut missing).await;
                }
            }
        }
    };
    let (ends, reads, missing) = ends;
    cluster.calm_down();
    // The longest time for which a guard may refuse without a further cause.
    sleep(secs(300)).await;
    let (leaks, missing_at_end) = (stack.leaks(), missing_now(&stack));
    let probe = plan.calls.len();
    let mut end = probed(&stack, probe).await;
    for _ in 0..plan.paces() {
        if !is_served_by_primary(&cluster, probe) {
            sleep(secs(2)).await;
            end = probed(&stack, probe).await;
        }
    }
    let limits = stack.limits.clone();
    drop(stack);
    sleep(secs(1)).await;
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let instances = cluster.ledger().instances;
    let out = limits.iter().map(|(_, limit, size)| size - limit.available_permits()).sum();
    let left = (tasks, instances, out);
    let probe_arrived = is_served_by_primary(&cluster, probe);
    let ledger = cluster.copied();
    Record { ends, reads, ledger, missing, missing_at_end, leaks, probe: end, probe_arrived, left }
}

fn is_served_by_primary(cluster: &Cluster, number: usize) -> bool {
    let served = |arrival: &Arrival| arrival.call == number && arrival.place == Place::Primary && arrival.carried_out;
    cluster.ledger().arrivals.iter().any(served)
}

async fn probed(stack: &Stack, number: usize) -> End {
    let call = make(stack.client.clone(), Call::GET, number);
    timeout(secs(60), call).await.map_or(End::Stuck, |(_, end, _)| end)
}

/// Records permits in use while the servers have nothing to do.
async fn look(plan: &Plan, cluster: &Cluster, stack: &Stack, missing: &mut Vec<(usize, usize)>) {
    if !missing.is_empty() || stack.limits.is_empty() {
        return;
    }
    // Everything that this time has woken has run after a few turns.
    for _ in 0..4 * (plan.layers.len() + plan.calls.len()) {
        yield_now().await;
    }
    if cluster.ledger().busy == 0 {
        *missing = missing_now(stack);
    }
}

fn missing_now(stack: &Stack) -> Vec<(usize, usize)> {
    let missing = |(layer, limit, size): &(usize, std::sync::Arc<tokio::sync::Semaphore>, usize)| {
        (*layer, size - limit.available_permits())
    };
    stack.limits.iter().map(missing).filter(|(_, missing)| *missing > 0).collect()
}

/// Makes a call as its caller would. Returns its number, its end and the file that it read.
async fn make(client: Client, call: Call, number: usize) -> (usize, End, Option<Read>) {
    sleep(ms(call.starts)).await;
    let exchange = async {
        let response: Response<AnyBody> = client.oneshot(request(&call, number)).await?;
        let status = response.status().as_u16();
        Ok::<_, BoxError>((status, read(response).await))
    };
    let patience = call.dropped_after.map_or(BOUND, ms);
    match timeout(patience, exchange).await {
        Ok(Ok((status, read))) => (number, End::Status(status), read),
        Ok(Err(error)) => (number, End::Failed(error.to_string()), None),
        Err(_) if call.dropped_after.is_some() => (number, End::Dropped, None),
        Err(_) => (number, End::Stuck, None),
    }
}

/// Reads the body to its end or to its error. Returns the file if it is one.
async fn read(response: Response<AnyBody>) -> Option<Read> {
    let (head, mut body) = response.into_parts();
    let (mut data, mut error) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => data.extend_from_slice(frame.data_ref().unwrap()),
            Err(failed) => {
                error = Some(break_in(failed).to_string());
                break;
            }
        }
    }
    let name = head.headers.get(file::NAME)?.to_str().unwrap().into();
    Some(Read { name, data, error })
}

/// Returns the break itself, without what the resume layers say of the answers that do not continue the body.
fn break_in(error: BoxError) -> BoxError {
    match error.downcast::<NotContinued>() {
        Ok(refused) => break_in(refused.into_break()),
        Err(error) => error,
    }
}

fn request(call: &Call, number: usize) -> Request<RequestBody> {
    let method = match call.method {
        Method::Get => "GET",
        Method::Put => "PUT",
        Method::Post => "POST",
    };
    let request = Request::builder().method(method).uri(TARGETS[call.target]).header(CALL, number);
    let mut request = match call.mark {
        Mark::None => request,
        Mark::Key => request.header("idempotency-key", number),
        Mark::Repeatable => request.extension(CallOptions::new().repeatable(true)),
    };
    if let Some(time) = call.deadline {
        request = request.extension(Deadline::after(ms(time)));
    }
    let body = match call.content {
        Content::Empty => RequestBody::default(),
        Content::Memory => RequestBody::new(Full::from("some")),
        Content::Streamed => RequestBody::new(Streamed { frames: 3, pending: true }),
    };
    request.body(body).unwrap()
}

/// A body of unknown length, whose frames are never ready at once.
struct Streamed {
    frames: usize,
    pending: bool,
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.pending = !self.pending;
        if !self.pending {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.frames == 0 {
            return Poll::Ready(None);
        }
        self.frames -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"frame")))))
    }
}

impl Plan {
    /// Returns the number of paces. A pace counts its turns from the first call after its interval has become longer
    /// than 0, so that call waits for an interval, or is refused if it may not wait.
    fn paces(&self) -> usize {
        let paces = |layer: &Layer| match layer {
            Layer::Guards { kinds, .. } => {
                kinds.iter().filter(|kind| matches!(kind, Kind::Pace | Kind::PaceNoQueue)).count()
            }
            _ => 0,
        };
        self.layers.iter().map(paces).sum()
    }

    /// Returns `true` if the inner service of a `Buffer` can close or block it.
    pub(crate) fn has_buffer(&self) -> bool {
        self.layers.iter().any(|layer| matches!(layer, Layer::Buffer(_)))
    }
}
