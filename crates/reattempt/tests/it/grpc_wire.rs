//! A tonic `Channel` under the retry layer, against a server written on the `h2` crate, which can do on
//! the wire what tonic's own server cannot. The names carry the ids of the rules that they test.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use reattempt::grpc::GrpcBody;
use reattempt::grpc::peek_trailers::PeekTrailersLayer;
use reattempt::observe::Event;
use reattempt::report::{AttemptOutcome, ReportSlot};
use reattempt::{CallOptions, Grpc, Report, RetryLayer, RetryPolicy};
use reattempt_core::{FailureKind, StopReason};
use reattempt_grpc::{Code, Throttle, Throttling};
use reattempt_schedule_fixed::Constant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower::{Layer, ServiceExt};

/// The server's action on a stream.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// A message and this status.
    Answer(Code),
    /// One block of headers.
    PeekTrailers(Code),
    /// A refusal with END_STREAM in an empty frame of its own.
    EmptyData(Code),
    /// Headers, then trailers.
    HeadersTrailers(Code),
    /// A reset before any header.
    Reset(Reason),
    /// Headers, and a reset as soon as the client has them.
    HeadersReset(Reason),
    /// A message, then the end of the stream without trailers.
    NoStatus,
    /// The connection is cut when the test says so, or at once.
    Cut,
    /// A refusal once headers and a message have been answered.
    HeadersCut,
    /// Nothing, until the client resets the stream.
    Hang,
}

/// The server's action on a connection, by hand, before it serves the others.
#[derive(Debug, Clone, Copy)]
enum Goaway {
    /// It leaves the first stream out.
    Below,
    /// It leaves room for that one, which is then served.
    Above,
}

struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<HeaderMap>>>,
    /// Lets the server go on where it waits for the client.
    go_on: Arc<Notify>,
    /// Why the client reset a stream that hung.
    resets: mpsc::UnboundedReceiver<Reason>,
    task: JoinHandle<()>,
}

/// The state that all connections of a server share.
#[derive(Clone)]
struct Shared {
    script: Arc<[Act]>,
    seen: Arc<Mutex<Vec<HeaderMap>>>,
    go_on: Arc<Notify>,
    resets: mpsc::UnboundedSender<Reason>,
}

impl Server {
    /// Does this with the streams in the order in which they come, and the last with all others.
    async fn start(script: impl IntoIterator<Item = Act>) -> Self {
        Self::with(None, u32::MAX, script).await
    }

    async fn with(
        goaway: Option<Goaway>,
        most_streams: u32,
        script: impl IntoIterator<Item = Act>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (resets, received) = mpsc::unbounded_channel();
        let shared = Shared {
            script: script.into_iter().collect(),
            seen: Arc::default(),
            go_on: Arc::default(),
            resets,
        };
        let (seen, go_on) = (Arc::clone(&shared.seen), Arc::clone(&shared.go_on));
        let task = tokio::spawn(async move {
            let mut serving = JoinSet::new();
            if let Some(goaway) = goaway {
                let (socket, _) = listener.accept().await.unwrap();
                serving.spawn(go_away(socket, goaway));
            }
            while let Ok((socket, _)) = listener.accept().await {
                serving.spawn(serve(socket, most_streams, shared.clone()));
            }
        });
        Self { address, seen, go_on, resets: received, task }
    }

    fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// The `grpc-previous-rpc-attempts` of each stream.
    fn previous(&self) -> Vec<Option<String>> {
        let read = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|head| head.get("grpc-previous-rpc-attempts").map(read)).collect()
    }

    fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.address)).unwrap().connect_lazy()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: TcpStream, most_streams: u32, shared: Shared) {
    let mut handshake = h2::server::Builder::new();
    handshake.max_concurrent_streams(most_streams);
    let Ok(mut connection) = handshake.handshake::<_, Bytes>(socket).await else { return };
    let mut answering = JoinSet::new();
    loop {
        let stream = tokio::select! {
            stream = connection.accept() => stream,
            // A connection that is to be cut: before its stream could be reset.
            Some(Ok(Some(held))) = answering.join_next() => {
                drop(connection);
                drop(held);
                return;
            }
        };
        let Some(Ok((request, reply))) = stream else { return };
        let number = {
            let mut seen = shared.seen.lock().unwrap();
            seen.push(request.headers().clone());
            seen.len()
        };
        let act = *shared.script.get(number - 1).or(shared.script.last()).unwrap();
        answering.spawn(answer(act, request, reply, shared.clone()));
    }
}

