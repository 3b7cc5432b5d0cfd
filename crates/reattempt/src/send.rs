//! One call by a shared handle: clone the service, wait until it is ready, call it, drop it.

use std::future::poll_fn;

use tower_service::Service;

/// Sends one request by a service that is this call's own.
pub(crate) async fn send<S, Req>(mut service: S, request: Req) -> Result<S::Response, S::Error>
where
    S: Service<Req>,
{
    poll_fn(|cx| service.poll_ready(cx)).await?;
    let call = service.call(request);
    // A handle that was shed is still queued below, and would be given the next place (trap 50).
    drop(service);
    call.await
}

/// Compiles only if `service` takes requests of type `Request`; does nothing.
///
/// If a wrapped client does not fit its requests, the compiler reports only that "the method exists, but its trait
/// bounds were not satisfied". With a call of this function it names the bound that does not hold, and the remedy.
/// Remove the call once the program compiles.
///
/// ```
/// use bytes::Bytes;
/// use http::Request;
/// use http_body_util::Full;
/// use hyper_util::client::legacy::Client;
/// use hyper_util::rt::TokioExecutor;
/// use reattempt::RetryLayer;
/// use tower::ServiceBuilder;
///
/// let client = ServiceBuilder::new()
///     .layer(RetryLayer::http())
///     .service(Client::builder(TokioExecutor::new()).build_http());
/// reattempt::check::<Request<Full<Bytes>>, _>(&client);
/// ```
pub fn check<Request, S>(service: &S)
where
    S: Service<Request>,
{
    let _ = service;
}
