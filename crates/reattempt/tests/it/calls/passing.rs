//! Tests of requests that pass through unchanged.

use http::{HeaderValue, Method, Request};
use reattempt::RetryLayer;
use reattempt::retry::AttemptNumber;
use tower::{Layer, ServiceExt};

use crate::calls::support::{Body, Server, With, policy, request};

#[tokio::test(start_paused = true)]
async fn the_first_attempt_is_the_request_itself() {
    let server = Server::statuses([200]);
    let mut request: Request<Body> = request("PATCH", "http://one.example/a?b=c", "hello");
    *request.version_mut() = http::Version::HTTP_2;
    let request = request.header("x-mine", "yes").with(7_u8);
    RetryLayer::new(policy()).layer(server.clone()).oneshot(request).await.unwrap();
    let seen = &server.seen()[0];
    assert_eq!((&seen.head.method, seen.head.uri.to_string()), (&Method::PATCH, "http://one.example/a?b=c".into()));
    assert_eq!((seen.head.version, seen.header("x-mine")), (http::Version::HTTP_2, Some("yes")));
    assert_eq!(seen.head.headers.len(), 1);
    assert_eq!((seen.head.extensions.get(), seen.head.extensions.len()), (Some(&7_u8), 1));
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_the_request_and_its_number() {
    let server = Server::statuses([503, 200]);
    let mut request: Request<Body> = request("PUT", "http://one.example/a?b=c", "hello");
    *request.version_mut() = http::Version::HTTP_2;
    let request = request.header("x-mine", "yes").with(7_u8);
    RetryLayer::new(policy()).layer(server.clone()).oneshot(request).await.unwrap();
    let seen = &server.seen()[1];
    assert_eq!((&seen.head.method, seen.head.uri.to_string()), (&Method::PUT, "http://one.example/a?b=c".into()));
    assert_eq!((seen.head.version, seen.header("x-mine")), (http::Version::HTTP_2, Some("yes")));
    assert_eq!(seen.head.headers.len(), 1);
    assert_eq!((seen.head.extensions.get(), seen.head.extensions.len()), (Some(&7_u8), 2));
    assert_eq!(seen.head.extensions.get::<AttemptNumber>(), Some(&AttemptNumber(2)));
}

#[tokio::test(start_paused = true)]
async fn every_header_comes_again_as_it_was() {
    let server = Server::statuses([503]);
    let mut request: Request<Body> = request("PUT", "http://one.example/", "hello");
    let headers = request.headers_mut();
    for value in ["one", "", "two", "one"] {
        headers.append("x-several", value.parse().unwrap());
    }
    let mut secret: HeaderValue = "Bearer x".parse().unwrap();
    secret.set_sensitive(true);
    headers.insert("authorization", secret.clone());
    headers.append("x-several", secret);
    headers.append("x-several", HeaderValue::from_bytes(b"\xff\x80 opaque").unwrap());
    headers.insert("x-long", HeaderValue::from_bytes(&[b'l'; 100_000]).unwrap());
    let expected = request.headers().clone();
    RetryLayer::new(policy()).layer(server.clone()).oneshot(request).await.unwrap();
    assert_eq!(server.count(), 3);
    for seen in server.seen() {
        let several = |headers: &http::HeaderMap| -> Vec<_> {
            let values = headers.get_all("x-several").iter();
            values.map(|value| (value.clone(), value.is_sensitive())).collect()
        };
        assert_eq!(seen.head.headers, expected);
        assert_eq!(several(&seen.head.headers), several(&expected), "in the same order");
        assert!(seen.head.headers["authorization"].is_sensitive());
    }
}

#[tokio::test(start_paused = true)]
async fn request_of_most_headers_is_retried() {
    let server = Server::statuses([503, 200]);
    let mut request: Request<Body> = request("PUT", "http://one.example/", "hello");
    for _ in 0..30_000 {
        request.headers_mut().append("x-several", HeaderValue::from_static("v"));
    }
    RetryLayer::new(policy()).layer(server.clone()).oneshot(request).await.unwrap();
    assert_eq!(server.seen()[1].head.headers.len(), 30_000);
}
