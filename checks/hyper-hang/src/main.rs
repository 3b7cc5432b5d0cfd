//! A call that waits inside hyper for ever, by bare hyper-util, and the race in tokio's channel behind it.
//!
//! `reattempt-hyper-hang-check [CALLS]` makes calls over HTTP/1.1 to a server that closes idle connections at random. A
//! call that takes ten seconds hangs. Then it repeats the race alone: a channel whose receiver is dropped while a
//! message is sent. `docs/HYPER.md` has the cause. The program uses nothing of this library.

use std::error::Error;
use std::hint::spin_loop;
use std::io::{Write, stdout};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

/// Calls take less than a millisecond each, so one that takes this long never ends.
const HANGS: Duration = Duration::from_secs(10);
const AT_ONCE: u64 = 32;

type Failure = Box<dyn Error + Send + Sync>;

/// Answers each request. After a random number of answers and polls it closes the idle connection.
async fn serve(mut connection: TcpStream, mut random: u64) -> Result<(), Failure> {
    let mut head = [0; 1024];
    loop {
        let mut read = 0;
        while !head[..read].ends_with(b"\r\n\r\n") {
            match connection.read(&mut head[read..]).await? {
                0 => return Ok(()),
                bytes => read += bytes,
            }
        }
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if random >> 62 == 0 {
            for _ in 0..random >> 58 {
                yield_now().await;
            }
            return Ok(());
        }
    }
}

/// Makes calls one after the other. Returns the numbers of those that failed and that hang.
async fn call(
    client: Client<HttpConnector, Empty<Bytes>>,
    address: SocketAddr,
    calls: u64,
) -> Result<(u64, u64), Failure> {
    let (mut failed, mut hang) = (0, 0);
    for _ in 0..calls {
        match timeout(HANGS, client.get(format!("http://{address}/").parse()?)).await {
            Ok(Ok(response)) => drop(response.into_body().collect().await?),
            Ok(Err(_)) => failed += 1,
            Err(_) => hang += 1,
        }
    }
    Ok((failed, hang))
}

/// Drops a receiver while a message is sent. Returns the number of messages that were accepted and are neither received
/// nor dropped while the sender lives.
fn stuck_messages(rounds: u64) -> Result<u64, Failure> {
    let (receivers, dropped) = std::sync::mpsc::channel::<mpsc::UnboundedReceiver<oneshot::Sender<()>>>();
    let turn = Arc::new(AtomicU64::new(0));
    let begun = Arc::clone(&turn);
    let dropper = thread::spawn(move || {
        for (round, receiver) in (1..).zip(dropped) {
            while begun.load(Ordering::Acquire) < 2 * round - 1 {
                spin_loop();
            }
            drop(receiver);
            begun.fetch_add(1, Ordering::Release);
        }
    });
    let mut stuck = 0;
    for round in 1..=rounds {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (reply, mut answer) = oneshot::channel();
        receivers.send(receiver)?;
        turn.fetch_add(1, Ordering::Release);
        (0..round % 64).for_each(|_| spin_loop());
        let accepted = sender.send(reply).is_ok();
        while turn.load(Ordering::Acquire) < 2 * round {
            spin_loop();
        }
        stuck += u64::from(accepted && answer.try_recv() == Err(oneshot::error::TryRecvError::Empty));
    }
    drop(receivers);
    dropper.join().map_err(|_| "the thread has panicked")?;
    Ok(stuck)
}

#[tokio::main(worker_threads = 8)]
async fn main() -> Result<(), Failure> {
    let calls = std::env::args().nth(1).map_or(Ok(200_000), |calls| calls.parse::<u64>())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        for seed in 0.. {
            let Ok((connection, _)) = listener.accept().await else { continue };
            tokio::spawn(serve(connection, seed));
        }
    });
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut callers = JoinSet::new();
    for _ in 0..AT_ONCE {
        callers.spawn(call(client.clone(), address, calls / AT_ONCE));
    }
    let (mut failed, mut hang) = (0, 0);
    while let Some(ended) = callers.join_next().await {
        let (more_failed, more_hang) = ended??;
        (failed, hang) = (failed + more_failed, hang + more_hang);
    }
    writeln!(stdout(), "{calls} calls by hyper-util: {hang} hang, {failed} failed at once")?;
    let stuck = stuck_messages(calls)?;
    writeln!(stdout(), "{calls} channels of tokio alone: {stuck} messages are stuck")?;
    Ok(())
}
