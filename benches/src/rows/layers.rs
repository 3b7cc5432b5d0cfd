//! Fresh calls through the other layers: hedging, pacing, and the deadline of an inbound call.
//!
//! Each call succeeds at the first attempt, so no hedge is sent and no call waits.

use std::time::Duration;

use http::{HeaderValue, Request};
use reattempt::deadline::InboundDeadlineLayer;
use reattempt::guard::{GuardLayer, Pace};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::schedule::Responsive;
use tower::Layer;
use tower::hedge;

use super::call::each as polled;
use super::once::each as awaited;
use super::{Row, Work, above, alone};
use crate::contenders::CAP;
use crate::inner::{Answers, AnswersLater, FailsFirst};
use crate::requests::{Body, fresh};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "hedge",
        title: "hedged call whose first attempt succeeds at its second poll, fresh",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || awaited(AnswersLater::new(0), fresh)),
            above("ours-fixed", "bare", || hedged(HedgePolicy::http().delay(DELAY))),
            above("ours-quantile", "bare", || hedged(HedgePolicy::http().delay_quantile(0.95))),
            above("tower-hedge", "bare", by_tower),
        ],
    },
    Row {
        name: "pace",
        title: "paced call that need not wait, fresh",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || awaited(Answers, fresh)),
            above("ours", "bare", || awaited(GuardLayer::http(Pace::new(Responsive::new())).layer(Answers), fresh)),
        ],
    },
    Row {
        name: "inbound",
        title: "inbound call, its deadline put into the extensions",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare-without-field", || polled(Answers, fresh)),
            above("ours-without-field", "bare-without-field", || {
                polled(InboundDeadlineLayer::grpc().layer(Answers), fresh)
            }),
            alone("bare", || polled(Answers, inbound)),
            above("ours", "bare", || polled(InboundDeadlineLayer::grpc().layer(Answers), inbound)),
            alone("bare-with-extensions", || polled(Answers, behind_a_server)),
            above("ours-with-extensions", "bare-with-extensions", || {
                polled(InboundDeadlineLayer::grpc().layer(Answers), behind_a_server)
            }),
        ],
    },
];

const DELAY: Duration = AnswersLater::SLOW;

/// Enough calls for a quantile, each of which takes [`DELAY`]. tower's histogram also needs a
/// change of period, because it reads the period before.
const OBSERVED: u64 = 300;

fn hedged(policy: HedgePolicy) -> Work {
    let mut work = awaited(hedging(policy).layer(AnswersLater::new(OBSERVED)), fresh);
    work(OBSERVED);
    work
}

/// Returns the layer with PUT hedged, as tower's policy has it.
fn hedging(policy: HedgePolicy) -> HedgeLayer {
    HedgeLayer::new(policy.idempotent_methods(true))
}

/// tower's hedge has no fixed delay: its delay is always a percentile.
fn by_tower() -> Work {
    let service = hedge::Hedge::new(AnswersLater::new(OBSERVED), Repeats, 10, 0.95, CAP);
    let mut work = awaited(service, fresh);
    work(OBSERVED);
    work
}

#[derive(Clone, Copy)]
struct Repeats;

impl hedge::Policy<Request<Body>> for Repeats {
    fn clone_request(&self, request: &Request<Body>) -> Option<Request<Body>> {
        Some(request.clone())
    }

    fn can_retry(&self, _: &Request<Body>) -> bool {
        true
    }
}

fn inbound() -> Request<Body> {
    let mut request = fresh();
    request.headers_mut().insert("grpc-timeout", HeaderValue::from_static("1500m"));
    request
}

/// The address of the peer, which a server adds to the extensions.
#[derive(Clone)]
struct Peer {
    _address: std::net::SocketAddr,
}

fn behind_a_server() -> Request<Body> {
    let mut request = inbound();
    request.extensions_mut().insert(Peer { _address: ([127, 0, 0, 1], 1).into() });
    request
}

/// Checks that every contender's calls succeed, and that ours sends a second attempt after a
/// failure.
pub(super) fn check() {
    let service = FailsFirst::default();
    awaited(hedging(HedgePolicy::http().delay(DELAY)).layer(service.clone()), fresh)(1);
    assert_eq!(service.calls(), 2, "the call is hedged");
    for contender in ROWS.iter().flat_map(|row| row.contenders) {
        (contender.prepare)()(10);
    }
}
