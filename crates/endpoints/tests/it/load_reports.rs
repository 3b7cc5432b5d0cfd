//! Tests of weights from load reports: their forms, hostile ones, their times, and the shares of the calls.

use std::io::Error;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, StreamBody};
use proptest::prelude::*;
use reattempt::endpoints::{Balanced, Endpoints, LoadReports, Place, Watching, seed_picks};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Body, get};
use reattempt_testing_layers::grpc::{Step, call, streaming};
use tokio::time::sleep;
use tower::{Service, ServiceExt, service_fn};

const BINARY: &str = "endpoint-load-metrics-bin";
const PREFIXED: &str = "endpoint-load-metrics";

type Frames = StreamBody<stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Error>>>>;

trait Client:
    Service<Request<Body>, Response = Response<Frames>, Error = Error, Future: Send> + Clone + Send + Sync
{
}

impl<S> Client for S where
    S: Service<Request<Body>, Response = Response<Frames>, Error = Error, Future: Send> + Clone + Send + Sync
{
}

/// Returns a client whose server takes 10 ms, and reports this.
fn server(headers: HeaderMap, trailers: HeaderMap) -> impl Client {
    service_fn(move |_: Request<Body>| {
        let frames = vec![Ok(Frame::data(Bytes::from("done"))), Ok(Frame::trailers(trailers.clone()))];
        let mut response = Response::new(StreamBody::new(stream::iter(frames)));
        response.headers_mut().clone_from(&headers);
        async {
            sleep(ms(10)).await;
            Ok(response)
        }
    })
}

fn field(name: &'static str, value: impl AsRef<[u8]>) -> HeaderMap {
    HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_bytes(value.as_ref()).unwrap())])
}

fn text(values: &str) -> HeaderMap {
    field(PREFIXED, format!("TEXT {values}"))
}

/// Encodes numbered doubles as a protobuf message.
fn message(fields: &[(u8, f64)]) -> Vec<u8> {
    fields.iter().flat_map(|(number, value)| [vec![number << 3 | 1], value.to_le_bytes().to_vec()].concat()).collect()
}

async fn send<S: Client>(client: &Watching<S>) {
    let response = client.clone().oneshot(get()).await.unwrap();
    response.into_body().collect().await.unwrap();
}

fn weight(reports: &LoadReports, key: &str) -> u32 {
    reports.place(key, Place::new().weight(7)).get_weight()
}

/// Returns the weights of a server with this report and of one whose rate is 100, and whose utilization is 1.
async fn weights(headers: HeaderMap, trailers: HeaderMap) -> (u32, u32) {
    let reports = LoadReports::new();
    let reporting = reports.watch("a", server(headers, trailers));
    let other = reports.watch("b", server(text("cpu_utilization=1,rps_fractional=100"), HeaderMap::new()));
    send(&reporting).await;
    send(&other).await;
    sleep(secs(10)).await;
    (weight(&reports, "a"), weight(&reports, "b"))
}

/// A report is read in its text form and its binary forms, from headers and from trailers. Each of these has the weight
/// 300 by gRFC A58.
// W-5
#[tokio::test(start_paused = true)]
async fn all_forms_are_read() {
    let binary = message(&[(1, 0.5), (2, 0.9), (6, 150.0)]);
    let with_others = [&[3 << 3, 0x96, 1, 4 << 3 | 2, 3, 1, 2, 3, 10 << 3 | 5, 0, 0, 0, 0], &binary[..]].concat();
    let with_errors = message(&[(1, 9.0), (6, 300.0), (7, 75.0), (9, 0.75)]);
    let encoded = |message: &[u8]| BASE64_STANDARD.encode(message);
    let forms = [
        text("cpu_utilization=0.5,rps_fractional=150"),
        text("rps_fractional: 150, mem_utilization:0.9, named_metrics.queue:3, cpu_utilization: 0.5"),
        text("application_utilization=0.5,cpu_utilization=0.9,rps_fractional=150"),
        text("application_utilization=-1,cpu_utilization=0.5,rps_fractional=150,eps=NaN"),
        text("application_utilization=inf,cpu_utilization=0.5,rps_fractional=150,eps=inf"),
        text("cpu_utilization=0.25,rps_fractional=150,eps=37.5"),
        field(BINARY, encoded(&binary)),
        field(BINARY, encoded(&binary).trim_end_matches('=')),
        field(BINARY, encoded(&with_others)),
        field(BINARY, encoded(&with_errors)),
        field(PREFIXED, format!("BIN {}", encoded(&binary))),
    ];
    for form in forms {
        assert_eq!(weights(form.clone(), HeaderMap::new()).await, (150, 50), "{form:?}");
        assert_eq!(weights(HeaderMap::new(), form.clone()).await, (150, 50), "{form:?} in trailers");
    }
}

