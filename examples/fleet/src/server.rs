//! The server: a queue of two seconds of work, and a fixed rate. It also works for callers that have given up.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::CAPACITY;
use crate::figures::CALLS_PER_SECOND;

pub(crate) struct Server {
    pub(crate) address: String,
    stalls: Arc<AtomicBool>,
    /// The arrivals in each second of the run.
    arrivals: Arc<[AtomicU64]>,
    /// The server's tasks, which end when it is dropped.
    _tasks: JoinSet<()>,
}

impl Server {
    /// Starts a server. Its first second starts now.
    pub(crate) async fn start(seconds: u64) -> Result<Self, Box<dyn Error>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let capacity = CALLS_PER_SECOND * CAPACITY;
        let arrivals: Arc<[AtomicU64]> = (0..seconds).map(|_| AtomicU64::new(0)).collect();
        let stalls = Arc::<AtomicBool>::default();
        let (queue, waiting) = mpsc::channel((0..).take_while(|length| f64::from(*length) < 2.0 * capacity).count());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, queue, Arc::clone(&arrivals)));
        tasks.spawn(answer(waiting, Duration::from_secs_f64(1.0 / capacity), Arc::clone(&stalls)));
        Ok(Self { address, stalls, arrivals, _tasks: tasks })
    }

    pub(crate) fn stall(&self, stalls: bool) {
        self.stalls.store(stalls, Ordering::Relaxed);
    }

    pub(crate) fn arrivals(&self) -> Vec<u64> {
        self.arrivals.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

async fn accept(listener: TcpListener, queue: mpsc::Sender<TcpStream>, arrivals: Arc<[AtomicU64]>) {
    let start = Instant::now();
    while let Ok((connection, _)) = listener.accept().await {
        let second = usize::try_from(start.elapsed().as_secs()).unwrap_or(usize::MAX);
        arrivals.get(second).map(|count| count.fetch_add(1, Ordering::Relaxed));
        // A full queue refuses by dropping the connection.
        let _ = queue.try_send(connection);
    }
}

async fn answer(mut waiting: mpsc::Receiver<TcpStream>, work: Duration, stalls: Arc<AtomicBool>) {
    let mut turns = interval(work);
    // After a stall the server does not work faster to catch up.
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while let Some(mut connection) = waiting.recv().await {
        turns.tick().await;
        while stalls.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(10)).await;
        }
        let _ = connection.write_all(b"!").await;
    }
}
