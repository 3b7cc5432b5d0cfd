//! Stacks of layers in the order of the table in [`reattempt::order`], around a scripted server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use reattempt::fallback::{Failed, FallbackLayer};
use reattempt::guard::contract::Guard;
use reattempt::guard::{Bulkhead, CircuitBreaker, GuardLayer, Limit, Pace, RateLimit};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::{ReplayBody, RetryBudget, RetryLayer};
use reattempt_schedule_responsive::Responsive;
use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimit;
use tower::timeout::Timeout;
use tower::{Layer, ServiceExt};

use crate::calls::support::{Act, Server, answer, ms, policy};
use crate::stacks::erased::{Client, RequestBody, boxed, of_attempts};

/// An action of the server.
pub(super) type Action = fn() -> Act;
/// Puts the guards of row 9 around a client, in one layer.
pub(super) type Guarding = fn(&Parts, Client) -> Client;

/// The maximum number of calls, and of attempts, in flight in a stack with that limit.
pub(super) const PERMITS: usize = 2;

/// A row of the table, from the outside in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Row {
    Fallback,
    TotalTimeout,
    CallLimit,
    Retry,
    Hedge,
    Guards,
    AttemptLimit,
    AttemptTimeout,
}

pub(super) const OUTSIDE_IN: [Row; 8] = [
    Row::Fallback,
    Row::TotalTimeout,
    Row::CallLimit,
    Row::Retry,
    Row::Hedge,
    Row::Guards,
    Row::AttemptLimit,
    Row::AttemptTimeout,
];

/// The guards of one stack.
pub(super) struct Parts {
    pub(super) breaker: CircuitBreaker,
    pub(super) rate: RateLimit,
    pub(super) places: Bulkhead,
    pub(super) pace: Pace,
}

/// The guards of row 9 by name, and the layer that they form.
pub(super) const GUARDS: [(&str, Guarding); 19] = [
    ("no guard", |_, client| client),
    ("breaker", |of, client| guarded(of.breaker.clone(), client)),
    ("rate", |of, client| guarded(of.rate.clone(), client)),
    ("places", |of, client| guarded(of.places.clone(), client)),
    ("breaker, rate, places", |of, client| triple(&of.breaker, &of.rate, &of.places, client)),
    ("breaker, places, rate", |of, client| triple(&of.breaker, &of.places, &of.rate, client)),
    ("rate, breaker, places", |of, client| triple(&of.rate, &of.breaker, &of.places, client)),
    ("rate, places, breaker", |of, client| triple(&of.rate, &of.places, &of.breaker, client)),
    ("places, breaker, rate", |of, client| triple(&of.places, &of.breaker, &of.rate, client)),
    ("places, rate, breaker", |of, client| triple(&of.places, &of.rate, &of.breaker, client)),
    ("pace", |of, client| guarded(of.pace.clone(), client)),
    ("breaker, pace", |of, client| pair(&of.breaker, &of.pace, client)),
    ("pace, breaker", |of, client| pair(&of.pace, &of.breaker, client)),
    ("rate, pace", |of, client| pair(&of.rate, &of.pace, client)),
    ("pace, rate", |of, client| pair(&of.pace, &of.rate, client)),
    ("places, pace", |of, client| pair(&of.places, &of.pace, client)),
    ("pace, places", |of, client| pair(&of.pace, &of.places, client)),
    ("breaker, rate, places, pace", |of, client| {
        triple(&of.breaker, &of.rate, &(of.places.clone(), of.pace.clone()), client)
    }),
    ("pace, places, rate, breaker", |of, client| {
        triple(&of.pace, &of.places, &(of.rate.clone(), of.breaker.clone()), client)
    }),
];

fn pair<A, B>(a: &A, b: &B, client: Client) -> Client
where
    A: Guard + Clone,
    B: Guard + Clone,
{
    guarded((a.clone(), b.clone()), client)
}

fn triple<A, B, C>(a: &A, b: &B, c: &C, client: Client) -> Client
where
    A: Guard + Clone,
    B: Guard + Clone,
    C: Guard + Clone,
{
    guarded((a.clone(), (b.clone(), c.clone())), client)
}

fn guarded<G: Guard>(guard: G, client: Client) -> Client {
    boxed(GuardLayer::http(guard).layer(client))
}

fn spare(_: &Failed) -> Option<Response<Bytes>> {
    Some(Response::new(Bytes::from_static(b"spare")))
}

pub(super) fn serves() -> Act {
    Act::Answer(answer(200, "some"))
}

/// A client in layers, and its parts.
pub(super) struct Stack {
    pub(super) name: String,
    pub(super) rows: Vec<Row>,
    pub(super) client: Client,
    pub(super) parts: Parts,
    pub(super) server: Server,
    pub(super) script: Arc<Mutex<VecDeque<Action>>>,
    pub(super) call_limit: Arc<Semaphore>,
    pub(super) attempt_limit: Arc<Semaphore>,
}

impl Stack {
    pub(super) fn new(rows: Vec<Row>, (guards, guarded): (&str, Guarding)) -> Self {
        let breaker = crate::guard::support::timeless().min_calls(1_000).consecutive_failures(5);
        // Short enough that a hedge, which may not wait, gets its turn after 50 ms.
        let interval = Responsive::new().initial(ms(10)).randomisation(0.0);
        let parts = Parts {
            breaker: breaker.open_time(ms(10_000)).spread(0).seed(1),
            rate: RateLimit::new(Limit::per_second(100), 1),
            places: Bulkhead::new(2).queue(16, ms(1_000)),
            pace: Pace::new(interval).seed(1),
        };
        let [call_limit, attempt_limit] = [(); 2].map(|()| Arc::new(Semaphore::new(PERMITS)));
        let script = Arc::new(Mutex::new(VecDeque::<Action>::new()));
        let acts = Arc::clone(&script);
        let server = Server::by(move |_, _| acts.lock().unwrap().pop_front().map_or_else(serves, |act| act()));
        let inner = server.clone().map_request(|attempt: Request<RequestBody>| attempt.map(ReplayBody::passthrough));
        let mut client = boxed(inner);
        for row in OUTSIDE_IN.into_iter().rev().filter(|row| rows.contains(row) || *row == Row::Guards) {
            client = match row {
                Row::Fallback => boxed(FallbackLayer::http(spare).layer(client)),
                Row::TotalTimeout => boxed(Timeout::new(client, ms(5_000))),
                Row::CallLimit => boxed(ConcurrencyLimit::with_semaphore(client, call_limit.clone())),
                Row::Retry => {
                    let policy = policy().budget(RetryBudget::unlimited()).boxed_errors();
                    boxed(RetryLayer::new(policy).layer(of_attempts(client)))
                }
                Row::Hedge => {
                    let policy = HedgePolicy::http().max_attempts(2).delay(ms(50)).boxed_errors();
                    let policy = policy.budget(RetryBudget::unlimited());
                    boxed(HedgeLayer::new(policy).layer(of_attempts(client)))
                }
                Row::Guards => guarded(&parts, client),
                Row::AttemptLimit => boxed(ConcurrencyLimit::with_semaphore(client, attempt_limit.clone())),
                Row::AttemptTimeout => boxed(Timeout::new(client, ms(200))),
            };
        }
        let name = format!("{rows:?}, {guards}");
        Self { name, rows, client, parts, server, script, call_limit, attempt_limit }
    }
}
