//! The ends of responses, in one block of headers or after it, and of late calls.

use std::time::Duration;

use h2::Reason;
use reattempt::RetryLayer;
use reattempt::grpc::peek_trailers::PeekTrailersLayer;
use reattempt_grpc::Code;
use tower::{Layer, ServiceExt};

use super::server::{Act, Server};
use super::{Ended, OK, call, change, numbers, policy, run, throttle};

// ST-1
#[tokio::test]
async fn trailers_only_in_one_block_or_two() {
    for act in [Act::PeekTrailers(Code::Unavailable), Act::EmptyData(Code::Unavailable)] {
        let server = Server::start([act, Act::Answer(Code::Ok)]).await;
        let (ended, _) = run(&server, policy(), call()).await;
        assert_eq!((ended, server.previous()), (OK, numbers(&[0, 1])));
    }
}

// COM-1
#[tokio::test]
async fn com_1_headers_then_trailers_commit() {
    let server = Server::start([Act::HeadersTrailers(Code::Unavailable)]).await;
    let throttle = throttle();
    let (ended, _) = run(&server, policy().budget(throttle.clone()), call()).await;
    assert_eq!((ended, server.count()), (Ended::Status(Code::Unavailable), 1));
    assert_eq!(change(&throttle), -1000, "but they cost a token");
}

// ST-5
#[tokio::test]
async fn st_5_unless_they_are_looked_at() {
    let server =
        Server::start([Act::HeadersTrailers(Code::Unavailable), Act::Answer(Code::Ok)]).await;
    let peeking = PeekTrailersLayer::new(Duration::from_secs(3600)).layer(server.channel());
    let client = RetryLayer::new(policy()).layer(peeking);
    client.oneshot(call()).await.unwrap();
    assert_eq!(server.previous(), numbers(&[0, 1]));
}

// ST-3, TN-9
#[tokio::test]
async fn end_without_status_earns_nothing() {
    let acts =
        [Act::NoStatus, Act::HeadersReset(Reason::NO_ERROR), Act::HeadersReset(Reason::CANCEL)];
    for act in acts {
        let server = Server::start([act]).await;
        let throttle = throttle();
        let (ended, _) = run(&server, policy().budget(throttle.clone()), call()).await;
        assert!(matches!(ended, Ended::NoStatus | Ended::BodyError(_)), "{act:?}: {ended:?}");
        assert_eq!(change(&throttle), 0);
    }
}

// DL-3
#[tokio::test(start_paused = true)]
async fn dl_3_server_sees_late_call_cancelled() {
    let mut server = Server::start([Act::Hang]).await;
    let channel = server.channel();
    // The clock runs on while the connection is made: that has to be done by then.
    let mut ready = channel.clone();
    ready.ready().await.unwrap();
    let client = RetryLayer::new(policy()).layer(channel);
    let mut call = call();
    call.headers_mut().insert("grpc-timeout", "60S".parse().unwrap());
    let pending = tokio::spawn(client.oneshot(call));
    while server.count() == 0 {
        tokio::task::yield_now().await;
    }
    let reply = pending.await.unwrap().unwrap();
    assert_eq!(reply.headers()["grpc-status"], "4");
    assert_eq!(server.resets.recv().await, Some(Reason::CANCEL));
}
