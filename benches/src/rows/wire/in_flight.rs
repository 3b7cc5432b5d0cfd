//! Many calls in flight on two threads, over loopback.
//!
//! An operation is one PUT of 1 KiB. The CPU time of the whole client process counts; the server is
//! another process.

use std::error::Error;

use http::{Request, Response, StatusCode};
use reattempt::ReplayBody;
use tokio::runtime::Builder;
use tower::Service;

use super::super::{Row, Work, alone};
use super::server::{STEADY, Server};
use super::{exchange, hyper, hyper_h2};
use crate::contenders::{by_hand_with_bucket, ours};
use crate::requests::Body;

macro_rules! row {
    ($name:literal, $title:literal, $client:ident, $calls:literal) => {
        Row {
            name: $name,
            title: $title,
            operations: 4096,
            counted: false,
            timed: true,
            contenders: &[
                alone("bare", || many($client::<Body>, $calls)),
                alone("ours", || many(|| ours($client::<ReplayBody<Body>>()), $calls)),
                alone("tower-bucket", || many(|| by_hand_with_bucket($client::<Body>()), $calls)),
            ],
        }
    };
}

pub(in super::super) const ROWS: &[Row] = &[
    row!("in-flight-256", "256 calls in flight on 2 threads, HTTP/1.1", hyper, 256),
    row!("in-flight-512", "512 calls in flight on 2 threads, HTTP/1.1", hyper, 512),
    row!("in-flight-256-h2", "256 calls in flight on 2 threads, HTTP/2", hyper_h2, 256),
    row!("in-flight-512-h2", "512 calls in flight on 2 threads, HTTP/2", hyper_h2, 512),
];

/// Keeps `in_flight` calls in flight; each task sends one request after another.
fn many<S, B>(client: fn() -> S, in_flight: u64) -> Work
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::Future: Send,
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: std::fmt::Debug + Send,
{
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (server, service) = (Server::start(), client());
    Box::new(move |operations| {
        let uri = server.address(STEADY);
        runtime.block_on(async {
            let send = |_| {
                let (mut service, uri) = (service.clone(), uri.clone());
                tokio::spawn(async move {
                    for _ in 0..operations.div_ceil(in_flight) {
                        assert_eq!(exchange(&mut service, &uri).await, StatusCode::OK);
                    }
                })
            };
            let tasks: Vec<_> = (0..in_flight).map(send).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    })
}

/// Checks that each contender completes as many calls as it keeps in flight.
pub(in super::super) fn check() {
    for contender in ROWS.iter().flat_map(|row| row.contenders) {
        (contender.prepare)()(512);
    }
}
