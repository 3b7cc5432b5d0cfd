//! The server over HTTP/1.1.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fault_matrix::cell::{Fault, Point};
use crate::fault_matrix::exchange::Exchange;

pub(crate) async fn serve(mut connection: TcpStream, exchange: Arc<Exchange>) -> io::Result<()> {
    loop {
        let mut read = Vec::new();
        read_to(&mut connection, &mut read, b"\r\n").await?;
        let line = String::from_utf8_lossy(&read).into_owned();
        let path = line.split(' ').nth(1).unwrap();
        let call = path.trim_start_matches('/').parse().unwrap();
        exchange.read(call);
        if exchange.fails_at(Point::MidHead) {
            exchange.fail(connection).await;
            return Ok(());
        }
        read_to(&mut connection, &mut read, b"\r\n\r\n").await?;
        exchange.arrived(call);
        let head = String::from_utf8_lossy(&read).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().unwrap());
        let chunked = head.contains("transfer-encoding: chunked");
        if exchange.fails_at(Point::MidBody) {
            read_more(&mut connection, if chunked { 9 } else { length / 2 }).await?;
            exchange.fail(connection).await;
            return Ok(());
        }
        match chunked {
            true => read_to(&mut connection, &mut read, b"0\r\n\r\n").await?,
            false => read_more(&mut connection, length).await?,
        }
        if exchange.fails_at(Point::Whole) {
            exchange.fail(connection).await;
            return Ok(());
        }
        if exchange.fails_at(Point::MidResponseHead) {
            connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-le").await?;
            exchange.fail(connection).await;
            return Ok(());
        }
        if exchange.fails_at(Point::MidResponseBody) {
            // Within a length, garbage would be a part of the body.
            let half: &[u8] = match exchange.cell.fault {
                Fault::Garbage => b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
                _ => b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf",
            };
            connection.write_all(half).await?;
            exchange.all_have_half().await;
            exchange.fail(connection).await;
            return Ok(());
        }
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone").await?;
    }
}

/// Reads up to and with `end`.
async fn read_to(connection: &mut TcpStream, read: &mut Vec<u8>, end: &[u8]) -> io::Result<()> {
    while !read.ends_with(end) {
        read.push(connection.read_u8().await?);
    }
    Ok(())
}

async fn read_more(connection: &mut TcpStream, length: usize) -> io::Result<()> {
    connection.read_exact(&mut vec![0; length]).await.map(drop)
}
