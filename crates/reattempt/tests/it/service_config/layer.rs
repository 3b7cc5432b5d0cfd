//! Tests of the layer's settings, and of its behaviour without a config.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::StreamBody;
use reattempt::classify::Outcome;
use reattempt::grpc::GrpcBody;
use reattempt::grpc::service_config::ServiceConfigLayer;
use reattempt::{CallOptions, Deadline, RetryLayer};
use reattempt_core::{StopReason, Verdict};
use reattempt_grpc::{Code, ServiceConfig, ServiceConfigHandle};
use tokio::time::{Instant, timeout};
use tonic::body::Body;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt};

use super::server::{ABORTED, Frames, OK, Server, Step, UNAVAILABLE, answer, pushed_back};
use super::{call, client, code_of, end_of, ends, hedged, parse, retried};

// SC-6
#[tokio::test(start_paused = true)]
async fn calls_are_unavailable_before_a_config() {
    let server = Server::of([OK]);
    let handle = ServiceConfigHandle::unresolved(ServiceConfig::default());
    let client = ServiceConfigLayer::new(handle.clone()).layer(server.clone());
    let text = |answer: &Response<_>| answer.headers()["grpc-message"].to_str().unwrap().to_owned();
    let answer = client.clone().oneshot(call()).await.unwrap();
    assert_eq!(text(&answer.map(drop)), "no service config has been chosen yet");
    handle.update(ServiceConfig::parse(r#"{"methodConfig": 1}"#)).unwrap_err();
    let answer = client.clone().oneshot(call()).await.unwrap();
    let (head, body) = answer.into_parts();
    assert_eq!(
        text(&Response::from_parts(head.clone(), ())),
        "no valid service config has been supplied yet: methodConfig must be a list, but it is 1"
    );
    assert_eq!(code_of(Response::from_parts(head, body)).await, Code::Unavailable);
    assert_eq!(server.count(), 0);
    handle.use_default();
    ends(&client, Code::Ok, StopReason::Succeeded).await;
    assert_eq!(server.count(), 1);
}

// trap 38
#[tokio::test(start_paused = true)]
async fn refused_call_releases_its_place() {
    let limited = ConcurrencyLimit::new(Server::of([OK]), 1);
    let handle = ServiceConfigHandle::unresolved(ServiceConfig::default());
    let mut client = ServiceConfigLayer::new(handle.clone()).layer(limited);
    let answer = client.ready().await.unwrap().call(call()).await.unwrap();
    assert_eq!(code_of(answer).await, Code::Unavailable);
    handle.use_default();
    let other = timeout(Duration::from_secs(1), client.clone().oneshot(call())).await;
    other.expect("the idle handle holds the place").unwrap();
}

// trap 38
#[tokio::test(start_paused = true)]
async fn late_call_releases_its_place() {
    let server = Server::of([OK]);
    let limited = ConcurrencyLimit::new(server.clone(), 1);
    let mut client = ServiceConfigLayer::new(ServiceConfig::default()).layer(limited);
    let mut late = call();
    late.extensions_mut().insert(Deadline::after(Duration::ZERO));
    let answer = client.ready().await.unwrap().call(late).await.unwrap();
    assert_eq!(code_of(answer).await, Code::DeadlineExceeded);
    assert_eq!(server.count(), 0);
    let other = timeout(Duration::from_secs(1), client.clone().oneshot(call())).await;
    other.expect("the idle handle holds the place").unwrap();
}

// CALL-3
#[tokio::test(start_paused = true)]
async fn caller_precedes_config() {
    let config = retried(4, "0.01s", "[14]");
    let with = |options: CallOptions| {
        let mut call = call();
        call.extensions_mut().insert(options);
        call
    };
    let rows = [
        (CallOptions::new().never_retry(), 1),
        (CallOptions::new().max_attempts(2), 2),
        (CallOptions::new().repeatable(true), 4),
    ];
    for (options, count) in rows {
        let server = Server::of([UNAVAILABLE]);
        end_of(&client(&config, &server), with(options)).await.0.unwrap();
        assert_eq!(server.count(), count);
    }
}

#[tokio::test]
async fn it_can_be_shared_and_shows_what_it_holds() {
    fn shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    fn sent<T: Send>(_: &T) {}
    let server = Server::of([OK]);
    let layer = ServiceConfigLayer::new(ServiceConfig::default());
    shared(&layer);
    let client = layer.layer(tower::service_fn(|_: Request<Body>| async { Ok::<_, std::io::Error>(answer(vec![])) }));
    shared(&client);
    let mut client = layer.layer(server);
    let call = client.ready().await.unwrap().call(call());
    sent(&call);
    assert!(format!("{call:?}").starts_with("ResponseFuture(ResponseFuture"), "{call:?}");
    let error: Result<_, Box<dyn Error>> = call.await.map_err(Into::into);
    error.unwrap();
    let _ = client.get_ref();
    let _ = client.into_inner();
}

/// The results are those in the table in the documentation of `RetryPolicy::grpc`.
// CALL-1, C-12
#[tokio::test(start_paused = true)]
async fn call_1_grpc_beside_an_empty_config() {
    async fn attempts<C>(client: C, server: &Server, request: Request<Body>) -> usize
    where
        C: Service<Request<Body>, Response = Response<GrpcBody<StreamBody<Frames>>>>,
        C::Error: std::fmt::Debug,
    {
        drop(client.oneshot(request).await.unwrap());
        server.count()
    }
    let codes = (1..=16).map(Code::from_number).map(|code| (Step::Only(code, None), Some(code)));
    let steps = codes.chain([(Step::NoConnection, None), (Step::Lost, None)]);
    for (step, code) in steps {
        // (grpc(), the same if repeatable, an empty config)
        let expected = match (step, code) {
            (Step::NoConnection, _) => [3, 3, 3],
            (_, Some(Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded) | None) => [1, 3, 1],
            _ => [1, 1, 1],
        };
        let mut repeatable = call();
        repeatable.extensions_mut().insert(CallOptions::new().repeatable(true));
        let servers = [(); 3].map(|()| Server::of([step]));
        let [plain, declared, empty] = &servers;
        let seen = [
            attempts(RetryLayer::grpc().layer(plain.clone()), plain, call()).await,
            attempts(RetryLayer::grpc().layer(declared.clone()), declared, repeatable).await,
            attempts(client("{}", empty), empty, call()).await,
        ];
        assert_eq!(seen, expected, "{code:?}");
    }
}

/// `never_retry` holds for every kind of failure and policy, and for options that request more.
// CALL-3, TR-8
#[tokio::test(start_paused = true)]
async fn tr_8_never_retry_turns_off_everything() {
    let unseen = Step::NoConnection;
    for text in [&*retried(4, "0.01s", "[14]"), &hedged(4, "0.01s", "[14]"), "{}"] {
        for step in [UNAVAILABLE, pushed_back("5"), unseen, Step::Lost] {
            let server = Server::of([step]);
            let layer = ServiceConfigLayer::new(parse(text)).never_retry();
            let client = layer.layer(server.clone());
            let mut asking = call();
            let more = CallOptions::new().max_attempts(5).repeatable(true);
            asking.extensions_mut().insert(more.clone());
            let _ = client.clone().oneshot(asking).await;
            let _ = client.with_options(more).oneshot(call()).await;
            assert_eq!(server.count(), 2, "{text}");
        }
    }
}

/// With a cap of one attempt, a failed connection is still retried for a method without a policy.
// TR-8
#[tokio::test(start_paused = true)]
async fn tr_8_cap_of_one_is_not_everything() {
    let server = Server::of([Step::NoConnection]);
    let client = ServiceConfigLayer::new(parse("{}")).max_attempts(1).layer(server.clone());
    assert_eq!(end_of(&client, call()).await.0.unwrap(), Code::Unavailable);
    assert_eq!(server.count(), 3);
}

// DL-1
#[tokio::test(start_paused = true)]
async fn dl_1_timeout_counts_without_any_retry() {
    let server = Server::of([Step::Hang]);
    let text = r#"{"methodConfig": [{"name": [{}], "timeout": "2s"}]}"#;
    let client = ServiceConfigLayer::new(parse(text)).never_retry().layer(server.clone());
    let began = Instant::now();
    assert_eq!(end_of(&client, call()).await.0.unwrap(), Code::DeadlineExceeded);
    assert_eq!((server.count(), began.elapsed()), (1, Duration::from_secs(2)));
}

/// The settings of the layer apply to three attempts, whether they are retried or hedged.
#[tokio::test(start_paused = true)]
async fn settings_of_layer_apply_to_both() {
    for text in [retried(3, "0.01s", "[5]"), hedged(3, "5s", "[5]")] {
        let (seen, events) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (classified, observed) = (Arc::clone(&seen), Arc::clone(&events));
        let layer = ServiceConfigLayer::new(parse(&text))
            .protocol(|grpc| {
                grpc.classify(move |outcome: Outcome<'_>| {
                    *classified.lock().unwrap() += 1;
                    (outcome.headers()?.get("grpc-status")? == "10").then(Verdict::not_processed)
                })
            })
            .observe(move |_, event| observed.lock().unwrap().push(event.to_string()));
        let server = Server::of([ABORTED, ABORTED, OK]);
        let client = layer.layer(server.clone());
        client.oneshot(call()).await.unwrap();
        assert_eq!((server.count(), *seen.lock().unwrap()), (3, 3), "{text}");
        assert!(!events.lock().unwrap().is_empty(), "{text}");
    }
}
