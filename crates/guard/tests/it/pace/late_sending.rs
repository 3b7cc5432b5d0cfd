//! Tests of calls that are sent later than their turns: behind another waiting guard, and in front of a service that
//! becomes ready slowly. An outcome counts if its call was sent after the last move.

use std::convert::Infallible;

use futures_util::future::join_all;
use http::Request;
use reattempt::guard::contract::Guard;
use reattempt::guard::{Bulkhead, GuardLayer, Pace};
use reattempt_schedule_responsive::Responsive;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, ServiceExt, service_fn};

use super::support::{Answer, answer, ms, secs};

fn interval() -> Responsive {
    Responsive::new().initial(ms(1)).randomisation(0.0)
}

async fn refuses(_: Request<u32>) -> Result<Answer, Infallible> {
    tokio::time::sleep(ms(100)).await;
    Ok(answer(429))
}

/// Makes twenty concurrent calls, of which one at a time is in flight and all are refused. Returns the moves.
async fn moves(interval: &Responsive, guard: impl Guard, limit: usize) -> u64 {
    let server = ConcurrencyLimit::new(service_fn(refuses), limit);
    let client = GuardLayer::http(guard).layer(server);
    let calls = join_all((0..20).map(|_| client.clone().oneshot(Request::new(0)))).await;
    assert!(calls.iter().all(Result::is_ok));
    interval.metrics().times_up
}

#[tokio::test(start_paused = true)]
async fn note_is_that_of_the_sending() {
    let places = || Bulkhead::new(1).queue(64, secs(60));
    let pace = |interval: &Responsive| Pace::new(interval.clone());
    let of = interval();
    assert_eq!(moves(&of, (pace(&of), places()), 20).await, 20);
    let of = interval();
    assert_eq!(moves(&of, (places(), pace(&of)), 20).await, 20);
    let of = interval();
    let paced = pace(&of);
    // The first call is not paced, so the others wait for their turns and then for the service.
    GuardLayer::http(paced.clone()).layer(service_fn(refuses)).oneshot(Request::new(0)).await.unwrap();
    assert_eq!(moves(&of, paced, 1).await, 21);
    assert_eq!(of.metrics().invocations, 21);
}
