//! The server: one queue, a fixed rate, and no mercy. It works for callers that have given up, too.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

pub(crate) struct Server {
    pub(crate) address: String,
    stalls: Arc<AtomicBool>,
    most: Arc<AtomicU32>,
}

impl Server {
    /// Starts a server that answers this many requests a second.
    pub(crate) async fn start(capacity: f64) -> Result<Self, Box<dyn Error>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let server = Self { address, stalls: Arc::default(), most: Arc::default() };
        let (queue, waiting) = mpsc::channel(10_000);
        tokio::spawn(accept(listener, queue, Arc::clone(&server.most)));
        tokio::spawn(answer(waiting, capacity, Arc::clone(&server.stalls)));
        Ok(server)
    }

    pub(crate) fn stall(&self, stalls: bool) {
        self.stalls.store(stalls, Ordering::Relaxed);
    }

    pub(crate) fn most_in_a_second(&self) -> u32 {
        self.most.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, queue: mpsc::Sender<TcpStream>, most: Arc<AtomicU32>) {
    let (mut second, mut arrivals) = (Instant::now(), 0);
    while let Ok((connection, _)) = listener.accept().await {
        if second.elapsed() >= Duration::from_secs(1) {
            (second, arrivals) = (Instant::now(), 0);
        }
        arrivals += 1;
        most.fetch_max(arrivals, Ordering::Relaxed);
        // A queue that is full drops the connection.
        let _ = queue.try_send(connection);
    }
}

async fn answer(mut waiting: mpsc::Receiver<TcpStream>, capacity: f64, stalls: Arc<AtomicBool>) {
    let mut turns = interval(Duration::from_secs_f64(1.0 / capacity));
    // The capacity is not caught up after a stall.
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while let Some(mut connection) = waiting.recv().await {
        turns.tick().await;
        while stalls.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(10)).await;
        }
        let _ = connection.write_all(b"!").await;
    }
}
