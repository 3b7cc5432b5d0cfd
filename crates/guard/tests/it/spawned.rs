//! Tests of guarded clients with boxed types, in their own tasks.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt, Empty};
use reattempt::guard::{CircuitBreaker, GuardLayer};
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

/// Spawns calls that are made in each way: inside a block, and directly.
macro_rules! calls_are_spawned {
    ($body:ty) => {{
        let inner =
            service_fn(|request: Request<$body>| async move { Ok::<_, BoxError>(Response::new(request.into_body())) });
        let layer = GuardLayer::http(CircuitBreaker::rate());
        let client = layer.layer(BoxCloneService::new(inner));
        let request = || Request::new(<$body>::new(Empty::new().map_err(Into::into)));
        let mut own = client.clone();
        let task = tokio::spawn(async move { own.ready().await?.call(request()).await });
        task.await.unwrap().unwrap();
        let shared = client.clone();
        let task = tokio::spawn(async move { shared.send(request()).await });
        task.await.unwrap().unwrap();
        tokio::spawn(client.send(request())).await.unwrap().unwrap();
    }};
}

#[tokio::test(start_paused = true)]
async fn guard_over_boxed_body_is_spawned() {
    calls_are_spawned!(BoxBody<Bytes, BoxError>);
}

#[tokio::test(start_paused = true)]
async fn guard_over_unsync_body_is_spawned() {
    calls_are_spawned!(UnsyncBoxBody<Bytes, BoxError>);
}
