//! Tests of the header with the time left, which each attempt of a call with a deadline carries.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, HeaderName, Request, Response};
use reattempt::deadline::{DeadlineHeader, InboundDeadlineLayer};
use reattempt::endpoints::Endpoints;
use reattempt::guard::{GuardLayer, Limit, RateLimit};
use reattempt::hedge::HedgePolicy;
use reattempt::retry::AttemptContext;
use reattempt::standard::StandardLayer;
use reattempt::{Deadline, ReplayBody, RetryLayer};
use tokio::time::{advance, sleep};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::calls::support::{Act, Body, Server, With, get, ms, options, policy, post};

const NAME: &str = "x-envoy-expected-rq-timeout-ms";

fn told(server: &Server) -> Vec<Option<String>> {
    server.seen().iter().map(|seen| seen.header(NAME).map(str::to_owned)).collect()
}

fn texts<const N: usize>(values: [&str; N]) -> Vec<Option<String>> {
    values.map(|value| Some(value.to_owned())).to_vec()
}

/// Returns a server that fails 50 ms after each arrival.
fn failing() -> Server {
    Server::by(|_, _| Act::from(503).later(ms(50)))
}

// DL-2
#[tokio::test(start_paused = true)]
async fn each_attempt_has_what_is_left() {
    let server = failing();
    let client = RetryLayer::new(policy().deadline_header(DeadlineHeader::envoy())).layer(server.clone());
    client.oneshot(get().with(Deadline::after(Duration::from_micros(1_000_900)))).await.unwrap();
    assert_eq!(told(&server), texts(["1000", "850", "700"]));
}

/// The deadline of options and of a standard stack is written, too, and that of a POST, which is not retried.
// DL-2
#[tokio::test(start_paused = true)]
async fn every_source_of_a_deadline_counts() {
    let policy = policy().deadline_header(DeadlineHeader::envoy());
    let server = failing();
    let client = RetryLayer::new(policy.clone()).layer(server.clone());
    client.clone().oneshot(get().with(options().deadline(Deadline::after(ms(200))))).await.unwrap();
    client.clone().oneshot(post().with(Deadline::after(ms(200)))).await.unwrap();
    let forbidden = client.with_options(options().never_retry());
    forbidden.oneshot(get().with(Deadline::after(ms(200)))).await.unwrap();
    assert_eq!(told(&server), texts(["200", "50", "200", "200"]));

    let server = failing();
    let stack = StandardLayer::http().retry(policy.boxed_errors()).total_time(ms(400)).layer(server.clone());
    stack.oneshot(get()).await.unwrap();
    assert_eq!(told(&server), texts(["400", "250", "100"]));
}

/// Without a deadline or without the setting, nothing is added.
#[tokio::test(start_paused = true)]
async fn no_deadline_adds_no_header() {
    let server = failing();
    let client = RetryLayer::new(policy().deadline_header(DeadlineHeader::envoy())).layer(server.clone());
    client.oneshot(get()).await.unwrap();
    RetryLayer::new(policy()).layer(server.clone()).oneshot(get().with(Deadline::after(ms(999)))).await.unwrap();
    assert_eq!(told(&server), [None, None, None, None, None, None]);
}

