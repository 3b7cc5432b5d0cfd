//! Tests of polling: a 202 with `Retry-After` is not the result yet, and waiting for the result is no failure.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use reattempt::budget::{Budget, Permit};
use reattempt::guard::GuardLayer;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::observe::Event;
use reattempt::report::ReportSlot;
use reattempt::schedule::Failure;
use reattempt::{CallOptions, Deadline, Http, Report, RetryLayer, StopReason, Verdict};
use reattempt_testing_layers::calls::{Act, ONE, Server, With, get, ms, options, policy, post, put, request, tokens};
use tower::Layer;

/// Returns a server whose work is done with the `polls`th answer after this many.
fn working(polls: usize, wait: &'static str) -> Server {
    Server::by(move |arrival, _| match arrival <= polls {
        true => Act::from(202).header("retry-after", wait),
        false => 200.into(),
    })
}

fn polls() -> reattempt_testing_layers::calls::Policy {
    policy().on_status(StatusCode::ACCEPTED, Verdict::pending())
}

/// A budget that permits no retry and counts what it is told.
#[derive(Clone, Default)]
struct Nothing(Arc<Mutex<Vec<&'static str>>>);

impl Budget for Nothing {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        self.0.lock().unwrap().push("asked");
        None
    }

    fn on_success(&self, _: &str, retries: u32) {
        self.0.lock().unwrap().push(if retries == 0 { "success" } else { "paid" });
    }
}

/// Ten waits cost neither the three attempts nor a token, and no observer is notified of a failure. Without the line,
/// the 202 is the result.
#[tokio::test(start_paused = true)]
async fn waits_cost_neither_attempts_nor_budget() {
    let (server, budget, failures) = (working(10, "2"), Nothing::default(), Arc::new(Mutex::new(0)));
    let failed = Arc::clone(&failures);
    let polls = polls().budget(budget.clone()).observe(move |_: &str, event: &Event<'_>| {
        *failed.lock().unwrap() += u32::from(matches!(event, Event::AttemptFailed { .. }));
    });
    let response = RetryLayer::new(polls).layer(server.clone()).send(get()).await.unwrap();
    assert_eq!((response.status(), server.count()), (StatusCode::OK, 11));
    let times = server.times();
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.iter().all(|wait| (2000..=2200).contains(wait)), "{waits:?}");
    assert_eq!(*budget.0.lock().unwrap(), ["success"]);
    assert_eq!(*failures.lock().unwrap(), 0);
    let report = Report::of(&response).unwrap();
    assert_eq!((report.attempts().len(), report.stop_reason()), (11, StopReason::Succeeded));
    assert_eq!(report.attempts()[10].number, 1, "{report}");
    assert!(report.to_string().contains("pending (202)"), "{report}");

    let server = working(10, "2");
    let response = RetryLayer::new(policy()).layer(server.clone()).send(get()).await.unwrap();
    assert_eq!((response.status(), server.count()), (StatusCode::ACCEPTED, 1));
}

/// A failure between two polls is retried as usual, with its attempts and its tokens.
#[tokio::test(start_paused = true)]
async fn failure_between_polls_is_retried() {
    let server = Server::by(|arrival, _| match arrival {
        1 | 2 | 4 | 5 => Act::from(202).header("retry-after", "1"),
        3 | 6 => 503.into(),
        _ => 200.into(),
    });
    let response = RetryLayer::new(polls().budget(tokens(2.0))).layer(server.clone()).send(get()).await.unwrap();
    assert_eq!((response.status(), server.count()), (StatusCode::OK, 7));
    let report = Report::of(&response).unwrap();
    assert_eq!(report.attempts().last().unwrap().number, 3, "{report}");
    let server = Server::by(|arrival, _| match arrival % 2 {
        1 => Act::from(202).header("retry-after", "1"),
        _ => 503.into(),
    });
    let response = RetryLayer::new(polls()).layer(server.clone()).send(get()).await.unwrap();
    assert_eq!((response.status(), server.count()), (StatusCode::SERVICE_UNAVAILABLE, 6), "three attempts failed");
}