/// A report that cannot be read, or has no utilization or no rate, is ignored, and all weights are equal.
// W-5
#[tokio::test(start_paused = true)]
async fn useless_reports_are_ignored() {
    let encoded = |message: &[u8]| BASE64_STANDARD.encode(message);
    let binary = message(&[(1, 0.5), (6, 150.0)]);
    let long = format!("cpu_utilization=0.5,rps_fractional=150,named_metrics.{}=1", "x".repeat(5000));
    let useless = [
        HeaderMap::new(),
        text(""),
        text("cpu_utilization=0.5"),
        text("rps_fractional=150"),
        text("rps_fractional=150,eps=75"),
        text("cpu_utilization=0.5,eps=1"),
        text("cpu_utilization=0.5,rps_fractional=-150"),
        text("cpu_utilization=inf,rps_fractional=150"),
        text("cpu_utilization=0.5,rps_fractional=NaN"),
        text("cpu_utilization=1e-300,rps_fractional=1e300"),
        text("cpu_utilization=1e300,rps_fractional=1e-300"),
        text("cpu_utilization=0.5,rps_fractional=many"),
        text("cpu_utilization,rps_fractional=150"),
        text(&long),
        field(PREFIXED, "cpu_utilization=0.5,rps_fractional=150"),
        field(PREFIXED, "JSON {\"cpu_utilization\": 0.5, \"rps_fractional\": 150}"),
        field(BINARY, "?"),
        field(BINARY, encoded(&binary[..binary.len() - 1])),
        field(
            BINARY,
            encoded(&[&binary[..], &[4 << 3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]].concat()),
        ),
        field(BINARY, encoded(&[&binary[..], &[0xff; 11]].concat())),
        field(BINARY, encoded(&[&binary[..], &[1 << 3 | 3]].concat())),
    ];
    for report in useless {
        assert_eq!(weights(report.clone(), HeaderMap::new()).await, (100, 100), "{report:?}");
    }
}

