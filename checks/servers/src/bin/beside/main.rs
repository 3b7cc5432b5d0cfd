//! The client alone beside the layer and the standard stack, where connections end under many calls.
//!
//! `reattempt-beside-check URL` makes 5,000 calls to an nginx with the settings of its package, which ends each HTTP/2
//! connection after 1,000 requests; below a layer none may be lost. Then servers of the fault kit refuse streams,
//! lose a connection under 50 calls, and restart. The check fails where the client alone serves more calls.

mod clients;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use clients::{Library, STACKS, Send, Stack};
use http::{Method, Request};
use reattempt_faults::{CALL_HEADER, Faults, Ledger, Relay, Reply, Script, Server, Step, WireFault};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tower::BoxError;

/// The bound of one scene, which only a hang exceeds.
const BOUND: Duration = Duration::from_secs(60);

/// The outcome of one stack's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    served: u32,
    attempts: u32,
    /// Requests that reached the server again, if a ledger counts them.
    repeats: Option<usize>,
}

/// Something that happens under calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    /// 5,000 GETs to a real nginx, 60 at once.
    Nginx,
    /// 60 calls at once to a server that refuses the first 50 streams.
    Burst(Verb),
    /// One loss of the connections of 50 GETs at once.
    Break,
    /// A GET each 5 ms for a second, in which the server is gone for 0.2 s. The default budget pays for few retries.
    Restart,
}

/// The method of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Get,
    Post,
}

const SCENES: [Scene; 5] =
    [Scene::Nginx, Scene::Burst(Verb::Get), Scene::Burst(Verb::Post), Scene::Break, Scene::Restart];

impl Scene {
    fn calls(self) -> u32 {
        match self {
            Self::Nginx => 5_000,
            Self::Burst(_) => 60,
            Self::Break => 50,
            Self::Restart => 200,
        }
    }

    fn is_http2_only(self) -> bool {
        matches!(self, Self::Nginx | Self::Burst(_))
    }

    async fn play(self, library: Library, http2: bool, stack: Stack, nginx: &str) -> Result<Counts, BoxError> {
        let attempts = Arc::<AtomicU32>::default();
        let send = clients::client(library, http2, stack, &attempts)?;
        let (served, repeats) = match self {
            Self::Nginx => (at_once(&send, nginx, Method::GET, self.calls(), 60).await?, None),
            Self::Burst(method) => {
                let ledger = Ledger::new();
                let script = Script::new([Step::new(Reply::refused_stream()).times(50)]);
                let server = Server::http2(Faults::in_cluster(script, "server", &ledger)).await?;
                let method = if method == Verb::Get { Method::GET } else { Method::POST };
                let served = at_once(&send, &server.url("/"), method, self.calls(), self.calls()).await?;
                (served, Some(ledger))
            }
            Self::Break => {
                let (server, mut relay, ledger) = behind_relay(http2, 300).await?;
                let url = format!("http://{}/", relay.address());
                let breaks = async {
                    sleep(Duration::from_millis(150)).await;
                    relay.close().await?;
                    relay.open()?;
                    Ok::<_, BoxError>(())
                };
                let calls = at_once(&send, &url, Method::GET, self.calls(), self.calls());
                let (served, broken) = tokio::join!(calls, breaks);
                broken?;
                drop(server);
                (served?, Some(ledger))
            }
            Self::Restart => {
                let (server, mut relay, ledger) = behind_relay(http2, 5).await?;
                let served = each_5_ms(&send, &mut relay, self.calls()).await?;
                drop(server);
                (served, Some(ledger))
            }
        };
        let repeats = repeats.map(|ledger| {
            let arrivals = ledger.arrivals();
            arrivals.len() - arrivals.iter().map(|arrival| &arrival.call).collect::<HashSet<_>>().len()
        });
        Ok(Counts { served, attempts: attempts.load(Ordering::Relaxed), repeats })
    }
}

/// Returns a script whose server answers each request after this time.
fn answers(milliseconds: u64) -> Script<Reply> {
    Script::new([Step::new(Reply::default()).delay(Duration::from_millis(milliseconds)).always()])
}

