//! Tests that a call has a defined outcome whatever fields a server sends. It ends after the allowed number of
//! attempts, with the last response, in a form that a client can read.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body_util::BodyExt;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use reattempt::grpc::Grpc;
use reattempt::grpc::peek_trailers::PeekTrailersLayer;
use reattempt::grpc::service_config::ServiceConfigLayer;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::{RetryLayer, RetryPolicy};
use reattempt_grpc::ServiceConfig;
use reattempt_schedule_fixed::Constant;
use tonic::body::Body;
use tower::{Layer, Service, ServiceExt};

use crate::grpc::support::{GrpcServer, Lost, Step, body, call, lost, ms, policy, streaming};

const NAMES: [&str; 10] = [
    "grpc-status",
    "grpc-message",
    "grpc-status-details-bin",
    "grpc-retry-pushback-ms",
    "content-type",
    "grpc-encoding",
    "grpc-timeout",
    "grpc-previous-rpc-attempts",
    "x-attempt-of",
    "x-other-bin",
];

const VALUES: [&[u8]; 26] = [
    b"",
    b"0",
    b"1",
    b"4",
    b"8",
    b"13",
    b"14",
    b"014",
    b"16",
    b"17",
    b"-1",
    b"+5",
    b" 14",
    b"2147483647",
    b"2147483648",
    b"99999999999999999999999",
    b"0x10",
    b"%",
    b"%e2%82",
    b"CA4",
    b"CA4=CA4=",
    b"CA4aNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIARCAyrXuAQ",
    b"application/grpc",
    b"application/grpc-web+proto",
    b"text/html",
    b"\xff\xfe",
];

/// Returns a value for a field: one of those above, arbitrary bytes, or a mixture.
fn value(random: &mut SmallRng) -> HeaderValue {
    let mut bytes = Vec::new();
    for _ in 0..random.random_range(1..3) {
        match random.random_range(0..4) {
            0 => bytes.extend((0..random.random_range(0..24)).map(|_| random.random::<u8>())),
            _ => bytes.extend(VALUES[random.random_range(0..VALUES.len())]),
        }
        if random.random_range(0..4) > 0 {
            break;
        }
    }
    // The wire's parser refuses everything else.
    bytes.retain(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 127));
    HeaderValue::from_bytes(&bytes).unwrap()
}

fn fields(random: &mut SmallRng) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for _ in 0..random.random_range(0..5) {
        let name = NAMES[random.random_range(0..NAMES.len())];
        fields.append(HeaderName::from_static(name), value(random));
    }
    fields
}

/// Returns a response for a seed, always the same for the same seed.
fn answer(seed: u64) -> (u64, Result<crate::grpc::support::Answer, Lost>) {
    let random = &mut SmallRng::seed_from_u64(seed);
    let takes = if random.random() { 0 } else { random.random_range(0..50) };
    if random.random_range(0..10) == 0 {
        return (takes, Err(lost("the answer is no answer")));
    }
    let mut steps = Vec::new();
    for _ in 0..random.random_range(0..4) {
        steps.push(match random.random_range(0..6) {
            0 | 1 => Step::Data("data"),
            2 => Step::Data(""),
            3 => Step::Wait(random.random_range(0..40)),
            4 => Step::Fail(lost("gone").into()),
            _ => Step::Trailers(fields(random)),
        });
    }
    let mut answer = if random.random() { streaming(steps) } else { Response::new(body(steps)) };
    answer.headers_mut().extend(fields(random));
    let odd = random.random_range(100..1000);
    *answer.status_mut() = [200, 200, 200, 200, 404, 429, 503, odd][random.random_range(0..8)].try_into().unwrap();
    (takes, Ok(answer))
}

/// Returns `true` if a call is retried after this head. The head has UNAVAILABLE, RESOURCE_EXHAUSTED or
/// DEADLINE_EXCEEDED from the server, or such a status from a proxy, and no pushback that stops the call. If the call
/// is not marked as repeatable, the pushback must ask for the retry.
fn is_retried(head: &Response<()>, marked: bool) -> bool {
    let first = head.headers().get("grpc-status").map(HeaderValue::as_bytes);
    let number = |value: &[u8]| {
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let text = String::from_utf8_lossy(value);
        if digits { text.trim_start_matches('0').parse::<u32>().ok().or(Some(0)) } else { None }
    };
    let transient = match first {
        Some(value) => matches!(number(value), Some(4 | 8 | 14)),
        None => matches!(head.status().as_u16(), 429 | 502..=504),
    };
    let pushbacks: Vec<_> = head.headers().get_all("grpc-retry-pushback-ms").iter().collect();
    let obeyed = match &*pushbacks {
        [] => marked,
        [one] => {
            one.to_str().is_ok_and(|text| text.parse::<i32>().is_ok_and(|wait| wait >= 0 && wait.to_string() == text))
        }
        _ => false,
    };
    transient && obeyed
}

