//! Tests of a gRPC channel's backup: the bodies that it gets, and the time that it has.

use std::convert::Infallible;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use reattempt::body::{ReplayError, ReplayLimits, ReplayMemory};
use reattempt::fallback::{Backup, FallbackLayer, FellBack};
use reattempt::grpc::Grpc;
use reattempt::guard::Bulkhead;
use reattempt::standard::StandardLayer;
use reattempt::{CallOptions, Deadline, RetryLayer, RetryPolicy};
use reattempt_grpc::{Code, parse_grpc_timeout};
use reattempt_testing_layers::calls::{With, ms};
use reattempt_testing_layers::grpc::{
    Answer, GrpcServer, Lost, Step, call, call_within, ends_with, lost, policy, status, streaming, trailers_only,
    unmarked,
};
use reattempt_testing_layers::guard::timeless;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tonic::body::Body;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tower::{Layer, Service, service_fn};

type Call = Request<Body>;

/// A server's read bodies, and its responses in order; the last one is repeated.
#[derive(Clone)]
struct Reader {
    read: Arc<Mutex<Vec<Bytes>>>,
    answers: Arc<[fn() -> Answer]>,
}

impl Reader {
    fn new(answers: impl Into<Arc<[fn() -> Answer]>>) -> Self {
        Self { read: Arc::default(), answers: answers.into() }
    }

    /// Returns the server as a service, which reads each body to its end.
    fn service(
        &self,
    ) -> impl Service<Call, Response = Answer, Error = Infallible, Future: Send> + Clone + Send + use<> {
        let this = self.clone();
        service_fn(move |call: Call| {
            let this = this.clone();
            async move {
                // It responds even if the body fails.
                let body = call.into_body().collect().await;
                let mut read = this.read.lock().unwrap();
                read.push(body.map(|body| body.to_bytes()).unwrap_or_default());
                let number = read.len().min(this.answers.len());
                Ok(this.answers[number - 1]())
            }
        })
    }

    fn read(&self) -> Vec<Bytes> {
        self.read.lock().unwrap().clone()
    }
}

fn unavailable() -> Answer {
    trailers_only(Code::Unavailable)
}

/// A `HealthCheckResponse`: SERVING.
fn serving() -> Answer {
    streaming([Step::Data("\0\0\0\0\x02\x08\x01"), Step::Trailers(status(Code::Ok))])
}

fn repeatable() -> CallOptions {
    CallOptions::new().repeatable(true)
}

/// Returns a call whose body is a stream of these frames, each after 10 ms.
fn streamed(frames: &[Result<&'static str, &'static str>]) -> Call {
    let frames: Vec<_> = frames.to_vec();
    let frames = stream::unfold(frames.into_iter(), |mut frames| async {
        let frame = frames.next()?;
        sleep(ms(10)).await;
        let frame = frame.map(|data| Frame::data(Bytes::from_static(data.as_bytes())));
        Some((frame.map_err(tonic::Status::cancelled), frames))
    });
    call().map(|_| Body::new(StreamBody::new(frames))).with(repeatable())
}

fn fell_back<B>(answer: &Response<B>) -> bool {
    answer.extensions().get::<FellBack>().is_some()
}

/// The client and its backup both retry. The message is encoded once and sent five times.
#[tokio::test(start_paused = true)]
async fn generated_client_has_a_backup() {
    let server = Reader::new([unavailable as fn() -> Answer]);
    let backup = Reader::new([unavailable as fn() -> Answer, serving]);
    let retries = RetryLayer::new(policy(0));
    let channel = FallbackLayer::grpc_backup(retries.layer(backup.service())).layer(retries.layer(server.service()));
    let mut client = HealthClient::new(channel);
    let check = || {
        let message = HealthCheckRequest { service: "stock".to_owned() };
        let mut check = tonic::Request::new(message);
        check.extensions_mut().insert(repeatable());
        check
    };
    let answer = client.check(check()).await.unwrap();
    let mark = answer.extensions().get::<FellBack>().unwrap();
    assert_eq!(mark.failed().outcome().unwrap().headers["grpc-status"], "14");
    assert_eq!(answer.get_ref().status(), ServingStatus::Serving);
    let message = &b"\0\0\0\0\x07\x0a\x05stock"[..];
    assert_eq!((server.read(), backup.read()), (vec![message.into(); 3], vec![message.into(); 2]));
}