/// Only a wait that the server states, for a request that may be repeated, is a poll. All else is a success.
#[tokio::test(start_paused = true)]
async fn answer_without_a_wait_is_the_result() {
    let send = |request, wait: Option<&'static str>| async move {
        let server = Server::by(move |arrival, _| match (arrival, wait) {
            (1, Some(wait)) => Act::from(202).header("retry-after", wait),
            (1, None) => 202.into(),
            _ => 200.into(),
        });
        let slot = ReportSlot::default();
        let request = With::with(request, options().report_to(&slot));
        RetryLayer::new(polls()).layer(server.clone()).send(request).await.unwrap();
        (server.count(), slot.take().unwrap().stop_reason())
    };
    assert_eq!(send(get(), Some("1")).await, (2, StopReason::Succeeded));
    assert_eq!(send(put(), Some("1")).await, (2, StopReason::Succeeded));
    for (request, wait) in [(get(), None), (get(), Some("soon")), (post(), Some("1"))] {
        assert_eq!(send(request, wait).await, (1, StopReason::Succeeded), "{wait:?}");
    }
    let server = working(1, "1");
    let never = get().with(CallOptions::new().never_retry());
    RetryLayer::new(polls()).layer(server.clone()).send(never).await.unwrap();
    assert_eq!(server.count(), 1);
    // `Retry-After: 0` is not a loop without a pause.
    let server = working(5, "0");
    RetryLayer::new(polls()).layer(server.clone()).send(get()).await.unwrap();
    assert!(server.times()[5] >= 500, "{:?}", server.times());
    let stop = Server::by(|_, _| Act::from(202).header("retry-after", "1").header("x-should-retry", "false"));
    RetryLayer::new(polls()).layer(stop.clone()).send(get()).await.unwrap();
    assert_eq!(stop.count(), 1);
}

/// Time ends the polling, and the caller gets the last 202.
#[tokio::test(start_paused = true)]
async fn time_ends_the_polling() {
    let rows = [
        (None, "10", 3, StopReason::ElapsedExhausted),
        (Some(ms(5000)), "2", 3, StopReason::DeadlineExceeded),
        (None, "3600", 1, StopReason::ServerDelayTooLong),
    ];
    for (deadline, wait, sent, stop) in rows {
        let (server, slot) = (working(1000, wait), ReportSlot::default());
        let polls = polls().max_elapsed(Some(Duration::from_secs(30)));
        let mut request = get().with(options().report_to(&slot));
        if let Some(deadline) = deadline {
            request = request.with(Deadline::after(deadline));
        }
        let response = RetryLayer::new(polls).layer(server.clone()).send(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        assert_eq!((server.count(), slot.take().unwrap().stop_reason()), (sent, stop), "{wait}");
    }
}

/// A guard counts the answers as served, and a hedged call returns the first.
#[tokio::test(start_paused = true)]
async fn polls_are_no_failures_of_the_server() {
    let http = Http::new().on_status(StatusCode::ACCEPTED, Verdict::pending());
    let breaker = reattempt::guard::CircuitBreaker::counting();
    let guard = GuardLayer::with(http.clone(), breaker.clone());
    let client = RetryLayer::new(polls().boxed_errors()).layer(guard.layer(working(9, "1")));
    assert_eq!(client.send(get()).await.unwrap().status(), StatusCode::OK);
    use reattempt::guard::handle::CircuitBreakerExt;
    let counts = breaker.counts("one.example");
    assert_eq!((counts.requests, counts.total_successes, counts.total_failures), (10, 10, 0));
    let server = working(9, "1");
    let hedges = HedgePolicy::with(http).delay(ms(1000));
    let response = HedgeLayer::new(hedges).layer(server.clone()).send(request("GET", ONE, "")).await.unwrap();
    assert_eq!((response.status(), server.count()), (StatusCode::ACCEPTED, 1));
}