/// The caller's own header is a deadline of the call. Only the earliest applies.
// DL-1, DL-2
#[tokio::test(start_paused = true)]
async fn longer_header_is_replaced() {
    let policy = || policy().deadline_header(DeadlineHeader::envoy());
    let rows: [(&'static str, Option<u64>, [&str; 2]); 5] = [
        ("900", Some(400), ["400", "250"]),
        ("400", Some(900), ["400", "250"]),
        ("400", None, ["400", "250"]),
        ("never", Some(400), ["400", "250"]),
        ("99999999999999999999", Some(400), ["400", "250"]),
    ];
    for (own, deadline, expected) in rows {
        let server = Server::by(|arrival, _| Act::from(if arrival == 1 { 503 } else { 200 }).later(ms(50)));
        let mut call = get().header(NAME, own);
        if let Some(deadline) = deadline {
            call = call.with(Deadline::after(ms(deadline)));
        }
        RetryLayer::new(policy()).layer(server.clone()).oneshot(call).await.unwrap();
        assert_eq!(told(&server), texts(expected), "{own} {deadline:?}");
    }
}

// DL-2
#[tokio::test(start_paused = true)]
async fn hook_takes_time_off_the_header() {
    let server = failing();
    let slow = policy()
        .max_attempts(2)
        .deadline_header(DeadlineHeader::envoy())
        .before_attempt(|_: &mut http::request::Parts, _: AttemptContext| Box::pin(sleep(ms(100))));
    RetryLayer::new(slow).layer(server.clone()).oneshot(get().with(Deadline::after(ms(600)))).await.unwrap();
    assert_eq!(told(&server), texts(["500", "250"]));
}

// DL-2
#[tokio::test(start_paused = true)]
async fn hedges_have_what_is_left() {
    let server = Server::by(|_, _| Act::from(200).later(ms(250)));
    let policy = HedgePolicy::http().max_attempts(3).delay(ms(100)).deadline_header(DeadlineHeader::envoy());
    policy.layer(server.clone()).oneshot(get().with(Deadline::after(ms(900)))).await.unwrap();
    assert_eq!(told(&server), texts(["900", "800", "700"]));
}

/// Each attempt goes to another endpoint.
// DL-2
#[tokio::test(start_paused = true)]
async fn endpoints_get_what_is_left() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&told);
    let connect = move |name: &str| {
        let (log, name) = (Arc::clone(&log), name.to_owned());
        service_fn(move |request: Request<ReplayBody<Body>>| {
            log.lock().unwrap().push((name.clone(), request.headers()[NAME].to_str().unwrap().to_owned()));
            let failure = Response::builder().status(503).body(Body::default()).unwrap();
            async {
                sleep(ms(50)).await;
                Ok::<_, Infallible>(failure)
            }
        })
    };
    let endpoints = Endpoints::list(["one", "two", "three"]).unwrap().connect(connect).http();
    let policy = policy().deadline_header(DeadlineHeader::envoy()).boxed_errors();
    RetryLayer::new(policy).layer(endpoints).oneshot(get().with(Deadline::after(ms(1000)))).await.unwrap();
    let (names, told): (BTreeSet<_>, Vec<_>) = told.lock().unwrap().drain(..).unzip();
    assert_eq!((names.len(), told), (3, ["1000", "850", "700"].map(str::to_owned).to_vec()));
}

/// An attempt that has waited for a guard is sent with what is left then.
// DL-2
#[tokio::test(start_paused = true)]
async fn wait_for_a_guard_is_taken_off() {
    let server = Server::statuses([200]);
    let policy = policy().deadline_header(DeadlineHeader::envoy()).boxed_errors();
    let limit = RateLimit::new(Limit::every(ms(300)), 1);
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(policy.clone()))
        .layer(GuardLayer::http(limit).protocol(|_| policy.protocol_ref().clone()))
        .service(server.clone());
    stack.clone().oneshot(get()).await.unwrap();
    stack.clone().oneshot(get().with(Deadline::after(ms(1000)))).await.unwrap();
    stack.oneshot(get()).await.unwrap();
    assert_eq!(told(&server), [None, Some("700".to_owned()), None]);
}

fn written(header: &DeadlineHeader, left: Duration) -> Option<String> {
    let mut headers = HeaderMap::new();
    headers.append(header.name(), "7".parse().unwrap());
    headers.append(header.name(), "8".parse().unwrap());
    header.write(&mut headers, Deadline::after(left));
    assert!(headers.len() <= 1, "former values are replaced: {headers:?}");
    headers.get(header.name()).map(|value| value.to_str().unwrap().to_owned())
}

