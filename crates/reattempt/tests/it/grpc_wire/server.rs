//! A server on the `h2` crate that acts by a script, and by hand where `h2` cannot.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use reattempt_grpc::Code;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tonic::transport::{Channel, Endpoint};

/// The server's action on a stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    /// A message and this status.
    Answer(Code),
    /// One block of headers.
    PeekTrailers(Code),
    /// A refusal with END_STREAM in an empty frame of its own.
    EmptyData(Code),
    /// Headers, then trailers.
    HeadersTrailers(Code),
    /// A reset before any header.
    Reset(Reason),
    /// Headers, and a reset as soon as the client has them.
    HeadersReset(Reason),
    /// A message, then the end of the stream without trailers.
    NoStatus,
    /// The connection is cut when the test says so, or at once.
    Cut,
    /// A refusal once headers and a message have been answered.
    HeadersCut,
    /// Nothing, until the client resets the stream.
    Hang,
}

/// The server's action on a connection, by hand, before it serves the others.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goaway {
    /// It leaves the first stream out.
    Below,
    /// It leaves room for that one, which is then served.
    Above,
}

pub(super) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<HeaderMap>>>,
    /// Lets the server go on where it waits for the client.
    pub(super) go_on: Arc<Notify>,
    /// Why the client reset a stream that hung.
    pub(super) resets: mpsc::UnboundedReceiver<Reason>,
    task: JoinHandle<()>,
}

/// The state that all connections of a server share.
#[derive(Clone)]
struct Shared {
    script: Arc<[Act]>,
    seen: Arc<Mutex<Vec<HeaderMap>>>,
    go_on: Arc<Notify>,
    resets: mpsc::UnboundedSender<Reason>,
}

impl Server {
    /// Does this with the streams in the order in which they come, and the last with all others.
    pub(super) async fn start(script: impl IntoIterator<Item = Act>) -> Self {
        Self::with(None, u32::MAX, script).await
    }

    pub(super) async fn with(
        goaway: Option<Goaway>,
        most_streams: u32,
        script: impl IntoIterator<Item = Act>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (resets, received) = mpsc::unbounded_channel();
        let shared = Shared {
            script: script.into_iter().collect(),
            seen: Arc::default(),
            go_on: Arc::default(),
            resets,
        };
        let (seen, go_on) = (Arc::clone(&shared.seen), Arc::clone(&shared.go_on));
        let task = tokio::spawn(async move {
            let mut serving = JoinSet::new();
            if let Some(goaway) = goaway {
                let (socket, _) = listener.accept().await.unwrap();
                serving.spawn(go_away(socket, goaway));
            }
            while let Ok((socket, _)) = listener.accept().await {
                serving.spawn(serve(socket, most_streams, shared.clone()));
            }
        });
        Self { address, seen, go_on, resets: received, task }
    }

    pub(super) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// The `grpc-previous-rpc-attempts` of each stream.
    pub(super) fn previous(&self) -> Vec<Option<String>> {
        let read = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|head| head.get("grpc-previous-rpc-attempts").map(read)).collect()
    }

    pub(super) fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.address)).unwrap().connect_lazy()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: TcpStream, most_streams: u32, shared: Shared) {
    let mut handshake = h2::server::Builder::new();
    handshake.max_concurrent_streams(most_streams);
    let Ok(mut connection) = handshake.handshake::<_, Bytes>(socket).await else { return };
    let mut answering = JoinSet::new();
    loop {
        let stream = tokio::select! {
            stream = connection.accept() => stream,
            // A connection that is to be cut: before its stream could be reset.
            Some(Ok(Some(held))) = answering.join_next() => {
                drop(connection);
                drop(held);
                return;
            }
        };
        let Some(Ok((request, reply))) = stream else { return };
        let number = {
            let mut seen = shared.seen.lock().unwrap();
            seen.push(request.headers().clone());
            seen.len()
        };
        let act = *shared.script.get(number - 1).or(shared.script.last()).unwrap();
        answering.spawn(answer(act, request, reply, shared.clone()));
    }
}