/// Neither server prevents the other from reading the stream, and each attempt reads all of it.
#[tokio::test(start_paused = true)]
async fn grpc_backup_gets_the_whole_stream() {
    for retried in [false, true] {
        let attempts = if retried { 3 } else { 1 };
        let server = Reader::new([unavailable as fn() -> Answer]);
        let backup = Reader::new([serving as fn() -> Answer]);
        let retries = RetryLayer::new(policy(0).max_attempts(attempts));
        let client = FallbackLayer::grpc_backup(retries.layer(backup.service())).layer(retries.layer(server.service()));
        let answer = client.send(streamed(&[Ok("one "), Ok("two "), Ok("three")])).await.unwrap();
        assert!(fell_back(&answer));
        let body = Bytes::from_static(b"one two three");
        let reads = (vec![body.clone(); attempts as usize], vec![body]);
        assert_eq!((server.read(), backup.read()), reads);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_body_has_no_grpc_backup() {
    for (limit, last, backed) in [
        (256, Ok("end"), true),
        // The body is longer than the limit.
        (4, Ok("end"), false),
        (0, Ok("end"), false),
        // The caller's own body fails.
        (256, Err("own"), false),
    ] {
        let server = Reader::new([unavailable as fn() -> Answer]);
        let backup = Reader::new([serving as fn() -> Answer]);
        let grpc = Grpc::new().replay(ReplayLimits::default().per_call(limit));
        let client = FallbackLayer::with(grpc, Backup::new(backup.service()));
        let client = client.layer(server.service());
        let answer = client.send(streamed(&[Ok("begin "), last])).await.unwrap();
        let own = answer.headers().get("grpc-status").map(|code| code.as_bytes() == b"14");
        assert_eq!((fell_back(&answer), own), (backed, (!backed).then_some(true)), "{limit}");
        assert_eq!(backup.read().len(), usize::from(backed), "{limit}");
    }
}

/// The first server has responded before the end of the stream, and continues to read.
#[tokio::test(start_paused = true)]
async fn grpc_backup_ends_the_first_upload() {
    let (first, mut uploads) = mpsc::unbounded_channel();
    let server = service_fn(move |call: Call| {
        let first = first.clone();
        async move {
            let mut body = call.into_body();
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "one ");
            first.send(body).unwrap();
            Ok::<_, Infallible>(unavailable())
        }
    });
    let backup = Reader::new([serving as fn() -> Answer]);
    let client = FallbackLayer::grpc_backup(backup.service()).layer(server);
    let answer = client.send(streamed(&[Ok("one "), Ok("two")])).await.unwrap();
    assert!(fell_back(&answer));
    assert_eq!(backup.read(), ["one two"]);
    let rest = timeout(ms(1000), uploads.try_recv().unwrap().frame()).await.unwrap().unwrap();
    let error = rest.unwrap_err();
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    assert!(matches!(cause, Some(ReplayError::Superseded)), "{error:?}");
}

/// The deadline comes from the header, an extension or the options.
#[tokio::test(start_paused = true)]
async fn grpc_backup_is_given_the_time_left() {
    for (field, extension, option, left) in [
        (Some("1S"), None, None, Some(600)),
        (None, Some(900), None, Some(500)),
        (None, None, Some(800), Some(400)),
        (Some("1S"), Some(900), Some(800), Some(400)),
        (None, None, None, None),
    ] {
        let deadline = |after: Option<u64>| after.map(|after| Deadline::after(ms(after)));
        let mut call = field.map_or_else(call, call_within);
        if let Some(deadline) = deadline(extension) {
            call = call.with(deadline);
        }
        let mut options = repeatable();
        if let Some(deadline) = deadline(option) {
            options = options.deadline(deadline);
        }
        let server = GrpcServer::by(|_| (400, Ok(unavailable())));
        let backup = GrpcServer::at_once(|_| ends_with(Code::Ok));
        let client = FallbackLayer::grpc_backup(backup.clone()).layer(server);
        assert!(fell_back(&client.send(call.with(options)).await.unwrap()));
        let field = backup.fields("grpc-timeout").remove(0);
        let field = field.and_then(|field| parse_grpc_timeout(field.as_bytes()));
        assert_eq!(field.map(|time| time.as_millis()), left);
    }
}

/// If a server hangs, the retry layer responds when no time is left for a backup.
#[tokio::test(start_paused = true)]
async fn grpc_backup_is_not_called_too_late() {
    let server = GrpcServer::by(|_| (60_000, Ok(unavailable())));
    let backup = GrpcServer::at_once(|_| ends_with(Code::Ok));
    let retries = RetryLayer::new(policy(0));
    let client = FallbackLayer::grpc_backup(retries.layer(backup.clone()));
    let client = client.layer(retries.layer(server));
    let began = Instant::now();
    let answer = client.send(call_within("300m").with(repeatable())).await.unwrap();
    assert_eq!((began.elapsed(), backup.count()), (ms(300), 0));
    assert_eq!(answer.headers()["grpc-status"], "4");
}

/// A call that a breaker refuses was not sent, so the backup needs no permission.
// G7
#[tokio::test(start_paused = true)]
async fn open_breaker_leads_to_the_grpc_backup() {
    let stack = || {
        let breaker = timeless().seed(1).consecutive_failures(3);
        let stack = StandardLayer::grpc().retry(RetryPolicy::grpc().seed(1));
        stack.limits(breaker, Bulkhead::new(64))
    };
    let server = Reader::new([(|| trailers_only(Code::Internal)) as fn() -> Answer]);
    let backup = Reader::new([serving as fn() -> Answer]);
    let layer = FallbackLayer::grpc_backup(stack().layer(backup.service()));
    let client = stack().fallback(layer).layer(server.service());
    for number in 0..6 {
        let mut call = streamed(&[Ok("one "), Ok("two")]);
        call.extensions_mut().clear();
        assert_eq!(fell_back(&client.send(call).await.unwrap()), number >= 3, "{number}");
    }
    assert_eq!((server.read(), backup.read()), (vec![Bytes::from("one two"); 3], server.read()));
}

/// The future still exists, but once the head has arrived no backup can be called.
#[tokio::test(start_paused = true)]
async fn head_ends_the_keeping_of_the_body() {
    let (first, mut uploads) = mpsc::unbounded_channel();
    let server = service_fn(move |call: Call| {
        let first = first.clone();
        async move {
            first.send(call.into_body()).unwrap();
            Ok::<_, Infallible>(serving())
        }
    });
    let memory = ReplayMemory::new(1024 * 1024);
    let grpc = Grpc::new().replay(ReplayLimits::default().memory(memory.clone()));
    let backup = Backup::new(GrpcServer::at_once(|_| serving()));
    let mut client = FallbackLayer::with(grpc, backup).layer(server);
    let mut call = std::pin::pin!(client.call(streamed(&[Ok("one "), Ok("two")])));
    assert!(!fell_back(&call.as_mut().await.unwrap()));
    let mut upload = uploads.try_recv().unwrap();
    while let Some(frame) = upload.frame().await {
        frame.unwrap();
        assert_eq!(memory.used(), 0);
    }
}

/// The backup may have carried out the call, so its outcome is the call's, and is not proof for a retry layer around
/// both.
// trap 49
#[tokio::test(start_paused = true)]
async fn outcome_of_a_grpc_backup_is_no_proof() {
    let answers: [fn() -> Result<Answer, Lost>; 3] = [
        || Ok(unavailable()),
        || Err(lost(io::Error::from(ErrorKind::ConnectionReset))),
        || Err(lost(io::Error::from(ErrorKind::ConnectionRefused))),
    ];
    for (answer, options, attempts) in
        answers.into_iter().flat_map(|answer| [(answer, CallOptions::new(), 1), (answer, repeatable(), 3)])
    {
        let server = GrpcServer::by(|_| (0, Err(lost(io::Error::from(ErrorKind::ConnectionRefused)))));
        let backup = GrpcServer::by(move |_| (0, answer()));
        let below = FallbackLayer::grpc_backup(backup.clone()).layer(server.clone());
        let client = RetryLayer::new(unmarked(0).boxed_errors()).layer(below);
        let answer = client.send(call().with(options)).await;
        assert_eq!((server.count(), backup.count()), (attempts, attempts), "{answer:?}");
    }
}

// trap 49
#[tokio::test(start_paused = true)]
async fn grpc_backup_ends_at_the_deadline() {
    let server = GrpcServer::at_once(|_| unavailable());
    let backup = GrpcServer::by(|_| (60_000, Ok(unavailable())));
    let client = FallbackLayer::grpc_backup(backup).layer(server);
    let began = Instant::now();
    let call = call().with(Deadline::after(ms(300))).with(repeatable());
    let error = client.send(call).await.unwrap_err();
    assert_eq!(began.elapsed(), ms(300));
    assert_eq!(tonic::Status::from_error(error).code(), tonic::Code::DeadlineExceeded);
}
