//! An HTTP/2 server based on `h2`, which can also send frames that `h2` would not.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::CONTENT_LENGTH;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::reply::{End, Read, Reply};
use super::stream::Stream;
use super::tap::{Tap, Valve};
use crate::faults::Shared;
use crate::ledger::Exchange;

/// The settings of an HTTP/2 server.
#[derive(Debug, Clone, Copy, Default)]
pub struct Http2 {
    streams: Option<u32>,
    window: Option<u32>,
    pause: Duration,
}

impl Http2 {
    /// Creates settings with the defaults of the `h2` crate: a flow-control window of 65,535 bytes, no limit on
    /// streams, and immediate window updates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of concurrent streams per connection. Default: no limit.
    #[must_use]
    pub fn max_streams(mut self, streams: u32) -> Self {
        self.streams = Some(streams);
        self
    }

    /// Sets the flow-control window of each stream, in bytes. Default: 65,535.
    #[must_use]
    pub fn window(mut self, bytes: u32) -> Self {
        self.window = Some(bytes);
        self
    }

    /// Sets the delay before each window update. Default: zero.
    #[must_use]
    pub fn update_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}

/// Serves one connection until the client closes it.
pub(super) async fn serve(io: Stream, connection: usize, settings: Http2, shared: Arc<Shared<Reply>>) {
    let (tap, valve) = Tap::new(io);
    let mut builder = h2::server::Builder::new();
    if let Some(streams) = settings.streams {
        builder.max_concurrent_streams(streams);
    }
    if let Some(window) = settings.window {
        builder.initial_window_size(window);
    }
    let Ok(mut h2) = builder.handshake::<_, Bytes>(tap).await else { return };
    let (flushing, mut flushes) = mpsc::unbounded_channel::<watch::Sender<()>>();
    let mut streams = JoinSet::new();
    loop {
        // The connection is polled first, because polling it sends the streams' frames.
        let next = poll_fn(|cx| match h2.poll_accept(cx) {
            Poll::Ready(accepted) => Poll::Ready(Ok(accepted)),
            Poll::Pending => flushes.poll_recv(cx).map(Err),
        });
        match next.await {
            Ok(Some(Ok((request, answer)))) => {
                let (head, body) = request.into_parts();
                let head = http::Request::from_parts(head, ());
                let exchange = shared.ledger.arrive(&shared.server, connection, &head);
                let (reply, delay) = match valve.accepts(answer.stream_id().as_u32()) {
                    true => shared.take(Some(&exchange.call()), connection, |reply| !reply.is_chosen_early()),
                    false => (Reply::excluded(), Duration::ZERO),
                };
                let (valve, flushing, pause) = (valve.clone(), flushing.clone(), settings.pause);
                let stream = Http2Stream { reply, exchange, body, answer, valve, flushing, pause };
                streams.spawn(stream.play(delay));
            }
            Ok(_) => return,
            // Dropped only after the connection was polled, so that everything written before has been sent.
            Err(flushed) => drop(flushed),
        }
    }
}

struct Http2Stream {
    reply: Reply,
    exchange: Exchange,
    body: RecvStream,
    answer: SendResponse<Bytes>,
    valve: Valve,
    flushing: mpsc::UnboundedSender<watch::Sender<()>>,
    pause: Duration,
}

impl Http2Stream {
    async fn play(mut self, delay: Duration) {
        match self.reply.read {
            Read::Whole => self.read(usize::MAX).await,
            Read::Body(least) => self.read(least).await,
            Read::Head | Read::Bytes(_) => {}
        }
        if !delay.is_zero() {
            sleep(delay).await;
        }
        if !self.valve.accepts(self.answer.stream_id().as_u32()) {
            self.reply = Reply::excluded();
        }
        self.reply.record(&self.exchange);
        // An error means that the client has disconnected or has reset the stream.
        let begun = self.answer().await.unwrap_or_default();
        self.finish(begun).await;
    }

    /// Reads at least this many bytes of the body, or all of it if it is shorter.
    async fn read(&mut self, least: usize) {
        let mut length = 0;
        while length < least
            && let Some(Ok(data)) = self.body.data().await
        {
            self.exchange.read(&data);
            length += data.len();
            // An empty frame does not use the window.
            if !self.pause.is_zero() && !data.is_empty() {
                sleep(self.pause).await;
            }
            // An ended stream needs no window update.
            let _ = self.body.flow_control().release_capacity(data.len());
        }
        if self.body.is_end_stream() {
            self.exchange.read_whole();
        }
    }

    /// Sends the response, or the part before the cut.
    async fn answer(&mut self) -> Result<Option<SendStream<Bytes>>, h2::Error> {
        let id = self.answer.stream_id().as_u32();
        match self.reply.end {
            End::GoAwayAbove(code) => self.valve.go_away_above(code),
            End::GoAwayBelow(code) => {
                self.valve.go_away_below(id, code);
                return Ok(None);
            }
            _ => {}
        }
        if self.reply.cut == 0 {
            return Ok(None);
        }
        if let Some(raw) = &self.reply.raw {
            self.valve.send(&raw[..self.reply.cut.min(raw.len())]);
            return Ok(None);
        }
        for status in &self.reply.informational {
            let mut head = http::Response::new(());
            *head.status_mut() = *status;
            self.answer.send_informational(head)?;
        }
        let response = &self.reply.response;
        let mut head = http::Response::new(());
        *head.status_mut() = response.status;
        *head.headers_mut() = response.headers.clone();
        if let Some(length) = response.content_length {
            head.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        let ends = self.reply.sends_end();
        let bare = response.body.is_empty() && response.trailers.is_none();
        let mut begun = self.answer.send_response(head, ends && bare)?;
        let sent = response.body.slice(..self.reply.cut.min(response.body.len()));
        if !sent.is_empty() {
            begun.send_data(sent, ends && response.trailers.is_none())?;
        }
        if let Some(trailers) = response.trailers.clone().filter(|_| ends) {
            begun.send_trailers(trailers)?;
        }
        Ok(Some(begun))
    }

    async fn finish(mut self, mut begun: Option<SendStream<Bytes>>) {
        // Earlier frames must be sent before a reset.
        self.flush().await;
        match self.reply.end {
            End::ResetStream(code) => match &mut begun {
                Some(begun) => begun.send_reset(Reason::from(code)),
                None => self.answer.send_reset(Reason::from(code)),
            },
            End::Close | End::Reset => {
                self.valve.end_with(self.reply.end);
                self.flush().await;
            }
            _ => {}
        }
        if self.reply.read != Read::Whole {
            self.read(usize::MAX).await;
        }
        let is_over = self.reply.sends_end() && begun.is_some();
        if !is_over && !matches!(self.reply.end, End::ResetStream(_)) {
            // Dropping the stream before the client disconnects would reset it.
            let reset = match &mut begun {
                Some(begun) => poll_fn(|cx| begun.poll_reset(cx)).await,
                None => poll_fn(|cx| self.answer.poll_reset(cx)).await,
            };
            // An error means that the connection has ended.
            if let Ok(code) = reset {
                self.exchange.reset(code.into());
            }
        }
    }

    /// Waits until all frames of the stream so far are sent.
    async fn flush(&self) {
        let (asked, mut done) = watch::channel(());
        if self.flushing.send(asked).is_ok() {
            // The error is the signal that the connection has dropped its end.
            let _ = done.changed().await;
        }
    }
}