/// A stream whose connection is to be cut: dropped, it would be reset.
type Held = Box<dyn Send>;

/// Answers a stream; gives it back if its connection is to be cut.
async fn answer(
    act: Act,
    mut request: Request<RecvStream>,
    mut reply: SendResponse<Bytes>,
    shared: Shared,
) -> Option<Held> {
    while let Some(Ok(data)) = request.body_mut().data().await {
        let _ = request.body_mut().flow_control().release_capacity(data.len());
    }
    let head = Response::builder().header("content-type", "application/grpc");
    let message = Bytes::from_static(&[0, 0, 0, 0, 0]);
    match act {
        Act::Answer(code) => {
            let mut stream = reply.send_response(head.body(()).unwrap(), false).unwrap();
            stream.send_data(message, false).unwrap();
            stream.send_trailers(status(code)).unwrap();
        }
        Act::PeekTrailers(code) => {
            let head = head.header("grpc-status", code.number());
            reply.send_response(head.body(()).unwrap(), true).unwrap();
        }
        Act::EmptyData(code) => {
            let head = head.header("grpc-status", code.number());
            let mut stream = reply.send_response(head.body(()).unwrap(), false).unwrap();
            stream.send_data(Bytes::new(), true).unwrap();
        }
        Act::HeadersTrailers(code) => {
            let mut stream = reply.send_response(head.body(()).unwrap(), false).unwrap();
            stream.send_trailers(status(code)).unwrap();
        }
        Act::Reset(reason) => reply.send_reset(reason),
        Act::HeadersReset(reason) => {
            let mut stream = reply.send_response(head.body(()).unwrap(), false).unwrap();
            shared.go_on.notified().await;
            stream.send_reset(reason);
        }
        Act::NoStatus => {
            let mut stream = reply.send_response(head.body(()).unwrap(), false).unwrap();
            stream.send_data(message, true).unwrap();
        }
        Act::Cut => {
            shared.go_on.notified().await;
            return Some(Box::new(reply));
        }
        Act::HeadersCut => {
            let mut stream = reply.send_response(head.body(()).unwrap(), false).unwrap();
            stream.send_data(message, false).unwrap();
            shared.go_on.notified().await;
            return Some(Box::new(stream));
        }
        Act::Hang => {
            if let Ok(reason) = std::future::poll_fn(|cx| reply.poll_reset(cx)).await {
                let _ = shared.resets.send(reason);
            }
        }
    }
    None
}

/// A frame as it is on the wire.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Says GOAWAY when the first stream is there.
async fn go_away(mut socket: TcpStream, goaway: Goaway) {
    const PREFACE: usize = 24;
    let mut read = vec![0; PREFACE];
    socket.read_exact(&mut read).await.unwrap();
    socket.write_all(&frame(4, 0, 0, &[])).await.unwrap();
    let stream = loop {
        let mut head = [0; 9];
        socket.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        socket.read_exact(&mut payload).await.unwrap();
        if head[3] == 1 {
            break u32::from_be_bytes(head[5..].try_into().unwrap());
        }
    };
    let last: u32 = match goaway {
        Goaway::Below => 0,
        Goaway::Above => stream,
    };
    let mut payload = last.to_be_bytes().to_vec();
    payload.extend([0; 4]);
    socket.write_all(&frame(7, 0, 0, &payload)).await.unwrap();
    if let Goaway::Above = goaway {
        // ":status: 200" and "grpc-status: 0", the whole answer.
        let mut fields = vec![0x88, 0x00, 11];
        fields.extend(b"grpc-status");
        fields.extend([1, b'0']);
        socket.write_all(&frame(1, 0x5, stream, &fields)).await.unwrap();
    }
    // Whatever comes, until the client hangs up.
    while socket.read(&mut read).await.is_ok_and(|read| read > 0) {}
}

fn status(code: Code) -> HeaderMap {
    HeaderMap::from_iter([(http::HeaderName::from_static("grpc-status"), code.number().into())])
}

