//! Tests of a deadline with two timers, the layer's and the channel's. Code, budget, report and metrics are the same,
//! whichever fires first.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use reattempt::grpc::service_config::ServiceConfigLayer;
use reattempt::observe::Event;
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, RetryLayer};
use reattempt_grpc::{Code, RetryThrottle, ServiceConfig, ServiceConfigHandle};
use reattempt_testing_layers::grpc::{
    GrpcServer, Step, call, change, lost, ms, policy, read, streaming, throttle, trailers_only, with,
};
use reattempt_testing_layers::metrics::Reader;
use tokio::time::{Instant, sleep};
use tonic::body::Body;
use tower::{BoxError, ServiceBuilder, ServiceExt};

const DEADLINE: u64 = 250;

/// The timer that ends the attempts in flight around the deadline.
#[derive(Debug, Clone, Copy)]
enum First {
    /// The layer's timer.
    Layer,
    /// The channel's timer, at this time.
    Channel(u64),
    /// The server's timer for the same header, as in a tonic server, at this time.
    Server(u64),
}

/// The policy that retries the calls.
#[derive(Debug, Clone, Copy)]
enum Policy {
    Plain,
    Boxed,
    /// A service config whose policy lists these codes.
    Retried(&'static str),
    Hedged(&'static str),
    /// A service config without a policy for the method.
    Empty,
}

const POLICIES: [Policy; 14] = [
    Policy::Plain,
    Policy::Boxed,
    Policy::Empty,
    Policy::Retried(r#"["ABORTED"]"#),
    Policy::Retried(r#"["UNAVAILABLE"]"#),
    Policy::Retried(r#"["CANCELLED"]"#),
    Policy::Retried(r#"["DEADLINE_EXCEEDED"]"#),
    Policy::Retried(r#"["UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED", "UNKNOWN"]"#),
    Policy::Hedged("[]"),
    Policy::Hedged(r#"["ABORTED"]"#),
    Policy::Hedged(r#"["UNAVAILABLE"]"#),
    Policy::Hedged(r#"["CANCELLED"]"#),
    Policy::Hedged(r#"["DEADLINE_EXCEEDED"]"#),
    Policy::Hedged(r#"["UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED", "UNKNOWN"]"#),
];

impl Policy {
    /// Returns `true` if an UNAVAILABLE first attempt is followed by a second one.
    fn retries_unavailable(self) -> bool {
        match self {
            Policy::Plain | Policy::Boxed => true,
            Policy::Retried(codes) => codes.contains("UNAVAILABLE"),
            Policy::Hedged(_) | Policy::Empty => false,
        }
    }
}

fn document(policy: Policy) -> ServiceConfig {
    let policy = match policy {
        Policy::Retried(codes) => format!(
            r#", "retryPolicy": {{"maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "0.001s",
            "backoffMultiplier": 1, "retryableStatusCodes": {codes}}}"#
        ),
        Policy::Hedged(codes) => format!(
            r#", "hedgingPolicy": {{"maxAttempts": 3, "hedgingDelay": "0.05s",
            "nonFatalStatusCodes": {codes}}}"#
        ),
        _ => String::new(),
    };
    let text = format!(
        r#"{{"methodConfig": [{{"name": [{{}}]{policy}}}],
        "retryThrottling": {{"maxTokens": 10, "tokenRatio": 0.1}}}}"#
    );
    ServiceConfig::parse(&text).unwrap()
}

/// Everything that must be the same.
#[derive(Debug, PartialEq, Eq)]
struct Observed {
    code: Option<Code>,
    attempts: usize,
    tokens: i64,
    events: Vec<String>,
    report: Option<String>,
    measured: [Vec<(String, u64)>; 2],
}

/// Returns a request with one message, or with a stream that continues.
fn request(streamed: bool, timeout: u64, options: CallOptions) -> Request<Body> {
    let mut request = call();
    if streamed {
        let frames = stream::unfold((), |()| async {
            sleep(ms(100)).await;
            Some((Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"message"))), ()))
        });
        *request.body_mut() = Body::new(StreamBody::new(Box::pin(frames)));
    }
    request.headers_mut().insert("grpc-timeout", format!("{timeout}m").parse().unwrap());
    request.extensions_mut().insert(options.repeatable(true));
    request
}

/// Calls a server whose attempts from number `attempt` on are in flight when the time is over.
async fn observe(policy: Policy, first: First, attempt: usize, streamed: bool) -> Observed {
    let began = Instant::now();
    let server = GrpcServer::by(move |number| {
        let passed = u64::try_from(began.elapsed().as_millis()).unwrap();
        if number < attempt {
            return (10, Ok(with(trailers_only(Code::Unavailable), "grpc-retry-pushback-ms", "20")));
        }
        match first {
            First::Layer => (600_000, Ok(trailers_only(Code::Ok))),
            First::Channel(at) => (at - passed, Err(lost(tonic::TimeoutExpired(())))),
            First::Server(at) => {
                let answer = with(trailers_only(Code::Cancelled), "grpc-message", "Timeout expired");
                (at - passed, Ok(answer))
            }
        }
    });
    let events = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&events);
    let note = move |_: &str, event: &Event<'_>| {
        noted.lock().unwrap().push(at_the_deadline(&format!("{event:?}")));
    };
    let (slot, reader) = (ReportSlot::default(), Reader::new());
    let request = request(streamed, DEADLINE, CallOptions::new().report_to(&slot));
    let (code, tokens) = match policy {
        Policy::Plain => {
            let throttle = throttle();
            let layer = RetryLayer::new(plain().budget(throttle.clone()).observe(note));
            let client = ServiceBuilder::new().layer(reader.metrics().around(layer));
            let reply = client.service(server.clone()).oneshot(request).await;
            (code_of(reply).await, change(&throttle))
        }
        Policy::Boxed => {
            let throttle = throttle();
            let layer = plain().budget(throttle.clone()).observe(note).boxed_errors();
            let metrics = reader.metrics().boxed_errors();
            let client = ServiceBuilder::new().layer(metrics.around(RetryLayer::new(layer)));
            let reply = client.service(server.clone()).oneshot(request).await;
            (code_of(reply).await, change(&throttle))
        }
        _ => {
            let handle = ServiceConfigHandle::new(document(policy));
            let throttle: RetryThrottle = handle.throttle().clone();
            throttle.failed();
            let noted = note.clone();
            let layer = ServiceConfigLayer::new(handle)
                .retries(|policy| policy.observe(note))
                .hedges(|policy| policy.observe(noted));
            let client = ServiceBuilder::new().layer(reader.metrics().around(layer));
            let reply = client.service(server.clone()).oneshot(request).await;
            (code_of(reply).await, change(&throttle))
        }
    };
    let report = slot.take().map(|report| {
        let attempts = report
            .attempts()
            .iter()
            .map(|one| format!("{} {}", one.number, at_the_deadline(&format!("{:?}", one.outcome))));
        format!("{:?} {:?}", report.stop_reason(), attempts.collect::<Vec<_>>())
    });
    let measured = ["attempt.duration", "call.duration"].map(|name| {
        let lines = reader.of(name).into_iter();
        lines.map(|(status, count, _)| (status, count)).collect()
    });
    let events = std::mem::take(&mut *events.lock().unwrap());
    Observed { code, attempts: server.count(), tokens, events, report, measured }
}

/// Returns the text with the time at which this side's timer would have fired.
fn at_the_deadline(text: &str) -> String {
    text.replace("249ms", "250ms").replace("219ms", "220ms").replace("189ms", "190ms")
}

fn plain() -> reattempt::RetryPolicy<reattempt::grpc::Grpc, reattempt_schedule_fixed::Constant> {
    policy(1)
}

async fn code_of<B, E>(reply: Result<Response<B>, E>) -> Option<Code>
where
    B: http_body::Body<Data = Bytes>,
    E: Into<BoxError>,
{
    match reply {
        Ok(reply) => read(reply).await.0,
        Err(error) => Some(of_error(error.into())),
    }
}

/// Returns the code into which a generated client converts an error.
fn of_error(error: BoxError) -> Code {
    let code = tonic::Status::from_error(error).code();
    Code::from_number(i32::from(code).unsigned_abs())
}

// TN-4, trap 44
#[tokio::test(start_paused = true)]
async fn tn_4_deadline_is_one_whoever_is_first() {
    for policy in POLICIES {
        for (attempt, streamed) in [(1, false), (1, true), (2, false), (3, true)] {
            if attempt > 1 && !policy.retries_unavailable() {
                continue;
            }
            let expected = observe(policy, First::Layer, attempt, streamed).await;
            assert_eq!(expected.code, Some(Code::DeadlineExceeded), "{policy:?}");
            for first in [First::Channel, First::Server] {
                for at in [DEADLINE - 1, DEADLINE, DEADLINE + 1] {
                    let first = first(at);
                    let mut observed = observe(policy, first, attempt, streamed).await;
                    if let First::Server(_) = first {
                        // Its attempts have ended as the server reports.
                        observed.measured[0].clone_from(&expected.measured[0]);
                    }
                    assert_eq!(observed, expected, "{policy:?} {first:?} {attempt} {streamed}");
                }
            }
        }
    }
}

/// If `Endpoint::timeout` is shorter than the deadline, or there is none, classification, caller and metrics get
/// DEADLINE_EXCEEDED.
// TN-4
#[tokio::test(start_paused = true)]
async fn tn_4_endpoint_timeout_has_one_code() {
    // (policy, attempts)
    let rows = [
        (Policy::Plain, 3),
        (Policy::Boxed, 3),
        (Policy::Empty, 1),
        (Policy::Retried(r#"["UNAVAILABLE", "CANCELLED", "UNKNOWN"]"#), 1),
        (Policy::Retried(r#"["DEADLINE_EXCEEDED"]"#), 4),
        (Policy::Hedged(r#"["UNAVAILABLE", "CANCELLED", "UNKNOWN"]"#), 1),
        (Policy::Hedged(r#"["DEADLINE_EXCEEDED"]"#), 3),
    ];
    for (policy, attempts) in rows {
        let server = GrpcServer::by(move |_| (20, Err(lost(tonic::TimeoutExpired(())))));
        let reader = Reader::new();
        let request = request(false, 60_000, CallOptions::new());
        let code = match policy {
            Policy::Plain => {
                let layer = reader.metrics().around(RetryLayer::new(plain()));
                let client = ServiceBuilder::new().layer(layer).service(server.clone());
                code_of(client.oneshot(request).await).await
            }
            Policy::Boxed => {
                let metrics = reader.metrics().boxed_errors();
                let layer = metrics.around(RetryLayer::new(plain().boxed_errors()));
                let client = ServiceBuilder::new().layer(layer).service(server.clone());
                code_of(client.oneshot(request).await).await
            }
            _ => {
                let layer = reader.metrics().around(ServiceConfigLayer::new(document(policy)));
                let client = ServiceBuilder::new().layer(layer).service(server.clone());
                code_of(client.oneshot(request).await).await
            }
        };
        assert_eq!(code, Some(Code::DeadlineExceeded), "{policy:?}");
        assert_eq!(server.count(), attempts, "{policy:?}");
        assert_eq!(reader.labels("grpc.status"), ["DEADLINE_EXCEEDED", "none"], "{policy:?}");
    }
}

/// However a response ends at its deadline without a status, the deadline has ended it.
// TN-4
#[tokio::test(start_paused = true)]
async fn tn_4_body_broken_at_its_deadline() {
    let ends: [fn() -> Vec<Step>; 3] = [
        || vec![Step::Data("a"), Step::Hang],
        || {
            let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
            vec![Step::Data("a"), Step::Wait(DEADLINE), Step::Fail(reset.into())]
        },
        // hyper ends a body this way if the server has cancelled its stream.
        || vec![Step::Data("a"), Step::Wait(DEADLINE)],
    ];
    for end in ends {
        let (throttle, reader) = (throttle(), Reader::new());
        let server = GrpcServer::at_once(move |_| streaming(end()));
        let layer = RetryLayer::new(plain().budget(throttle.clone()));
        let client = ServiceBuilder::new().layer(reader.metrics().around(layer)).service(server);
        let reply = client.oneshot(request(false, DEADLINE, CallOptions::new())).await.unwrap();
        assert_eq!(read(reply).await, (Some(Code::DeadlineExceeded), "a".to_owned()));
        assert_eq!(change(&throttle), 0, "no server has answered so");
        let [(code, 1, _)] = &reader.of("call.duration")[..] else { panic!("one call") };
        assert_eq!(code, "DEADLINE_EXCEEDED");
    }
}
