//! What is left of a call once it has ended, while its future is still held.

use reattempt_http::{ReplayLimits, ReplayMemory};
use reattempt_tower::RetryLayer;
use tokio_test::{assert_pending, task};
use tower::{Layer, Service, ServiceExt};

use crate::support::{Server, get, policy, post, put, watched};

#[tokio::test(start_paused = true)]
async fn a_call_that_is_polled_after_its_end_sends_nothing() {
    for (request, attempts) in [(post(), 1), (get(), 3)] {
        let server = Server::statuses([503]);
        let mut client = RetryLayer::new(policy()).layer(server.clone());
        let mut call = task::spawn(client.ready().await.unwrap().call(request));
        assert_eq!((&mut call).await.unwrap().status(), 503);
        assert_pending!(call.poll());
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        assert_pending!(call.poll());
        assert_eq!(server.count(), attempts, "after the end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_has_ended_holds_no_body_and_no_memory() {
    // A refusal that is final, and a success after a retry: the body was kept in both.
    for statuses in [[404, 404], [503, 200]] {
        let memory = ReplayMemory::new(1000);
        let policy = policy().replay(ReplayLimits::default().memory(memory.clone()));
        let mut client = RetryLayer::new(policy).layer(Server::statuses(statuses));
        let (body, watch) = watched(put().into_body());
        let request = http::Request::put("http://one.example/").body(body).unwrap();
        let mut call = task::spawn(client.ready().await.unwrap().call(request));
        (&mut call).await.unwrap();
        assert_eq!((memory.used(), watch.is_dropped()), (0, true), "{statuses:?}");
        drop(call);
    }
}
