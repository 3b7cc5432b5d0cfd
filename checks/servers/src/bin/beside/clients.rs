//! hyper-util and reqwest, each alone, below the layer as in the guide, and below the standard stack.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use http::Request;
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::standard::StandardLayer;
use reattempt::{Http, ReplayBody, RetryLayer, RetryPolicy};
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    Hyper,
    Reqwest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stack {
    Alone,
    Layer,
    Standard,
}

pub(crate) const STACKS: [Stack; 3] = [Stack::Alone, Stack::Layer, Stack::Standard];

/// Sends one call, and reads its response. Returns `true` if it was served.
pub(crate) type Send = Arc<dyn Fn(Request<Bytes>) -> Ended + std::marker::Send + Sync>;
pub(crate) type Ended = Pin<Box<dyn Future<Output = bool> + std::marker::Send>>;

/// Makes a call through a service, from its request, with a function that reads the response.
macro_rules! sending {
    ($service:expr, $request:expr, $read:expr) => {{
        let service = $service;
        Arc::new(move |request: Request<Bytes>| -> Ended {
            let service = service.clone();
            Box::pin(async move {
                let Ok(request) = $request(request) else { return false };
                match service.oneshot(request).await {
                    Ok(response) => response.status() == 200 && $read(response).await.is_ok(),
                    Err(_) => false,
                }
            })
        })
    }};
}

/// Returns a client that counts its attempts below the layers.
pub(crate) fn client(library: Library, http2: bool, stack: Stack, attempts: &Arc<AtomicU32>) -> Result<Send, BoxError> {
    match library {
        Library::Hyper => Ok(hyper(http2, stack, Arc::clone(attempts))),
        Library::Reqwest => reqwest(http2, stack, Arc::clone(attempts)),
    }
}

async fn read<B: Body>(response: http::Response<B>) -> Result<(), B::Error> {
    response.into_body().collect().await.map(drop)
}

fn hyper(http2: bool, stack: Stack, attempts: Arc<AtomicU32>) -> Send {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.http2_only(http2);
    let whole = |request: Request<Bytes>| Ok::<_, BoxError>(request.map(Full::new));
    macro_rules! counting {
        ($body:ty) => {
            ServiceBuilder::new()
                .map_request(move |request: Request<$body>| {
                    attempts.fetch_add(1, Ordering::Relaxed);
                    request
                })
                .service(builder.build_http::<$body>())
        };
    }
    match stack {
        Stack::Alone => sending!(counting!(Full<Bytes>), whole, read),
        Stack::Layer => sending!(RetryLayer::http().layer(counting!(ReplayBody<Full<Bytes>>)), whole, read),
        Stack::Standard => sending!(StandardLayer::http().layer(counting!(ReplayBody<Full<Bytes>>)), whole, read),
    }
}

fn reqwest(http2: bool, stack: Stack, attempts: Arc<AtomicU32>) -> Result<Send, BoxError> {
    let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    // The client alone keeps its own retries.
    let builder = if stack == Stack::Alone { builder } else { builder.retry(reqwest::retry::never()) };
    let client = if http2 { builder.http2_prior_knowledge() } else { builder.http1_only() }.build()?;
    let counting = ServiceBuilder::new()
        .map_request(move |request: reqwest::Request| {
            attempts.fetch_add(1, Ordering::Relaxed);
            request
        })
        .service(client);
    let whole = reqwest::Request::try_from;
    let read = reqwest::Response::bytes;
    let http = Http::new().redirects_below(false);
    Ok(match stack {
        Stack::Alone => sending!(counting, whole, read),
        Stack::Layer => sending!(RetryLayer::new(RetryPolicy::with(http)).layer(counting), whole, read),
        Stack::Standard => {
            let policy = RetryPolicy::with(http).boxed_errors();
            sending!(StandardLayer::http().retry(policy).layer(counting), whole, read)
        }
    })
}
