//! Tests of an inbound call's deadline, which applies to the outbound calls made for it.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Extensions, Request, Response};
use http_body_util::Empty;
use reattempt::deadline::InboundDeadlineLayer;
use reattempt::{Deadline, RetryLayer};
use reattempt_grpc::{Code, parse_grpc_timeout};
use tokio::time::sleep;
use tower::{Layer, ServiceExt, service_fn};

use crate::grpc::support::{GrpcServer, call, ends_with, ms, policy, trailers_only};

// DL-2
#[tokio::test(start_paused = true)]
async fn inbound_deadline_reaches_every_attempt() {
    let upstream = GrpcServer::at_once(|number| match number {
        1 => trailers_only(Code::Unavailable),
        _ => ends_with(Code::Ok),
    });
    let client = RetryLayer::new(policy(100)).layer(upstream.clone());
    let handler = service_fn(move |inbound: Request<()>| {
        let client = client.clone();
        async move {
            // The handler does some work first.
            sleep(ms(200)).await;
            let mut outbound = call();
            Deadline::propagate(inbound.extensions(), outbound.extensions_mut());
            client.oneshot(outbound).await.unwrap();
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let server = InboundDeadlineLayer::grpc().layer(handler);
    let inbound = Request::builder().header("grpc-timeout", "1S").body(()).unwrap();
    server.clone().oneshot(inbound).await.unwrap();
    server.oneshot(Request::new(())).await.unwrap();
    let told: Vec<_> =
        upstream.fields("grpc-timeout").iter().map(|field| parse_grpc_timeout(field.as_ref()?.as_bytes())).collect();
    assert_eq!(told, [Some(ms(800)), Some(ms(700)), None]);
}

/// A caller's header cannot extend a deadline that the server has set, whatever its bytes.
// DL-1, DL-9
#[tokio::test(start_paused = true)]
async fn inbound_field_only_shortens() {
    let own = Deadline::after(ms(200));
    for (field, kept) in [
        (&b"100m"[..], Deadline::after(ms(100))),
        (b"0n", Deadline::after(ms(0))),
        (b"200m", own),
        (b"300m", own),
        (b"99999999H", own),
        (b"999999999H", own),
        (b"-1S", own),
        (b"1", own),
        (b"", own),
        (b"\xff\xff", own),
        (&[b'9'; 100_000], own),
    ] {
        let server = InboundDeadlineLayer::grpc().layer(service_fn(async |inbound: Request<()>| {
            Ok::<_, Infallible>(inbound.extensions().get::<Deadline>().copied())
        }));
        let mut inbound = Request::builder().header("grpc-timeout", field).body(()).unwrap();
        inbound.extensions_mut().insert(own);
        assert_eq!(server.oneshot(inbound).await.unwrap(), Some(kept), "{field:?}");
    }
}

// DL-1
#[tokio::test(start_paused = true)]
async fn earlier_of_two_deadlines_is_handed_on() {
    let [early, late] = [ms(100), ms(200)].map(Deadline::after);
    let of = |deadlines: Option<Deadline>| {
        deadlines.into_iter().fold(Extensions::new(), |mut to, deadline| {
            to.insert(deadline);
            to
        })
    };
    for (inbound, own, handed_on) in [
        (None, None, None),
        (Some(late), None, Some(late)),
        (None, Some(late), Some(late)),
        (Some(early), Some(late), Some(early)),
        (Some(late), Some(early), Some(early)),
    ] {
        let mut outbound = of(own);
        Deadline::propagate(&of(inbound), &mut outbound);
        assert_eq!(outbound.get(), handed_on.as_ref());
    }
}
