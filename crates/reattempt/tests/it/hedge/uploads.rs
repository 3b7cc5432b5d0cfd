//! Tests of a tonic channel's uploads that exceed the limit for kept bodies, against a server on the `h2` crate.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use reattempt::Report;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt_replay::ReplayLimits;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::transport::Endpoint;
use tower::{Layer, ServiceExt};

use crate::calls::support::fed;

/// HTTP/2 lets a stream send 64 KiB before the other side reads; more than that is kept, and more still is sent.
const UPLOAD: &[u8] = &[7; 192 * 1024];
const KEPT: usize = 96 * 1024;

/// The end of an upload.
#[derive(Debug, PartialEq)]
enum Ended {
    Complete,
    Reset(Option<Reason>),
}

/// Serves one connection. If it `stalls`, it reads nothing from the stream that comes first. It responds to a complete
/// upload when `go_on` is notified. Reports how each upload ended.
async fn serve(socket: TcpStream, stalls: bool, go_on: Arc<Notify>, ends: mpsc::UnboundedSender<Ended>) {
    let mut handshake = h2::server::Builder::new();
    handshake.initial_connection_window_size(1 << 20);
    let mut connection = handshake.handshake::<_, Bytes>(socket).await.unwrap();
    let mut streams = JoinSet::new();
    while let Some(Ok((request, mut reply))) = connection.accept().await {
        let stalled = stalls && streams.is_empty();
        let (go_on, ends) = (Arc::clone(&go_on), ends.clone());
        streams.spawn(async move {
            if stalled {
                let reason = std::future::poll_fn(|cx| reply.poll_reset(cx)).await;
                ends.send(Ended::Reset(reason.ok())).unwrap();
                return;
            }
            let ended = read(request.into_body()).await;
            let complete = ended == Ended::Complete;
            ends.send(ended).unwrap();
            if complete {
                go_on.notified().await;
                let head = Response::builder().header("grpc-status", "0").body(()).unwrap();
                reply.send_response(head, true).unwrap();
            }
        });
    }
}

async fn read(mut upload: RecvStream) -> Ended {
    let mut length = 0;
    while let Some(data) = upload.data().await {
        match data {
            Ok(data) => {
                length += data.len();
                upload.flow_control().release_capacity(data.len()).unwrap();
            }
            Err(error) => return Ended::Reset(error.reason()),
        }
    }
    assert_eq!(length, UPLOAD.len());
    Ended::Complete
}

/// Uploads more than is kept, with two concurrent attempts. The server responds when both uploads have ended. Returns
/// how the cut-off upload ended, the call's status, and its winner.
async fn upload(stalls: bool, chunk: usize) -> (Ended, String, u32) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let (ends, mut ended) = mpsc::unbounded_channel();
    let go_on = Arc::new(Notify::new());
    let go = Arc::clone(&go_on);
    let server = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        serve(socket, stalls, go, ends).await;
    });
    let limits = ReplayLimits::default().per_call(KEPT);
    let policy = HedgePolicy::grpc().delay(Duration::ZERO).protocol(|http| http.replay(limits));
    let channel = Endpoint::from_shared(uri.clone()).unwrap().connect_lazy();
    let client = HedgeLayer::new(policy).layer(channel);
    let (speak, body) = fed();
    for chunk in UPLOAD.chunks(chunk) {
        speak.send(Bytes::from_static(chunk)).unwrap();
    }
    drop(speak);
    let request = Request::post(format!("{uri}/service/method")).body(Body::new(body)).unwrap();
    let call = tokio::spawn(client.oneshot(request));
    // So that a failing test does not hang.
    let first = timeout(Duration::from_secs(20), ended.recv()).await.unwrap().unwrap();
    let second = timeout(Duration::from_secs(20), ended.recv()).await.unwrap().unwrap();
    go_on.notify_one();
    let answer = call.await.unwrap().unwrap();
    server.abort();
    let complete = [&first, &second].into_iter().filter(|end| **end == Ended::Complete).count();
    assert_eq!(complete, 1);
    let cut_off = if first == Ended::Complete { second } else { first };
    let status = answer.headers()["grpc-status"].to_str().unwrap().to_owned();
    (cut_off, status, Report::of(&answer).unwrap().winner().unwrap())
}

// BUF-8
#[tokio::test]
async fn stalled_upload_is_cancelled_by_cut() {
    let (cut_off, status, winner) = upload(true, UPLOAD.len() / 12).await;
    assert_eq!((cut_off, &*status, winner), (Ended::Reset(Some(Reason::CANCEL)), "0", 2));
}

// BUF-8
#[tokio::test]
async fn reset_by_the_cut_does_not_end_call() {
    let (cut_off, status, _) = upload(false, UPLOAD.len()).await;
    assert_eq!((matches!(cut_off, Ended::Reset(_)), &*status), (true, "0"));
}
