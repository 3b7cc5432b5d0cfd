//! Tests with real requests over HTTP/1 and HTTP/2: the second attempt looks like the first on the wire.

use std::convert::Infallible;

use crate::support::{BoxError, Script, Step, unlimited};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use reattempt_replay::ReplayBody;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A request as received over the wire.
#[derive(Debug, PartialEq)]
struct Received {
    version: Version,
    length: Option<HeaderValue>,
    encoding: Option<HeaderValue>,
    body: Bytes,
    trailers: Option<HeaderMap>,
}

/// Responds to each request with 503, before its body arrives if requested, and reports what was received, unless the
/// request broke off.
async fn serve(listener: TcpListener, received: mpsc::UnboundedSender<Option<Received>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let received = received.clone();
        let service = service_fn(move |request| {
            let received = received.clone();
            async move {
                let early = request_is_early(&request);
                let read = read(request, received);
                if early {
                    tokio::spawn(read);
                } else {
                    read.await;
                }
                let mut response = Response::new(Empty::<Bytes>::new());
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                Ok::<_, Infallible>(response)
            }
        });
        let server = auto::Builder::new(TokioExecutor::new());
        tokio::spawn(async move {
            // A client that leaves at the end of the test is not a failure.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn request_is_early(request: &Request<Incoming>) -> bool {
    request.uri().path() == "/early"
}

async fn read(request: Request<Incoming>, received: mpsc::UnboundedSender<Option<Received>>) {
    let (head, body) = request.into_parts();
    let body = body.collect().await.ok();
    let _ = received.send(body.map(|body| Received {
        version: head.version,
        length: head.headers.get(header::CONTENT_LENGTH).cloned(),
        encoding: head.headers.get(header::TRANSFER_ENCODING).cloned(),
        trailers: body.trailers().cloned(),
        body: body.to_bytes(),
    }));
}

struct Harness<B> {
    client: Client<HttpConnector, ReplayBody<B>>,
    address: std::net::SocketAddr,
    received: mpsc::UnboundedReceiver<Option<Received>>,
}

impl<B> Harness<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    async fn new(version: Version) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, received) = mpsc::unbounded_channel();
        tokio::spawn(serve(listener, sender));
        let client = Client::builder(TokioExecutor::new()).http2_only(version == Version::HTTP_2).build_http();
        Self { client, address, received }
    }

    async fn send(&self, path: &str, body: ReplayBody<B>) {
        let request = Request::builder()
            .method(Method::PUT)
            .uri(format!("http://{}{path}", self.address))
            .header(header::TRAILER, "checksum")
            .body(body)
            .unwrap();
        let response = self.client.request(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    }

    /// Sends it three times, the last time without keeping it, and returns what the server received.
    async fn three_attempts(mut self, body: B) -> Received {
        let first = ReplayBody::new(body, &unlimited());
        let kept = first.try_clone().unwrap();
        let second = kept.try_clone().unwrap();
        let mut came = Vec::new();
        for body in [first, second, kept] {
            self.send("/", body).await;
            came.push(self.received.recv().await.unwrap().unwrap());
        }
        assert_eq!(came[0], came[1]);
        assert_eq!(came[0], came[2]);
        came.remove(0)
    }
}

const DATA: [Step; 4] = [Step::Data(b"hello "), Step::Yield, Step::Data(b"wide "), Step::Data(b"world")];

fn with_trailers() -> Vec<Step> {
    [DATA.as_slice(), &[Step::Yield, Step::Trailers("c0ffee")]].concat()
}

// trap 03
#[tokio::test]
async fn known_length_is_sent_on_each_attempt() {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        for tells_end in [true, false] {
            let body = Script::new(&DATA).0.exact().tells_end(tells_end);
            let came = Harness::new(version).await.three_attempts(Box::pin(body)).await;
            assert_eq!(came.version, version);
            assert_eq!(came.length.unwrap(), "16");
            assert_eq!((came.encoding, came.trailers), (None, None));
            assert_eq!(came.body, "hello wide world");
        }
    }
}

// trap 03
#[tokio::test]
async fn unknown_length_stays_unknown() {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let came = Harness::new(version).await.three_attempts(Box::pin(Script::new(&DATA).0)).await;
        assert_eq!(came.length, None);
        assert_eq!(came.encoding.is_some(), version == Version::HTTP_11);
        assert_eq!(came.body, "hello wide world");
    }
}

