//! The server over HTTP/2, frame by frame. Only the compressed heads are left to h2.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;

use crate::fault_matrix::cell::Point;
use crate::fault_matrix::exchange::Exchange;

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200` by the static table.
const STATUS_200: &[u8] = &[0x88];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Reads the heads of requests.
struct Heads {
    to: DuplexStream,
    connection: Connection<DuplexStream, Bytes>,
    /// Dropped, they would end the streams.
    answers: Vec<SendResponse<Bytes>>,
}

impl Heads {
    async fn new() -> Self {
        let (mut to, from) = tokio::io::duplex(1 << 20);
        to.write_all(PREFACE).await.unwrap();
        to.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
        let connection = h2::server::handshake(from).await.unwrap();
        Self { to, connection, answers: Vec::new() }
    }

    /// The call whose head is in this frame: the number in its path.
    async fn call_of(&mut self, frame: &[u8]) -> usize {
        self.to.write_all(frame).await.unwrap();
        let (request, answer) = self.connection.accept().await.unwrap().unwrap();
        self.answers.push(answer);
        request.uri().path().trim_start_matches('/').parse().unwrap()
    }
}

pub(crate) async fn serve(mut connection: TcpStream, exchange: Arc<Exchange>) -> io::Result<()> {
    connection.read_exact(&mut [0; PREFACE.len()]).await?;
    connection.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    let mut heads = Heads::new().await;
    loop {
        let mut read = vec![0; 9];
        connection.read_exact(&mut read).await?;
        let length = usize::from(read[1]) << 8 | usize::from(read[2]);
        let (kind, flags) = (read[3], read[4]);
        let stream = u32::from_be_bytes([read[5], read[6], read[7], read[8]]);
        let mid_head = kind == HEADERS && exchange.fails_at(Point::MidHead);
        let mid_body = kind == DATA && exchange.fails_at(Point::MidBody);
        if mid_head || mid_body {
            if exchange.cell.calls == 1 {
                exchange.read(0);
            }
            connection.read_exact(&mut vec![0; length / 2]).await?;
            exchange.fail(connection).await;
            return Ok(());
        }
        read.resize(9 + length, 0);
        connection.read_exact(&mut read[9..]).await?;
        match kind {
            SETTINGS | PING if flags & ACK == 0 => {
                let echo = if kind == PING { &read[9..] } else { &[] };
                connection.write_all(&frame(kind, ACK, 0, echo)).await?;
            }
            HEADERS => {
                let call = heads.call_of(&read).await;
                exchange.arrived(call);
            }
            _ => {}
        }
        if !matches!(kind, HEADERS | DATA) || flags & END_STREAM == 0 {
            continue;
        }
        if exchange.fails_at(Point::Whole) {
            exchange.fail(connection).await;
            return Ok(());
        }
        if exchange.fails_at(Point::MidResponseHead) {
            let head = frame(HEADERS, END_HEADERS, stream, &[STATUS_200, &[0; 8]].concat());
            connection.write_all(&head[..10]).await?;
            exchange.fail(connection).await;
            return Ok(());
        }
        let head = frame(HEADERS, END_HEADERS, stream, STATUS_200);
        if exchange.fails_at(Point::MidResponseBody) {
            let half = frame(DATA, 0, stream, b"half");
            connection.write_all(&[head, half].concat()).await?;
            if exchange.sent_half() == exchange.cell.calls {
                exchange.all_have_half().await;
                exchange.fail(connection).await;
                return Ok(());
            }
            continue;
        }
        let done = frame(DATA, END_STREAM, stream, b"done");
        connection.write_all(&[head, done].concat()).await?;
    }
}
