//! reqwest's client, and a function in place of a client.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, ETAG, LOCATION};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::report::ReportSlot;
use reattempt::resume::{Checkpoint, Continuation, ResumePoint};
use reattempt::{CallOptions, ReqwestExt, StopReason};
use reattempt_faults::{End, Reply, Server};
use tokio::time::timeout;
use tower::{Layer, ServiceExt};

use super::{HANGS, LENGTH, content, head, layer, rest, tag, whole};

fn bare() -> reqwest::Client {
    reqwest::Client::builder().retry(reqwest::retry::never()).no_proxy().build().unwrap()
}

/// The response is reqwest's own, with its URL and status, and its body is read without a gap.
#[tokio::test]
async fn reqwest_body_is_continued() {
    let cuts = [0, 1, 1000, 4095];
    let script = cuts.iter().flat_map(|&cut| [whole(1).cut(head() + cut).end_with(End::Close), rest(1, cut)]);
    let server = Server::http1(script.collect::<Vec<_>>()).await.unwrap();
    let http = bare();
    let client = layer().layer(http.clone());
    for _ in cuts {
        let slot = ReportSlot::default();
        let client = client.with_options(CallOptions::new().report_to(&slot));
        let response: reqwest::Response = http.get(server.url("/film?a=b")).send_with(&client).await.unwrap();
        assert_eq!(response.url().as_str(), server.url("/film?a=b"));
        assert_eq!((response.status(), response.content_length()), (StatusCode::OK, Some(4096)));
        let data = timeout(HANGS, response.bytes()).await.unwrap().unwrap();
        assert!(data == content(1));
        assert_eq!(slot.take().unwrap().stop_reason(), StopReason::Succeeded);
    }
    server.finish().unwrap();
}

/// The error in reqwest's error is reqwest's own.
#[tokio::test]
async fn reqwest_gets_break_of_changed_content() {
    let script = vec![whole(1).cut(head() + 1000).end_with(End::Close), rest(2, 1000)];
    let server = Server::http1(script).await.unwrap();
    let client = layer().layer(bare());
    let request = bare().get(server.url("/film")).build().unwrap();
    let error = timeout(HANGS, client.oneshot(request).await.unwrap().bytes()).await.unwrap().unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert!(source.is::<reqwest::Error>(), "{source:?}");
    server.finish().unwrap();
}

/// A redirect may lead to another signed address each time, if the content has the same tag.
// field 29
#[tokio::test]
async fn redirect_to_signed_address_is_joined() {
    let found =
        |place: &'static str| Reply::status(StatusCode::FOUND).header(LOCATION, HeaderValue::from_static(place));
    for (place, version, joined) in [("/one", 1, true), ("/two", 1, true), ("/one?again", 1, true), ("/two", 2, false)]
    {
        let broken = whole(1).cut(head() + 1000).end_with(End::Close);
        let script = vec![found("/one"), broken, found(place), rest(version, 1000)];
        let server = Server::http1(script).await.unwrap();
        let client = layer().layer(bare());
        let request = bare().get(server.url("/latest")).build().unwrap();
        let read = timeout(HANGS, client.oneshot(request).await.unwrap().bytes()).await.unwrap();
        assert_eq!(read.is_ok_and(|data| data == content(1)), joined, "{place}");
        server.finish().unwrap();
    }
}

/// The address behind the redirect gets no credentials, in the first request and in the resume.
// field 29
#[tokio::test]
async fn credentials_stay_at_callers_address() {
    let broken = whole(1).cut(head() + 1000).end_with(End::Close);
    let signed = Server::http1(vec![broken, rest(1, 1000)]).await.unwrap();
    let found = Reply::status(StatusCode::FOUND).header(LOCATION, signed.url("/one").parse().unwrap());
    let server = Server::http1(vec![found.clone(), found]).await.unwrap();
    let request = bare().get(server.url("/latest")).bearer_auth("secret").header(COOKIE, "secret").build().unwrap();
    let response = layer().layer(bare()).oneshot(request).await.unwrap();
    assert!(timeout(HANGS, response.bytes()).await.unwrap().unwrap() == content(1));
    for (server, has) in [(&server, true), (&signed, false)] {
        let arrivals = server.ledger().arrivals();
        let credentials =
            arrivals.iter().flat_map(|seen| [AUTHORIZATION, COOKIE].map(|name| seen.headers.contains_key(name)));
        assert_eq!(credentials.collect::<Vec<_>>(), [has; 4]);
    }
}

/// reqwest goes on from an offset that an earlier process stored, and the rest is resumed when it breaks.
#[tokio::test]
async fn reqwest_goes_on_from_stored_offset() {
    let broken = rest(1, 1000).content_length(3096).end_with(End::Close);
    let head = "HTTP/1.1 206 Partial Content\r\netag: \"1\"\r\ncontent-range: bytes 1000-4095/4096\r\n\
                content-length: 3096\r\n\r\n";
    let server = Server::http1(vec![broken.cut(head.len() + 500), rest(1, 1500), whole(2)]).await.unwrap();
    let checkpoint = Checkpoint::new(1000, tag(1)).unwrap().total(4096);
    for (expected, data) in [(None, content(1).slice(1000..)), (Some(true), content(2))] {
        let mut request = bare().get(server.url("/film")).build().unwrap();
        checkpoint.write_to(request.headers_mut());
        let response = layer().layer(bare()).oneshot(request).await.unwrap();
        let found = match checkpoint.check(response.status(), response.headers()).unwrap() {
            Continuation::Whole { changed } => Some(changed),
            _ => None,
        };
        assert_eq!(found, expected);
        assert!(timeout(HANGS, response.bytes()).await.unwrap().unwrap() == data);
    }
    server.finish().unwrap();
}

/// A function of the missing part, for any other client.
#[tokio::test]
async fn function_is_source_of_the_rest() {
    let script = vec![whole(1).cut(head() + 1000).end_with(End::Close), rest(1, 1000)];
    let server = Server::http1(script).await.unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let request = Arc::new(Request::get(server.url("/film")).body(()).unwrap());
    let response = client.request((*request).clone().map(|()| Empty::new())).await.unwrap();
    let again = Arc::clone(&request);
    let source = move |point: ResumePoint| {
        assert_eq!((point.received(), point.missing()), (1000, 3096));
        let mut request = (*again).clone().map(|()| Empty::new());
        point.write_to(request.headers_mut());
        client.request(request)
    };
    let response = layer().resumed(&request, response, source);
    let data = timeout(HANGS, response.into_body().collect()).await.unwrap().unwrap().to_bytes();
    assert!(data == content(1) && data.len() == LENGTH);
    server.finish().unwrap();
}

/// A body without a length, as a decoder leaves it, is not resumed.
#[tokio::test]
async fn chunked_body_is_not_resumed() {
    let trailers = http::HeaderMap::new();
    let chunked = Reply::status(StatusCode::OK).header(ETAG, tag(1)).body(content(1)).trailers(trailers);
    let server = Server::http1(vec![chunked.cut(2000).end_with(End::Close)]).await.unwrap();
    let client = layer().layer(bare());
    let request = bare().get(server.url("/film")).build().unwrap();
    assert!(timeout(HANGS, client.oneshot(request).await.unwrap().bytes()).await.unwrap().is_err());
    assert_eq!(server.ledger().connections(), 1);
    server.finish().unwrap();
}
