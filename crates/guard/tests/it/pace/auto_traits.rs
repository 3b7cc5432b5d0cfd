//! Tests of which public types can be sent to another thread, and shared with it.

use std::convert::Infallible;
use std::future::Ready;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use reattempt::Http;
use reattempt::error::{Answered, BoxedError};
use reattempt::grpc::Grpc;
use reattempt::guard::contract::ResponseFuture as GuardFuture;
use reattempt::guard::{GuardLayer, Guarded, Pace};
use reattempt::protocol::CloneRequest;
use tower::Service;

fn send<T: Send>() {}
fn send_sync_unpin<T: Send + Sync + Unpin>() {}

/// A service that is only `Send`.
#[derive(Clone)]
struct SendOnly(std::cell::Cell<u8>);

impl Service<Request<Empty<Bytes>>> for SendOnly {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Empty<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Empty<Bytes>>) -> Self::Future {
        self.0.set(self.0.get() + 1);
        std::future::ready(Ok(Response::new(Empty::new())))
    }
}

#[test]
fn what_users_hold_is_send_and_sync() {
    send_sync_unpin::<Pace>();
    send_sync_unpin::<GuardLayer<Pace>>();
    send_sync_unpin::<GuardLayer<Pace, Grpc>>();
    send_sync_unpin::<GuardLayer<Pace, Grpc, BoxedError>>();
    send_sync_unpin::<GuardLayer<Pace, CloneRequest<fn()>>>();
    send_sync_unpin::<Guarded<fn(), Pace>>();
    send_sync_unpin::<Guarded<fn(), Pace, Grpc, BoxedError>>();
}

#[test]
fn client_of_send_only_service_is_send() {
    send::<Guarded<SendOnly, Pace>>();
    send::<
        GuardFuture<
            SendOnly,
            Request<Empty<Bytes>>,
            <SendOnly as Service<Request<Empty<Bytes>>>>::Future,
            Pace,
            Http,
            BoxedError,
        >,
    >();
}

#[test]
fn a_reqwest_client_can_be_paced() {
    fn service<S: Service<reqwest::Request>>() {}
    service::<Guarded<reqwest::Client, Pace>>();
}

#[test]
fn a_tonic_channel_can_be_paced() {
    fn service<S: Service<Request<tonic::body::Body>>>() {}
    service::<Guarded<tonic::transport::Channel, Pace, Grpc, Answered>>();
}
