//! The client processes. Each one runs this program, and ends when its standard input does. So none outlives the parent
//! process, however that ends.

use std::error::Error;
use std::io::stdin;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use crate::client::Budget;

/// A client process.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(budget: Budget, seconds: u64) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["client", budget.name(), &seconds.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        Ok(Self(command.spawn()?))
    }

    /// Sends the addresses, which starts the calls.
    pub(crate) async fn begin(&mut self, server: &str, store: &str) -> Result<(), Box<dyn Error>> {
        let input = self.0.stdin.as_mut().ok_or("a process without an input")?;
        Ok(input.write_all(format!("{server} {store}\n").as_bytes()).await?)
    }

    /// Waits for the end, and returns the counts that the process printed.
    pub(crate) async fn read_counts(mut self) -> Result<Vec<u64>, Box<dyn Error>> {
        // The wait would otherwise close the input at once.
        let input = self.0.stdin.take();
        let output = self.0.wait_with_output().await?;
        drop(input);
        let text = String::from_utf8(output.stdout)?;
        Ok(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
    }
}

/// Receives the addresses in a client process. The end of the input ends the process.
pub(crate) async fn addresses() -> Result<(String, String), Box<dyn Error>> {
    let (begin, begins) = oneshot::channel();
    std::thread::spawn(|| {
        let mut lines = stdin().lines();
        if let Some(Ok(line)) = lines.next() {
            let _ = begin.send(line);
        }
        lines.for_each(drop);
        std::process::exit(1);
    });
    let line = begins.await?;
    let (server, store) = line.split_once(' ').ok_or("not two addresses")?;
    Ok((server.to_owned(), store.to_owned()))
}
