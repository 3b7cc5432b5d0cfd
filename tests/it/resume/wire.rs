//! hyper-util's client: a body that breaks at every byte, over HTTP/1.1 and HTTP/2, with and without TLS.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Empty};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::RetryBudget;
use reattempt::resume::{BrokenOff, Mismatch, NotContinued, Resume};
use reattempt::schedule::Constant;
use reattempt_faults::{End, Http2, Reply, Server, Tls};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;
use tower::{Layer, ServiceExt};

use super::{HANGS, LENGTH, content, head, layer, rest, whole};

type Download = Resume<Client<HttpsConnector<HttpConnector>, Empty<Bytes>>, Constant, RetryBudget>;

/// Returns a client that trusts the certificate, and offers both versions in a handshake.
fn client(tls: &Tls, http2: bool) -> Download {
    let mut roots = RootCertStore::empty();
    roots.add(tls.certificate_der().to_vec().into()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
    let connector = if http2 { connector.enable_http2().build() } else { connector.enable_http1().build() };
    layer().layer(Client::builder(TokioExecutor::new()).http2_only(http2).build(connector))
}

async fn start(tls: Option<&Tls>, http2: bool, script: Vec<Reply>) -> Server {
    match (tls, http2) {
        (None, false) => Server::http1(script).await,
        (None, true) => Server::http2(script).await,
        (Some(tls), false) => Server::http1_tls(tls, script).await,
        (Some(tls), true) => Server::http2_tls(tls, Http2::new(), script).await,
    }
    .unwrap()
}

/// Downloads, and returns the bytes with the error if there is one.
async fn download(client: &Download, url: String) -> (Vec<u8>, Option<String>) {
    let reading = async {
        let response = client.clone().oneshot(Request::get(url).body(Empty::new()).unwrap()).await.unwrap();
        let (mut body, mut data) = (response.into_body(), Vec::new());
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => data.extend(frame.into_data().unwrap_or_default()),
                Err(error) => return (data, Some(error.to_string())),
            }
        }
        (data, None)
    };
    timeout(HANGS, reading).await.unwrap()
}

/// Downloads once for each byte at which the body breaks. The server's script fails the test if a request is missing or
/// one too many.
async fn every_byte(secure: bool, http2: bool, end: End) {
    let tls = Tls::new().unwrap();
    let client = client(&tls, http2);
    // Over HTTP/2 a cut of 0 sends no head.
    let cuts = (usize::from(http2)..LENGTH).collect::<Vec<_>>();
    let script = cuts.iter().flat_map(|&cut| {
        let sent = if http2 { cut } else { head() + cut };
        [whole(1).cut(sent).end_with(end), rest(1, cut)]
    });
    let server = start(secure.then_some(&tls), http2, script.collect()).await;
    for cut in cuts {
        let (data, error) = download(&client, server.url("/film")).await;
        assert_eq!((error, data == content(1)), (None, true), "broken at {cut}");
    }
    server.finish().unwrap();
}

#[tokio::test]
async fn http1_body_is_continued_at_every_byte() {
    every_byte(false, false, End::Close).await;
}

/// A reset may overtake bytes that were sent, so the client decides where the rest begins.
#[tokio::test]
async fn http2_body_is_continued_at_every_byte() {
    every_byte(false, true, End::ResetStream(2)).await;
}

/// A handshake precedes each download.
#[tokio::test]
async fn http1_tls_body_is_continued() {
    every_byte(true, false, End::Close).await;
}

#[tokio::test]
async fn http2_tls_body_is_continued() {
    every_byte(true, true, End::ResetStream(2)).await;
}

/// Every end of a stream in the middle of its body. hyper reports NO_ERROR as an end without an error.
#[tokio::test]
async fn every_end_of_a_stream_is_continued() {
    let tls = Tls::new().unwrap();
    let resets = (0..=13).map(End::ResetStream);
    for end in resets.chain([End::Close, End::Reset]) {
        let client = client(&tls, true);
        let server = start(None, true, vec![whole(1).cut(1000).end_with(end), rest(1, 1000)]).await;
        let (data, error) = download(&client, server.url("/film")).await;
        if end == End::Reset && data.len() != LENGTH {
            // The reset overtook the data.
            drop(server.finish());
            continue;
        }
        assert_eq!((error, data == content(1)), (None, true), "{end:?}");
        server.finish().unwrap();
    }
}

