//! A body of 2 KiB that breaks at each of its bytes, over HTTP/1 and HTTP/2, with and without TLS.

use std::time::Duration;

use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::peek_body::PeekedBody;
use reattempt::{PeekBodyLayer, ReplayBody};
use reattempt_faults::{End as Ends, Reply, Server};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tower::{Layer, ServiceExt};

use super::support::{Full, request, retries};
use super::wire::{self, CONTENT, End, LENGTH, Manner, Wire};

/// A method, and `true` for an idempotency key. The last call must not be repeated.
const CALLS: [(&str, bool); 4] = [("GET", false), ("PUT", false), ("POST", true), ("POST", false)];

/// The calls that are tried at each byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tried {
    /// One of all calls, in turn, at each 16th byte: each response costs a handshake.
    Few,
    /// One of all calls, in turn.
    One,
    /// The one that must not be repeated, and one of the others, in turn.
    Two,
}

type Https = Client<HttpsConnector<HttpConnector>, ReplayBody<Full>>;

fn http_client(http2: bool, tls: Option<ClientConfig>) -> Https {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.enforce_http(false);
    let tls = tls.unwrap_or_else(|| wire::trusting(RootCertStore::empty()));
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    let connector = builder.enable_http1().wrap_connector(connector);
    Client::builder(TokioExecutor::new()).http2_only(http2).build(connector)
}

/// Calls whose first response breaks after each byte of its body. A call that may be repeated gets the whole body with
/// two requests. Any other is sent once, and its caller gets the part and the break.
async fn breaks_at_every_byte(manner: Manner, tls: bool, tried: Tried, ends: &[End]) {
    let (wire, address, trusting) = Wire::start(manner, tls).await;
    let url = format!("{}://{address}/", if tls { "https" } else { "http" });
    // However slow the machine is, the bound on the time does not end the wait.
    let layer = PeekBodyLayer::new().within(Duration::from_secs(60));
    let client = retries().layer(layer.layer(http_client(manner.is_http2(), trusting)));
    for cut in 0..manner.length() {
        let calls = match tried {
            Tried::Few if cut % 16 > 0 => &[][..],
            Tried::Few => &[cut / 16 % 4],
            Tried::One => &[cut % 4],
            Tried::Two => &[cut % 3, 3],
        };
        for &place in calls {
            let ((method, keyed), end) = (CALLS[place], ends[(cut / 4 + cut / 64 + place) % ends.len()]);
            wire.break_next(cut, end);
            let mut request = request(method, &url);
            if keyed {
                request.headers_mut().insert("idempotency-key", HeaderValue::from_static("\"1\""));
            }
            let case = || format!("{method}, keyed: {keyed}, {end:?} after {cut} bytes");
            let response = client.clone().oneshot(request).await.unwrap_or_else(|error| panic!("{}: {error}", case()));
            assert_eq!(response.status(), StatusCode::OK, "{}", case());
            let repeated = place != 3;
            if repeated {
                let body = response.into_body().collect().await.unwrap_or_else(|error| panic!("{}: {error}", case()));
                assert!(body.to_bytes() == *CONTENT, "{}", case());
            } else {
                part_and_break(response.into_body(), manner, cut).await;
            }
            assert_eq!(wire.take_arrivals(), 1 + usize::from(repeated), "{}", case());
        }
    }
}

/// Reads a body that breaks after these bytes on the wire.
async fn part_and_break(mut body: PeekedBody<Incoming>, manner: Manner, cut: usize) {
    let mut part = Vec::new();
    let end = loop {
        match body.frame().await {
            Some(Ok(frame)) => part.extend_from_slice(frame.data_ref().unwrap()),
            end => break end,
        }
    };
    assert!(matches!(end, Some(Err(_))), "{manner:?} {cut}: {end:?}");
    assert!(CONTENT.starts_with(&part), "{manner:?} {cut}");
    if manner != Manner::Chunked {
        assert_eq!(part.len(), cut, "{manner:?}");
    }
}

