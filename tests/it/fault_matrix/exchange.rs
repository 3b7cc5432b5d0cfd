//! The state that the server and the clients of one cell share: observations and conditions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::fault_matrix::cell::{Cell, Fault, Point, Version};

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// By a whole response.
    Served,
    /// By a response whose body broke off.
    Broken,
    /// By a response whose body neither went on nor ended.
    Stalled,
    Failed(String),
}

/// One call, as server and clients saw it.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) attempts: usize,
    /// The number of times that the server read the whole head of its request.
    pub(crate) arrivals: usize,
    pub(crate) end: End,
}

/// The progress of all calls of a cell.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// First attempts that are over.
    first_over: usize,
    /// The server is down.
    down: bool,
    /// Attempts that are being made.
    running: usize,
    /// Calls that are over.
    pub(crate) over: usize,
    /// Response heads that the clients have received.
    heads: usize,
    /// Connections that have failed.
    faults: usize,
    /// Requests that have been answered by a head and half a body.
    halves: usize,
    attempts: BTreeMap<usize, usize>,
    arrivals: BTreeMap<usize, usize>,
    read: BTreeSet<usize>,
}

/// One cell while it runs.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) cell: Cell,
    progress: watch::Sender<Progress>,
    /// Connections that are to stay open.
    held: Mutex<Vec<TcpStream>>,
}

impl Exchange {
    pub(crate) fn new(cell: Cell) -> Arc<Self> {
        let down = cell.point == Point::Refused && cell.fault == Fault::Reset;
        let progress = watch::Sender::new(Progress { down, ..Progress::default() });
        Arc::new(Self { cell, progress, held: Mutex::default() })
    }

    fn note(&self, change: impl FnOnce(&mut Progress)) {
        self.progress.send_modify(change);
    }

    async fn until(&self, met: impl FnMut(&Progress) -> bool) {
        drop(self.progress.subscribe().wait_for(met).await.unwrap());
    }

    fn is_healthy(&self) -> bool {
        self.progress.borrow().first_over >= self.cell.calls
    }

    /// Waits until all first attempts have ended and the server is up.
    pub(crate) async fn healthy(&self) {
        let calls = self.cell.calls;
        self.until(|progress| progress.first_over >= calls && !progress.down).await;
    }

    pub(crate) fn is_down(&self) -> bool {
        self.progress.borrow().down
    }

    /// Waits until a server that is down should come up.
    pub(crate) async fn comes_up(&self) {
        let calls = self.cell.calls;
        self.until(|progress| progress.first_over >= calls).await;
    }

    pub(crate) fn is_up(&self) {
        self.note(|progress| progress.down = false);
    }

    /// Starts an attempt of this call; all but the first wait for the healthy server. The returned
    /// value is dropped when the attempt ends.
    pub(crate) async fn attempt(self: &Arc<Self>, call: usize) -> Running {
        let mut number = 0;
        self.note(|progress| {
            let attempts = progress.attempts.entry(call).or_default();
            *attempts += 1;
            number = *attempts;
        });
        if number > 1 {
            self.healthy().await;
        }
        self.note(|progress| progress.running += 1);
        Running { exchange: Arc::clone(self), first: number == 1 }
    }

    pub(crate) fn received_head(&self) {
        self.note(|progress| progress.heads += 1);
    }

    pub(crate) fn over(&self) {
        self.note(|progress| progress.over += 1);
    }

    pub(crate) fn observed(&self, call: usize, end: End) -> (bool, Observed) {
        let progress = self.progress.borrow();
        let of = |counts: &BTreeMap<usize, usize>| counts.get(&call).copied().unwrap_or_default();
        let (attempts, arrivals) = (of(&progress.attempts), of(&progress.arrivals));
        (progress.read.contains(&call), Observed { attempts, arrivals, end })
    }

    /// Waits until only time can advance the calls: each unfinished call has an attempt on a
    /// connection that has stalled.
    pub(crate) async fn stuck(&self) {
        let Cell { calls, version, fault, .. } = self.cell;
        if fault != Fault::Stall {
            return std::future::pending().await;
        }
        self.until(|progress| {
            let all_wait = progress.running + progress.over == calls && progress.over < calls;
            let all_stalled = match version {
                Version::Http1 => progress.faults == calls && progress.first_over == 0,
                Version::Http2 => progress.faults > 0,
            };
            all_wait && all_stalled
        })
        .await;
    }

    /// Records that the server has read a part of this call's request.
    pub(crate) fn read(&self, call: usize) {
        if !self.is_healthy() {
            self.note(|progress| progress.read.extend([call]));
        }
    }

    /// Records that the server has read the whole head of this call's request.
    pub(crate) fn arrived(&self, call: usize) {
        self.read(call);
        self.note(|progress| *progress.arrivals.entry(call).or_default() += 1);
    }

    /// Returns `true` if the server should fail here.
    pub(crate) fn fails_at(&self, point: Point) -> bool {
        self.cell.point == point && !self.is_healthy()
    }

    /// Records that the server has sent the head and half the body of a response. Returns the
    /// number of calls with such a response.
    pub(crate) fn sent_half(&self) -> usize {
        self.note(|progress| progress.halves += 1);
        self.progress.borrow().halves
    }

    /// Waits until all clients have received the head of a response.
    pub(crate) async fn all_have_half(&self) {
        let calls = self.cell.calls;
        self.until(|progress| progress.heads >= calls).await;
    }

    /// Fails the connection.
    pub(crate) async fn fail(&self, mut connection: TcpStream) {
        match self.cell.fault {
            Fault::Reset => {
                connection.set_zero_linger().unwrap();
                drop(connection);
            }
            Fault::Fin => {
                // The client may have disconnected.
                let _ = connection.shutdown().await;
                self.held.lock().unwrap().push(connection);
            }
            Fault::Garbage => {
                let _ = connection.write_all(b"220 mail.example ESMTP\r\n\r\n").await;
                self.held.lock().unwrap().push(connection);
            }
            Fault::Stall => self.held.lock().unwrap().push(connection),
        }
        self.note(|progress| progress.faults += 1);
    }
}

/// An attempt that is being made.
pub(crate) struct Running {
    exchange: Arc<Exchange>,
    first: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        let first = usize::from(self.first);
        self.exchange.note(|progress| {
            progress.running -= 1;
            progress.first_over += first;
        });
    }
}