/// Makes one call and reads its response to the end. Returns the head, if there was one.
async fn outcome<S, B>(mut client: S, seed: u64) -> Option<Response<()>>
where
    S: Service<http::Request<Body>, Response = Response<B>>,
    B: http_body::Body<Data = Bytes>,
{
    let ready = client.ready().await.unwrap_or_else(|_| panic!("{seed}: not ready"));
    // Beyond everything that a server can request with pushback.
    let patience = Duration::from_secs(3600 * 24 * 365);
    let Ok(outcome) = tokio::time::timeout(patience, ready.call(call())).await else {
        panic!("{seed}: the call does not end")
    };
    let (head, body) = outcome.ok()?.into_parts();
    let head = Response::from_parts(head, ());
    if head.headers().contains_key("grpc-status") {
        assert!(tonic::Status::from_header_map(head.headers()).is_some(), "{seed}");
    }
    let mut body = Box::pin(body);
    loop {
        let Ok(frame) = tokio::time::timeout(patience, body.frame()).await else {
            panic!("{seed}: the answer does not end")
        };
        let Some(Ok(frame)) = frame else { break };
        if let Some(trailers) = frame.trailers_ref() {
            let status = tonic::Status::from_header_map(trailers);
            assert_eq!(status.is_some(), trailers.contains_key("grpc-status"), "{seed}");
        }
    }
    Some(head)
}

/// Returns a server whose responses depend on this seed, each with the number of its attempt.
fn server(seed: u64) -> GrpcServer {
    GrpcServer::by(move |attempt| {
        let number = u64::try_from(attempt).unwrap();
        let (takes, answer) = answer(seed * 16 + number);
        let numbered = answer.map(|mut answer| {
            answer.headers_mut().insert("x-attempt", number.into());
            answer
        });
        (takes, numbered)
    })
}

/// Returns the number of the attempt to which this response belongs.
fn number(head: &Response<()>) -> usize {
    head.headers()["x-attempt"].to_str().unwrap().parse().unwrap()
}

fn quick(marked: bool) -> RetryPolicy<Grpc, Constant> {
    policy(5).repeatable(marked).max_elapsed(None).max_server_delay(ms(u64::MAX)).protocol(|grpc| grpc.retry_info(true))
}

// TN-7, RET-7, C-12
#[tokio::test(start_paused = true)]
async fn callers_answer_is_last_others_retried() {
    for (seed, marked) in (0..4000).flat_map(|seed| [(seed, false), (seed, true)]) {
        let server = server(seed);
        let head = outcome(RetryLayer::new(quick(marked)).layer(server.clone()), seed).await;
        let attempts = server.count();
        let heads = (1..=attempts).map(|number| {
            let (_, answer) = answer(seed * 16 + u64::try_from(number).unwrap());
            answer.ok().map(|answer| is_retried(&answer.map(drop), marked))
        });
        let retried: Vec<_> = heads.collect();
        let (last, before) = retried.split_last().unwrap();
        assert!(before.iter().all(|retried| *retried == Some(true)), "{seed} {marked}: {retried:?}");
        assert!(attempts == 3 || *last != Some(true), "{seed} {marked}: {retried:?}");
        assert_eq!(head.map(|head| number(&head)), last.map(|_| attempts), "{seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_layer_bounds_the_attempts() {
    let config = r#"{"methodConfig": [{"name": [{}], POLICY}],
        "retryThrottling": {"maxTokens": 1000, "tokenRatio": 1}}"#;
    let retried = r#""retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.005s",
        "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": [2, 8, 13, 14]}"#;
    let hedged = r#""hedgingPolicy": {"maxAttempts": 4, "hedgingDelay": "0.02s",
        "nonFatalStatusCodes": [2, 8, 13, 14]}"#;
    let configured = |policy| {
        let config = ServiceConfig::parse(&config.replace("POLICY", policy)).unwrap();
        ServiceConfigLayer::new(config)
    };
    let mut answered = [0; 5];
    for seed in 0..2000 {
        let server = || server(seed);
        let peeking = PeekTrailersLayer::new(ms(20));
        let servers: [_; 5] = std::array::from_fn(|_| server());
        let hedge = || HedgeLayer::new(HedgePolicy::grpc().max_attempts(4).delay(ms(20)));
        let of = |index: usize| servers[index].clone();
        let heads = [
            outcome(RetryLayer::new(quick(true)).layer(peeking.layer(of(0))), seed).await,
            outcome(configured(retried).layer(of(1)), seed).await,
            outcome(configured(hedged).layer(of(2)), seed).await,
            outcome(hedge().layer(of(3)), seed).await,
            outcome(hedge().layer(peeking.layer(of(4))), seed).await,
        ];
        for (index, head) in heads.iter().enumerate() {
            let attempts = servers[index].count();
            assert!((1..=4).contains(&attempts), "{seed}, {index}: {attempts}");
            if let Some(head) = head {
                assert!((1..=attempts).contains(&number(head)), "{seed}, {index}");
                answered[index] += 1;
            }
        }
    }
    assert!(answered.iter().all(|answers| *answers > 1000), "most get an answer: {answered:?}");
}
