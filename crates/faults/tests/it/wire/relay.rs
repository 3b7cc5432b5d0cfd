//! Tests of a relay's port, which is closed and opened.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use reattempt_faults::{Faults, Script, WireFault};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::clients::{HANGS, server};

/// Sends a request over a new connection, and returns the connection after its answer.
async fn exchange(relay: SocketAddr) -> io::Result<TcpStream> {
    let mut connection = TcpStream::connect(relay).await?;
    connection.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
    connection.read_exact(&mut [0; 15]).await?;
    Ok(connection)
}

#[tokio::test]
async fn closed_relay_refuses_and_opens_again() {
    let faults = Faults::<WireFault>::new(Script::default());
    let mut relay = faults.relay(server().await).await.unwrap();
    let address = relay.address();
    for _ in 0..3 {
        let mut connection = timeout(HANGS, exchange(address)).await.unwrap().unwrap();
        // Both have no effect the second time.
        relay.open().unwrap();
        relay.close().await.unwrap();
        relay.close().await.unwrap();
        let _ended = timeout(HANGS, connection.read_to_end(&mut Vec::new())).await.expect("the connection ends");
        let refused = timeout(HANGS, exchange(address)).await.unwrap().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        relay.open().unwrap();
        assert_eq!(relay.address(), address);
    }
    timeout(HANGS, exchange(address)).await.unwrap().unwrap();
    assert_eq!(faults.ledger().connections(), 4);
}

/// Only a program that asks for this very port can take it from a closed relay.
#[tokio::test]
async fn relay_whose_port_is_taken_is_an_error() {
    let faults = Faults::<WireFault>::new(Script::default());
    let mut relay = faults.relay(server().await).await.unwrap();
    relay.close().await.unwrap();
    let taken = TcpListener::bind(relay.address()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(relay.open().unwrap_err().kind(), ErrorKind::AddrInUse);
    }
    drop(taken);
    relay.open().unwrap();
    timeout(HANGS, exchange(relay.address())).await.unwrap().unwrap();
}
