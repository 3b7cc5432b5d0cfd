//! Tests of which public types can be sent to another thread, and shared with it; and of their debug output.

use http::Request;
use http_body_util::Empty;
use reattempt::resume::{Resume, ResumeBody, ResumeLayer, ServiceSource};
use reattempt::schedule::{Exponential, SharedSchedule};
use reattempt::{RetryBudget, RetryLayer};
use tower::Layer;

use super::support::{Answer, Server, client, get};

fn send<T: Send>(_: &T) {}
fn send_sync_unpin<T: Send + Sync + Unpin>() {}
fn cloned<T: Clone>() {}

/// A service that is not `Sync`, like most boxed clients.
type Boxed =
    tower::util::BoxCloneService<Request<Empty<bytes::Bytes>>, http::Response<Empty<bytes::Bytes>>, std::io::Error>;

#[test]
fn what_users_hold_is_send_and_sync() {
    send_sync_unpin::<ResumeLayer>();
    send_sync_unpin::<ResumeLayer<SharedSchedule>>();
    send_sync_unpin::<Resume<Server, Exponential, RetryBudget>>();
    send_sync_unpin::<ResumeBody<ServiceSource<Server, Request<String>>, Exponential, RetryBudget>>();
    send_sync_unpin::<ResumeBody<ServiceSource<Boxed, Request<Empty<bytes::Bytes>>>, Exponential, RetryBudget>>();
    cloned::<ResumeLayer>();
}

#[tokio::test(start_paused = true)]
async fn debug_output_has_no_credentials() {
    let server = Server::new([Answer::whole(1, 400)]);
    let client = client(&server);
    let mut request = get();
    *request.uri_mut() = "http://user:secret@one.example/?key=secret".parse().unwrap();
    request.headers_mut().insert("authorization", "secret".parse().unwrap());
    let call = client.send(request);
    send(&call);
    let response = call.await.unwrap();
    let text = format!("{:?} {response:?}", RetryLayer::http().layer(()));
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(format!("{:?}", ResumeLayer::http()).split(" { ").next(), Some("ResumeLayer"),);
}
