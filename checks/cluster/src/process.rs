//! The processes of the servers, which end with the value that owns them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};
use tower::BoxError;

use crate::server::{keys, ledger, requests};
use crate::tls;

/// The most time in which a process starts or ends.
const BOUND: Duration = Duration::from_secs(10);

/// The conditions of all servers of a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// TLS, with a new certificate.
    pub https: bool,
    /// The time of each request.
    pub work: Duration,
}

/// Servers as processes, and the folder that they share. All of it is gone with this value.
#[derive(Debug)]
pub struct Cluster {
    /// The conditions of all servers.
    pub setup: Setup,
    store: PathBuf,
    running: BTreeMap<SocketAddr, Child>,
    /// The outages so far.
    pub outages: Vec<Outage>,
}

/// The time in which a server did not answer.
#[derive(Debug, Clone, Copy)]
pub struct Outage {
    /// The server's address.
    pub address: SocketAddr,
    /// The moment from which the server did not answer.
    pub from: Instant,
    /// The moment from which no attempt is at the old process any more, or it answers again.
    pub to: Instant,
}

impl Cluster {
    /// Makes the folder that the servers of a scene share.
    pub fn new(name: &str, setup: Setup) -> Result<Self, BoxError> {
        let store = std::env::temp_dir().join(format!("reattempt-cluster-{}-{name}", std::process::id()));
        std::fs::create_dir_all(keys(&store))?;
        let this = Self { setup, store, running: BTreeMap::new(), outages: Vec::new() };
        if setup.https {
            tls::make(&this.store)?;
        }
        Ok(this)
    }

    /// Returns the folder that the servers share.
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// Returns the addresses of the servers that run.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.running.keys().copied().collect()
    }

    /// Starts a server on a free port.
    pub async fn start(&mut self) -> Result<SocketAddr, BoxError> {
        self.start_at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Starts a server, and waits until it listens.
    pub async fn start_at(&mut self, address: SocketAddr) -> Result<SocketAddr, BoxError> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("server")
            .arg(address.to_string())
            .arg(&self.store)
            .arg(self.setup.work.as_millis().to_string())
            .arg(if self.setup.https { "https" } else { "http" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let line = timeout(BOUND, lines.next_line()).await.map_err(|_| "a server did not start")??;
        let address = line.ok_or("a server ended at once")?.parse()?;
        self.running.insert(address, child);
        Ok(address)
    }

    fn signal(&self, address: SocketAddr, signal: Signal) -> Result<(), BoxError> {
        let id = self.running.get(&address).and_then(Child::id).and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Ok(kill_process(id.ok_or("no such server")?, signal)?)
    }

    async fn ended(&mut self, address: SocketAddr) -> Result<ExitStatus, BoxError> {
        let mut child = self.running.remove(&address).ok_or("no such server")?;
        // To wait closes the input, at whose end a server ends at once.
        let _input = child.stdin.take();
        Ok(timeout(BOUND, child.wait()).await.map_err(|_| "a server did not end")??)
    }

    /// Ends a server by SIGKILL.
    pub async fn kill(&mut self, address: SocketAddr) -> Result<(), BoxError> {
        let from = Instant::now();
        self.signal(address, Signal::KILL)?;
        self.ended(address).await?;
        self.outages.push(Outage { address, from, to: Instant::now() });
        Ok(())
    }

    /// Ends a server by SIGTERM: it answers what is in flight, and closes its connections.
    pub async fn terminate(&mut self, address: SocketAddr) -> Result<(), BoxError> {
        self.signal(address, Signal::TERM)?;
        let status = self.ended(address).await?;
        if status.success() { Ok(()) } else { Err(format!("a server ended with {status}").into()) }
    }

    /// Stops a server for a time by SIGSTOP. The system goes on to accept connections for it.
    pub async fn stop(&mut self, address: SocketAddr, time: Duration) -> Result<(), BoxError> {
        let from = Instant::now();
        self.signal(address, Signal::STOP)?;
        tokio::time::sleep(time).await;
        self.signal(address, Signal::CONT)?;
        self.outages.push(Outage { address, from, to: Instant::now() });
        Ok(())
    }

    /// Returns the number of each POST that was carried out, in order.
    pub fn ledger(&self) -> Result<Vec<u64>, BoxError> {
        let text = std::fs::read_to_string(ledger(&self.store))?;
        Ok(text.lines().map(str::parse).collect::<Result<_, _>>()?)
    }

    /// Returns the number of requests that have reached a server.
    pub fn requests(&self) -> Result<u64, BoxError> {
        Ok(std::fs::metadata(requests(&self.store))?.len())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.running.clear();
        // A folder that stays behind harms nothing.
        let _ = std::fs::remove_dir_all(&self.store);
    }
}

/// A port at which packets vanish: its queue of connections is full, so the system drops attempts to connect.
#[derive(Debug)]
pub struct BlackHole {
    _full: Vec<TcpStream>,
    _listener: tokio::net::TcpListener,
}

impl BlackHole {
    /// Takes a port that a server had.
    pub async fn at(address: SocketAddr) -> Result<Self, BoxError> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(1)?;
        let mut full = Vec::new();
        while let Ok(connected) = timeout(Duration::from_millis(100), TcpStream::connect(address)).await {
            full.push(connected?);
            if full.len() > 16 {
                return Err("the port accepts every connection".into());
            }
        }
        Ok(Self { _full: full, _listener: listener })
    }
}