/// A stream whose connection is to be cut: dropped, it would be reset.
type Held = Box<dyn Send>;

/// Answers a stream; gives it back if its connection is to be cut.
async fn answer(
    act: Act,
    mut request: Request<RecvStream>,
    mut reply: SendResponse<Bytes>,
    shared: Shared,
) -> Option<Held> {
    while let Some(Ok(data)) = request.body_mut().data().await {
        let _ = request.body_mut().flow_control().release_capacity(data.len());
    }
    let head = Response::builder().header("content-type", "application/grpc");
    let message = Bytes::from_static(&[0, 0, 0, 0, 0]);
    match act {
        Act::Answer(code) => {
            let mut stream = reply.send_response(head.body(()).unwrap(), false).unwrap();
            stream.send_data(message, false).unwrap();
            stream.send_trailers(status(code)).unwrap();
        }
        Act::PeekTrailers(code) => {
            let head = head.header("grpc-status", code.number());
            reply.send_response(head.body(()).unwrap(), true).unwrap();
        }
        Act::EmptyData(code) => {
            let head = head.header("grpc-status", code.number());
            let mut stream = reply.send_response(head.body(()).unwrap(), false).unwrap();
            stream.send_data(Bytes::new(), true).unwrap();
        }
        Act::HeadersTrailers(code) => {
            let mut stream = reply.send_response(head.body(()).unwrap(), false).unwrap();
            stream.send_trailers(status(code)).unwrap();
        }
        Act::Reset(reason) => reply.send_reset(reason),
        Act::HeadersReset(reason) => {
            let mut stream = reply.send_response(head.body(()).unwrap(), false).unwrap();
            shared.go_on.notified().await;
            stream.send_reset(reason);
        }
        Act::NoStatus => {
            let mut stream = reply.send_response(head.body(()).unwrap(), false).unwrap();
            stream.send_data(message, true).unwrap();
        }
        Act::Cut => {
            shared.go_on.notified().await;
            return Some(Box::new(reply));
        }
        Act::HeadersCut => {
            let mut stream = reply.send_response(head.body(()).unwrap(), false).unwrap();
            stream.send_data(message, false).unwrap();
            shared.go_on.notified().await;
            return Some(Box::new(stream));
        }
        Act::Hang => {
            if let Ok(reason) = std::future::poll_fn(|cx| reply.poll_reset(cx)).await {
                let _ = shared.resets.send(reason);
            }
        }
    }
    None
}

/// A frame as it is on the wire.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Says GOAWAY when the first stream is there.
async fn go_away(mut socket: TcpStream, goaway: Goaway) {
    const PREFACE: usize = 24;
    let mut read = vec![0; PREFACE];
    socket.read_exact(&mut read).await.unwrap();
    socket.write_all(&frame(4, 0, 0, &[])).await.unwrap();
    let stream = loop {
        let mut head = [0; 9];
        socket.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        socket.read_exact(&mut payload).await.unwrap();
        if head[3] == 1 {
            break u32::from_be_bytes(head[5..].try_into().unwrap());
        }
    };
    let last: u32 = match goaway {
        Goaway::Below => 0,
        Goaway::Above => stream,
    };
    let mut payload = last.to_be_bytes().to_vec();
    payload.extend([0; 4]);
    socket.write_all(&frame(7, 0, 0, &payload)).await.unwrap();
    if let Goaway::Above = goaway {
        // ":status: 200" and "grpc-status: 0", the whole answer.
        let mut fields = vec![0x88, 0x00, 11];
        fields.extend(b"grpc-status");
        fields.extend([1, b'0']);
        socket.write_all(&frame(1, 0x5, stream, &fields)).await.unwrap();
    }
    // Whatever comes, until the client hangs up.
    while socket.read(&mut read).await.is_ok_and(|read| read > 0) {}
}

fn status(code: Code) -> HeaderMap {
    HeaderMap::from_iter([(http::HeaderName::from_static("grpc-status"), code.number().into())])
}
