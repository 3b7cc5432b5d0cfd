//! The servers of a run: a primary and its backup, with one ledger of what they carried out.

use std::collections::VecDeque;
use std::io;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::stream;
use http::request::Parts;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use reattempt_testing::ms;
use tokio::time::{Instant, Sleep, sleep};
use tower::Service;

use super::erased::{AnyBody, RequestBody, boxed_body};
use super::file;
use super::intruders::FIRST_NESTED;
use super::plan::{Act, Answer, Plan, Readiness};

/// The header with a call's number. It survives redirects.
pub(crate) const CALL: &str = "x-call";
/// The header with the tiers of an arrival.
pub(crate) const TIER: &str = "x-tier";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Primary,
    Backup,
}

/// A request as it arrived, and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arrival {
    /// Milliseconds from the start of the run.
    pub(crate) at: u128,
    pub(crate) call: usize,
    pub(crate) place: Place,
    pub(crate) method: Method,
    pub(crate) carried_out: bool,
    pub(crate) answer: Answer,
    /// The first byte that a resume asks for.
    pub(crate) from: Option<usize>,
    /// The tier that each set of endpoints has chosen, as `layer:tier`.
    pub(crate) tiers: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ledger {
    pub(crate) arrivals: Vec<Arrival>,
    acts: VecDeque<Act>,
    readiness: VecDeque<Readiness>,
    upsets: VecDeque<bool>,
    own_answers: VecDeque<Option<u16>>,
    /// The number of calls that services inside the stack have made.
    nested: usize,
    /// The targets that left a set of servers which lets none out.
    pub(crate) escaped: Vec<String>,
    /// The number of live instances.
    pub(crate) instances: usize,
    /// Requests in flight, and instances that were readied and then neither called nor dropped.
    pub(crate) busy: usize,
    pub(crate) hung: bool,
    /// `true` once an instance was never ready.
    pub(crate) stalled: bool,
    /// `true` once a server panicked in `call` or `poll_ready`, or an observer anywhere.
    pub(crate) panicked: bool,
    /// The calls whose attempts panicked.
    pub(crate) panics: Vec<usize>,
}

/// The ledger that all instances of both servers share.
#[derive(Clone)]
pub(crate) struct Cluster {
    began: Instant,
    ledger: Arc<Mutex<Ledger>>,
}

impl Cluster {
    pub(crate) fn new(plan: &Plan) -> Self {
        let (acts, readiness) = (plan.acts.clone().into(), plan.readiness.clone().into());
        let (upsets, own_answers) = (plan.upsets.clone().into(), plan.own_answers.clone().into());
        let ledger = Ledger { acts, readiness, upsets, own_answers, ..Ledger::default() };
        Self { began: Instant::now(), ledger: Arc::new(Mutex::new(ledger)) }
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }

    /// Returns a copy of the ledger.
    pub(crate) fn copied(&self) -> Ledger {
        self.ledger().clone()
    }

    /// Makes the servers serve from now on, and the observers calm.
    pub(crate) fn calm_down(&self) {
        let mut ledger = self.ledger();
        (ledger.acts, ledger.readiness) = Default::default();
        (ledger.upsets, ledger.own_answers) = Default::default();
    }

    /// Returns `true` if the observer that asks must panic.
    pub(crate) fn is_upset(&self) -> bool {
        let mut ledger = self.ledger();
        // One that is told something while the thread unwinds would end the process.
        let unwinds = std::thread::panicking() && !ledger.upsets.is_empty();
        let upset = ledger.upsets.pop_front().unwrap_or(false) || unwinds;
        ledger.panicked |= upset;
        upset
    }

    /// Returns the status of a request that is not sent.
    pub(crate) fn own_answer(&self) -> Option<u16> {
        self.ledger().own_answers.pop_front().flatten()
    }

    /// Returns the number of the next call of a service inside the stack.
    pub(crate) fn next_nested(&self) -> usize {
        let mut ledger = self.ledger();
        ledger.nested += 1;
        ledger.nested - 1
    }

    /// Returns a server of the cluster.
    pub(crate) fn server(&self, place: Place) -> Server {
        self.ledger().instances += 1;
        Server { cluster: self.clone(), place, state: State::Idle }
    }
}

/// A server instance. It fails the run if it is called without having been readied.
pub(crate) struct Server {
    cluster: Cluster,
    place: Place,
    state: State,
}

enum State {
    Idle,
    Later(Pin<Box<Sleep>>),
    Never,
    Ready,
}

impl Server {
    fn settle(&mut self) -> State {
        let before = std::mem::replace(&mut self.state, State::Idle);
        if !matches!(before, State::Idle) {
            self.cluster.ledger().busy -= 1;
        }
        before
    }
}

impl Clone for Server {
    fn clone(&self) -> Self {
        self.cluster.server(self.place)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.settle();
        self.cluster.ledger().instances -= 1;
    }
}

/// A panic that prints nothing.
struct Injected;

pub(crate) fn injected() -> ! {
    resume_unwind(Box::new(Injected))
}

