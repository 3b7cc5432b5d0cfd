//! A body of 2 KiB that breaks at each of its bytes, over HTTP/1 and HTTP/2.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::{PeekBodyLayer, ReplayBody};
use reattempt_faults::{End, Reply, Script, Server};
use tower::{BoxError, Layer, Service, ServiceExt};

use super::support::{Full, request, retries};

const LENGTH: usize = 2048;

fn content() -> Bytes {
    (0..LENGTH).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

/// The responses of one manner, the broken ones each followed by the whole one.
fn pairs(cuts: impl Iterator<Item = Reply>, whole: &Reply) -> Script<Reply> {
    Script::new(cuts.flat_map(|cut| [cut, whole.clone()]).collect::<Vec<_>>())
}

/// An HTTP/1 response in bytes, as head and body.
fn http1(chunked: bool) -> (Vec<u8>, Vec<u8>) {
    let content = content();
    match chunked {
        true => {
            let (first, second) = content.split_at(1000);
            let body = [&b"3e8\r\n"[..], first, b"\r\n418\r\n", second, b"\r\n0\r\n\r\n"].concat();
            (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(), body)
        }
        false => (format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n").into_bytes(), content.to_vec()),
    }
}

fn http_client(http2: bool) -> Client<HttpConnector, ReplayBody<Full>> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).http2_only(http2).build(connector)
}

async fn fetch<S, B>(client: &S, request: Request<Full>) -> Result<Bytes, BoxError>
where
    S: Service<Request<Full>, Response = Response<B>, Error: Into<BoxError>> + Clone,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>>,
{
    let response = client.clone().oneshot(request).await.map_err(Into::into)?;
    assert_eq!(response.status(), StatusCode::OK);
    Ok(response.into_body().collect().await.map_err(Into::into)?.to_bytes())
}

/// Every call that breaks at a byte of the first response gets the whole of the second.
async fn breaks_at_every_byte(server: &Server, cuts: usize, http2: bool) {
    let http = http_client(http2);
    let client = retries().layer(PeekBodyLayer::new().layer(http));
    for cut in 0..cuts {
        let method = ["GET", "PUT"][cut % 2];
        let body = fetch(&client, request(method, &server.url(&format!("/{cut}")))).await;
        assert_eq!(body.expect("a whole body"), content(), "after {cut} bytes");
    }
    // Each call gets the next pair of replies, so none sent more or fewer.
    assert_eq!(server.ledger().arrivals().len(), 2 * cuts);
}

async fn breaks_over_http1(chunked: bool, ends: [End; 2]) {
    let (head, body) = http1(chunked);
    let whole = Reply::raw([&head[..], &body].concat());
    let cut = |cut: usize| Reply::raw([&head[..], &body[..cut]].concat()).end_with(ends[cut % 2]);
    let server = Server::http1(pairs((0..body.len()).map(cut), &whole)).await.unwrap();
    breaks_at_every_byte(&server, body.len(), false).await;
}

async fn breaks_over_http2(end: End) {
    let whole = Reply::default().body(content());
    // A step of 7 meets each kind of frame; every byte of it takes ten times as long as over HTTP/1.
    let cuts: Vec<_> = (0..LENGTH).step_by(7).collect();
    let replies = cuts.iter().map(|cut| whole.clone().cut(*cut).end_with(end));
    let server = Server::http2(pairs(replies, &whole)).await.unwrap();
    breaks_at_every_byte(&server, cuts.len(), true).await;
}

// BI-1, B-5, field 17
#[tokio::test]
async fn length_and_reset_is_whole_at_every_byte() {
    breaks_over_http1(false, [End::Reset; 2]).await;
}

// BI-1, B-5
#[tokio::test]
async fn length_and_fin_is_whole_at_every_byte() {
    breaks_over_http1(false, [End::Close; 2]).await;
}

/// By turns, the server resets the connection and closes it.
// BI-1, B-5
#[tokio::test]
async fn chunks_are_whole_at_every_byte() {
    breaks_over_http1(true, [End::Reset, End::Close]).await;
}

// BI-1, B-5
#[tokio::test]
async fn http2_reset_stream_is_whole() {
    breaks_over_http2(End::ResetStream(2)).await;
}

// BI-1, B-5
#[tokio::test]
async fn http2_lost_connection_is_whole() {
    breaks_over_http2(End::Close).await;
}

/// A key makes a POST repeatable, so it comes back whole too.
// BI-1
#[tokio::test]
async fn keyed_post_is_whole() {
    let (head, body) = http1(false);
    let cut = Reply::raw([&head[..], &body[..500]].concat()).end_with(End::Reset);
    let whole = Reply::raw([&head[..], &body].concat());
    let server = Server::http1([cut, whole]).await.unwrap();
    let client = retries().layer(PeekBodyLayer::new().layer(http_client(false)));
    let mut request = request("POST", &server.url("/order"));
    request.headers_mut().insert("idempotency-key", "\"1\"".parse().unwrap());
    assert_eq!(fetch(&client, request).await.unwrap(), content());
}

/// The server has carried the POST out, so it is sent once, and its caller gets the client's own error.
// BI-5, BI-8, B-5
#[tokio::test]
async fn post_without_key_is_sent_once() {
    for (http2, end) in [(false, End::Reset), (false, End::Close), (true, End::ResetStream(7)), (true, End::Close)] {
        let cut = Reply::default().body(content()).content_length(LENGTH as u64);
        // Over HTTP/1 the head counts.
        let cut = cut.cut(if http2 { 500 } else { 1000 }).end_with(end).carried_out(true);
        let server = match http2 {
            true => Server::http2([cut]).await.unwrap(),
            false => Server::http1([cut]).await.unwrap(),
        };
        let http = http_client(http2);
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
    let client = retries().layer(PeekBodyLayer::new().layer(http_client(false)));
    assert_eq!(fetch(&client, request("GET", &server.url("/"))).await.unwrap(), "well");
    let arrivals = server.ledger().arrivals();
    let connections: Vec<_> = arrivals.iter().map(|arrival| arrival.connection).collect();
    assert_eq!(connections.len(), 2);
    assert_eq!(connections[0], connections[1]);
}