/// A report as a hostile server may make it: any bytes, or fields with any values.
fn hostile() -> impl Strategy<Value = HeaderMap> {
    let double = any::<u64>().prop_map(f64::from_bits);
    let fields = prop::collection::vec((1..12_u8, double), 0..6).prop_map(|fields| message(&fields));
    let bytes = prop_oneof![prop::collection::vec(any::<u8>(), 0..60), fields];
    let binary = bytes.prop_map(|message| field(BINARY, BASE64_STANDARD.encode(message)));
    let raw = prop::collection::vec(32..127_u8, 0..60).prop_map(|value| field(BINARY, value));
    let pair = (prop::sample::select(vec!["cpu_utilization", "rps_fractional", "eps", ""]), any::<u64>());
    let pairs = prop::collection::vec(pair.prop_map(|(name, bits)| format!("{name}={}", f64::from_bits(bits))), 0..5);
    let extreme =
        (-12..12, -12..12).prop_map(|(load, rate)| format!("cpu_utilization=1e{load},rps_fractional=1e{rate}"));
    let extreme = extreme.prop_map(|values| text(&values));
    prop_oneof![
        extreme,
        binary,
        raw,
        "[ -~]{0,40}".prop_map(|it| text(&it)),
        pairs.prop_map(|pairs| text(&pairs.join(",")))
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// No report makes a call fail, or gives a weight of 0 to its server or another one.
    // W-5
    #[test]
    fn hostile_reports_do_no_harm(report in hostile()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (hostile, other) = runtime.block_on(weights(report.clone(), report));
        prop_assert!(hostile > 0 && other > 0, "{} and {}", hostile, other);
    }
}

/// A weight counts from 10 s after the first report until 3 min after the last one. Then it begins again. A server
/// without a report gets the mean of the others.
// W-5
#[tokio::test(start_paused = true)]
async fn weights_count_from_10_s_to_3_min() {
    let reports = LoadReports::new();
    let weights = || ["a", "b", "c"].map(|key| weight(&reports, key));
    let client = |key, values| reports.watch(key, server(text(values), HeaderMap::new()));
    let clients =
        [client("a", "cpu_utilization=0.3,rps_fractional=100"), client("b", "cpu_utilization=0.6,rps_fractional=100")];
    for _ in 0..2 {
        for client in &clients {
            send(client).await;
        }
        sleep(secs(9)).await;
        assert_eq!(weights(), [100, 100, 100], "not yet");
        sleep(secs(1)).await;
        assert_eq!(weights(), [133, 67, 100]);
        for client in &clients {
            send(client).await;
        }
        sleep(secs(179)).await;
        assert_eq!(weights(), [133, 67, 100]);
        sleep(secs(1)).await;
        assert_eq!(weights(), [100, 100, 100], "too old");
    }
    assert_eq!(reports.place("a", Place::new().weight(0)), Place::new().weight(0), "a reserve");
    assert_eq!(reports.place("a", Place::from(3)), Place::from(3).weight(100));
}

/// Sends calls to the servers "0" and "1" for a minute, after some that warm up. Returns the share of "1".
async fn share<S: Send + Sync + 'static + Client>(client: &Balanced<Watching<S>>) -> f64 {
    for _ in 0..1200 {
        client.send(get()).await.unwrap().into_body().collect().await.unwrap();
    }
    let picks = || client.endpoints().view().iter().map(|view| view.picks as f64).collect::<Vec<_>>();
    let before = picks();
    for _ in 0..6000 {
        client.send(get()).await.unwrap().into_body().collect().await.unwrap();
    }
    let (after, view) = (picks(), client.endpoints().view());
    let of_second = view.iter().position(|view| &*view.name == "1").unwrap();
    (after[of_second] - before[of_second]) / 6000.0
}

/// A server that reports twice the utilization gets half the calls of the other one, whether a look-up finds the same
/// servers again, or a task places those of a list. Without reports, each gets half.
// W-5, W-1
#[tokio::test(start_paused = true)]
async fn twice_the_load_gets_half_the_calls() {
    seed_picks(2);
    for (report, expected) in [("cpu_utilization=0.6,rps_fractional=100", 1.0 / 3.0), ("", 0.5)] {
        let connect = |reports: &LoadReports| {
            let reports = reports.clone();
            let report = [if report.is_empty() { report } else { "cpu_utilization=0.3,rps_fractional=100" }, report];
            move |key: usize| reports.watch(&key, server(text(report[key]), HeaderMap::new()))
        };
        let (reports, placed) = (LoadReports::new(), LoadReports::new());
        let look_up = Endpoints::look_up(secs(1), || async { Ok::<_, Error>([0, 1]) }).connect(connect(&placed));
        let look_up = look_up.placed(move |key, place| placed.place(key, place)).http();
        let list = Endpoints::list([0, 1]).unwrap().connect(connect(&reports)).http();
        let endpoints = list.endpoints();
        let task = tokio::spawn(async move {
            loop {
                sleep(secs(1)).await;
                endpoints.place_again(|name, place| reports.place(name, place));
            }
        });
        for share in [share(&look_up).await, share(&list).await] {
            assert!((share - expected).abs() < 0.01, "{share} instead of {expected}");
        }
        task.abort();
    }
}

