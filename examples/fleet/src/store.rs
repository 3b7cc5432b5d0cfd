//! A redis-server on its own socket.

use std::error::Error;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// Kills the server and removes its files when the standard input ends, as it does with this process.
const WATCH: &str = "redis-server --port 0 --unixsocket redis.sock --save '' --appendonly no >log 2>&1 &
cat >/dev/null
kill -9 $!
wait
rm -r \"$PWD\"";

/// The maximum time for the server's start or end.
const BOUND: Duration = Duration::from_secs(10);

pub(crate) struct Store {
    pub(crate) url: String,
    directory: PathBuf,
    /// The shell that watches the server.
    watch: Child,
}

impl Store {
    pub(crate) async fn start(name: &str) -> Result<Self, Box<dyn Error>> {
        let directory = std::env::temp_dir().join(format!("fleet-{}-{name}", std::process::id()));
        let socket = directory.join("redis.sock");
        let store = Self { url: format!("unix://{}", socket.display()), watch: start_in(&directory)?, directory };
        let starts = async {
            while !socket.exists() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(BOUND, starts).await.map_err(|_| "redis-server does not start; is it installed?")?;
        Ok(store)
    }

    /// Kills the server, as `kill -9` does. Its data is lost.
    pub(crate) async fn kill(&mut self) -> Result<(), Box<dyn Error>> {
        drop(self.watch.stdin.take());
        timeout(BOUND, self.watch.wait()).await??;
        Ok(())
    }

    pub(crate) fn restart(&mut self) -> Result<(), Box<dyn Error>> {
        self.watch = start_in(&self.directory)?;
        Ok(())
    }
}

fn start_in(directory: &PathBuf) -> Result<Child, Box<dyn Error>> {
    std::fs::create_dir_all(directory)?;
    let mut shell = Command::new("sh");
    Ok(shell.args(["-c", WATCH]).current_dir(directory).stdin(Stdio::piped()).spawn()?)
}
