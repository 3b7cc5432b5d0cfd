//! Sends one call, which is answered with a 503 and then with a 200, so that `run` can count the functions it passes.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use reattempt::RetryLayer;
use tower::{Layer, Service, service_fn};

type Answer = Result<Response<Full<Bytes>>, Infallible>;

/// Starts the call and waits for its end. The name is what `run` tells callgrind.
#[inline(never)]
fn passage<C>(client: &mut C, request: Request<Full<Bytes>>, runtime: &tokio::runtime::Runtime) -> Answer
where
    C: Service<Request<Full<Bytes>>, Response = Response<Full<Bytes>>, Error = Infallible>,
{
    runtime.block_on(async { client.call(request).await })
}

fn main() -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build() else {
        return ExitCode::FAILURE;
    };
    let fails = Arc::new(AtomicBool::new(true));
    let server = service_fn(move |_| {
        let status =
            if fails.swap(false, Ordering::Relaxed) { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
        let mut response = Response::new(Full::new(Bytes::from_static(b"body")));
        *response.status_mut() = status;
        async { Ok::<_, Infallible>(response) }
    });
    let mut client = RetryLayer::http().layer(server);
    let mut request = Request::new(Full::default());
    *request.uri_mut() = http::Uri::from_static("http://one.example/");
    match passage(&mut client, request, &runtime) {
        Ok(response) if response.status() == StatusCode::OK => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
