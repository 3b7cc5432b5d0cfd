//! A redis-server that a test starts, on a socket or a loopback port. It ends with the test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redis::{Client, Connection, RedisResult, Value};
use tokio::time::{sleep, timeout};

/// The longest time that a test waits for a server.
const BOUND: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    process: Child,
    directory: PathBuf,
    url: String,
    arguments: Vec<String>,
}

impl Server {
    /// Starts a server on a socket; `None` if no redis-server is installed.
    pub(crate) async fn start(arguments: &[&str]) -> Option<Self> {
        let directory = directory();
        let socket = directory.join("redis.sock");
        let own = ["--port", "0", "--unixsocket", socket.to_str().unwrap()].map(str::to_owned);
        let arguments = own.into_iter().chain(arguments.iter().map(|&it| it.to_owned()));
        Self::run(directory, format!("unix://{}", socket.display()), arguments.collect()).await
    }

    /// Starts a server on a port that was free a moment ago, and tries again if it no longer is.
    pub(crate) async fn on_port(arguments: &[&str]) -> Option<Self> {
        loop {
            let port = free_port();
            let own = ["--port", &port.to_string(), "--bind", "127.0.0.1"].map(str::to_owned);
            let arguments = own.into_iter().chain(arguments.iter().map(|&it| it.to_owned()));
            let mut server = Self::run(directory(), format!("redis://127.0.0.1:{port}"), arguments.collect()).await?;
            if server.process.try_wait().unwrap().is_none() {
                return Some(server);
            }
        }
    }

    /// Starts a server with TLS on a port, and without TLS on a socket for its administrator. Returns its TLS address,
    /// too.
    #[cfg(feature = "tls")]
    pub(crate) async fn with_tls(arguments: &[&str]) -> Option<(Self, String)> {
        loop {
            let port = free_port();
            let number = port.to_string();
            let arguments: Vec<_> = ["--tls-port", &number].iter().chain(arguments).copied().collect();
            let mut server = Self::start(&arguments).await?;
            if server.process.try_wait().unwrap().is_none() {
                return Some((server, format!("127.0.0.1:{port}")));
            }
        }
    }

    async fn run(directory: PathBuf, url: String, arguments: Vec<String>) -> Option<Self> {
        let Some(process) = spawn(&directory, &arguments) else {
            eprintln!("skipped: redis-server is not installed");
            return None;
        };
        let mut server = Self { process, directory, url, arguments };
        server.wait().await;
        Some(server)
    }

    /// Waits until the server answers or has ended.
    async fn wait(&mut self) {
        let answers = async {
            while self.process.try_wait().unwrap().is_none() && !self.answers() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(BOUND, answers).await.unwrap();
    }

    fn answers(&self) -> bool {
        let ping = self.connect().and_then(|mut connection| redis::cmd("PING").query(&mut connection));
        // A server with a password answers that it requires one.
        ping.map_or_else(|error: redis::RedisError| !error.is_io_error(), |_: Value| true)
    }

    fn connect(&self) -> RedisResult<Connection> {
        let connection = Client::open(self.url())?.get_connection_with_timeout(BOUND)?;
        connection.set_read_timeout(Some(BOUND))?;
        Ok(connection)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address of a server on a port.
    pub(crate) fn address(&self) -> String {
        self.url.strip_prefix("redis://").unwrap().to_owned()
    }

    /// Sends a command as the server's administrator.
    pub(crate) fn command(&self, words: &[&str]) -> Value {
        let mut command = redis::Cmd::new();
        words.iter().for_each(|word| {
            command.arg(*word);
        });
        command.query(&mut self.connect().unwrap()).unwrap()
    }

    pub(crate) fn text(&self, words: &[&str]) -> Option<String> {
        redis::from_redis_value(self.command(words)).unwrap()
    }

    /// Returns `true` if the server answers a command with a text that contains `part`. A server that changes its role
    /// closes its connections first.
    pub(crate) fn shows(&self, words: &[&str], part: &str) -> bool {
        let mut command = redis::Cmd::new();
        words.iter().for_each(|word| {
            command.arg(*word);
        });
        let text = self.connect().and_then(|mut connection| command.query::<String>(&mut connection));
        text.is_ok_and(|text| text.contains(part))
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) async fn restart(&mut self) {
        self.process = spawn(&self.directory, &self.arguments).unwrap();
        self.wait().await;
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = (self.process.kill(), self.process.wait());
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn spawn(directory: &Path, arguments: &[String]) -> Option<Child> {
    let mut command = Command::new("redis-server");
    if let [sentinel] = arguments {
        command.args([sentinel, "--sentinel"])
    } else {
        command.args(["--save", "", "--appendonly", "no"]).args(arguments)
    };
    command.current_dir(directory).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
}

/// Creates a new directory with a short path, because the path of a socket must be short.
fn directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("reattempt-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Returns a port that was free a moment ago. A cluster member has a second one, 10000 above.
pub(crate) fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if port <= 50_000 {
            return port;
        }
    }
}

/// Starts a sentinel that watches the server at `address` as `main`. `settings` are further lines of its file.
#[cfg(feature = "sentinel")]
pub(crate) async fn sentinel(address: &str, settings: &str) -> Option<Server> {
    loop {
        let (directory, port) = (directory(), free_port());
        let watched = address.replace(':', " ");
        let text = format!("port {port}\nbind 127.0.0.1\nsentinel monitor main {watched} 1\n{settings}");
        std::fs::write(directory.join("sentinel.conf"), text).unwrap();
        let arguments = vec!["sentinel.conf".to_owned()];
        let url = format!("redis://127.0.0.1:{port}");
        let mut sentinel = Server::run(directory, url, arguments).await?;
        if sentinel.process.try_wait().unwrap().is_none() {
            return Some(sentinel);
        }
    }
}
