//! A server that lies. The fuzz target `replies` in `fuzz/` uses it, too.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use reattempt_redis::rate::Rate;
use reattempt_redis::{BudgetStore, RateStore, RedisStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// A server that lies: its URL, its open connections, and the scripts that it got.
pub(crate) struct Liar {
    pub(crate) url: String,
    pub(crate) open: Arc<AtomicU32>,
    pub(crate) scripts: Arc<AtomicU32>,
}

/// Starts a server that answers each script with `reply`, in which `MARK` stands for the message's mark. Without a
/// reply it closes the connection. It answers the commands of a new connection with `OK`.
pub(crate) async fn server(reply: impl Into<Vec<u8>>) -> Liar {
    serve(reply.into(), false).await
}

async fn serve(reply: Vec<u8>, closes: bool) -> Liar {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let [open, scripts] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
    let counts = [&open, &scripts].map(Arc::clone);
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let (reply, [open, scripts]) = (reply.clone(), counts.clone());
            open.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut buffer = [0; 8192];
                while let Ok(read @ 1..) = connection.read(&mut buffer).await {
                    let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
                    if text.contains("EVAL") {
                        scripts.fetch_add(1, Ordering::Relaxed);
                        if reply.is_empty() {
                            break;
                        }
                        let mark = text.trim_end().rsplit("\r\n").next().unwrap();
                        let _ = connection.write_all(&replaced(&reply, mark)).await;
                        if closes {
                            break;
                        }
                    } else {
                        let commands = text.split("\r\n").filter(|line| line.starts_with('*')).count();
                        let _ = connection.write_all("+OK\r\n".repeat(commands).as_bytes()).await;
                    }
                }
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    Liar { url, open, scripts }
}

/// Writes the mark as a bulk string, for each `MARK` in the reply.
fn replaced(reply: &[u8], mark: &str) -> Vec<u8> {
    match std::str::from_utf8(reply) {
        Ok(text) => text.replace("MARK", &format!("${}\r\n{mark}\r\n", mark.len())).into_bytes(),
        Err(_) => reply.to_vec(),
    }
}

/// Asks a server that answers each script with `reply` and then closes the connection. Any reply has an end, and one
/// without the mark of its message is not believed.
pub(crate) async fn check(reply: &[u8]) {
    let Liar { url, .. } = serve(reply.to_vec(), true).await;
    let store = RedisStore::new(&url).unwrap();
    let rate = Rate::new(NonZeroU32::MIN, NonZeroU32::MIN);
    let bound = Duration::from_secs(10);
    let settled = timeout(bound, store.settle("k", 0, 1, 0)).await.unwrap();
    let taken = timeout(bound, store.take("k", rate, 1)).await.unwrap();
    let has_mark = reply.windows(4).any(|window| window == b"MARK");
    assert!(has_mark || (settled.is_err() && taken.is_err()), "{settled:?}, {taken:?}");
    assert!(settled.is_err() || taken.is_err(), "one reply is no answer to both");
    for error in settled.err().into_iter().chain(taken.err()) {
        assert!(!error.to_string().is_empty());
    }
}
