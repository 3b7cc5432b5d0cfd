//! Resumes that go to another replica.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::endpoints::EndpointsLayer;
use reattempt_faults::{End, Server};
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
