//! Fallbacks of reqwest and gRPC: what differs from HTTP.

use std::convert::Infallible;
use std::io::{Error, ErrorKind};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use reattempt::fallback::{Backup, FallbackLayer, FellBack};
use reattempt::{CallOptions, Http, RetryLayer};
use reattempt_grpc::Code;
use reqwest::ResponseBuilderExt;
use tower::{BoxError, Layer};

use super::spare;
use crate::calls::support::{ONE, With, policy};
use crate::grpc::support::{Server, call, ends_with, trailers_only};

#[tokio::test(start_paused = true)]
async fn reqwest_fallback_keeps_the_url() {
    for (status, expected) in [(503, "spare"), (404, "own")] {
        let client = tower::service_fn(move |request: reqwest::Request| async move {
            let builder = Response::builder().status(status).url(request.url().clone());
            Ok::<_, Infallible>(reqwest::Response::from(builder.body("own").unwrap()))
        });
        let client = FallbackLayer::http(spare).layer(RetryLayer::new(policy()).layer(client));
        let request =
            reqwest::Request::new(http::Method::GET, format!("{ONE}path").parse().unwrap());
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
async fn grpc_fallback_is_a_message() {
    let request = || {
        let body = tonic::body::Body::empty();
        Request::post("http://one.example/service/method").body(body).unwrap()
    };
    let layer = FallbackLayer::grpc(spare);
    let client = layer.layer(RetryLayer::grpc().layer(Server::at_once(|number| match number {
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

    let backup = tower::service_fn(|_: reqwest::Request| async {
        Ok::<_, Error>(reqwest::Response::from(Response::new("")))
    });
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

#[tokio::test(start_paused = true)]
async fn grpc_backup_needs_proof_or_permission() {
    type Call = Request<tonic::body::Body>;

    let permitted = || call().with(CallOptions::new().repeatable(true));
    let backup = tower::service_fn(|_: Call| async { Ok::<_, BoxError>(ends_with(Code::Ok)) });
    for (is_sent, request, backed) in
        [(true, call(), false), (true, permitted(), true), (false, call(), true)]
    {
        let server = tower::service_fn(move |_: Call| async move {
            match is_sent {
                true => Ok::<_, BoxError>(trailers_only(Code::DeadlineExceeded)),
                false => Err(Error::from(ErrorKind::ConnectionRefused).into()),
            }
        });
        let client = FallbackLayer::grpc_backup(backup).layer(server);
        let outcome = client.send(request).await;
        let fell_back = |answer: &Response<_>| answer.extensions().get::<FellBack>().is_some();
        assert_eq!(outcome.as_ref().is_ok_and(fell_back), backed);
    }
}
