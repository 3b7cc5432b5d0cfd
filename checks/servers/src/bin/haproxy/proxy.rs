//! A haproxy with a configuration of its own.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use reattempt_faults::Relay;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tower::BoxError;

/// Reached only if haproxy does not start.
const STARTS: Duration = Duration::from_secs(10);

/// A haproxy that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) http1: SocketAddr,
    pub(crate) http2: SocketAddr,
    master: Child,
    folder: PathBuf,
}

impl Proxy {
    /// Starts `program` in front of these back ends, which it connects to once for each request.
    pub(crate) async fn start(program: &str, back_ends: &[Relay]) -> Result<Self, BoxError> {
        let folder = std::env::temp_dir().join(format!("reattempt-haproxy-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let (http1, http2) = (free().await?.local_addr()?, free().await?.local_addr()?);
        let servers = back_ends.iter().enumerate();
        let servers =
            servers.map(|(number, port)| format!("  server s{number} {}\n", port.address())).collect::<String>();
        let stats = folder.join("stats");
        let config = format!(
            "global\n  stats socket {} level admin expose-fd listeners\n\
             defaults\n  mode http\n  retries 0\n  timeout connect 1s\n  timeout client 30s\n  timeout server 30s\n\
             frontend clients\n  bind {http1}\n  bind {http2} proto h2\n  default_backend servers\n\
             backend servers\n{servers}",
            stats.display()
        );
        let file = folder.join("config");
        fs::write(&file, config)?;
        let mut command = Command::new(program);
        // A master with a worker, so that a reload replaces the worker. Its warnings about each reload are no failures.
        command.arg("-W").arg("-q").arg("-f").arg(&file).stderr(Stdio::null()).kill_on_drop(true);
        let proxy = Self { http1, http2, master: command.spawn()?, folder };
        let listens = async {
            while TcpStream::connect(http1).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(STARTS, listens).await.map_err(|_| format!("{program} does not start"))?;
        Ok(proxy)
    }

    /// Replaces the worker. The former one ends its requests in order, and sends GOAWAY over HTTP/2.
    pub(crate) async fn reload(&self) -> Result<(), BoxError> {
        self.signal("-USR2").await
    }

    /// Ends in order: the requests under way are served, and no connection is accepted.
    pub(crate) async fn stop(mut self) -> Result<(), BoxError> {
        self.signal("-USR1").await?;
        timeout(STARTS, self.master.wait()).await??;
        fs::remove_dir_all(&self.folder)?;
        Ok(())
    }

    async fn signal(&self, signal: &str) -> Result<(), BoxError> {
        let id = self.master.id().ok_or("haproxy has ended")?;
        let sent = Command::new("kill").arg(signal).arg(id.to_string()).status().await?;
        if sent.success() { Ok(()) } else { Err(format!("kill {signal}: {sent}").into()) }
    }
}
