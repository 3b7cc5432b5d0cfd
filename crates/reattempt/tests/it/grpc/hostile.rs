//! Tests of hostile servers and careless callers of gRPC calls.

use std::io::{self, ErrorKind};

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use reattempt::grpc::peek_trailers::PeekTrailersLayer;
use reattempt::grpc::service_config::ServiceConfigLayer;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::{CallOptions, Deadline, RetryLayer};
use reattempt_control::RetryBudget;
use reattempt_grpc::{Code, ServiceConfig, ServiceConfigHandle, parse_grpc_timeout};
use tokio::time::Instant;
use tower::{Layer, ServiceBuilder, ServiceExt};

use crate::grpc::support::{
    GrpcServer, Step, body, call, call_with, call_within, change, ends_with, field, lost, ms, policy, read, status,
    streaming, throttle, trailers_only, with,
};

fn config(policy: &str) -> ServiceConfig {
    let text = format!(
        r#"{{"methodConfig": [{{"name": [{{}}]{policy}}}],
        "retryThrottling": {{"maxTokens": 10, "tokenRatio": 0.1}}}}"#
    );
    ServiceConfig::parse(&text).unwrap()
}

const HEDGED: &str = r#", "hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.01s", "nonFatalStatusCodes": []}"#;
const RETRIED: &str = r#", "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.01s",
    "maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}"#;

/// The largest number in each unit is respected, and every attempt has a number that a server can read. With a time of
/// zero, nothing is sent.
// DL-9
#[tokio::test(start_paused = true)]
async fn dl_9_extreme_timeouts_are_kept() {
    for unit in ["H", "M", "S", "m", "u", "n"] {
        let field = format!("99999999{unit}");
        let server = GrpcServer::by(|number| match number {
            1 => (1, Ok(trailers_only(Code::Unavailable))),
            _ => (1, Ok(ends_with(Code::Ok))),
        });
        let client = RetryLayer::new(policy(1)).layer(server.clone());
        let reply = read(client.oneshot(call_within(&field)).await.unwrap()).await;
        assert_eq!(reply.0, Some(Code::Ok), "{field}");
        for told in server.fields("grpc-timeout") {
            assert!(parse_grpc_timeout(told.unwrap().as_bytes()).is_some(), "{field}");
        }
        let none = format!("00000000{unit}");
        let server = GrpcServer::at_once(|_| ends_with(Code::Ok));
        let client = RetryLayer::new(policy(1)).layer(server.clone());
        let reply = read(client.oneshot(call_within(&none)).await.unwrap()).await;
        assert_eq!((reply.0, server.count()), (Some(Code::DeadlineExceeded), 0), "{none}");
    }
}

/// A message in thousands of one-byte frames, with empty frames between them, arrives unchanged, and its success counts
/// once.
#[tokio::test(start_paused = true)]
async fn one_byte_frames_come_as_they_were_sent() {
    let steps = || {
        let bytes = (0..5000).flat_map(|_| [Step::Data("a"), Step::Data("")]);
        bytes.chain([Step::Trailers(status(Code::Ok))]).collect::<Vec<_>>()
    };
    let throttle = throttle();
    let client = RetryLayer::new(policy(1).budget(throttle.clone()));
    let client = client.layer(GrpcServer::at_once(move |_| streaming(steps())));
    let reply = read(client.oneshot(call_within("1H")).await.unwrap()).await;
    assert_eq!((reply.0, reply.1.len()), (Some(Code::Ok), 5000));
    assert_eq!(change(&throttle), 100);
}

/// A response that is dropped after any of its frames counts as nothing.
// THR-4
#[tokio::test(start_paused = true)]
async fn thr_4_dropped_body_counts_for_nothing() {
    for frames in 0..=4 {
        for code in [Code::Ok, Code::Unavailable] {
            let steps = move || [Step::Data("a"), Step::Data("b"), Step::Trailers(status(code))];
            let throttle = throttle();
            let client = RetryLayer::new(policy(1).budget(throttle.clone()));
            let client = client.layer(GrpcServer::at_once(move |_| streaming(steps())));
            let mut body = client.oneshot(call()).await.unwrap().into_body();
            for _ in 0..frames {
                let _ = body.frame().await;
            }
            drop(body);
            let expected = match (frames >= 3, code) {
                (false, _) => 0,
                (true, Code::Ok) => 100,
                (true, _) => -1000,
            };
            assert_eq!(change(&throttle), expected, "{frames} {code}");
        }
    }
}

