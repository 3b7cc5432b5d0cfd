//! An nginx with the settings of its package, which ends each HTTP/2 connection after 1,000 requests.
//!
//! Its GOAWAY proves that the requests above the last one were not processed. 5,000 GETs, 60 at a time, must lose none
//! below the layer and below the standard stack. The clients alone are run beside them. `run` starts nginx and passes
//! the URL of a file.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::RetryLayer;
use reattempt::standard::StandardLayer;
use tokio::task::JoinSet;
use tower::{BoxError, Layer, ServiceExt};

const CALLS: u32 = 5_000;
const AT_ONCE: u32 = 60;

/// The bound of one row, which only a hang exceeds.
const BOUND: Duration = Duration::from_secs(60);

/// Makes all calls. Returns the number of those that failed.
async fn lost<Call, Ended>(call: Call) -> Result<u32, BoxError>
where
    Call: Fn() -> Ended + Clone + Send + 'static,
    Ended: Future<Output = bool> + Send,
{
    let (left, lost) = (Arc::new(AtomicU32::new(CALLS)), Arc::new(AtomicU32::new(0)));
    let mut workers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (left, lost, call) = (Arc::clone(&left), Arc::clone(&lost), call.clone());
        workers.spawn(async move {
            let one_less = |left: u32| left.checked_sub(1);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
                lost.fetch_add(u32::from(!call().await), Ordering::Relaxed);
            }
        });
    }
    tokio::time::timeout(BOUND, workers.join_all()).await?;
    Ok(lost.load(Ordering::Relaxed))
}

/// Makes all calls through a client of hyper's types.
macro_rules! through {
    ($client:expr, $url:expr) => {{
        let (client, url) = ($client, $url.clone());
        lost(move || {
            let request = Request::get(url.clone()).body(Empty::<Bytes>::new());
            let client = client.clone();
            async move {
                let Ok(request) = request else { return false };
                match client.oneshot(request).await {
                    Ok(response) => response.status() == 200 && response.into_body().collect().await.is_ok(),
                    Err(_) => false,
                }
            }
        })
        .await?
    }};
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, BoxError> {
    let url: Uri = std::env::args().nth(1).ok_or("usage: reattempt-installed-check URL")?.parse()?;
    macro_rules! hyper {
        () => {
            Client::builder(TokioExecutor::new()).http2_only(true).build_http()
        };
    }
    let by_reqwest = reqwest::Client::builder().http2_prior_knowledge().build()?;
    let target: reqwest::Url = url.to_string().parse()?;
    macro_rules! through_reqwest {
        ($client:expr) => {{
            let (client, target) = ($client, target.clone());
            lost(move || {
                let (client, get) = (client.clone(), reqwest::Request::new(http::Method::GET, target.clone()));
                async move {
                    match client.oneshot(get).await {
                        Ok(response) => response.status() == 200 && response.bytes().await.is_ok(),
                        Err(_) => false,
                    }
                }
            })
            .await?
        }};
    }
    let rows = [
        ("hyper-util alone", through!(hyper!(), url), false),
        ("reqwest alone", through_reqwest!(by_reqwest.clone()), false),
        ("hyper-util below the layer", through!(RetryLayer::http().layer(hyper!()), url), true),
        ("reqwest below the layer", through_reqwest!(RetryLayer::http().layer(by_reqwest)), true),
        ("hyper-util below the standard stack", through!(StandardLayer::http().layer(hyper!()), url), true),
    ];
    println!("nginx as installed, {CALLS} GETs over HTTP/2, {AT_ONCE} at once");
    rows.iter().for_each(|(name, lost, _)| println!("{name:<36} {lost:>5} lost"));
    let is_right = rows.iter().all(|(_, lost, layered)| !layered || *lost == 0);
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