impl Service<Request<RequestBody>> for Server {
    type Response = Response<AnyBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<AnyBody>, io::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        if let State::Idle = self.state {
            let mut ledger = self.cluster.ledger();
            let readiness = ledger.readiness.pop_front().unwrap_or(Readiness::Now);
            ledger.stalled |= readiness == Readiness::Never;
            ledger.panicked |= readiness == Readiness::Panic;
            ledger.busy += usize::from(readiness != Readiness::Panic);
            drop(ledger);
            self.state = match readiness {
                Readiness::Now => State::Ready,
                Readiness::After(time) => State::Later(Box::pin(sleep(ms(time)))),
                Readiness::Never => State::Never,
                Readiness::Panic => injected(),
            };
        }
        match &mut self.state {
            State::Later(sleep) => ready!(sleep.as_mut().poll(cx)),
            State::Never => return Poll::Pending,
            State::Idle | State::Ready => {}
        }
        self.state = State::Ready;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        assert!(matches!(self.settle(), State::Ready), "called without having been readied");
        let cluster = self.cluster.clone();
        let mut ledger = cluster.ledger();
        let act = ledger.acts.pop_front().unwrap_or(Act::SERVES);
        let number = ledger.arrivals.len();
        let call = request.headers()[CALL].to_str().unwrap().parse().unwrap();
        let method = request.method().clone();
        let (place, answer) = (self.place, act.answer);
        let at = cluster.began.elapsed().as_millis();
        let tiers = request.headers().get_all(TIER).iter().map(|tier| tier.to_str().unwrap().into()).collect();
        let from = file::first_byte(request.headers());
        ledger.arrivals.push(Arrival { at, call, place, method, carried_out: false, answer, from, tiers });
        ledger.hung |= answer == Answer::Hang;
        ledger.panicked |= answer == Answer::PanicInCall;
        if answer == Answer::PanicInCall {
            ledger.panics.push(call);
            drop(ledger);
            injected();
        }
        ledger.busy += 1;
        drop(ledger);
        let under_way = UnderWay(cluster);
        Box::pin(async move { under_way.serve(number, place, act, request).await })
    }
}

struct UnderWay(Cluster);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.ledger().busy -= 1;
    }
}

impl UnderWay {
    async fn serve(
        &self,
        number: usize,
        place: Place,
        act: Act,
        request: Request<RequestBody>,
    ) -> Result<Response<AnyBody>, io::Error> {
        let (head, body) = request.into_parts();
        if act.reads && body.collect().await.is_err() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let carries_out = |now| {
            if act.works && act.early == now {
                self.0.ledger().arrivals[number].carried_out = true;
            }
        };
        carries_out(true);
        sleep(ms(act.after)).await;
        carries_out(false);
        if act.answer == Answer::Panic {
            let mut ledger = self.0.ledger();
            let call = ledger.arrivals[number].call;
            // A nested call's first attempt is polled in the `call` of its service.
            ledger.panicked |= call >= FIRST_NESTED;
            ledger.panics.push(call);
        }
        match act.answer {
            Answer::File { version, bytes, slow } => Ok(send_file(&head, place, version, number, (bytes, slow))),
            _ => answer(number, act).await,
        }
    }
}

async fn answer(number: usize, act: Act) -> Result<Response<AnyBody>, io::Error> {
    let mut response = Response::builder();
    let (status, location) = match act.answer {
        Answer::Ok | Answer::SlowBody | Answer::TornBody | Answer::File { .. } => (200, None),
        Answer::SeeOther => (303, Some(format!("/after/{number}"))),
        Answer::TemporaryRedirect => (307, Some(format!("/in-place-of/{number}"))),
        Answer::SeeOtherHost => (303, Some(format!("http://two.example/after/{number}"))),
        Answer::TooMany { .. } => (429, None),
        Answer::Unavailable => (503, None),
        Answer::Error => (500, None),
        Answer::NotConnected => return Err(io::ErrorKind::ConnectionRefused.into()),
        Answer::Lost => return Err(io::ErrorKind::ConnectionReset.into()),
        Answer::Hang => std::future::pending().await,
        Answer::Panic | Answer::PanicInCall => injected(),
    };
    if let Some(location) = location {
        response = response.header("location", location);
    }
    if let Answer::TooMany { retry_after: Some(seconds) } = act.answer {
        response = response.header("retry-after", seconds);
    }
    let body = match act.answer {
        Answer::SlowBody => frames([Ok(Bytes::from_static(b"late"))], true),
        Answer::TornBody => frames([Ok(Bytes::from_static(b"so")), Err(torn(number))], false),
        _ => AnyBody::default(),
    };
    Ok(response.status(status).body(body).unwrap())
}

/// The error that ends the body of this arrival's response.
pub(crate) fn torn(number: usize) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the response to arrival {number} is torn"))
}

fn send_file(
    request: &Parts,
    place: Place,
    version: u8,
    number: usize,
    (bytes, slow): (usize, bool),
) -> Response<AnyBody> {
    let name = file::name(place, &request.uri, version);
    let start = file::start(request, version);
    let end = file::LENGTH.min(start + bytes);
    let mut response = Response::builder().header("etag", file::tag(&request.uri, version)).header(file::NAME, &name);
    if start > 0 {
        let range = format!("bytes {start}-{}/{}", file::LENGTH - 1, file::LENGTH);
        response = response.status(206).header("content-range", range);
    }
    let data = Bytes::from(file::content(&name)).slice(start..end);
    let breaks = (end < file::LENGTH).then(|| Err(torn(number)));
    let body = frames([Ok(data)].into_iter().chain(breaks), slow);
    response.header("content-length", file::LENGTH - start).body(body).unwrap()
}

/// Returns a body of these frames, the first of which may come later.
fn frames(frames: impl IntoIterator<Item = io::Result<Bytes>>, slow: bool) -> AnyBody {
    let frames: Vec<_> = frames.into_iter().map(|data| data.map(Frame::data)).collect();
    let mut time = slow.then(|| Box::pin(sleep(ms(30))));
    let mut frames = frames.into_iter();
    let frames = stream::poll_fn(move |cx| {
        if let Some(running) = &mut time {
            ready!(running.as_mut().poll(cx));
            time = None;
        }
        Poll::Ready(frames.next())
    });
    boxed_body(StreamBody::new(frames))
}
