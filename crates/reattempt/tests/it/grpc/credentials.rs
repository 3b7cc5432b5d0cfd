//! Tests that the head of a request, which may contain credentials, lives only as long as the request can be sent
//! again.

use std::sync::Arc;

use reattempt::RetryLayer;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt_grpc::Code;
use tower::{Layer, ServiceExt};

use crate::grpc::support::{Diary, GrpcServer, Reply, call_with, ends_with, ms, policy, read, throttle, trailers_only};

#[tokio::test(start_paused = true)]
async fn watched_answer_frees_the_saved_head() {
    for refusals in [0, 1] {
        let script = move |number| match number > refusals {
            true => ends_with(Code::Ok),
            false => trailers_only(Code::Unavailable),
        };
        let diary = Diary::default();
        let client = RetryLayer::new(policy(0).budget(diary.clone()));
        let credential = Arc::new("secret");
        let call = call_with(Arc::clone(&credential));
        let reply: Reply = client.layer(GrpcServer::at_once(script)).oneshot(call).await.unwrap();
        assert_eq!(Arc::strong_count(&credential), 1, "after {refusals} refusals");
        read(reply).await;
        let succeeded = format!("succeeded one.example {refusals}");
        assert_eq!(diary.lines().last(), Some(&succeeded));
    }
}

#[tokio::test(start_paused = true)]
async fn watched_hedge_frees_the_saved_head() {
    let policy = HedgePolicy::grpc().max_attempts(3).delay(ms(100)).budget(throttle());
    let client = HedgeLayer::new(policy).layer(GrpcServer::at_once(|_| ends_with(Code::Ok)));
    let credential = Arc::new("secret");
    let reply: Reply = client.oneshot(call_with(Arc::clone(&credential))).await.unwrap();
    assert_eq!(Arc::strong_count(&credential), 1);
    read(reply).await;
}
