//! hyper-util's legacy client under the retry layer, against real servers.

use std::convert::Infallible;

use crate::support::{Server, chunked, quick, reply, status};
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::body::ReplayLimits;
use reattempt::report::ReportSlot;
use reattempt::retry::AttemptNumber;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, Http, ReplayBody, Report, Retry, RetryLayer, RetryPolicy, StopReason};
use reattempt_faults::{End, Read, Reply};
use tokio::sync::mpsc;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

type Quick<B> = Retry<Client<HttpConnector, ReplayBody<B>>, RetryPolicy<Http, Constant>>;

/// Returns a client with short delays.
fn client<B>() -> Quick<B>
where
    B: http_body::Body<Data = Bytes, Error = Infallible> + Send,
{
    let client = Client::builder(TokioExecutor::new()).build_http();
    ServiceBuilder::new().layer(RetryLayer::new(quick())).service(client)
}

fn request<B>(method: &str, server: &Server, body: B) -> Request<B> {
    Request::builder().method(method).uri(server.url("/")).body(body).unwrap()
}

fn streamed(
    chunks: &'static [&'static str],
) -> StreamBody<impl stream::Stream<Item = Result<Frame<Bytes>, Infallible>> + Send> {
    let frames = chunks.iter().map(|chunk| Ok(Frame::data(Bytes::from_static(chunk.as_bytes()))));
    StreamBody::new(stream::iter(frames))
}

/// Returns a body that the test feeds while it is sent.
fn fed() -> (mpsc::Sender<&'static [u8]>, UnsyncBoxBody<Bytes, Infallible>) {
    let (feed, source) = mpsc::channel(1);
    let frames = stream::unfold(source, async |mut source: mpsc::Receiver<&'static [u8]>| {
        let chunk = Bytes::from_static(source.recv().await?);
        Some((Ok(Frame::data(chunk)), source))
    });
    (feed, StreamBody::new(frames).boxed_unsync())
}

fn connections(server: &Server) -> Vec<usize> {
    server.seen().iter().map(|seen| seen.connection).collect()
}

/// Calls a client in a task, as users write it without naming a body type: once by `ready` and
/// `call`, and once by `oneshot`.
macro_rules! every_call_survives {
    ($body:expr, $sent:expr) => {{
        let server = Server::http1([status(503), status(200), status(503), status(200)]).await;
        let mut client =
            ServiceBuilder::new().layer(RetryLayer::http()).service(Client::builder(TokioExecutor::new()).build_http());

        let (other, first) = (client.clone(), request("PUT", &server, $body));
        let called = tokio::spawn(async move { client.ready().await?.call(first).await });
        assert_eq!(called.await.unwrap().unwrap().status(), StatusCode::OK);

        let second = tokio::spawn(other.oneshot(request("PUT", &server, $body)));
        assert_eq!(second.await.unwrap().unwrap().status(), StatusCode::OK);
        assert_eq!(server.bodies(), [$sent; 4]);
    }};
}

#[tokio::test]
async fn every_body_type_is_carried_and_inferred() {
    every_call_survives!(Full::new(Bytes::from("full")), "full");
    every_call_survives!(Empty::<Bytes>::new(), "");
    every_call_survives!(streamed(&["in ", "pieces"]), "in pieces");
    every_call_survives!(streamed(&["box", "ed"]).boxed(), "boxed");
    every_call_survives!(streamed(&["un", "sync"]).boxed_unsync(), "unsync");
    every_call_survives!(axum::body::Body::from("axum"), "axum");
    every_call_survives!(String::from("string"), "string");
}

#[tokio::test]
async fn streamed_put_is_sent_again_over_http2() {
    let server = Server::http2([status(503), status(429), status(200)]).await;
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(quick()))
        .service(Client::builder(TokioExecutor::new()).http2_only(true).build_http());
    let answer = client.oneshot(request("PUT", &server, streamed(&["a", "b", "c"]))).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(server.bodies(), ["abc", "abc", "abc"]);
    assert_eq!(connections(&server), [1, 1, 1]);
}

