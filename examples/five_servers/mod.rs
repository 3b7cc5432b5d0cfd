//! Five servers for the endpoint examples: a dead one, a slow one, one that fails every second call, and two good ones.
//!
//! Each example has the servers' protocol and the client. This module has the load and the printed table.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reattempt::endpoints::EndpointsHandle;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};
use tower::BoxError;

const CALLS: usize = 600;
/// 200 calls per second.
const EVERY: Duration = Duration::from_millis(5);

/// A server, with the number of requests that it has received.
pub(crate) struct Server {
    title: &'static str,
    pub(crate) address: SocketAddr,
    seen: Arc<AtomicUsize>,
    /// The dead server's socket. It is bound but does not listen, so connections are refused.
    _socket: Option<TcpSocket>,
}

/// The behaviour of a server, request by request.
#[derive(Clone)]
pub(crate) struct Turns {
    seen: Arc<AtomicUsize>,
    time: Duration,
    fails: bool,
}

impl Turns {
    /// Waits for the request's duration, and returns `true` unless the request fails.
    pub(crate) async fn take(&self) -> bool {
        let number = self.seen.fetch_add(1, Ordering::Relaxed);
        sleep(self.time).await;
        !self.fails || number % 2 == 1
    }
}

/// Starts the servers. `serve` runs each live one.
pub(crate) async fn start(serve: impl Fn(TcpListener, Turns)) -> Result<[Server; 5], BoxError> {
    let live = async |title, millis, fails| -> Result<_, BoxError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let turns = Turns { seen: Arc::default(), time: Duration::from_millis(millis), fails };
        let seen = Arc::clone(&turns.seen);
        serve(listener, turns);
        Ok(Server { title, address, seen, _socket: None })
    };
    let socket = TcpSocket::new_v4()?;
    socket.bind("127.0.0.1:0".parse()?)?;
    let address = socket.local_addr()?;
    Ok([
        Server { title: "dead", address, seen: Arc::default(), _socket: Some(socket) },
        live("slow, 200 ms", 200, false).await?,
        live("fails every second call", 4, true).await?,
        live("good", 4, false).await?,
        live("good", 4, false).await?,
    ])
}

/// Makes calls for three seconds, and prints which servers handled them. `call` returns an error for a failed call.
pub(crate) async fn call_and_print<T, F, R>(
    servers: &[Server; 5],
    endpoints: &EndpointsHandle<T>,
    call: impl Fn() -> F,
) -> Result<(), BoxError>
where
    F: Future<Output = Result<R, BoxError>> + Send + 'static,
    R: Send + 'static,
{
    endpoints.observe(|event| println!("  {event}"));
    let started = Instant::now();
    let (mut ticks, mut calls) = (interval(EVERY), JoinSet::new());
    for _ in 0..CALLS {
        ticks.tick().await;
        calls.spawn(call());
    }
    let done = calls.join_all().await;
    let succeeded = done.iter().filter(|result| result.is_ok()).count();
    println!("{succeeded} of {CALLS} calls succeeded in {:.1} s\n", started.elapsed().as_secs_f64());

    println!("{:<24}{:>10}{:>10}{:>10}  state", "server", "requests", "latency", "failing");
    let views = endpoints.view();
    for server in servers {
        let address = server.address.to_string();
        let view = views.iter().find(|view| view.name.contains(&address)).ok_or("each server is an endpoint")?;
        let latency = view.latency.map_or("-".to_owned(), |time| format!("{} ms", time.as_millis()));
        let failing = format!("{:.0} %", view.failing * 100.0);
        let state = view.out.map_or("in service".to_owned(), |left| format!("out for {:.1} s", left.as_secs_f64()));
        println!("{:<24}{:>10}{latency:>10}{failing:>10}  {state}", server.title, server.requests());
    }
    assert!(succeeded * 100 >= CALLS * 99, "{:?}", done.into_iter().find_map(Result::err));
    let [.., one, other] = servers;
    assert!(one.requests() + other.requests() > CALLS / 2, "the good servers take most of the calls");
    Ok(())
}

impl Server {
    fn requests(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }
}