fn formats() -> [DeadlineHeader; 3] {
    let name = || HeaderName::from_static("request-timeout");
    [DeadlineHeader::envoy(), DeadlineHeader::seconds(name()), DeadlineHeader::decimal_seconds(name())]
}

/// No value is longer than the time left. A value of zero would mean "no limit" to some servers.
#[tokio::test(start_paused = true)]
async fn time_left_is_rounded_down() {
    let (nothing, second) = (Duration::ZERO, Duration::from_secs(1));
    let rows = [
        (nothing, [None, None, None]),
        (Duration::from_nanos(999_999), [None, None, None]),
        (ms(1), [Some("1"), None, Some("0.001")]),
        (Duration::from_micros(999_999), [Some("999"), None, Some("0.999")]),
        (second, [Some("1000"), Some("1"), Some("1.000")]),
        (Duration::from_nanos(2_999_999_999), [Some("2999"), Some("2"), Some("2.999")]),
        (Duration::MAX, [Some("9999999999"), Some("946080000"), Some("946080000.000")]),
    ];
    for (left, expected) in rows {
        let values = formats().map(|header| written(&header, left));
        assert_eq!(values, expected.map(|value| value.map(str::to_owned)), "{left:?}");
    }
}

/// A header never extends a deadline, whatever its bytes.
// DL-1, DL-9
#[tokio::test(start_paused = true)]
async fn inbound_values_are_read_strictly() {
    let rows: [(&[u8], [Option<Duration>; 3]); 14] = [
        (b"0", [Some(ms(0)), Some(ms(0)), Some(ms(0))]),
        (b"2", [Some(ms(2)), Some(ms(2000)), Some(ms(2000))]),
        (b"1.5", [None, Some(ms(1500)), Some(ms(1500))]),
        (b"0.0000000019", [None, Some(Duration::from_nanos(1)), Some(Duration::from_nanos(1))]),
        (b"", [None; 3]),
        (b".", [None; 3]),
        (b"1.", [None; 3]),
        (b".5", [None; 3]),
        (b"1.5.0", [None; 3]),
        (b"+1", [None; 3]),
        (b"-1", [None; 3]),
        (b"1s", [None; 3]),
        (b"\xc2\xb2", [None; 3]),
        (&[b'9'; 100_000], [None; 3]),
    ];
    for (value, expected) in rows {
        let read = formats().map(|header| {
            let mut inbound = Request::new(());
            inbound.headers_mut().insert(header.name(), value.try_into().unwrap());
            header.read(inbound.headers()).map(|deadline| deadline.remaining())
        });
        assert_eq!(read, expected, "{:?}", String::from_utf8_lossy(value));
    }
    let longest = HeaderMap::from_iter([(HeaderName::from_static(NAME), u64::MAX.into())]);
    assert!(DeadlineHeader::envoy().read(&longest).is_some());
}

/// The deadline of an outer layer is kept if it is earlier.
// DL-1
#[tokio::test(start_paused = true)]
async fn inbound_header_only_shortens() {
    let server = InboundDeadlineLayer::new(DeadlineHeader::envoy()).layer(service_fn(async |inbound: Request<()>| {
        Ok::<_, Infallible>(inbound.extensions().get::<Deadline>().map(Deadline::remaining))
    }));
    for (own, header, expected) in [
        (None, None, None),
        (None, Some("100"), Some(ms(100))),
        (Some(50), Some("100"), Some(ms(50))),
        (Some(500), Some("100"), Some(ms(100))),
        (Some(500), Some("soon"), Some(ms(500))),
    ] {
        let mut inbound = Request::new(());
        inbound.extensions_mut().extend(
            own.map(|own| {
                let mut extensions = http::Extensions::new();
                extensions.insert(Deadline::after(ms(own)));
                extensions
            })
            .unwrap_or_default(),
        );
        if let Some(header) = header {
            inbound.headers_mut().insert(NAME, header.parse().unwrap());
        }
        assert_eq!(server.clone().oneshot(inbound).await.unwrap(), expected);
        advance(ms(1)).await;
    }
}
