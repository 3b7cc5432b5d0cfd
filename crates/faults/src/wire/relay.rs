//! A port in front of a server, whose connections break as scripted.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::WireFault;
use super::io::FaultyIo;
use crate::faults::{Faults, Shared};
use crate::task::Task;

impl Faults<WireFault> {
    /// Opens a loopback port that forwards to a server, for any client and protocol.
    ///
    /// # Errors
    ///
    /// Returns the operating system's error if no port can be opened.
    pub async fn relay(&self, server: SocketAddr) -> io::Result<Relay> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = Task::spawn(accept(listener, server, Arc::clone(&self.shared)));
        Ok(Relay { address, _task: task })
    }
}

/// A port that forwards to a server until it is dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    _task: Task,
}

impl Relay {
    /// Returns the address for the client.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, shared: Arc<Shared<WireFault>>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(forward(client, server, shared));
        while connections.try_join_next().is_some() {}
    }
}

async fn forward(mut client: TcpStream, server: SocketAddr, shared: Arc<Shared<WireFault>>) {
    let (connection, open) = shared.ledger.connect();
    let (fault, delay) = shared.take(None, connection, |_| true);
    sleep(delay).await;
    if fault == WireFault::Refuse {
        reset(&client);
        return;
    }
    if fault == WireFault::TimeOut {
        return std::future::pending().await;
    }
    let Ok(upstream) = TcpStream::connect(server).await else { return reset(&client) };
    let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
    let mut upstream = FaultyIo::new(upstream, fault, open);
    // Any other end was caused by the client or the server.
    if let Err(error) = copy_bidirectional(&mut client, &mut upstream).await
        && error.kind() == io::ErrorKind::ConnectionReset
    {
        reset(&client);
    }
}

/// Makes this connection end with a reset.
fn reset(client: &TcpStream) {
    // A connection that is gone cannot be reset, and need not be.
    let _ = client.set_zero_linger();
}