/// A gRPC server's trailer is read through a client that takes the place of a channel.
// W-5
#[tokio::test(start_paused = true)]
async fn grpc_trailers_are_read() {
    let reports = LoadReports::new();
    let watch = reports.clone();
    let connect = move |key: &'static str| {
        let mut trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), HeaderValue::from(0))]);
        let load = if key == "a" { 0.25 } else { 0.75 };
        trailers.extend(field(BINARY, BASE64_STANDARD.encode(message(&[(1, load), (6, 100.0)]))));
        let answer = move || streaming([Step::Data("a"), Step::Trailers(trailers.clone())]);
        watch.watch(key, reattempt_testing_layers::grpc::GrpcServer::at_once(move |_| answer()))
    };
    let mut client = Endpoints::list(["a", "b"]).unwrap().connect(connect).grpc();
    for _ in 0..20 {
        let response = client.ready().await.unwrap().call(call()).await.unwrap();
        assert!(response.into_body().collect().await.unwrap().trailers().unwrap().contains_key(BINARY));
    }
    sleep(secs(10)).await;
    client.endpoints().place_again(|name, place| reports.place(name, place));
    let view = client.endpoints().view();
    assert_eq!(view.iter().map(|view| (&*view.name, view.weight)).collect::<Vec<_>>(), [("a", 150), ("b", 50)]);
}

/// The response of a watched client has the head, the frames, the size and the end that its server sends.
// W-5
#[tokio::test(start_paused = true)]
async fn responses_pass_unchanged() {
    let headers = text("cpu_utilization=0.3,rps_fractional=100");
    let watched = LoadReports::new().watch("a", server(headers.clone(), field(BINARY, "?")));
    let response = watched.oneshot(get()).await.unwrap();
    assert_eq!(*response.headers(), headers);
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "done");
    assert_eq!(body.frame().await.unwrap().unwrap().into_trailers().unwrap(), field(BINARY, "?"));
    assert!(body.frame().await.is_none());

    let full = service_fn(|_: Request<Body>| async { Ok::<_, Error>(Response::new(Body::from("done"))) });
    let body = LoadReports::new().watch("a", full).oneshot(get()).await.unwrap().into_body();
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(4), false));
    let empty = service_fn(|_: Request<Body>| async { Ok::<_, Error>(Response::new(Body::default())) });
    assert!(LoadReports::new().watch("a", empty).oneshot(get()).await.unwrap().body().is_end_stream());
    let failing = service_fn(|_: Request<Body>| async { Err::<Response<Body>, _>(Error::other("lost")) });
    assert_eq!(LoadReports::new().watch("a", failing).oneshot(get()).await.unwrap_err().to_string(), "lost");
}

/// The report of a server that left is forgotten with its client, and the table does not grow.
// W-5
#[tokio::test(start_paused = true)]
async fn reports_leave_with_their_clients() {
    let reports = LoadReports::new();
    let load = || server(text("cpu_utilization=0.3,rps_fractional=100"), HeaderMap::new());
    for key in 0..10_000 {
        drop(reports.watch(&key, load()));
    }
    let shown = format!("{reports:?}");
    let servers: usize = shown.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
    assert!(servers < 10, "{shown}");

    let busy = server(text("cpu_utilization=0.6,rps_fractional=100"), HeaderMap::new());
    let (one, two) = (reports.watch("one", load()), reports.watch("two", busy));
    send(&one).await;
    send(&two).await;
    sleep(secs(10)).await;
    let clone = one.clone();
    drop(one);
    assert_eq!((weight(&reports, "one"), weight(&reports, "two")), (133, 67));
    drop(clone);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((weight(&reports, "one"), weight(&reports, "two")), (100, 100));
}

/// A key with credentials has the same report under its name, from which they are removed.
// W-5
#[tokio::test(start_paused = true)]
async fn keys_with_secrets_have_reports() {
    let reports = LoadReports::new();
    let watch = reports.clone();
    let connect = move |key: &'static str| {
        let load = if key.ends_with('1') { "0.3" } else { "0.6" };
        let values = format!("cpu_utilization={load},rps_fractional=100");
        watch.watch(key, server(text(&values), HeaderMap::new()))
    };
    let keys = ["http://me:secret@a/?token=1", "http://me:secret@a/?token=2"];
    let client = Endpoints::list(keys).unwrap().connect(connect).http();
    for _ in 0..20 {
        client.send(get()).await.unwrap();
    }
    sleep(secs(10)).await;
    assert_eq!(keys.map(|key| weight(&reports, key)), [133, 67]);
    client.endpoints().place_again(|name, place| reports.place(name, place));
    assert_eq!(client.endpoints().view().iter().map(|view| view.weight).collect::<Vec<_>>(), [133, 67]);
}