const BOTH: [End; 2] = [End::Rst, End::Fin];
const STREAM: [End; 4] = [End::Stream(2), End::Stream(7), End::Rst, End::Fin];

// BI-1, BI-5, B-5, field 17
#[tokio::test]
async fn length_is_whole_at_every_byte() {
    breaks_at_every_byte(Manner::Length, false, Tried::Two, &BOTH).await;
}

// BI-1, BI-5, B-5
#[tokio::test]
async fn chunks_are_whole_at_every_byte() {
    breaks_at_every_byte(Manner::Chunked, false, Tried::Two, &BOTH).await;
}

/// A body whose end is that of the connection breaks only if that is reset.
// BI-1, BI-5, B-5
#[tokio::test]
async fn unknown_length_is_whole_at_every_byte() {
    breaks_at_every_byte(Manner::Unknown, false, Tried::One, &[End::Rst]).await;
}

// BI-1, BI-5, BI-8, B-5
#[tokio::test]
async fn http2_is_whole_at_every_byte() {
    breaks_at_every_byte(Manner::Http2Length, false, Tried::Two, &STREAM).await;
}

// BI-1, BI-5, BI-8, B-5
#[tokio::test]
async fn http2_unknown_is_whole_at_every_byte() {
    breaks_at_every_byte(Manner::Http2Unknown, false, Tried::One, &STREAM).await;
}

// BI-1, BI-5, B-5
#[tokio::test]
async fn tls_is_whole_at_every_byte() {
    breaks_at_every_byte(Manner::Length, true, Tried::One, &BOTH).await;
}

/// TLS shows that a connection ended too early, also where its end is that of the body.
// BI-1, BI-5, B-5
#[tokio::test]
async fn tls_of_unknown_length_is_whole() {
    breaks_at_every_byte(Manner::Unknown, true, Tried::Few, &BOTH).await;
}

// BI-1, BI-5, BI-8, B-5
#[tokio::test]
async fn tls_http2_is_whole_at_every_byte() {
    breaks_at_every_byte(Manner::Http2Length, true, Tried::One, &[End::Stream(2), End::Stream(7)]).await;
}

/// The server has carried the POST out, so it is sent once, and its caller gets the client's own error.
// BI-5, BI-8, B-5
#[tokio::test]
async fn post_without_key_is_sent_once() {
    for (http2, end) in [(false, Ends::Reset), (false, Ends::Close), (true, Ends::ResetStream(7)), (true, Ends::Close)]
    {
        let cut = Reply::default().body(CONTENT.clone()).content_length(LENGTH as u64);
        // Over HTTP/1 the head counts.
        let cut = cut.cut(if http2 { 500 } else { 1000 }).end_with(end).carried_out(true);
        let server = match http2 {
            true => Server::http2([cut]).await.unwrap(),
            false => Server::http1([cut]).await.unwrap(),
        };
        let http = http_client(http2, None);
        let client = retries().layer(PeekBodyLayer::new().layer(http));
        let response = client.oneshot(request("POST", &server.url("/pay"))).await.unwrap();
        let report = reattempt::Report::of(&response).expect("a report").to_string();
        assert!(report.contains("network") && report.contains(": "), "{report}");
        assert!(response.into_body().collect().await.is_err(), "{end:?}");
        server.ledger().no_unsafe_repeat().at_most_attempts(1);
    }
}

/// The body of a refused response was read to its end, so its connection is used again. It is longer than what would be
/// drained.
// B-14
#[tokio::test]
async fn refused_body_frees_the_connection() {
    let refused = Reply::status(StatusCode::SERVICE_UNAVAILABLE).body(vec![b'x'; 40_000]);
    let server = Server::http1([refused, Reply::default().body("well")]).await.unwrap();
    let client = retries().layer(PeekBodyLayer::new().layer(http_client(false, None)));
    let response = client.oneshot(request("GET", &server.url("/"))).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "well");
    let arrivals = server.ledger().arrivals();
    let connections: Vec<_> = arrivals.iter().map(|arrival| arrival.connection).collect();
    assert_eq!(connections.len(), 2);
    assert_eq!(connections[0], connections[1]);
}
