//! The ends of responses, in one block of headers or after it, and of late calls.

use std::time::Duration;

use h2::Reason;
use reattempt::RetryLayer;
use reattempt::grpc::GrpcCode as Code;
use reattempt::grpc::peek_trailers::PeekTrailersLayer;
use tower::{Layer, ServiceExt};

use super::{
    EMPTY, Ended, OK, Server, Step, call, change, echo, head, numbers, policy, previous, refused, reset_later, run,
    throttle, unavailable_later,
};

// ST-1
#[tokio::test]
async fn trailers_only_in_one_block_or_two() {
    // An empty frame of its own ends the second one.
    let empty = vec![Step::Read, Step::Head(head(&[("grpc-status", b"14")])), Step::End];
    for script in [refused(), empty] {
        let server = Server::start([script]).await;
        let (ended, _) = run(&server, policy(), call()).await;
        assert_eq!((ended, previous(&server)), (OK, numbers(&[0, 1])));
    }
}

// COM-1
#[tokio::test]
async fn com_1_headers_then_trailers_commit() {
    let server = Server::start([unavailable_later()]).await;
    let throttle = throttle();
    let (ended, _) = run(&server, policy().budget(throttle.clone()), call()).await;
    assert_eq!((ended, server.calls()), (Ended::Status(Code::Unavailable), 1));
    assert_eq!(change(&throttle), -1000, "but they cost a token");
}

// ST-5
#[tokio::test]
async fn st_5_unless_they_are_looked_at() {
    let server = Server::start([unavailable_later(), echo()]).await;
    let peeking = PeekTrailersLayer::new(Duration::from_secs(3600)).layer(server.channel());
    let client = RetryLayer::new(policy()).layer(peeking);
    client.oneshot(call()).await.unwrap();
    assert_eq!(previous(&server), numbers(&[0, 1]));
}

// ST-3, TN-9
#[tokio::test]
async fn end_without_status_earns_nothing() {
    let no_status = vec![Step::Read, Step::Head(head(&[])), Step::Data(EMPTY), Step::End];
    for script in [no_status, reset_later(Reason::NO_ERROR), reset_later(Reason::CANCEL)] {
        let server = Server::start([script.clone()]).await;
        let throttle = throttle();
        let (ended, _) = run(&server, policy().budget(throttle.clone()), call()).await;
        assert!(matches!(ended, Ended::NoStatus | Ended::BodyError(_)), "{script:?}: {ended:?}");
        assert_eq!(change(&throttle), 0);
    }
}

// DL-3
#[tokio::test(start_paused = true)]
async fn dl_3_server_sees_late_call_cancelled() {
    let server = Server::in_memory([vec![Step::Read, Step::Hang]]);
    let client = RetryLayer::new(policy()).layer(server.channel());
    let mut call = call();
    call.headers_mut().insert("grpc-timeout", "60S".parse().unwrap());
    let reply = client.oneshot(call).await.unwrap();
    assert_eq!(reply.headers()["grpc-status"], "4");
    server.until(|seen| seen[0].given_up).await;
    assert_eq!(server.arrivals()[0].reset, Some(Reason::CANCEL));
}
