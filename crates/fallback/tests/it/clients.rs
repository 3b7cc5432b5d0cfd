//! Tests of fallbacks for reqwest and gRPC, where they differ from HTTP.

use std::convert::Infallible;
use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use reattempt::fallback::{Backup, FallbackLayer, FellBack};
use reattempt::{CallOptions, Http, RetryLayer};
use reattempt_grpc::Code;
use reattempt_testing_layers::calls::{ONE, With, policy};
use reattempt_testing_layers::grpc::{
    Answer, GrpcServer, Lost, body, call, ends_with, lost, policy as grpc_policy, trailers_only,
    unmarked as grpc_unmarked, with,
};
use reattempt_testing_layers::guard::refused;
use reqwest::ResponseBuilderExt;
use tower::{BoxError, Layer};

use crate::outcomes::spare;

#[tokio::test(start_paused = true)]
async fn reqwest_fallback_keeps_the_url() {
    for (status, expected) in [(503, "spare"), (404, "own")] {
        let client = tower::service_fn(move |request: reqwest::Request| async move {
            let builder = Response::builder().status(status).url(request.url().clone());
            Ok::<_, Infallible>(reqwest::Response::from(builder.body("own").unwrap()))
        });
        let client = FallbackLayer::http(spare).layer(RetryLayer::new(policy()).layer(client));
        let request = reqwest::Request::new(http::Method::GET, format!("{ONE}path").parse().unwrap());
        let response = client.send(request).await.unwrap();
        if status == 404 {
            assert_eq!(response.url().path(), "/path");
        }
        assert_eq!(response.text().await.unwrap(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn reqwest_backup_needs_a_body_in_memory() {
    let service = |status| {
        tower::service_fn(move |_: reqwest::Request| async move {
            let response = Response::builder().status(status).body("").unwrap();
            Ok::<_, Infallible>(reqwest::Response::from(response))
        })
    };
    let client = FallbackLayer::backup(service(200)).layer(service(503));
    let stream = reqwest::Body::wrap(http_body_util::Full::new(Bytes::from_static(b"hello")));
    for (body, expected) in [("hello".into(), 200), (stream, 503)] {
        let mut request = reqwest::Request::new(http::Method::PUT, ONE.parse().unwrap());
        *request.body_mut() = Some(body);
        assert_eq!(client.send(request).await.unwrap().status(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn reqwest_backup_gets_no_credentials() {
    let service = |status: u16, has: bool| {
        tower::service_fn(move |request: reqwest::Request| async move {
            assert_eq!(request.headers().contains_key("authorization"), has);
            let response = Response::builder().status(status).body("").unwrap();
            Ok::<_, Infallible>(reqwest::Response::from(response))
        })
    };
    let backup = Backup::new(service(200, false)).without_credentials();
    let client = FallbackLayer::with(Http::new(), backup).layer(service(503, true));
    let mut request = reqwest::Request::new(http::Method::PUT, ONE.parse().unwrap());
    request.headers_mut().insert("authorization", http::HeaderValue::from_static("secret"));
    assert_eq!(client.send(request).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn grpc_fallback_is_a_message() {
    let request = || {
        let body = tonic::body::Body::empty();
        Request::post("http://one.example/service/method").body(body).unwrap()
    };
    let layer = FallbackLayer::grpc(spare);
    let client = layer.layer(RetryLayer::new(grpc_policy(1)).layer(GrpcServer::at_once(|number| match number {
        1..=3 => trailers_only(Code::Unavailable),
        4 => trailers_only(Code::NotFound),
        _ => ends_with(Code::Ok),
    })));
    let response = client.send(request()).await.unwrap();
    let own = response.extensions().get::<FellBack>().unwrap().failed().outcome().unwrap();
    assert_eq!(own.headers["grpc-status"], "14");
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(body.to_bytes(), &b"\0\0\0\0\x05spare"[..]);
    for code in [Some("5"), None] {
        let response = client.send(request()).await.unwrap();
        assert!(response.extensions().get::<FellBack>().is_none());
        let status = response.headers().get("grpc-status").map(|code| code.to_str().unwrap());
        assert_eq!(status, code);
    }
}

// trap 35
#[tokio::test(start_paused = true)]
async fn reqwest_backup_gets_unsent_post_if_told() {
    use http::Method;

    let backup =
        tower::service_fn(|_: reqwest::Request| async { Ok::<_, Error>(reqwest::Response::from(Response::new(""))) });
    let refused = tower::service_fn(|_: reqwest::Request| async {
        Err::<reqwest::Response, _>(Error::from(ErrorKind::ConnectionRefused))
    });
    for (http, method, backed) in [
        (Http::new(), Method::GET, true),
        (Http::new(), Method::POST, false),
        (Http::new().redirects_below(true), Method::POST, false),
        (Http::new().redirects_below(false), Method::POST, true),
    ] {
        let client = FallbackLayer::with(http, Backup::new(backup)).layer(refused);
        let request = reqwest::Request::new(method, ONE.parse().unwrap());
        assert_eq!(client.send(request).await.is_ok(), backed);
    }
}

/// The retry layer has generated a key, which the fallback does not see.
// trap 49
#[tokio::test(start_paused = true)]
async fn reqwest_backup_gets_no_generated_key() {
    for refuses in [true, false] {
        let (sent, backed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (arrivals, backups) = (Arc::clone(&sent), Arc::clone(&backed));
        let answer = |status| reqwest::Response::from(Response::builder().status(status).body("").unwrap());
        let server = tower::service_fn(move |_: reqwest::Request| {
            let first = arrivals.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                match (first, refuses) {
                    (true, _) => Ok(answer(503)),
                    (false, true) => Err(BoxError::from(refused())),
                    (false, false) => Ok(answer(429)),
                }
            }
        });
        let backup = tower::service_fn(move |_: reqwest::Request| {
            backups.fetch_add(1, Ordering::SeqCst);
            async move { Ok::<_, BoxError>(answer(200)) }
        });
        let policy = policy().protocol(|_| Http::new().generate_idempotency_keys(true));
        let retried = RetryLayer::new(policy.boxed_errors()).layer(server);
        let client = FallbackLayer::backup(backup).layer(retried);
        let request = reqwest::Request::new(http::Method::POST, ONE.parse().unwrap());
        let _ = client.send(request).await;
        assert!(sent.load(Ordering::SeqCst) > 1);
        assert_eq!(backed.load(Ordering::SeqCst), 0, "{refuses}");
    }
}

/// The retry layer may repeat the call because of its own options, which the fallback does not see.
// trap 49
#[tokio::test(start_paused = true)]
async fn grpc_backup_needs_proof_of_each_attempt() {
    type Call = Request<tonic::body::Body>;

    for (first, backups) in [(ErrorKind::ConnectionReset, 0), (ErrorKind::ConnectionRefused, 1)] {
        let (sent, backed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (arrivals, calls) = (Arc::clone(&sent), Arc::clone(&backed));
        let server = tower::service_fn(move |_: Call| {
            let kind = match arrivals.fetch_add(1, Ordering::SeqCst) {
                0 => first,
                _ => ErrorKind::ConnectionRefused,
            };
            async move { Err::<Answer, _>(lost(Error::from(kind))) }
        });
        let backup = tower::service_fn(move |_: Call| {
            calls.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, Lost>(ends_with(Code::Ok)) }
        });
        let retries = RetryLayer::new(grpc_unmarked(1));
        let repeatable = CallOptions::new().repeatable(true);
        let retried = retries.layer(server).with_options(repeatable);
        let client = FallbackLayer::grpc_backup(retries.layer(backup)).layer(retried);
        let _ = client.send(call()).await;
        assert!(sent.load(Ordering::SeqCst) > 1);
        assert_eq!(backed.load(Ordering::SeqCst), backups, "{first}");
    }
}

/// A status from the server is no proof, unless the server asks for a retry.
// C-12
#[tokio::test(start_paused = true)]
async fn grpc_backup_needs_proof_or_permission() {
    type Call = Request<tonic::body::Body>;
    type Outcome = fn() -> Result<Answer, BoxError>;

    let marked = || call().with(CallOptions::new().repeatable(true));
    let forbidden = || call().with(CallOptions::new().repeatable(false));
    let backup = tower::service_fn(|_: Call| async { Ok::<_, BoxError>(ends_with(Code::Ok)) });
    let statuses: [Outcome; 4] = [
        || Ok(trailers_only(Code::DeadlineExceeded)),
        || Ok(trailers_only(Code::Unavailable)),
        || Ok(trailers_only(Code::ResourceExhausted)),
        || Ok(Response::builder().status(503).body(body([])).unwrap()),
    ];
    let asks: Outcome = || Ok(with(trailers_only(Code::Unavailable), "grpc-retry-pushback-ms", "5"));
    let refused: Outcome = || Err(Error::from(ErrorKind::ConnectionRefused).into());
    let rows = statuses.map(|outcome| (outcome, false)).into_iter().chain([(asks, true), (refused, true)]);
    for (number, (outcome, proven)) in rows.enumerate() {
        let server = tower::service_fn(move |_: Call| async move { outcome() });
        let layer = || FallbackLayer::grpc_backup(backup);
        for (layer, request, backed) in [
            (layer(), call(), proven),
            (layer(), marked(), true),
            (layer().repeatable(true), call(), true),
            (layer().repeatable(true), forbidden(), proven),
        ] {
            let outcome = layer.layer(server).send(request).await;
            let fell_back = |answer: &Response<_>| answer.extensions().get::<FellBack>().is_some();
            assert_eq!(outcome.as_ref().is_ok_and(fell_back), backed, "{number}");
        }
    }
}
