//! Tests of which public types can be sent to another thread and shared with it, and of which clients can be guarded.

use http::Request;
use http_body_util::Full;
use reattempt::Http;
use reattempt::error::BoxedError;
use reattempt::guard::contract::ResponseFuture;
use reattempt::guard::{CircuitBreaker, GuardLayer, Guarded, GuardedBody, Refused};
use reattempt_testing_layers::calls::{AnswerBody, Server};
use reattempt_testing_layers::guard::Recorder;
use tower::Service;

fn send<T: Send>() {}
fn send_sync_unpin<T: Send + Sync + Unpin>() {}

#[test]
fn guard_types_are_send_and_sync() {
    send_sync_unpin::<GuardLayer<CircuitBreaker>>();
    send_sync_unpin::<Guarded<fn(), CircuitBreaker>>();
    send_sync_unpin::<GuardedBody<Full<bytes::Bytes>, (CircuitBreaker, Option<Recorder>)>>();
    send_sync_unpin::<Refused>();
    send::<GuardedBody<AnswerBody, CircuitBreaker>>();
    type Attempt = Request<reattempt_replay::ReplayBody<Full<bytes::Bytes>>>;
    send::<ResponseFuture<Server, Attempt, <Server as Service<Attempt>>::Future, CircuitBreaker, Http, BoxedError>>();
}

#[test]
fn reqwest_client_can_be_guarded() {
    fn service<S: Service<reqwest::Request, Response = reqwest::Response>>() {}
    service::<Guarded<reqwest::Client, CircuitBreaker>>();
}

#[test]
fn tonic_channel_can_be_guarded() {
    use reattempt::error::Answered;
    use reattempt::grpc::Grpc;
    use reattempt::{Retry, RetryPolicy};
    use tonic::body::Body;
    use tonic::transport::Channel;

    fn service<S: Service<Request<Body>>>() {}
    service::<Guarded<Channel, CircuitBreaker, Grpc, Answered>>();
    service::<Retry<Guarded<Channel, CircuitBreaker, Grpc, Answered>, RetryPolicy<Grpc>>>();
    service::<Guarded<Retry<Channel, RetryPolicy<Grpc>>, CircuitBreaker, Grpc, Answered>>();
}
