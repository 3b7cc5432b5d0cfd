//! One call of a cell, from its request to the end of its response.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use futures_util::stream::{self, StreamExt};
use http::Request;
use http::uri::PathAndQuery;
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full};
use reattempt::CallOptions;
use reattempt_faults::CALL_HEADER;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tower::{BoxError, ServiceExt};

use crate::cell::{Cell, Fault, How, Kind, Protocol};
use crate::client::{Answer, Client, RequestBody};
use crate::exchange::End;
use crate::fault::DONE;

/// Makes call `number` of a cell at this base URL.
pub(crate) async fn call(client: Client, cell: Cell, url: &str, number: usize) -> End {
    let ended = match client {
        Client::Http(client) => match request(cell, url, number) {
            Ok(request) => client.oneshot(request).await,
            Err(error) => Err(error.into()),
        },
        Client::Reqwest(client) => match reqwest_request(cell, url, number) {
            Ok(request) => client.oneshot(request).await,
            Err(error) => Err(error),
        },
        Client::Grpc(client) => return grpc(client, cell, url, number).await.unwrap_or_else(End::Failed),
    };
    match ended {
        Ok(answer) => read(answer, cell).await,
        Err(error) => End::Failed(format!("{error:?}")),
    }
}

fn request(cell: Cell, url: &str, number: usize) -> http::Result<Request<RequestBody>> {
    let request = Request::builder().uri(format!("{url}/{number}")).header(CALL_HEADER, number);
    let (request, body) = match cell.kind {
        Kind::PutStreamed => {
            let chunks = Chunks(VecDeque::from([Bytes::from("hello "), Bytes::from("world")]));
            (request.method("PUT"), chunks.boxed())
        }
        Kind::Post => (request.method("POST"), Full::from("hello world").boxed()),
        Kind::PostWithKey => {
            let request = request.method("POST").header("idempotency-key", format!("key-{number}"));
            (request, Full::from("hello world").boxed())
        }
        Kind::Get | Kind::Unmarked | Kind::Marked => (request.method("GET"), Empty::new().boxed()),
    };
    request.body(body)
}

fn reqwest_request(cell: Cell, url: &str, number: usize) -> Result<reqwest::Request, BoxError> {
    let (head, body) = request(cell, url, number)?.into_parts();
    let body = match cell.kind {
        Kind::PutStreamed => reqwest::Body::wrap(body),
        Kind::Post | Kind::PostWithKey => "hello world".into(),
        Kind::Get | Kind::Unmarked | Kind::Marked => reqwest::Body::default(),
    };
    Ok(Request::from_parts(head, body).try_into()?)
}

/// A body in frames, of unknown length. Its last frame ends the stream: h2's server accepts few empty ones.
struct Chunks(VecDeque<Bytes>);

impl Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads a response to its end, or until it stalls.
async fn read(answer: Answer, cell: Cell) -> End {
    let status = answer.status();
    if !status.is_success() {
        return End::Failed(status.to_string());
    }
    let mut body = answer.into_body();
    let mut data = Vec::new();
    loop {
        let stalls = cell.fault == Fault::Body(How::Stall) && data == b"half";
        let polled = poll_fn(|cx| match Pin::new(&mut body).poll_frame(cx) {
            Poll::Pending if stalls => Poll::Ready(None),
            polled => polled.map(Some),
        });
        match polled.await {
            None => return End::Stalled,
            Some(Some(Ok(frame))) => data.extend(frame.into_data().unwrap_or_default()),
            Some(Some(Err(_))) => return End::Broken,
            Some(None) if data == DONE.as_bytes() => return End::Served,
            Some(None) => return End::Failed(format!("a body of {} bytes was taken for a whole one", data.len())),
        }
    }
}

type GrpcService = tower::util::BoxCloneService<Request<tonic::body::Body>, Answer, BoxError>;

async fn grpc(client: GrpcService, cell: Cell, url: &str, number: usize) -> Result<End, String> {
    let failed = |status: Status| format!("{status:?}");
    let origin = url.parse().map_err(|error| format!("{error}"))?;
    let mut client = tonic::client::Grpc::with_origin(client, origin);
    client.ready().await.map_err(|error| error.to_string())?;
    let path = PathAndQuery::from_static("/matrix.Test/Call");
    let messages = match cell.protocol {
        Protocol::Streaming => {
            let messages = stream::iter([Bytes::from("hello "), Bytes::from("world")]);
            let request = marked(tonic::Request::new(messages.boxed()), cell, number);
            let mut answer = client.streaming(request, path, Raw).await.map_err(failed)?.into_inner();
            let mut messages = Vec::new();
            while let Some(message) = answer.message().await.map_err(failed)? {
                messages.push(message);
            }
            messages
        }
        _ => {
            let request = marked(tonic::Request::new(Bytes::from("hello world")), cell, number);
            vec![client.unary(request, path, Raw).await.map_err(failed)?.into_inner()]
        }
    };
    let expected = if cell.protocol == Protocol::Streaming { 2 } else { 1 };
    match messages.len() == expected && messages.iter().all(|message| message == DONE) {
        true => Ok(End::Served),
        false => Err(format!("{} messages", messages.len())),
    }
}

fn marked<T>(mut request: tonic::Request<T>, cell: Cell, number: usize) -> tonic::Request<T> {
    request.metadata_mut().insert(CALL_HEADER, number.into());
    if cell.kind == Kind::Marked {
        request.extensions_mut().insert(CallOptions::new().repeatable(true));
    }
    request
}

/// A codec of messages that are bytes.
#[derive(Debug, Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