/// Wherever a call is dropped, its token for an unsent retry is returned.
// trap 11
#[tokio::test(start_paused = true)]
async fn dropped_call_gives_its_token_back() {
    for after in 0..60 {
        let server = GrpcServer::by(|_| (10, Ok(trailers_only(Code::Unavailable))));
        let budget = RetryBudget::ratio(0.1).shared(true);
        let client = RetryLayer::new(policy(10).budget(budget.clone())).layer(server.clone());
        let full = budget.balance("");
        drop(tokio::time::timeout(ms(after), client.oneshot(call_within("1S"))).await);
        let retries = server.count().saturating_sub(1);
        let spent = full - budget.balance("");
        #[allow(clippy::cast_precision_loss, reason = "a handful")]
        let expected = retries as f64;
        assert!((spent - expected).abs() < 0.01, "{after} ms: {spent} of {retries} retries");
    }
}

/// An outer layer does not mistake the inner layer's own response for a server's. The response does not end a hedged
/// call while another attempt is in flight, and earns nothing.
// OUT-2, trap 36
#[tokio::test(start_paused = true)]
async fn out_2_lost_hedge_leaves_the_others() {
    let server = GrpcServer::by(|number| match number {
        1 => (100, Ok(ends_with(Code::Ok))),
        _ => (1, Err(lost(io::Error::from(ErrorKind::ConnectionReset)))),
    });
    let inner = RetryLayer::new(policy(1).max_attempts(1)).layer(server.clone());
    let client = ServiceConfigLayer::new(config(HEDGED)).layer(inner);
    let began = Instant::now();
    let reply = client.oneshot(call()).await.unwrap();
    assert_eq!(read(reply).await.0, Some(Code::Ok));
    assert_eq!(began.elapsed(), ms(100));
    assert!(server.count() > 1);
}

// OUT-2
#[tokio::test(start_paused = true)]
async fn out_2_lost_answer_earns_nothing() {
    for answered in [false, true] {
        let budget = RetryBudget::ratio(0.1).shared(true);
        let destination = budget.balance("");
        // One token is gone.
        let server = GrpcServer::at_once(|number| match number {
            1 => trailers_only(Code::Unavailable),
            _ => ends_with(Code::NotFound),
        });
        let first = RetryLayer::new(policy(1).budget(budget.clone()).max_attempts(2));
        read(first.layer(server).oneshot(call()).await.unwrap()).await;
        let before = budget.balance("");
        assert!(before < destination);
        let server = GrpcServer::by(move |_| match answered {
            true => (0, Ok(trailers_only(Code::NotFound))),
            false => (1000, Ok(trailers_only(Code::NotFound))),
        });
        let inner = RetryLayer::new(policy(1).protocol(|grpc| grpc.timeout(ms(5)))).layer(server);
        let client = RetryLayer::new(policy(1).budget(budget.clone())).layer(inner);
        read(client.oneshot(call()).await.unwrap()).await;
        assert_eq!(budget.balance("") > before, answered, "{answered}");
    }
}

/// Trailers of every kind in place of headers, with a layer that peeks at them.
// ST-5
#[tokio::test(start_paused = true)]
async fn st_5_hostile_trailers_reach_the_caller() {
    let garbage = || with(streaming([]), "grpc-status-details-bin", "not base64!");
    type Row = (fn() -> Vec<Step>, Code);
    let rows: [Row; 5] = [
        (|| vec![Step::Trailers(field("grpc-status", "300"))], Code::Unknown),
        (|| vec![Step::Trailers(field("grpc-status", ""))], Code::Unknown),
        (|| vec![Step::Data(""), Step::Trailers(status(Code::NotFound))], Code::NotFound),
        (|| vec![Step::Trailers(field("x-status", "14"))], Code::Unknown),
        (
            || {
                let mut trailers = status(Code::NotFound);
                trailers.extend(field("grpc-status-details-bin", "not base64!"));
                trailers.extend(field("grpc-message", "%FF%zz"));
                vec![Step::Trailers(trailers)]
            },
            Code::NotFound,
        ),
    ];
    for (steps, code) in rows {
        let server = GrpcServer::at_once(move |_| streaming(steps()));
        let client = ServiceBuilder::new()
            .layer(RetryLayer::new(policy(1)))
            .layer(PeekTrailersLayer::new(ms(10)))
            .service(server.clone());
        let reply = client.oneshot(call()).await.unwrap();
        assert!(!reply.headers().contains_key("grpc-status-details-bin"));
        let ended = read(reply).await.0.unwrap_or(Code::Unknown);
        assert_eq!((ended, server.count()), (code, 1));
    }
    let server = GrpcServer::at_once(move |_| garbage());
    let client = RetryLayer::new(policy(1)).layer(server);
    let reply = client.oneshot(call()).await.unwrap();
    assert_eq!(read(reply).await.0, None);
}