// trap 03
#[tokio::test]
async fn trailers_are_sent_on_each_attempt() {
    for (version, exact) in [(Version::HTTP_11, false), (Version::HTTP_2, false), (Version::HTTP_2, true)] {
        let body = Script::new(&with_trailers()).0;
        let body = if exact { body.exact() } else { body };
        let came = Harness::new(version).await.three_attempts(Box::pin(body)).await;
        assert_eq!(came.length.is_some(), exact);
        assert_eq!(came.body, "hello wide world");
        assert_eq!(came.trailers.unwrap(), crate::support::trailers("c0ffee"));
    }
}

#[tokio::test]
async fn framing_is_alike_on_each_attempt() {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let came = Harness::new(version).await.three_attempts(Full::<Bytes>::from("whole")).await;
        assert_eq!((came.length.unwrap(), came.body), ("5".parse().unwrap(), "whole".into()));
        let came = Harness::new(version).await.three_attempts(Empty::<Bytes>::new()).await;
        assert_eq!((came.encoding, came.body), (None, Bytes::new()));
    }
}

// trap 02
#[tokio::test]
async fn second_attempt_overlaps_first_upload() {
    let steps = [Step::Data(b"one "), Step::Wait, Step::Data(b"two "), Step::Wait, Step::Data(b"!")];
    let (script, control) = Script::new(&steps);
    let mut harness = Harness::new(Version::HTTP_2).await;
    let first = ReplayBody::new(Box::pin(script), &unlimited());
    let kept = first.try_clone().unwrap();
    harness.send("/early", first).await;
    harness.send("/early", kept).await;
    control.open();
    tokio::task::yield_now().await;
    control.open();
    for _ in 0..2 {
        assert_eq!(harness.received.recv().await.unwrap().unwrap().body, "one two !");
    }
}

#[tokio::test]
async fn superseded_upload_breaks_off() {
    let steps = [Step::Data(b"one "), Step::Wait, Step::Data(b"two")];
    let (script, control) = Script::new(&steps);
    let mut harness = Harness::new(Version::HTTP_2).await;
    let first = ReplayBody::new(Box::pin(script), &unlimited());
    let kept = first.try_clone().unwrap();
    harness.send("/early", first).await;
    kept.cancel_others();
    assert_eq!(harness.received.recv().await.unwrap(), None);
    harness.send("/early", kept).await;
    control.open();
    assert_eq!(harness.received.recv().await.unwrap().unwrap().body, "one two");
}

/// Sends an endless body over HTTP/2, ends its upload from outside, and returns the reason with which its stream was
/// reset.
#[cfg(feature = "h2")]
async fn reset_of<B>(wrap: impl FnOnce(ReplayBody<std::pin::Pin<Box<Script>>>) -> B) -> h2::Reason
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = async {
        let mut connection = h2::server::handshake(listener.accept().await.unwrap().0).await.unwrap();
        let (request, mut respond) = connection.accept().await.unwrap().unwrap();
        respond.send_response(Response::new(()), true).unwrap();
        let mut body = request.into_body();
        let reset = async {
            while let Some(data) = body.data().await {
                if let Err(error) = data {
                    return error.reason().unwrap();
                }
            }
            panic!("the upload came to its end");
        };
        tokio::select! {
            reason = reset => reason,
            _ = connection.accept() => panic!("the connection came to its end"),
        }
    };
    let (script, _control) = Script::new(&[Step::Data(b"one "), Step::Wait]);
    let first = ReplayBody::new(Box::pin(script), &unlimited());
    let kept = first.try_clone().unwrap();
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let request = Request::put(format!("http://{address}/")).body(wrap(first)).unwrap();
    let sent = async {
        let response = client.request(request).await.unwrap();
        kept.cancel_others();
        response
    };
    let both = async { tokio::join!(server, sent).0 };
    tokio::time::timeout(std::time::Duration::from_secs(20), both).await.expect("a reset")
}

#[cfg(feature = "h2")]
#[tokio::test]
async fn superseded_upload_is_reset_with_cancel() {
    assert_eq!(reset_of(|body| body).await, h2::Reason::CANCEL);
}

#[cfg(feature = "h2")]
#[tokio::test]
async fn superseded_tonic_upload_is_reset_too() {
    assert_eq!(reset_of(tonic::body::Body::new).await, h2::Reason::CANCEL);
}

#[cfg(feature = "h2")]
#[tokio::test]
async fn superseded_reqwest_upload_is_reset_too() {
    assert_eq!(reset_of(reqwest::Body::wrap).await, h2::Reason::CANCEL);
}
