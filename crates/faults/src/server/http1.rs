//! An HTTP/1.1 server, handwritten because libraries do not send invalid messages.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use super::reply::{End, Read, Reply, Response};
use super::request::Incoming;
use super::stream::Stream;
use crate::faults::Shared;
use crate::ledger::Exchange;

/// Serves one connection.
pub(super) async fn serve(stream: Stream, number: usize, shared: Arc<Shared<Reply>>) {
    let request = Incoming::default();
    let mut connection = Connection { stream, shared, number, request, exchange: None };
    // The client may close the connection, which is not a server failure.
    while let Ok(true) = connection.exchange().await {
        let request = std::mem::take(&mut connection.request);
        connection.request = request.after();
        connection.exchange = None;
        // A reply that is chosen early must belong to a request, not to an idle connection.
        if connection.request.len() == 0 && !connection.read(usize::MAX).await.unwrap_or(false) {
            return;
        }
    }
}

struct Connection {
    stream: Stream,
    shared: Arc<Shared<Reply>>,
    number: usize,
    request: Incoming,
    /// The ledger entry of the request, once its head has arrived.
    exchange: Option<Exchange>,
}

impl Connection {
    /// Serves one request. Returns `true` if another may follow.
    async fn exchange(&mut self) -> io::Result<bool> {
        let early = self.shared.take_early(self.number, Reply::is_chosen_early);
        let (reply, delay) = match early {
            Some((reply, delay)) => {
                self.read_part(reply.read).await?;
                (reply, delay)
            }
            None => {
                self.read_part(Read::Head).await?;
                let call = self.exchange.as_ref().map(Exchange::call);
                let chosen = self.shared.take(call.as_deref(), self.number, |reply| !reply.is_chosen_early());
                self.read_part(chosen.0.read).await?;
                chosen
            }
        };
        self.answer(&reply, delay).await?;
        match reply.end {
            End::Open => self.read_part(Read::Whole).await.map(|()| true),
            End::Close => self.stream.shutdown().await.map(|()| false),
            End::Reset => self.stream.reset_on_drop().map(|()| false),
            End::ResetStream(_) | End::GoAwayAbove(_) | End::GoAwayBelow(_) | End::Stall => {
                let mut buffer = [0; 1024];
                while self.stream.read(&mut buffer).await? > 0 {}
                Ok(false)
            }
        }
    }

    async fn answer(&mut self, reply: &Reply, delay: Duration) -> io::Result<()> {
        if !delay.is_zero() {
            sleep(delay).await;
        }
        if let Some(exchange) = &self.exchange {
            reply.record(exchange);
        }
        let bytes = bytes(reply);
        self.stream.write_all(&bytes[..reply.cut.min(bytes.len())]).await?;
        self.stream.flush().await
    }

    /// Reads this part of the request, or all of it if it is shorter.
    async fn read_part(&mut self, part: Read) -> io::Result<()> {
        loop {
            self.record()?;
            let body = self.request.body()?;
            let whole = body.end.is_some();
            let most = match part {
                _ if whole => return Ok(()),
                Read::Bytes(most) => most.saturating_sub(self.request.len()),
                Read::Head if self.exchange.is_some() => 0,
                Read::Body(least) if self.exchange.is_some() => least.saturating_sub(body.data.len()),
                Read::Head | Read::Body(_) | Read::Whole => usize::MAX,
            };
            if most == 0 {
                return Ok(());
            }
            if !self.read(most).await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads at most `most` bytes. Returns `false` at the end.
    async fn read(&mut self, most: usize) -> io::Result<bool> {
        let mut buffer = [0; 8 * 1024];
        let most = most.min(buffer.len());
        let length = self.stream.read(&mut buffer[..most]).await?;
        self.request.push(&buffer[..length]);
        Ok(length > 0)
    }

    /// Records the part of the request that has arrived.
    fn record(&mut self) -> io::Result<()> {
        if let Some(head) = self.request.take_head()? {
            self.exchange = Some(self.shared.ledger.arrive(&self.shared.server, self.number, &head));
        }
        if let Some(exchange) = &self.exchange {
            let body = self.request.body()?;
            exchange.has_read(&body.data, body.end.is_some());
        }
        Ok(())
    }
}

/// Serializes a reply.
fn bytes(reply: &Reply) -> Vec<u8> {
    let mut bytes = Vec::new();
    for status in &reply.informational {
        bytes.extend(head(*status));
        bytes.extend(b"\r\n");
    }
    match &reply.raw {
        Some(raw) => bytes.extend_from_slice(raw),
        None => response_bytes(&reply.response, &mut bytes),
    }
    bytes
}

fn head(status: StatusCode) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or("Unknown");
    format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes()
}

fn response_bytes(response: &Response, bytes: &mut Vec<u8>) {
    let fields = |fields: &http::HeaderMap, bytes: &mut Vec<u8>| {
        for (name, value) in fields {
            bytes.extend_from_slice(name.as_ref());
            bytes.extend(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend(b"\r\n");
        }
    };
    bytes.extend(head(response.status));
    fields(&response.headers, bytes);
    let length = response.body.len();
    match &response.trailers {
        None => {
            let declared = response.content_length.unwrap_or(length as u64);
            bytes.extend(format!("content-length: {declared}\r\n\r\n").into_bytes());
            bytes.extend_from_slice(&response.body);
        }
        Some(trailers) => {
            bytes.extend(b"transfer-encoding: chunked\r\n\r\n");
            if length > 0 {
                bytes.extend(format!("{length:x}\r\n").into_bytes());
                bytes.extend_from_slice(&response.body);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n");
            fields(trailers, bytes);
            bytes.extend(b"\r\n");
        }
    }
}
