//! A stream that reconnects without limit, with the rules of Twitter's streaming API. Each kind of failure has its own
//! delays, and the first message resets all counts.
//!
//! The server follows a script and the clock is paused, so three minutes of failures take no time.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use reattempt::schedule::{Failure, FailureKind, Reconnecting};
use reattempt::{Verdict, profile, retry};
use tokio::sync::Mutex;
use tokio::time::Instant;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let server = Server::new([
        // Immediately, after 250 ms, after 500 ms: most networks recover soon.
        Next::Refused,
        Next::Refused,
        Next::Refused,
        Next::Messages(2),
        // Immediately after the messages, then 5 s, 10 s: a server with errors needs more time.
        Next::Status(503),
        Next::Status(503),
        Next::Messages(1),
        // Immediately, then 60 s, 120 s: 420 is the status of a rate limit.
        Next::Status(420),
        Next::Status(420),
        // Connections that are accepted and dropped before a message: the counts continue.
        Next::Messages(0),
        Next::Messages(0),
        Next::End,
    ]);

    let rules = profile::twitter_streaming().map(Reconnecting::new);
    let reconnecting = rules.schedule.clone();
    let read = || async {
        let mut stream = server.connect().await?;
        while let Some(message) = stream.next().await? {
            // A connection proves nothing; a message does.
            reconnecting.reset();
            println!("          {message}");
        }
        Ok(())
    };
    let outcome = retry(rules, read)
        .classify(|trouble: &Trouble| Verdict::Transient(trouble.failure()))
        .notify(|trouble, delay| println!("          {trouble}; again in {delay:?}"))
        .await;
    assert!(outcome.is_ok(), "the script ends well");

    let waits = server.waits().await;
    println!("waited between connections, in ms: {waits:?}");
    assert_eq!(waits, [0, 250, 500, 0, 5000, 10_000, 0, 60_000, 120_000, 250, 500]);
}

/// The server's behaviour for one connection.
enum Next {
    Refused,
    Status(u16),
    /// This number of messages, and then a broken connection.
    Messages(u32),
    /// An orderly end, after which the client does not reconnect.
    End,
}

/// A failure of a stream.
#[derive(Debug)]
enum Trouble {
    Refused,
    Broken,
    Status(u16),
}

impl Trouble {
    fn failure(&self) -> Failure {
        match *self {
            Trouble::Refused | Trouble::Broken => Failure::new(FailureKind::Network),
            // The schedule distinguishes the kinds by their status.
            Trouble::Status(status) => Failure::new(FailureKind::Server).with_code(status),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Refused => write!(f, "refused"),
            Trouble::Broken => write!(f, "broken off"),
            Trouble::Status(status) => write!(f, "status {status}"),
        }
    }
}

impl std::error::Error for Trouble {}

/// A server that follows its script and records the time of each connection.
struct Server {
    start: Instant,
    state: Mutex<(VecDeque<Next>, Vec<Duration>)>,
}

impl Server {
    fn new(script: impl IntoIterator<Item = Next>) -> Self {
        let script = script.into_iter().collect();
        Self { start: Instant::now(), state: Mutex::new((script, Vec::new())) }
    }

    async fn connect(&self) -> Result<Stream, Trouble> {
        let (script, times) = &mut *self.state.lock().await;
        let now = self.start.elapsed();
        times.push(now);
        print!("{:>6.2} s ", now.as_secs_f64());
        match script.pop_front() {
            Some(Next::Refused) => Err(Trouble::Refused),
            Some(Next::Status(status)) => Err(Trouble::Status(status)),
            Some(Next::Messages(left)) => Ok(Stream { left, breaks: true }),
            Some(Next::End) | None => Ok(Stream { left: 0, breaks: false }),
        }
        .inspect(|_| println!("connected"))
        .inspect_err(|_| println!("in vain"))
    }

    /// Returns the time from each connection to the next.
    async fn waits(&self) -> Vec<u128> {
        let (_, times) = &*self.state.lock().await;
        times.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect()
    }
}

/// A stream of messages.
struct Stream {
    left: u32,
    breaks: bool,
}

impl Stream {
    async fn next(&mut self) -> Result<Option<String>, Trouble> {
        match (self.left, self.breaks) {
            (0, true) => Err(Trouble::Broken),
            (0, false) => Ok(None),
            _ => {
                self.left -= 1;
                Ok(Some(format!("a message, {} to come", self.left)))
            }
        }
    }
}
