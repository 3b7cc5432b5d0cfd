//! Servers that follow a script on a loopback port.

mod http1;
mod reply;
mod request;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::faults::{Faults, Shared, Unused};
use crate::ledger::Ledger;
use crate::task::Task;

pub use reply::{End, Read, Reply};

/// A server on a loopback port that replies by a script, and with 200 where the script has no reply.
///
/// The test owns it. Dropping it closes its connections, and panics if replies of the script were not used up.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    faults: Faults<Reply>,
    _task: Task,
}

impl Server {
    /// Starts a server of HTTP/1.1.
    ///
    /// # Errors
    ///
    /// The error of the operating system if no port can be opened.
    pub async fn http1(faults: impl Into<Faults<Reply>>) -> io::Result<Self> {
        Self::start(faults.into(), http1::serve).await
    }

    async fn start<Serving>(
        faults: Faults<Reply>,
        serve: impl Fn(TcpStream, Arc<Shared<Reply>>) -> Serving + Send + 'static,
    ) -> io::Result<Self>
    where
        Serving: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::clone(&faults.shared);
        let task = Task::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                // A connection that is gone already needs no option.
                let _ = stream.set_nodelay(true);
                connections.spawn(serve(stream, Arc::clone(&shared)));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, faults, _task: task })
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path, which starts with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the ledger.
    pub fn ledger(&self) -> &Ledger {
        self.faults.ledger()
    }

    /// Stops the server.
    ///
    /// # Errors
    ///
    /// Replies that were not used up.
    pub fn finish(self) -> Result<(), Unused> {
        self.faults.finish()
    }
}
