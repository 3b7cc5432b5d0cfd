//! Several servers: the pick of one and the end of its attempt, and fresh calls through the two services.
//!
//! The pick alone reads no clock: time is an argument. tower's balancer needs a `Buffer` to be shared by tasks, so it
//! is measured with one and without.

use std::fmt;
use std::hint::black_box;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use reattempt::endpoints::{Balanced, Directed, Endpoints, EndpointsLayer};
use reattempt::error::BoxedError;
use reattempt::guard::GuardLayer;
use reattempt::guard::contract::{Admit, Arrival, End, Guard, Health};
use reattempt::schedule::{Constant, Random};
use reattempt::{Http, Retry, RetryBudget, RetryPolicy};
use reattempt_control::{EndpointSet, Trail};
use tokio::runtime::Runtime;
use tower::{Layer, Service, ServiceExt};

use super::guards::{awaited, running};
use super::once::block_on;
use super::{Row, Work, above, alone};
use crate::inner::{Answers, MayRefuse};
use crate::requests::{Body, fresh};

#[cfg(feature = "peers")]
#[path = "balance.rs"]
mod balance;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "endpoints-pick",
        title: "pick of an endpoint and the end of its attempt",
        operations: 4000,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", drawing),
            above("ours-3", "bare", || picking(3)),
            above("ours-20", "bare", || picking(20)),
            above("ours-1000", "bare", || picking(1000)),
        ],
    },
    Row {
        name: "endpoints-balanced",
        title: "fresh call to one of three clients",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || awaited(Answers, fresh)),
            above("ours", "bare", || awaited(balanced(0), fresh)),
            above("ours-guard", "bare", || awaited(GuardLayer::http(Open).layer(MayRefuse(false)), fresh)),
            #[cfg(feature = "peers")]
            above("tower-balance", "bare", balance::alone),
            #[cfg(feature = "peers")]
            above("tower-buffered", "bare", balance::buffered),
        ],
    },
    Row {
        name: "endpoints-directed",
        title: "fresh call to one of three base URLs",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || awaited(Answers, fresh)),
            above("ours", "bare", || awaited(directed(), fresh)),
            above("ours-guard", "bare", || awaited(GuardLayer::http(Open).layer(Answers), fresh)),
        ],
    },
    Row {
        name: "endpoints-dead",
        title: "fresh call to one of three clients, one of them dead, repeated until it succeeds",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || awaited(Answers, fresh)),
            above("ours", "bare", || until_served(running(), retried(balanced(1)))),
            above("ours-all-well", "bare", || until_served(running(), retried(balanced(0)))),
        ],
    },
];

const NOW: Duration = Duration::from_secs(100);

/// A generator whose state is a register.
struct Counter(u64);

impl Random for Counter {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0
    }
}

/// Draws the number of a pick.
fn drawing() -> Work {
    let mut random = Counter(7);
    Box::new(move |operations| {
        for _ in 0..operations {
            black_box(random.next_u64());
        }
    })
}

fn picking(length: usize) -> Work {
    let set = EndpointSet::new();
    set.update((0..length).map(|number| (0, number.to_string())), |_| (), NOW);
    let (mut random, trail) = (Counter(7), Trail::new());
    Box::new(move |operations| {
        for _ in 0..operations {
            let pick = set.pick(black_box(&trail), black_box(NOW), &mut random).unwrap();
            let served = End::judged(Health::Served, black_box(Duration::from_millis(1)));
            drop(black_box(set.end_ticket(pick.ticket, &served, NOW, &mut random)));
        }
    })
}

/// A guard that admits every call.
struct Open;

impl Guard for Open {
    type Ticket = ();

    fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
        Admit::Admitted(())
    }

    fn end_ticket(&self, (): (), _: &End, _: Duration) -> Option<()> {
        None
    }
}

/// Creates three clients, of which so many are dead.
fn balanced(dead: usize) -> Balanced<MayRefuse> {
    Endpoints::list(0..3_usize).unwrap().connect(move |number: usize| MayRefuse(number < dead)).http()
}

/// Sends the calls of a name to one of three base URLs.
fn directed() -> Directed<Answers> {
    let urls = ["http://one.example", "http://two.example", "http://three.example"];
    let endpoints = Endpoints::urls(urls).unwrap().base("http://shop.example").unwrap();
    EndpointsLayer::with(Http::new(), endpoints).layer(Answers)
}

/// Repeats failed calls without a delay, with a budget whose successes earn the cost of a retry.
fn retried(
    inner: Balanced<MayRefuse>,
) -> Retry<Balanced<MayRefuse>, RetryPolicy<Http, Constant, RetryBudget, BoxedError>> {
    let policy = RetryPolicy::http().backoff(Constant::immediate()).budget(RetryBudget::ratio(1.0));
    Retry::new(policy.boxed_errors(), inner)
}

/// Calls the service with one request after another, each until it succeeds.
fn until_served<S, B>(runtime: Runtime, mut service: S) -> Work
where
    S: Service<Request<Body>, Response = Response<B>> + 'static,
    S::Error: fmt::Debug,
{
    Box::new(move |operations| {
        block_on(&runtime, async {
            for _ in 0..operations {
                loop {
                    let answer = service.ready().await.unwrap().call(fresh()).await;
                    if answer.is_ok_and(|answer| answer.status() == StatusCode::OK) {
                        break;
                    }
                }
            }
        });
    })
}

/// Checks that each contender succeeds, and that ours needs no second call although a client is dead.
#[cfg(feature = "peers")]
pub(super) fn check() {
    for contender in ROWS.iter().flat_map(|row| row.contenders) {
        (contender.prepare)()(10);
    }
    awaited(retried(balanced(1)), fresh)(1000);
}