/// Configs change their policies, throttle and methods a thousand times while calls are in flight. Each call ends with
/// the server's response, and none panics.
// CALL-6
#[tokio::test(start_paused = true)]
async fn call_6_config_swapped_while_calls_run() {
    let server = GrpcServer::by(|number| match number % 4 {
        0 => (7, Ok(ends_with(Code::Ok))),
        1 => (3, Ok(trailers_only(Code::Unavailable))),
        2 => (5, Ok(ends_with(Code::NotFound))),
        _ => (2, Err(lost(io::Error::from(ErrorKind::ConnectionReset)))),
    });
    let handle = ServiceConfigHandle::new(config(RETRIED));
    let client = ServiceConfigLayer::new(handle.clone()).layer(server);
    let calls: Vec<_> = (0..200)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move {
                tokio::time::sleep(ms(number)).await;
                read(client.oneshot(call_within("10S")).await.unwrap()).await.0.unwrap()
            })
        })
        .collect();
    let texts = ["{}".to_owned(), String::new(), "[".to_owned()];
    for round in 0..1000 {
        match round % 6 {
            0 => drop(handle.update(Ok(config(HEDGED)))),
            1 => drop(handle.update(Ok(config(RETRIED)))),
            2 => drop(handle.update(Ok(config("")))),
            other => {
                let _ = handle.update(ServiceConfig::parse(&texts[other - 3]));
            }
        }
        if round % 5 == 0 {
            tokio::time::sleep(ms(1)).await;
        }
    }
    for call in calls {
        let code = call.await.unwrap();
        assert!(matches!(code, Code::Ok | Code::Unavailable | Code::NotFound), "{code}");
    }
    let tokens = handle.throttle().tokens_thousandths();
    assert!(tokens.is_none_or(|tokens| tokens <= 10_000), "{tokens:?}");
}

/// A hedged call whose attempts are all ended by the channel's timer has one response.
// HG-11
#[tokio::test(start_paused = true)]
async fn hg_11_never_retried_call_has_its_code() {
    let server = GrpcServer::by(|_| (20, Err(lost(tonic::TimeoutExpired(())))));
    let hedged = HedgeLayer::new(HedgePolicy::grpc().delay(ms(5))).layer(server.clone());
    let never = CallOptions::new().never_retry();
    let reply = read(hedged.oneshot(call_with(never)).await.unwrap()).await;
    assert_eq!((reply.0, server.count()), (Some(Code::DeadlineExceeded), 1));
}

/// Returns this many different fields, none of which is a status.
fn many(prefix: &str, count: usize) -> HeaderMap {
    let name = |number| HeaderName::try_from(format!("{prefix}-{number}")).unwrap();
    (0..count).map(|number| (name(number), HeaderValue::from_static("some"))).collect()
}

/// A header map holds at most 24576 names, so two partly full maps are not merged.
// ST-5
#[tokio::test(start_paused = true)]
async fn st_5_too_many_trailers_stay_trailers() {
    for count in [10, 15_000] {
        let server = GrpcServer::at_once(move |_| {
            let mut trailers = many("x-trailer", count);
            trailers.extend(status(Code::NotFound));
            let mut answer = streaming([Step::Trailers(trailers)]);
            answer.headers_mut().extend(many("x-head", count));
            answer
        });
        let client = PeekTrailersLayer::new(ms(10)).layer(server);
        let answer = client.oneshot(call()).await.unwrap();
        assert_eq!(answer.headers().contains_key("grpc-status"), count == 10);
        let trailers = answer.into_body().collect().await.unwrap().trailers().cloned();
        assert_eq!(trailers.map(|trailers| trailers.len()), (count != 10).then_some(count + 1));
    }
}

/// A response whose headers leave no room for a status still gets one.
// OUT-1
#[tokio::test(start_paused = true)]
async fn out_1_full_head_is_given_a_status() {
    for count in 24_570..=24_576 {
        let server = GrpcServer::at_once(move |_| {
            let mut answer = Response::new(body([]));
            *answer.headers_mut() = many("x-head", count);
            *answer.status_mut() = StatusCode::NOT_FOUND;
            answer
        });
        let client = RetryLayer::new(policy(1)).layer(server);
        let reply = read(client.oneshot(call()).await.unwrap()).await;
        assert_eq!(reply.0, Some(Code::Unimplemented), "{count}");
    }
}

/// A caller's headers that leave no room for the layer's fields are sent unchanged.
// DL-2, RPH-1
#[tokio::test(start_paused = true)]
async fn dl_2_full_request_is_sent_as_it_is() {
    let server = GrpcServer::at_once(|_| trailers_only(Code::Unavailable));
    let client = RetryLayer::new(policy(1)).layer(server.clone());
    let mut full = call_with(Deadline::after(ms(1000)));
    *full.headers_mut() = many("x-own", 24_576);
    let reply = read(client.oneshot(full).await.unwrap()).await;
    assert_eq!(reply.0, Some(Code::Unavailable));
    assert!(server.count() > 1);
    for name in ["grpc-timeout", "grpc-previous-rpc-attempts"] {
        assert!(server.fields(name).iter().all(Option::is_none), "{name}");
    }
}
