//! Tests of which public types can be sent to another thread, and shared with it.

use std::convert::Infallible;
use std::future::Ready;
use std::marker::PhantomPinned;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Empty, Full};
use reattempt::body::DrainBody;
use reattempt::error::{BoxedError, OwnError, RefusedResponse, TimeLimit};
use reattempt::grpc::Grpc;
use reattempt::observe::Event;
use reattempt::protocol::{CloneRequest, NestedMarker, RetrySafety, SavedRequest};
use reattempt::report::{AttemptOutcome, AttemptReport, ReportSlot};
use reattempt::retry::{AttemptContext, AttemptNumber, ResponseFuture as RetryFuture, StockDelay};
use reattempt::{CallOptions, Deadline, Http, Report, Retry, RetryLayer, RetryPolicy, TimedOut};
use reattempt_control::RetryBudget;
use reattempt_replay::ReplayBody;
use reattempt_schedule_exponential::Exponential;
use tower::Service;

fn send<T: Send>() {}
fn send_sync<T: Send + Sync>() {}
fn send_sync_unpin<T: Send + Sync + Unpin>() {}

/// A service that is only `Send`.
#[derive(Clone)]
struct SendOnly(std::cell::Cell<u8>);

impl Service<Request<ReplayBody<Full<Bytes>>>> for SendOnly {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Empty<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<ReplayBody<Full<Bytes>>>) -> Self::Future {
        self.0.set(self.0.get() + 1);
        std::future::ready(Ok(Response::new(Empty::new())))
    }
}

/// A body that is only `Send`.
struct SendOnlyBody(#[allow(dead_code, reason = "its type is the point")] std::cell::Cell<u8>, PhantomPinned);

type Future<M> = RetryFuture<SendOnly, Request<Full<Bytes>>, Http, Exponential, RetryBudget, M>;

#[test]
fn what_users_hold_is_send_and_sync() {
    send_sync_unpin::<RetryLayer>();
    send_sync_unpin::<RetryLayer<RetryPolicy<Grpc>>>();
    send_sync_unpin::<RetryPolicy>();
    send_sync_unpin::<RetryPolicy<Grpc>>();
    send_sync_unpin::<RetryPolicy<CloneRequest<fn()>>>();
    send_sync_unpin::<RetryPolicy<Http, Exponential, RetryBudget, BoxedError>>();
    send_sync_unpin::<Retry<fn()>>();
    send_sync_unpin::<CallOptions>();
    send_sync_unpin::<ReportSlot>();
    send_sync_unpin::<Report>();
    send_sync_unpin::<AttemptReport>();
    send_sync_unpin::<AttemptOutcome>();
    send_sync_unpin::<AttemptNumber>();
    send_sync_unpin::<AttemptContext>();
    send_sync_unpin::<Deadline>();
    send_sync_unpin::<Event<'_>>();
    send_sync_unpin::<NestedMarker>();
    send_sync_unpin::<RefusedResponse>();
    send_sync_unpin::<TimeLimit>();
    send_sync_unpin::<TimedOut>();
    send_sync_unpin::<RetrySafety>();
    send_sync_unpin::<OwnError>();
    send_sync_unpin::<BoxedError>();
    send_sync_unpin::<Http>();
    send_sync_unpin::<Grpc>();
    send_sync::<StockDelay>();
}

#[test]
fn client_of_send_only_service_is_send() {
    send::<Retry<SendOnly>>();
    send::<Future<OwnError>>();
    send::<Future<BoxedError>>();
}

#[test]
fn a_body_that_is_only_send_becomes_both() {
    send_sync::<ReplayBody<SendOnlyBody>>();
    send_sync::<SavedRequest<SendOnlyBody>>();
    send::<DrainBody<SendOnlyBody>>();
}