fn policy() -> RetryPolicy<Grpc, Constant> {
    RetryPolicy::grpc().backoff(Constant::immediate())
}

fn call() -> Request<Body> {
    let message = Body::new(Full::from(Bytes::from_static(&[0, 0, 0, 0, 0])));
    Request::post("http://one.example/service/method")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(message)
        .unwrap()
}

fn repeatable() -> Request<Body> {
    let mut call = call();
    call.extensions_mut().insert(CallOptions::new().repeatable(true));
    call
}

/// The end of a call, for its caller.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Status(Code),
    NoStatus,
    /// The code that a generated client makes of it.
    BodyError(tonic::Code),
    Error(tonic::Code),
}

/// Calls once, and reads what comes. The report is that of the call, whatever it came to.
async fn run<B: reattempt_core::Budget + Clone>(
    server: &Server,
    policy: RetryPolicy<Grpc, Constant, B>,
    call: Request<Body>,
) -> (Ended, Report) {
    let slot = ReportSlot::default();
    let client = RetryLayer::new(policy).layer(server.channel());
    let client = client.with_options(CallOptions::new().report_to(&slot));
    let ended = match client.oneshot(call).await {
        Ok(reply) => read(reply, server).await,
        Err(error) => Ended::Error(tonic::Status::from_error(error.into()).code()),
    };
    (ended, slot.take().unwrap())
}

async fn read(reply: Response<GrpcBody<Body>>, server: &Server) -> Ended {
    let code = |headers: &HeaderMap| Some(Code::from_bytes(headers.get("grpc-status")?.as_bytes()));
    server.go_on.notify_one();
    let mut seen = code(reply.headers());
    let mut body = reply.into_body();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => seen = seen.or(frame.trailers_ref().and_then(code)),
            Err(error) => return Ended::BodyError(tonic::Status::from_error(error).code()),
        }
    }
    seen.map_or(Ended::NoStatus, Ended::Status)
}

fn throttle() -> Throttle {
    let throttle = Throttle::new(Some(Throttling::new(100.0, 0.1).unwrap()));
    throttle.failed();
    throttle
}

/// The balance above that at the start, in thousandths.
fn change(throttle: &Throttle) -> i64 {
    i64::from(throttle.tokens_thousandths().unwrap()) - 99_000
}

fn numbers(numbers: &[u32]) -> Vec<Option<String>> {
    numbers.iter().map(|number| (*number > 0).then(|| number.to_string())).collect()
}

const OK: Ended = Ended::Status(Code::Ok);
const UNAVAILABLE: Ended = Ended::Status(Code::Unavailable);
const REFUSED: Act = Act::Reset(Reason::REFUSED_STREAM);

// TR-2, TR-4
#[tokio::test]
async fn refused_stream_is_replaced_for_free() {
    let server = Server::start([REFUSED, Act::Answer(Code::Ok)]).await;
    let throttle = throttle();
    let (ended, report) = run(&server, policy().budget(throttle.clone()), call()).await;
    assert_eq!((ended, server.previous()), (OK, numbers(&[0, 0])));
    assert_eq!(change(&throttle), 100);
    assert_eq!((report.retries(), report.replacements()), (0, 1));
    let listed: Vec<_> =
        report.attempts().iter().map(|attempt| (attempt.number, attempt.replacement)).collect();
    assert_eq!(listed, [(1, false), (1, true)]);
    assert_eq!(report.stop_reason(), StopReason::Succeeded);
}

// TR-2
#[tokio::test]
async fn tr_2_further_one_is_ordinary_failure() {
    let server = Server::start([REFUSED]).await;
    let throttle = throttle();
    let (ended, report) = run(&server, policy().budget(throttle.clone()), call()).await;
    assert_eq!((ended, server.previous()), (UNAVAILABLE, numbers(&[0, 0, 1, 2])));
    assert_eq!(change(&throttle), -3000);
    assert_eq!((report.retries(), report.stop_reason()), (2, StopReason::AttemptsExhausted));
}

