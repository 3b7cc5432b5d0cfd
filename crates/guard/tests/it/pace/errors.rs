//! Tests of the error type with which a call ends.

use std::io;

use reattempt::guard::{GuardLayer, Pace};
use tower::{BoxError, Layer, ServiceExt};

use super::support::{Answer, Server, call, ms, pace, request};

// trap 30
#[tokio::test(start_paused = true)]
async fn trap_30_error_is_inner_services_own() {
    let server = Server::<Answer, io::Error>::by(|_| Err(io::ErrorKind::BrokenPipe.into()));
    let error = call(&mut GuardLayer::http(Pace::new(pace())).layer(server)).await.unwrap_err();
    let error: &io::Error = error.downcast_ref().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test(start_paused = true)]
async fn box_error_stays_itself_in_boxed_mode() {
    let server = Server::<Answer, BoxError>::by(|_| Err(io::Error::other("lost").into()));
    let layer = GuardLayer::http(Pace::new(pace()));
    let error = layer.layer(server).oneshot(request()).await.unwrap_err();
    assert_eq!(error.downcast_ref::<io::Error>().unwrap().to_string(), "lost");
}

#[tokio::test(start_paused = true)]
async fn interval_moves_behind_timeout_and_buffer() {
    let server = Server::statuses([429, 200]);
    let pace = pace();
    let inner = tower::ServiceBuilder::new()
        .layer(GuardLayer::http(Pace::new(pace.clone())))
        .buffer(4)
        .timeout(ms(10))
        .service(server.watch());
    let mut client = inner;
    call(&mut client).await.unwrap();
    call(&mut client).await.unwrap();
    assert_eq!(pace.interval(), ms(100));
    assert_eq!(server.arrivals(), [0, 100].map(ms));
}
