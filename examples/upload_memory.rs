//! The memory of an upload of 1 GB whose connection breaks fifty times.
//!
//! `cargo run --example upload_memory` prints the memory of the process at the first break and the most after it, on
//! Linux. It fails if they differ by more than 4 MiB. The file is sparse and takes no space. It takes about a minute.

use std::fs::{self, File};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::body::UploadBody;
use reattempt::schedule::Constant;
use reattempt::{ReplayBody, RetryBudget, RetryLayer, RetryPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::{BoxError, Layer};

const LENGTH: u64 = 1_000_000_000;
const BREAKS: usize = 50;

/// The bytes between one break and the next: connection `n` breaks after `n` times as many.
const STEP: u64 = 4_000_000;

/// Returns the resident memory of this process in bytes.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Reads uploads without keeping them. The first connections break, and the last one is answered.
async fn serve(listener: TcpListener, connections: Arc<AtomicUsize>) -> std::io::Result<()> {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let (mut connection, _) = listener.accept().await?;
        let number = connections.fetch_add(1, Ordering::Relaxed) + 1;
        let limit = if number > BREAKS { LENGTH } else { number as u64 * STEP };
        let mut read = 0;
        while read < limit {
            match connection.read(&mut buffer).await? {
                0 => break,
                length => read += length as u64,
            }
        }
        if number > BREAKS {
            connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
            // The head is not counted, so some bytes are left.
            while connection.read(&mut buffer).await.is_ok_and(|length| length > 0) {}
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let path = std::env::temp_dir().join(format!("reattempt-upload-memory-{}", std::process::id()));
    File::create(&path)?.set_len(LENGTH)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let connections = Arc::new(AtomicUsize::new(0));
    tokio::spawn(serve(listener, Arc::clone(&connections)));

    let (first, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (begun, seen, counted) = (Arc::clone(&first), Arc::clone(&most), Arc::clone(&connections));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            match counted.load(Ordering::Relaxed) {
                0 | 1 => begun.fetch_max(memory(), Ordering::Relaxed),
                _ => seen.fetch_max(memory(), Ordering::Relaxed),
            };
        }
    });

    let policy = RetryPolicy::http()
        .max_attempts(u32::try_from(BREAKS)? + 1)
        .backoff(Constant::new(Duration::from_millis(5)))
        .budget(RetryBudget::unlimited())
        .max_elapsed(None);
    let http = Client::builder(TokioExecutor::new()).build_http::<ReplayBody<UploadBody>>();
    let upload = UploadBody::file(&path).await?;
    fs::metadata(&path)?;
    let sent = RetryLayer::new(policy).layer(http).send(Request::put(url).body(upload)?).await;
    fs::remove_file(&path)?;
    let status = sent?.status();
    let (first, most) = (first.load(Ordering::Relaxed) / 1024, most.load(Ordering::Relaxed) / 1024);
    println!(
        "{status}, {} connections, {first} KiB at the first break, at most {most} KiB after it",
        connections.load(Ordering::Relaxed)
    );
    assert!(status == 200 && connections.load(Ordering::Relaxed) == BREAKS + 1);
    assert!(most <= first + 4 * 1024, "the memory grew");
    Ok(())
}
