//! Hedges and attempt timeouts over one HTTP/2 connection, with and without the layer that reads late answers.
//!
//! 2,500 GETs, 100 at once, to a server of this process, over a link that delays each byte. An answer is then on its
//! way for as long as a reset. The server 10 ms away answers hedged calls at once. The one 40 ms away answers every
//! second attempt 10 ms after its time limit.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use reattempt::budget::Unlimited;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::linger::LingerLayer;
use reattempt::{ReplayBody, RetryLayer, RetryPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tower::{BoxError, Layer, Service, ServiceExt};

const CALLS: usize = 2_500;
const AT_ONCE: usize = 100;

/// Starts a relay to `server` that delays each byte by `delay` in both directions.
async fn link(server: SocketAddr, delay: Duration) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let Ok(far) = TcpStream::connect(server).await else { return };
            let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
            tokio::spawn(carry(near_in, far_out, delay));
            tokio::spawn(carry(far_in, near_out, delay));
        }
    });
    Ok(address)
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (carried, mut arriving) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some((at, bytes)) = arriving.recv().await {
            sleep_until(at).await;
            let bytes: Vec<u8> = bytes;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let bytes = buffer.get(..length).unwrap_or_default().to_vec();
        if carried.send((Instant::now() + delay, bytes)).is_err() {
            return;
        }
    }
}

/// Starts a server of HTTP/2 whose response takes `time` of its number, at the end of a link.
async fn serve(time: fn(usize) -> Duration, delay: Duration) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let requests = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let requests = Arc::clone(&requests);
            let service = service_fn(move |_| {
                let number = requests.fetch_add(1, Ordering::Relaxed);
                async move {
                    sleep(time(number)).await;
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(vec![7; 2_000])))
                }
            });
            tokio::spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), service));
        }
    });
    link(address, delay).await
}

/// Makes the calls. Returns how many were lost: they failed, or their body broke.
async fn lost<S, B>(client: S, address: SocketAddr) -> Result<usize, BoxError>
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>, Future: Send, Error: Send> + Clone + Send + 'static,
    B: http_body::Body<Data: Send, Error: Send> + Send + 'static,
{
    let mut workers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let client = client.clone();
        let request = Request::get(format!("http://{address}/")).body(Empty::new())?;
        workers.spawn(async move {
            let mut lost = 0;
            for _ in 0..CALLS / AT_ONCE {
                let whole = match client.clone().oneshot(request.clone()).await {
                    Ok(response) => response.status() == StatusCode::OK && response.into_body().collect().await.is_ok(),
                    Err(_) => false,
                };
                lost += usize::from(!whole);
            }
            lost
        });
    }
    Ok(workers.join_all().await.into_iter().sum())
}

#[tokio::main]
async fn main() -> Result<ExitCode, BoxError> {
    let http = || -> Client<HttpConnector, ReplayBody<Empty<Bytes>>> {
        Client::builder(TokioExecutor::new()).http2_only(true).build_http()
    };
    let linger = LingerLayer::new();
    let mut lost_in_all = 0;

    let address = serve(|_| Duration::ZERO, Duration::from_millis(5)).await?;
    let policy = HedgePolicy::http().delay(Duration::from_millis(5)).budget(Unlimited);
    let hedges = || HedgeLayer::new(policy.clone());
    let bare = lost(hedges().layer(http()), address).await?;
    let lingering = lost(hedges().layer(linger.layer(http())), address).await?;
    println!("hedges after 5 ms:     {bare} of {CALLS} calls lost, {lingering} with the layer");
    lost_in_all += lingering;

    let address =
        serve(|number| Duration::from_millis(if number % 2 == 0 { 0 } else { 60 }), Duration::from_millis(20)).await?;
    let policy = RetryPolicy::http().attempt_timeout(Duration::from_millis(90)).max_attempts(20).budget(Unlimited);
    let retries = || RetryLayer::new(policy.clone());
    let bare = lost(retries().layer(http()), address).await?;
    let lingering = lost(retries().layer(linger.layer(http())), address).await?;
    println!("attempts end at 90 ms: {bare} of {CALLS} calls lost, {lingering} with the layer");
    lost_in_all += lingering;
    Ok(if lost_in_all == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
