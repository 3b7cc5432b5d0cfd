//! A port in front of a server, whose connections break according to a script.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::WireFault;
use super::io::FaultyIo;
use crate::faults::{Faults, Shared};
use crate::reset::reset_when_dropped;

impl Faults<WireFault> {
    /// Opens a loopback port that forwards to a server, for any client and protocol.
    ///
    /// # Errors
    ///
    /// Returns the operating system's error if no port can be opened.
    pub async fn relay(&self, server: SocketAddr) -> io::Result<Relay> {
        let port = bound(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let (address, shared) = (port.local_addr()?, Arc::clone(&self.shared));
        let mut relay = Relay { address, server, shared, listening: JoinSet::new(), closed: Some(port) };
        relay.open()?;
        Ok(relay)
    }
}

/// A port that forwards to a server until it is dropped. It can be closed temporarily, as if the server were down.
///
/// ```
/// use reattempt_faults::{Faults, Reply, Script, Server, WireFault};
/// use tokio::net::TcpStream;
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
///
/// let server = Server::http1([Reply::reset()]).await?;
/// let faults = Faults::<WireFault>::new(Script::default());
/// let mut relay = faults.relay(server.address()).await?;
/// relay.close().await?;
/// assert!(TcpStream::connect(relay.address()).await.is_err()); // refused
/// relay.open()?;
/// TcpStream::connect(relay.address()).await?;
/// # drop(server.finish()); // a doc test without a client
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    server: SocketAddr,
    shared: Arc<Shared<WireFault>>,
    listening: JoinSet<()>,
    /// The socket that reserves the port while nothing listens on it.
    closed: Option<TcpSocket>,
}

impl Relay {
    /// Returns the address for the client.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections, and refuses new ones. The port stays reserved, so [`open`](Self::open) reopens the same
    /// address. Closing a closed port has no effect.
    ///
    /// # Errors
    ///
    /// Returns the operating system's error if the port cannot be reserved. The port is then closed, but another
    /// program may use it.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the port is closed, but is possibly not reserved.
    pub async fn close(&mut self) -> io::Result<()> {
        self.listening.shutdown().await;
        if self.closed.is_none() {
            self.closed = Some(bound(self.address)?);
        }
        Ok(())
    }

    /// Reopens the port after [`close`](Self::close), from within a tokio runtime. Opening an open port has no effect.
    ///
    /// # Errors
    ///
    /// Returns the operating system's error if the port is not reserved and another program uses it.
    pub fn open(&mut self) -> io::Result<()> {
        if !self.listening.is_empty() {
            return Ok(());
        }
        let port = self.closed.take().map_or_else(|| bound(self.address), Ok)?;
        self.listening.spawn(accept(port.listen(BACKLOG)?, self.server, Arc::clone(&self.shared)));
        Ok(())
    }
}

/// The number of connections that may wait for the relay. Larger numbers have no effect on most systems.
const BACKLOG: u32 = 1024;

fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    // Earlier connections of the port may still be in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
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
    // A connection that is already closed need not be reset.
    let _ = reset_when_dropped(client);
}