// TR-3
#[tokio::test]
async fn tr_3_once_at_any_attempt_of_the_call() {
    let script = [Act::PeekTrailers(Code::Unavailable), REFUSED, REFUSED, Act::Answer(Code::Ok)];
    let server = Server::start(script).await;
    let (ended, report) = run(&server, policy(), call()).await;
    assert_eq!((ended, server.previous()), (OK, numbers(&[0, 1, 1, 2])));
    assert_eq!((report.retries(), report.replacements()), (2, 1));
}

// TR-4
#[tokio::test]
async fn tr_4_schedule_and_attempts_do_not_notice() {
    let script = [REFUSED, Act::PeekTrailers(Code::Unavailable), Act::Answer(Code::Ok)];
    let server = Server::start(script).await;
    // The first delay is that of a first retry.
    let schedule = reattempt_schedule_fixed::List::ending([Duration::ZERO]);
    let policy = RetryPolicy::grpc().backoff(schedule).max_attempts(2);
    let client = RetryLayer::new(policy).layer(server.channel());
    let ended = read(client.oneshot(call()).await.unwrap(), &server).await;
    assert_eq!((ended, server.previous()), (OK, numbers(&[0, 0, 1])));
}

// THR-8
#[tokio::test]
async fn thr_8_a_replacement_is_not_throttled() {
    let throttle = Throttle::new(Some(Throttling::new(2.0, 0.1).unwrap()));
    throttle.failed();
    assert!(throttle.is_throttled());
    let server = Server::start([REFUSED, Act::Answer(Code::Ok)]).await;
    let (ended, _) = run(&server, policy().budget(throttle), call()).await;
    assert_eq!((ended, server.count()), (OK, 2));
}

// TR-8
#[tokio::test]
async fn tr_8_two_switches() {
    let script = || [REFUSED, Act::Answer(Code::Ok)];
    // Configured retries off.
    let server = Server::start(script()).await;
    let (ended, _) = run(&server, policy().max_attempts(1), call()).await;
    assert_eq!((ended, server.previous()), (OK, numbers(&[0, 0])));
    // Transparent ones off: it is retried like any refusal.
    let server = Server::start(script()).await;
    let (ended, report) =
        run(&server, policy().protocol(|grpc| grpc.transparent_retries(false)), call()).await;
    assert_eq!((ended, server.previous()), (OK, numbers(&[0, 1])));
    assert_eq!(report.replacements(), 0);
    // All off.
    let none = policy().protocol(|grpc| grpc.transparent_retries(false)).max_attempts(1);
    for (policy, options) in
        [(none, CallOptions::new()), (policy(), CallOptions::new().never_retry())]
    {
        let server = Server::start(script()).await;
        let mut call = call();
        call.extensions_mut().insert(options);
        let (ended, _) = run(&server, policy, call).await;
        assert_eq!((ended, server.count()), (UNAVAILABLE, 1));
    }
}

// TR-5
#[tokio::test]
async fn tr_5_not_after_the_commit() {
    let server = Server::start([Act::HeadersReset(Reason::REFUSED_STREAM)]).await;
    let (ended, _) = run(&server, policy(), call()).await;
    assert_eq!((ended, server.count()), (Ended::BodyError(tonic::Code::Unavailable), 1));
}

// TR-2, TN-12
#[tokio::test]
async fn goaway_without_the_stream_is_replaced() {
    let server = Server::with(Some(Goaway::Below), u32::MAX, [Act::Answer(Code::Ok)]).await;
    let (ended, report) = run(&server, policy().max_attempts(1), call()).await;
    assert_eq!((ended, server.previous()), (OK, numbers(&[0])));
    assert_eq!((report.retries(), report.replacements()), (0, 1));
}

// TR-7
#[tokio::test]
async fn tr_7_goaway_above_stream_leaves_it_alive() {
    let server = Server::with(Some(Goaway::Above), u32::MAX, [Act::Answer(Code::Internal)]).await;
    let (ended, report) = run(&server, policy(), call()).await;
    assert_eq!((ended, server.count(), report.replacements()), (OK, 0, 0));
}