/// Starts a server, and a relay whose connections can be closed.
async fn behind_relay(http2: bool, milliseconds: u64) -> Result<(Server, Relay, Ledger), BoxError> {
    let ledger = Ledger::new();
    let answers = Faults::in_cluster(answers(milliseconds), "server", &ledger);
    let server = if http2 { Server::http2(answers).await? } else { Server::http1(answers).await? };
    let address: SocketAddr = server.address();
    Ok((server, Faults::<WireFault>::new(Script::default()).relay(address).await?, ledger))
}

fn request(url: &str, method: &Method, number: u32) -> Result<Request<Bytes>, http::Error> {
    let body = if method == Method::GET { Bytes::new() } else { Bytes::from_static(b"once") };
    Request::builder().method(method).uri(url).header(CALL_HEADER, number).body(body)
}

/// Makes calls, this many at once. Returns the number of those that were served.
async fn at_once(send: &Send, url: &str, method: Method, calls: u32, at_once: u32) -> Result<u32, BoxError> {
    let (left, served) = (Arc::new(AtomicU32::new(calls)), Arc::<AtomicU32>::default());
    let mut workers = JoinSet::new();
    for _ in 0..at_once {
        let (send, url, method) = (Arc::clone(send), url.to_owned(), method.clone());
        let (left, served) = (Arc::clone(&left), Arc::clone(&served));
        workers.spawn(async move {
            let one_less = |left: u32| left.checked_sub(1);
            while let Ok(number) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
                let Ok(request) = request(&url, &method, number) else { continue };
                served.fetch_add(u32::from(send(request).await), Ordering::Relaxed);
            }
        });
    }
    timeout(BOUND, workers.join_all()).await?;
    Ok(served.load(Ordering::Relaxed))
}

/// Begins a GET each 5 ms, whether or not those before it have ended. 40 calls begin while the server is gone. Returns
/// the number of calls that were served.
async fn each_5_ms(send: &Send, relay: &mut Relay, calls: u32) -> Result<u32, BoxError> {
    let url = format!("http://{}/", relay.address());
    let (mut ticks, mut tasks, mut served) = (interval(Duration::from_millis(5)), JoinSet::new(), 0);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0..calls {
        match number {
            60 => {
                // No call is in flight, so that each stack meets the same.
                while let Some(ended) = timeout(BOUND, tasks.join_next()).await? {
                    served += u32::from(ended?);
                }
                relay.close().await?;
                ticks.reset();
            }
            100 => {
                // The calls before have failed by now.
                sleep(Duration::from_millis(20)).await;
                relay.open()?;
            }
            _ => {}
        }
        ticks.tick().await;
        tasks.spawn(send(request(&url, &Method::GET, number)?));
    }
    let ended = timeout(BOUND, tasks.join_all()).await?;
    Ok(served + ended.into_iter().map(u32::from).sum::<u32>())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, BoxError> {
    let nginx = std::env::args().nth(1).ok_or("usage: reattempt-beside-check URL")?;
    let mut is_right = true;
    println!("{:44}{:>6}{:>20}{:>20}{:>20}", "served, attempts, repeats", "calls", "alone", "layer", "standard stack");
    for scene in SCENES {
        for library in [Library::Hyper, Library::Reqwest] {
            for http2 in [false, true] {
                if !http2 && scene.is_http2_only() {
                    continue;
                }
                print!("{:44}{:>6}", format!("{scene:?}, {library:?}, HTTP/{}", u8::from(http2) + 1), scene.calls());
                let mut served = Vec::new();
                for stack in STACKS {
                    let counts = scene.play(library, http2, stack, &nginx).await?;
                    let repeats = counts.repeats.map_or("–".to_owned(), |repeats| repeats.to_string());
                    print!("{:>20}", format!("{}, {}, {repeats}", counts.served, counts.attempts));
                    served.push(counts.served);
                }
                let holds = served.iter().all(|stack| *stack >= served[0])
                    && (scene != Scene::Nginx || served[1..].iter().all(|stack| *stack == scene.calls()));
                println!("{}", if holds { "" } else { "  WRONG" });
                is_right &= holds;
            }
        }
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
