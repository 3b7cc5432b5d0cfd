//! Servers that respond, fail, are slow, or drop the connection, at random.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tower::BoxError;

/// The delay of a slow response, longer than that of a hedge.
const SLOW: Duration = Duration::from_millis(5);

/// Starts a server of HTTP/1.1 and HTTP/2 on a loopback port.
pub(crate) async fn start() -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let requests = Arc::new(AtomicU64::new(0));
    tokio::spawn(async move {
        loop {
            let Ok((connection, _)) = listener.accept().await else { continue };
            let requests = Arc::clone(&requests);
            tokio::spawn(async move {
                // A connection that is already gone needs no option.
                let _ = connection.set_nodelay(true);
                let service = service_fn(move |request| respond(request, requests.fetch_add(1, Ordering::Relaxed)));
                let mut builder = Builder::new(TokioExecutor::new());
                // Cancelled calls reset more streams than hyper allows by default.
                builder.http2().max_pending_accept_reset_streams(10_000).max_local_error_reset_streams(None);
                // The client may leave in any way.
                let _ = builder.serve_connection(TokioIo::new(connection), service).await;
            });
        }
    });
    Ok(address)
}

async fn respond(request: Request<Incoming>, number: u64) -> Result<Response<Full<Bytes>>, BoxError> {
    let body = request.into_body().collect().await?.to_bytes();
    match mixed(number) % 20 {
        0..=2 => Ok(status(StatusCode::SERVICE_UNAVAILABLE)),
        3 => {
            sleep(SLOW).await;
            Ok(Response::new(Full::new(body)))
        }
        4 => Err("the connection is lost".into()),
        _ => Ok(Response::new(Full::new(body))),
    }
}

/// Responds in memory, for any destination.
pub(crate) async fn respond_in_memory<B>(request: Request<B>) -> Result<Response<Full<Bytes>>, Infallible> {
    let host = request.uri().host().unwrap_or_default().len() as u64;
    let seed = request.uri().path().bytes().fold(host, |sum, byte| mixed(sum ^ u64::from(byte)));
    let failed = seed.is_multiple_of(8);
    Ok(if failed { status(StatusCode::SERVICE_UNAVAILABLE) } else { Response::new(Full::default()) })
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

/// Returns the number that SplitMix64 produces from a seed.
fn mixed(seed: u64) -> u64 {
    let mut number = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