#[tokio::test]
async fn response_has_report_and_framing_is_kept() {
    let server = Server::http1([status(503)]).await;
    let mut request = request("PUT", &server, Full::new(Bytes::from("twelve bytes")));
    request.headers_mut().insert("x-own", "kept".parse().unwrap());
    let answer = client().oneshot(request).await.unwrap();
    let report = answer.extensions().get::<Report>().unwrap();
    assert_eq!((report.retries(), report.stop_reason()), (1, StopReason::Succeeded));
    for seen in server.seen() {
        assert_eq!(seen.headers["content-length"], "12");
        assert_eq!(seen.headers["x-own"], "kept");
    }
}

// trap 07
#[tokio::test]
async fn drained_connection_is_reused() {
    // A page that hyper does not read to its end by itself.
    let page = chunked(503, "an error page in chunks");
    let server = Server::http1([page.clone(), page, status(200)]).await;
    let answer = client().oneshot(request("GET", &server, Empty::new())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(connections(&server), [1, 1, 1]);
}

// trap 07
#[tokio::test]
async fn connection_with_huge_refusal_is_closed() {
    let huge = reply(503, vec![b'x'; 4 << 20]);
    let server = Server::http1([huge.clone(), huge, status(200)]).await;
    let answer = client().oneshot(request("GET", &server, Empty::new())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(connections(&server), [1, 2, 3]);
}

// trap 24
#[tokio::test]
async fn reset_request_is_retried_if_repeatable() {
    let server = Server::http1([Reply::reset()]).await;
    let answer = client().oneshot(request("GET", &server, Empty::new())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(server.seen().len(), 2);

    let server = Server::http1([Reply::reset()]).await;
    let slot = ReportSlot::default();
    let client = client().with_options(CallOptions::new().report_to(&slot));
    let error = client.clone().oneshot(request("POST", &server, Full::from("once"))).await;
    // The client's own error type, unwrapped.
    let error: hyper_util::client::legacy::Error = error.unwrap_err();
    assert!(!error.is_connect());
    assert_eq!(server.bodies(), ["once"]);
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::NotRepeatable);

    let server = Server::http1([Reply::reset()]).await;
    let mut keyed = request("POST", &server, Full::from("keyed"));
    keyed.headers_mut().insert(reattempt::classify::IDEMPOTENCY_KEY, "order-17".parse().unwrap());
    let answer = client.oneshot(keyed).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(server.bodies(), ["keyed", "keyed"]);
    assert!(server.seen().iter().all(|seen| seen.headers["idempotency-key"] == "order-17"));
}

#[tokio::test]
async fn reset_stream_is_retried_on_connection() {
    let server = Server::http2([status(503).cut(0).end_with(End::ResetStream(2))]).await;
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(quick()))
        .service(Client::builder(TokioExecutor::new()).http2_only(true).build_http());
    let answer = client.oneshot(request("GET", &server, Empty::<Bytes>::new())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(connections(&server), [1, 1]);
}

/// Refuses the first attempt during its upload; the rest of the upload belongs to the second.
async fn early_refusal(server: Server, http2: bool) -> Server {
    static CHUNK: &[u8] = &[b'u'; 64 * 1024];
    let limits = ReplayLimits::default().per_call(1 << 20);
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(quick().protocol(|http| http.replay(limits))))
        .service(Client::builder(TokioExecutor::new()).http2_only(http2).build_http());
    let (feed, body) = fed();
    let call = tokio::spawn(client.oneshot(request("PUT", &server, body)));
    feed.send(CHUNK).await.unwrap();
    server.arrived(2).await;
    for _ in 0..7 {
        feed.send(CHUNK).await.unwrap();
    }
    drop(feed);
    assert_eq!(call.await.unwrap().unwrap().status(), StatusCode::OK);
    server
}

// trap 02
#[tokio::test]
async fn upload_refused_early_is_sent_again_whole() {
    let script = || [status(503).read(Read::Head), status(200)];
    for server in [
        early_refusal(Server::http1(script()).await, false).await,
        early_refusal(Server::http2(script()).await, true).await,
    ] {
        let [first, second] = &server.seen()[..] else { panic!("two attempts") };
        assert!(!first.whole, "the first upload was broken off");
        assert_eq!(second.body.len(), 8 * 64 * 1024);
    }
}

// trap 04
#[tokio::test]
async fn trap_04_a_body_over_the_cap_is_sent_once() {
    let server = Server::http1([status(503)]).await;
    let chunk = "l".repeat(16 * 1024).leak();
    let large = streamed(vec![&*chunk, chunk, chunk, chunk, "l"].leak());
    let answer = client().oneshot(request("PUT", &server, large)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "the last real outcome");
    let report = answer.extensions().get::<Report>().unwrap();
    assert_eq!(report.stop_reason(), StopReason::BodyNotKept);
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "short");
    assert_eq!(server.bodies().iter().map(String::len).collect::<Vec<_>>(), [64 * 1024 + 1]);
}

