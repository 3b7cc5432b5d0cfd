//! Tests of which public types can be sent to another thread, and shared with it.

use http::Request;
use reattempt::Http;
use reattempt::error::{BoxedError, OwnError};
use reattempt::grpc::Grpc;
use reattempt::hedge::{Hedge, HedgeLayer, HedgePolicy, ResponseFuture as HedgeFuture};
use reattempt_control::RetryBudget;

use crate::hedge::support::{Body, Server};

fn send<T: Send>() {}
fn send_sync_unpin<T: Send + Sync + Unpin>() {}

#[test]
fn what_users_hold_is_send_and_sync() {
    send_sync_unpin::<HedgeLayer>();
    send_sync_unpin::<HedgeLayer<HedgePolicy<Grpc>>>();
    send_sync_unpin::<HedgePolicy>();
    send_sync_unpin::<Hedge<Server>>();
}

#[test]
fn a_call_is_send() {
    send::<HedgeFuture<Server, Request<Body>, Http, RetryBudget, OwnError>>();
    send::<HedgeFuture<Server, Request<Body>, Http, RetryBudget, BoxedError>>();
}