/// One stream is all that the server takes at a time: the second call lies in h2, the third in hyper,
/// when the connection is cut.
// TR-1, TR-9
#[tokio::test]
async fn undispatched_is_replaced() {
    let server = Server::with(None, 1, [Act::Cut, Act::Answer(Code::Ok)]).await;
    let channel = server.channel();
    let slot = ReportSlot::default();
    let client = RetryLayer::new(policy().max_attempts(1)).layer(channel);
    let mut calls = Vec::new();
    for number in 0..3 {
        let options = CallOptions::new();
        let options = if number == 2 { options.report_to(&slot) } else { options };
        let client = client.with_options(options);
        calls.push(tokio::spawn(client.oneshot(call())));
        // One after the other, and each as far as it comes.
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        while server.count() == 0 {
            tokio::task::yield_now().await;
        }
    }
    server.go_on.notify_one();
    let third = calls.pop().unwrap().await.unwrap().unwrap();
    assert_eq!(read(third, &server).await, OK);
    let report = slot.take().unwrap();
    assert_eq!((report.retries(), report.replacements()), (0, 1), "{report}");
    // That one may have been carried out, and of the one in h2 nobody can tell.
    for _ in 0..2 {
        let lost = calls.remove(0).await.unwrap().unwrap();
        assert_eq!(read(lost, &server).await, UNAVAILABLE);
    }
    assert!(server.previous().iter().all(Option::is_none));
}

// TR-1, trap 31
#[tokio::test]
async fn absent_server_is_retried_on_schedule() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let slot = ReportSlot::default();
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let throttle = throttle();
    let client = RetryLayer::new(policy().budget(throttle.clone())).layer(channel);
    let client = client.with_options(CallOptions::new().report_to(&slot));
    client.oneshot(call()).await.unwrap_err();
    let report = slot.take().unwrap();
    assert_eq!((report.attempts().len(), report.replacements()), (3, 0));
    let AttemptOutcome::Failed { failure, .. } = &report.attempts()[0].outcome else {
        panic!("{report}");
    };
    assert_eq!((failure.kind(), failure.code()), (FailureKind::Connect, Some(14)));
    assert_eq!(change(&throttle), -3000, "an ordinary UNAVAILABLE");
}

// OUT-2
#[tokio::test]
async fn lost_connection_is_unavailable() {
    for (call, streams) in [(call(), 1), (repeatable(), 2)] {
        let server = Server::start([Act::Cut, Act::Answer(Code::Ok)]).await;
        server.go_on.notify_one();
        let (_, report) = run(&server, policy(), call).await;
        assert_eq!(server.count(), streams);
        let AttemptOutcome::Failed { failure, .. } = &report.attempts()[0].outcome else {
            panic!("{report}");
        };
        assert_eq!((failure.kind(), failure.code()), (FailureKind::Network, Some(14)));
    }
}

/// With tonic's feature `server` or without it, before the headers and in the answer.
// OUT-2, trap 29
#[tokio::test]
async fn out_2_lost_is_unavailable_everywhere() {
    for (act, expected) in [
        (Act::Cut, UNAVAILABLE),
        (Act::HeadersCut, Ended::BodyError(tonic::Code::Unavailable)),
        (Act::Reset(Reason::CANCEL), Ended::Status(Code::Cancelled)),
        (Act::Reset(Reason::INTERNAL_ERROR), Ended::Status(Code::Internal)),
        (Act::HeadersReset(Reason::INTERNAL_ERROR), Ended::BodyError(tonic::Code::Internal)),
    ] {
        let server = Server::start([act]).await;
        if let Act::Cut = act {
            server.go_on.notify_one();
        }
        let (ended, _) = run(&server, policy(), call()).await;
        assert_eq!((ended, server.count()), (expected, 1), "{act:?}");
    }
}

/// A layer in a layer: what no server has answered is no refusal to the outer one, so that a call which must
/// not be carried out twice is sent once.
// OUT-2, trap 28
#[tokio::test]
async fn out_2_two_layers_send_a_lost_call_once() {
    let server = Server::start([Act::Cut]).await;
    server.go_on.notify_one();
    let inner = RetryLayer::new(policy()).layer(server.channel());
    let reply = RetryLayer::new(policy()).layer(inner).oneshot(call()).await.unwrap();
    assert_eq!((reply.headers()["grpc-status"].as_bytes(), server.count()), (&b"14"[..], 1));
}

