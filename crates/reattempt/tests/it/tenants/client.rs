//! The client that both owners share.

use http::{Request, Response};
use reattempt::endpoints::Endpoints;
use reattempt::guard::contract::{Guard, SharedGuard, erase};
use reattempt::guard::{
    AdaptiveLimit, Bulkhead, CircuitBreaker, GuardLayer, Limit, Pause, RateLimit, SendRate, Throttle,
};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::{Http, RetryBudget, RetryLayer, RetryPolicy};
use reattempt_http::Hints;
use reattempt_replay::{ReplayLimits, ReplayMemory};
use reattempt_schedule_fixed::Constant;
use reattempt_testing::{ms, secs};
use tower::{BoxError, Layer, service_fn};

use super::scene::{Guarding, Scene};
use crate::stacks::erased::{AnyBody, Client, RequestBody, boxed, of_attempts};

/// The memory for kept bodies of all calls. It is small, so that a few calls can fill it.
const MEMORY: usize = 1 << 20;

/// Puts the shared layers around the servers. A gateway has only a breaker, because retries would draw from one bucket.
pub(crate) fn shared(scene: &Scene, budget: &RetryBudget, servers: Client) -> Client {
    if scene.guarding == Guarding::Tiers {
        return tiers(servers);
    }
    let http = Http::new().hints(Hints::default().rate_limit(true));
    let layer = GuardLayer::with(http.clone(), guard(scene.guarding, scene.table));
    let client = boxed(layer.layer(servers));
    if scene.is_gateway() {
        return client;
    }
    let client = match scene.hedged {
        true => {
            let policy = HedgePolicy::with(http.clone()).max_attempts(2).delay(ms(20));
            boxed(HedgeLayer::new(policy.boxed_errors()).layer(of_attempts(client)))
        }
        false => client,
    };
    let limits = ReplayLimits::default().memory(ReplayMemory::new(MEMORY));
    // The hints are the guard's alone: a retry that waits for a quota would draw a random delay.
    let policy = RetryPolicy::with(Http::new().replay(limits))
        .backoff(Constant::new(ms(10)))
        .budget(budget.clone())
        .boxed_errors();
    boxed(RetryLayer::new(policy).layer(of_attempts(client)))
}

/// Puts a second tier beside the servers, which answers with 418. A call gets there only if the first tier is out.
fn tiers(servers: Client) -> Client {
    let other = service_fn(|_: Request<RequestBody>| async {
        Ok::<_, BoxError>(Response::builder().status(418).body(AnyBody::default()).unwrap())
    });
    let tiers = Endpoints::list([1]).unwrap().or_else([2]).unwrap();
    boxed(tiers.connect(move |tier| if tier == 1 { servers.clone() } else { boxed(other) }).http())
}

fn guard(guarding: Guarding, table: Option<usize>) -> SharedGuard {
    /// Returns the guard with a table of this size.
    macro_rules! sized {
        ($guard:expr) => {
            match table {
                Some(places) => $guard.max_destinations(places),
                None => $guard,
            }
        };
    }
    let breaker = || sized!(CircuitBreaker::rate().open_time(secs(3)).spread(0).seed(1));
    let quota = || sized!(RateLimit::new(Limit::INFINITE, 0));
    let bulkhead = || sized!(Bulkhead::new(8));
    match guarding {
        Guarding::Breaker => erase(breaker()),
        Guarding::Rate => erase(sized!(RateLimit::new(Limit::per_second(20), 10))),
        Guarding::Quota => erase(quota()),
        Guarding::Bulkhead => erase(bulkhead()),
        Guarding::BulkheadQueue => erase(bulkhead().queue(4, ms(200))),
        Guarding::Adaptive => erase(sized!(AdaptiveLimit::aimd().initial(8))),
        Guarding::Throttle => erase(sized!(Throttle::new().seed(1))),
        Guarding::SendRate => erase(sized!(SendRate::new())),
        Guarding::Pause => erase(sized!(Pause::new())),
        Guarding::Several => several(breaker(), quota(), bulkhead()),
        Guarding::Tiers => unreachable!("it is no guard"),
    }
}

fn several(a: impl Guard, b: impl Guard, c: impl Guard) -> SharedGuard {
    erase((a, (b, c)))
}