#[tokio::test]
async fn body_in_memory_over_cap_is_sent_again() {
    let server = Server::http1([status(503)]).await;
    let large = Full::new(Bytes::from(vec![b'l'; 64 * 1024 + 1]));
    let answer = client().oneshot(request("PUT", &server, large)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let lengths = server.bodies().iter().map(String::len).collect::<Vec<_>>();
    assert_eq!(lengths, [64 * 1024 + 1; 2]);
}

#[tokio::test]
async fn layer_below_sees_the_attempt_number() {
    let server = Server::http1([status(503), status(503)]).await;
    let (numbers, mut seen) = mpsc::unbounded_channel();
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(quick()))
        .map_request(move |request: Request<ReplayBody<Empty<Bytes>>>| {
            numbers.send(request.extensions().get::<AttemptNumber>().copied()).unwrap();
            request
        })
        .service(Client::builder(TokioExecutor::new()).build_http());
    client.oneshot(request("GET", &server, Empty::new())).await.unwrap();
    let mut numbers = Vec::new();
    seen.recv_many(&mut numbers, 9).await;
    assert_eq!(numbers, [None, Some(AttemptNumber(2)), Some(AttemptNumber(3))]);
}

#[tokio::test]
async fn refused_connection_is_retried() {
    // The port stays bound, without a listener yet.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let idle = std::sync::Mutex::new(Some(socket));
    let (started, mut listener) = mpsc::unbounded_channel();
    let policy = quick().observe_with(move |_: &str, event: &reattempt::observe::Event<'_>| {
        if let reattempt::observe::Event::WillRetry { .. } = event
            && let Some(socket) = idle.lock().unwrap().take()
        {
            started.send(socket.listen(8).unwrap()).unwrap();
        }
    });
    let server = tokio::spawn(async move {
        let listener = listener.recv().await.unwrap();
        let answer = axum::Router::new().fallback(async || "here now");
        axum::serve(listener, answer).await
    });
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy))
        .service(Client::builder(TokioExecutor::new()).build_http());
    // A POST: nothing was sent, so it may go again.
    let request = Request::post(format!("http://{address}/")).body(Full::new(Bytes::from("body")));
    let answer = client.oneshot(request.unwrap()).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "here now");
    server.abort();
}

// trap 41
#[tokio::test]
async fn expect_continue_waits_for_inner_client() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    // The inner client is slow, and reads the body of a PUT only.
    let inner = tower::service_fn(|request: Request<ReplayBody<hyper::body::Incoming>>| async {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        if request.method() == http::Method::PUT {
            request.into_body().collect().await.unwrap();
        }
        Ok::<_, Infallible>(Response::builder().status(400).body(Full::<Bytes>::default()).unwrap())
    });
    let client = RetryLayer::http().layer(inner);
    let proxy = hyper::service::service_fn(move |request| client.clone().oneshot(request));
    for (method, coding, begins) in [
        ("POST", "content-length: 2", "HTTP/1.1 400"),
        ("POST", "transfer-encoding: chunked", "HTTP/1.1 400"),
        ("PUT", "content-length: 2", "HTTP/1.1 100"),
        ("PUT", "transfer-encoding: chunked", "HTTP/1.1 100"),
    ] {
        let (mut client, stream) = tokio::io::duplex(10_000);
        let server = hyper::server::conn::http1::Builder::new()
            .serve_connection(hyper_util::rt::TokioIo::new(stream), proxy.clone());
        let server = tokio::spawn(server);
        let head = format!("{method} / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n{coding}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        let mut line = [0; 12];
        let read = client.read_exact(&mut line);
        tokio::time::timeout(std::time::Duration::from_secs(60), read).await.unwrap().unwrap();
        assert_eq!(str::from_utf8(&line).unwrap(), begins, "{method}, {coding}");
        server.abort();
    }
}