// RET-5, TN-10
#[tokio::test]
async fn reset_before_header_has_code_of_reason() {
    let rows = [
        (Reason::NO_ERROR, 1),
        (Reason::INTERNAL_ERROR, 1),
        (Reason::CANCEL, 1),
        (Reason::PROTOCOL_ERROR, 1),
        (Reason::INADEQUATE_SECURITY, 1),
        // RESOURCE_EXHAUSTED
        (Reason::ENHANCE_YOUR_CALM, 2),
    ];
    for (reason, streams) in rows {
        let server = Server::start([Act::Reset(reason), Act::Answer(Code::Ok)]).await;
        let (_, report) = run(&server, policy(), repeatable()).await;
        assert_eq!(server.count(), streams, "{reason}: {report}");
    }
    let server = Server::start([Act::Reset(Reason::ENHANCE_YOUR_CALM)]).await;
    run(&server, policy(), call()).await;
    assert_eq!(server.count(), 1, "which it may have been served before");
}

// ST-1
#[tokio::test]
async fn trailers_only_in_one_block_or_two() {
    for act in [Act::PeekTrailers(Code::Unavailable), Act::EmptyData(Code::Unavailable)] {
        let server = Server::start([act, Act::Answer(Code::Ok)]).await;
        let (ended, _) = run(&server, policy(), call()).await;
        assert_eq!((ended, server.previous()), (OK, numbers(&[0, 1])));
    }
}

// COM-1
#[tokio::test]
async fn com_1_headers_then_trailers_commit() {
    let server = Server::start([Act::HeadersTrailers(Code::Unavailable)]).await;
    let throttle = throttle();
    let (ended, _) = run(&server, policy().budget(throttle.clone()), call()).await;
    assert_eq!((ended, server.count()), (Ended::Status(Code::Unavailable), 1));
    assert_eq!(change(&throttle), -1000, "but they cost a token");
}

// ST-5
#[tokio::test]
async fn st_5_unless_they_are_looked_at() {
    let server =
        Server::start([Act::HeadersTrailers(Code::Unavailable), Act::Answer(Code::Ok)]).await;
    let peeking = PeekTrailersLayer::new(Duration::from_secs(3600)).layer(server.channel());
    let client = RetryLayer::new(policy()).layer(peeking);
    client.oneshot(call()).await.unwrap();
    assert_eq!(server.previous(), numbers(&[0, 1]));
}

// ST-3, TN-9
#[tokio::test]
async fn end_without_status_earns_nothing() {
    let acts =
        [Act::NoStatus, Act::HeadersReset(Reason::NO_ERROR), Act::HeadersReset(Reason::CANCEL)];
    for act in acts {
        let server = Server::start([act]).await;
        let throttle = throttle();
        let (ended, _) = run(&server, policy().budget(throttle.clone()), call()).await;
        assert!(matches!(ended, Ended::NoStatus | Ended::BodyError(_)), "{act:?}: {ended:?}");
        assert_eq!(change(&throttle), 0);
    }
}

// DL-3
#[tokio::test(start_paused = true)]
async fn dl_3_server_sees_late_call_cancelled() {
    let mut server = Server::start([Act::Hang]).await;
    let channel = server.channel();
    // The clock runs on while the connection is made: that has to be done by then.
    let mut ready = channel.clone();
    ready.ready().await.unwrap();
    let client = RetryLayer::new(policy()).layer(channel);
    let mut call = call();
    call.headers_mut().insert("grpc-timeout", "60S".parse().unwrap());
    let pending = tokio::spawn(client.oneshot(call));
    while server.count() == 0 {
        tokio::task::yield_now().await;
    }
    let reply = pending.await.unwrap().unwrap();
    assert_eq!(reply.headers()["grpc-status"], "4");
    assert_eq!(server.resets.recv().await, Some(Reason::CANCEL));
}

#[tokio::test]
async fn observers_hear_of_a_replacement() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&heard);
    let policy = policy().observe(move |_: &str, event: &Event<'_>| {
        events.lock().unwrap().push(match event {
            Event::AttemptFailed { attempt, .. } => format!("attempt {attempt} failed"),
            event => event.to_string(),
        });
    });
    let server = Server::start([REFUSED, Act::Answer(Code::Ok)]).await;
    run(&server, policy, call()).await;
    let expected = ["attempt 1 failed", "attempt 1 is replaced", "succeeded on attempt 1"];
    assert_eq!(*heard.lock().unwrap(), expected);
}
