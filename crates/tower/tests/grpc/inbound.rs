//! A deadline that comes in with a call goes out with the calls that are made for it.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use reattempt_grpc::{Code, parse_grpc_timeout};
use reattempt_tower::{Deadline, InboundDeadlineLayer, RetryLayer};
use tokio::time::sleep;
use tower::{Layer, ServiceExt, service_fn};

use crate::support::{Server, call, ends_with, ms, policy, trailers_only};

#[tokio::test(start_paused = true)]
async fn dl_2_an_inbound_deadline_is_told_to_every_attempt_of_an_outbound_call() {
    let upstream = Server::at_once(|number| match number {
        1 => trailers_only(Code::Unavailable),
        _ => ends_with(Code::Ok),
    });
    let client = RetryLayer::new(policy(100)).layer(upstream.clone());
    let handler = service_fn(move |inbound: Request<()>| {
        let client = client.clone();
        async move {
            // The handler has work of its own.
            sleep(ms(200)).await;
            let mut outbound = call();
            if let Some(deadline) = inbound.extensions().get::<Deadline>() {
                outbound.extensions_mut().insert(*deadline);
            }
            client.oneshot(outbound).await.unwrap();
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let server = InboundDeadlineLayer.layer(handler);
    let inbound = Request::builder().header("grpc-timeout", "1S").body(()).unwrap();
    server.clone().oneshot(inbound).await.unwrap();
    server.oneshot(Request::new(())).await.unwrap();
    let told: Vec<_> = upstream
        .fields("grpc-timeout")
        .iter()
        .map(|field| parse_grpc_timeout(field.as_ref()?.as_bytes()))
        .collect();
    assert_eq!(told, [Some(ms(800)), Some(ms(700)), None]);
}
