//! A redis-server on a socket of its own.

use std::error::Error;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::sleep;

pub(crate) struct Store {
    pub(crate) url: String,
    directory: PathBuf,
    process: Child,
}

impl Store {
    pub(crate) async fn start() -> Result<Self, Box<dyn Error>> {
        let directory = std::env::temp_dir().join(format!("fleet-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let url = format!("unix://{}", directory.join("redis.sock").display());
        let process = spawn(&directory)?;
        let store = Self { url, directory, process };
        while !store.directory.join("redis.sock").exists() {
            sleep(Duration::from_millis(10)).await;
        }
        Ok(store)
    }

    /// Kills it, as `kill -9` does. Its data is gone.
    pub(crate) async fn kill(&mut self) -> Result<(), Box<dyn Error>> {
        Ok(self.process.kill().await?)
    }

    pub(crate) async fn restart(&mut self) -> Result<(), Box<dyn Error>> {
        self.process = spawn(&self.directory)?;
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn spawn(directory: &PathBuf) -> Result<Child, Box<dyn Error>> {
    Command::new("redis-server")
        .args(["--port", "0", "--unixsocket", "redis.sock", "--save", "", "--appendonly", "no"])
        .current_dir(directory)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("redis-server cannot be started: {error}").into())
}
