//! Tests of a budget beside a config's throttle, which confirms retries and hedges later.

use reattempt::grpc::service_config::ServiceConfigLayer;
use reattempt_core::StopReason;
use reattempt_grpc::Code;
use reattempt_testing::ms;
use tower::Layer;

use super::server::{OK, Server, UNAVAILABLE};
use super::{call, end_of, hedged, parse, retried, throttled};
use crate::confirming::Asking;

/// A retry of the config needs both permits. A refused one returns the config's tokens.
// F-2, THR-1
#[tokio::test(start_paused = true)]
async fn retry_of_a_config_is_confirmed() {
    let text = throttled(&retried(2, "0.01s", "[14]"), 4.0, 0.5);
    for (confirms, code, stop, log) in [
        (true, Code::Ok, StopReason::Succeeded, ["asked", "succeeded"]),
        (false, Code::Unavailable, StopReason::BudgetExhausted, ["asked", "returned"]),
    ] {
        let budget = Asking::new(ms(30), confirms);
        let server = Server::of([UNAVAILABLE, OK]);
        let client = ServiceConfigLayer::new(parse(&text)).budget(budget.clone()).layer(server.clone());
        let (ended, why) = end_of(&client, call()).await;
        assert_eq!((ended.unwrap(), why, server.count()), (code, stop, 1 + usize::from(confirms)));
        assert_eq!(budget.log(), log);
    }
}

/// A hedge of the config is sent once it is confirmed, and not at all if it is refused.
#[tokio::test(start_paused = true)]
async fn hedge_of_a_config_is_confirmed() {
    let text = hedged(2, "0.01s", "[14]");
    for confirms in [true, false] {
        let budget = Asking::new(ms(30), confirms);
        let server = Server::of([super::server::Step::Hang, OK]);
        let client = ServiceConfigLayer::new(parse(&text)).budget(budget.clone()).layer(server.clone());
        let call = end_of(&client, call());
        match (tokio::time::timeout(ms(1_000), call).await, confirms) {
            (Ok((ended, _)), true) => assert_eq!(ended.unwrap(), Code::Ok),
            (Err(_), false) => {}
            (outcome, _) => panic!("{outcome:?}"),
        }
        assert_eq!(server.count(), 1 + usize::from(confirms));
    }
}
