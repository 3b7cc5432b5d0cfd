//! Resumes that go to another replica.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::endpoints::{Endpoints, EndpointsLayer};
use reattempt::schedule::Constant;
use reattempt::{Http, ReplayBody, Report, RetryLayer, RetryPolicy};
use reattempt_faults::{End, Reply, Script, Server};
use tokio::time::timeout;
use tower::{ServiceBuilder, ServiceExt};

use super::{HANGS, content, head, layer, rest, whole};

/// The first replica stops after it sent half of the body. The other continues only the same version.
#[tokio::test]
async fn replica_with_same_tag_continues() {
    for (version, joined) in [(1, true), (2, false)] {
        let first = Server::http1(vec![whole(1).cut(head() + 1000).end_with(End::Close)]).await.unwrap();
        let second = Server::http1(vec![rest(version, 1000)]).await.unwrap();
        let urls = [first.url("/files"), second.url("/files")];
        let layer_of_endpoints = EndpointsLayer::http(&urls[..1]).unwrap();
        let endpoints = layer_of_endpoints.endpoints();
        let client = ServiceBuilder::new()
            .layer(layer())
            .layer(layer_of_endpoints)
            .service(Client::builder(TokioExecutor::new()).build_http());
        let request = Request::get(format!("{}/film", urls[0])).body(Empty::<Bytes>::new()).unwrap();
        let response = client.oneshot(request).await.unwrap();
        endpoints.update_urls([&urls[1]]).unwrap();
        first.finish().unwrap();
        let read = timeout(HANGS, response.into_body().collect()).await.unwrap();
        assert_eq!(read.is_ok_and(|all| all.to_bytes() == content(1)), joined, "version {version}");
        assert_eq!(second.ledger().connections(), 1);
        second.finish().unwrap();
    }
}

/// A resume prefers a replica that the download has not tried. hyper reports the early end of a stream as success, so
/// only the trail shows which replica it was.
// E-1
#[tokio::test]
async fn resume_prefers_another_replica() {
    for round in 0..20 {
        let broken = whole(1).cut(1000).end_with(End::ResetStream(0));
        let first = Server::http2(vec![broken]).await.unwrap();
        let second = Server::http2(vec![rest(1, 1000)]).await.unwrap();
        let urls = [first.url(""), second.url("")];
        let layer_of_endpoints = EndpointsLayer::http(&urls[..1]).unwrap();
        let endpoints = layer_of_endpoints.endpoints();
        let client = ServiceBuilder::new()
            .layer(layer())
            .layer(layer_of_endpoints)
            .service(Client::builder(TokioExecutor::new()).http2_only(true).build_http());
        let request = Request::get(format!("{}/film", urls[0])).body(Empty::<Bytes>::new()).unwrap();
        let response = client.oneshot(request).await.unwrap();
        endpoints.update_urls(&urls).unwrap();
        let read = timeout(HANGS, response.into_body().collect()).await.unwrap();
        assert!(read.is_ok_and(|all| all.to_bytes() == content(1)), "round {round}");
        first.finish().unwrap();
        second.finish().unwrap();
    }
}

/// A retry layer around the resumes learns which server an attempt used, and goes to the other. Otherwise a keyed POST
/// could reach servers that do not know its key.
// E-1
#[tokio::test]
async fn retry_around_resumes_sees_the_endpoint() {
    for (method, round) in (0..10).flat_map(|round| [(Method::GET, round), (Method::POST, round)]) {
        let server = || Server::http1(vec![Reply::status(StatusCode::SERVICE_UNAVAILABLE).body(Bytes::new())]);
        let (first, second) = (server().await.unwrap(), server().await.unwrap());
        let urls = [first.url(""), second.url("")];
        let policy = RetryPolicy::http().max_attempts(2).backoff(Constant::immediate());
        let client = ServiceBuilder::new()
            .layer(RetryLayer::new(policy.boxed_errors()))
            .layer(layer())
            .layer(EndpointsLayer::http(&urls).unwrap())
            .service(Client::builder(TokioExecutor::new()).build_http::<ReplayBody<Full<Bytes>>>());
        let request =
            Request::builder().method(&method).uri(format!("{}/film", urls[0])).header("idempotency-key", "1");
        let response = client.oneshot(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
        let report = response.extensions().get::<Report>().unwrap();
        let endpoints: Vec<_> = report.attempts().iter().map(|attempt| attempt.endpoint.as_deref()).collect();
        assert!(endpoints.iter().all(Option::is_some), "{method}, round {round}: {endpoints:?}");
        let arrivals = [&first, &second].map(|server| server.ledger().arrivals().len());
        assert_eq!(arrivals, [1, 1], "{method}, round {round}");
        first.finish().unwrap();
        second.finish().unwrap();
    }
}

/// With tiers, a keyed POST goes to the later tier only with proof that the first did not process it.
// E-2
#[tokio::test]
async fn retry_around_resumes_sees_the_tier() {
    for (method, status, expected) in
        [(Method::POST, 503, [1, 0]), (Method::POST, 429, [1, 1]), (Method::GET, 503, [1, 1])]
    {
        let fails = Reply::status(status.try_into().unwrap());
        let (first, second) = (Server::http1([fails]).await.unwrap(), Server::http1(Script::default()).await.unwrap());
        let urls = [first.url(""), second.url("")];
        let tiers = Endpoints::urls(&urls[..1]).unwrap().or_else_urls(&urls[1..]).unwrap();
        let policy = RetryPolicy::http().max_attempts(2).backoff(Constant::immediate());
        let client = ServiceBuilder::new()
            .layer(RetryLayer::new(policy.boxed_errors()))
            .layer(layer())
            .layer(EndpointsLayer::with(Http::new(), tiers))
            .service(Client::builder(TokioExecutor::new()).build_http::<ReplayBody<Full<Bytes>>>());
        let request = Request::builder().method(&method).uri(format!("{}/film", urls[0]));
        let request = request.header("idempotency-key", "1").body(Full::<Bytes>::default()).unwrap();
        client.oneshot(request).await.unwrap();
        let arrivals = [&first, &second].map(|server| server.ledger().arrivals().len());
        assert_eq!(arrivals, expected, "{method}, {status}");
    }
}