/// A GOAWAY that allows the stream does not break the body; the next request needs a new connection.
#[tokio::test]
async fn goaway_in_the_middle_is_survived() {
    let tls = Tls::new().unwrap();
    let client = client(&tls, true);
    let server = start(None, true, vec![whole(1).end_with(End::GoAwayAbove(0)), whole(1)]).await;
    for _ in 0..2 {
        let (data, error) = download(&client, server.url("/film")).await;
        assert_eq!((error, data == content(1)), (None, true));
    }
    server.finish().unwrap();
}

/// An early end without an error is an error if it is not continued.
#[tokio::test]
async fn early_end_of_a_stream_is_an_error() {
    let tls = Tls::new().unwrap();
    let client = client(&tls, true);
    let script = vec![whole(1).cut(1000).end_with(End::ResetStream(0)), whole(2)];
    let server = start(None, true, script).await;
    let response = client.oneshot(Request::get(server.url("/film")).body(Empty::new()).unwrap()).await.unwrap();
    let error = response.into_body().collect().await.unwrap_err();
    let refused = error.downcast::<NotContinued>().unwrap();
    assert_eq!(refused.mismatch(), Mismatch::Status(http::StatusCode::OK));
    let error = refused.into_break().downcast::<BrokenOff>().unwrap();
    assert_eq!((error.received(), error.total()), (1000, 4096));
    server.finish().unwrap();
}

/// An answer that begins earlier, and one with the whole content, are read from the first missing byte on.
#[tokio::test]
async fn repeated_bytes_are_skipped() {
    let tls = Tls::new().unwrap();
    for http2 in [false, true] {
        let sent = if http2 { 1000 } else { head() + 1000 };
        for answer in [whole(1), rest(1, 999), rest(1, 0)] {
            let server = start(None, http2, vec![whole(1).cut(sent).end_with(End::Close), answer]).await;
            let (data, error) = download(&client(&tls, http2), server.url("/film")).await;
            assert_eq!((error, data == content(1)), (None, true));
            server.finish().unwrap();
        }
    }
}

/// A changed file, and every other answer that does not continue the body, over both versions.
#[tokio::test]
async fn changed_content_is_not_joined() {
    let tls = Tls::new().unwrap();
    for http2 in [false, true] {
        let sent = if http2 { 1000 } else { head() + 1000 };
        let weak = HeaderValue::from_static("W/\"1\"");
        let answers = [
            whole(2),
            rest(2, 1000),
            rest(1, 1001),
            Reply::status(http::StatusCode::RANGE_NOT_SATISFIABLE),
            Reply::status(http::StatusCode::PARTIAL_CONTENT).header(http::header::ETAG, weak).body(content(1)),
            // More than the head announces: hyper ends the body at its length.
            rest(1, 1000).content_length(5000).end_with(End::Close),
        ];
        for answer in answers {
            let server = start(None, http2, vec![whole(1).cut(sent).end_with(End::Close), answer]).await;
            let (data, error) = download(&client(&tls, http2), server.url("/film")).await;
            assert!(data.len() == 1000 && content(1).starts_with(&data), "{} bytes", data.len());
            assert!(error.is_some());
            server.finish().unwrap();
        }
    }
}

/// A `Content-Length` beyond the content: the server has no rest, so the caller gets the break.
#[tokio::test]
async fn lying_length_is_a_break() {
    let tls = Tls::new().unwrap();
    let answer = Reply::status(http::StatusCode::RANGE_NOT_SATISFIABLE);
    let server = start(None, false, vec![whole(1).content_length(5000).end_with(End::Close), answer]).await;
    let (data, error) = download(&client(&tls, false), server.url("/film")).await;
    assert_eq!((data == content(1), error.is_some()), (true, true));
    server.finish().unwrap();
}
