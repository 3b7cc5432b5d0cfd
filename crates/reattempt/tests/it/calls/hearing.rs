//! Tests of the events that schedules and budgets receive.

use std::io::ErrorKind::ConnectionReset;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reattempt::{Deadline, RetryLayer};
use reattempt_core::{
    Budget, Delays, Evidence, Failure, Jitter, NextRetry, Permit, Random, Schedule, ScheduleExt, SentAt, SharedSchedule,
};
use reattempt_schedule_fixed::Constant;
use tower::{Layer, ServiceExt};

use crate::calls::support::{Server, With, get, ms, options, policy, post};

/// A schedule and budget that records every event.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Schedule for Diary {
    type Delays = Self;

    fn delays(&self) -> Self {
        self.clone()
    }

    fn on_send(&self) -> SentAt {
        let mut lines = self.0.lock().unwrap();
        lines.push("admit".into());
        SentAt(lines.iter().filter(|line| *line == "admit").count().try_into().unwrap())
    }

    fn on_success(&self, sent_at: SentAt, _: &mut dyn Random) {
        self.note(format!("succeeded {}", sent_at.0));
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, _: &mut dyn Random) {
        self.note(format!("failed {} {failure}", sent_at.0));
    }
}

impl Delays for Diary {
    fn next_delay(&mut self, retry: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        let NextRetry { number, previous, failure, sent_at, .. } = retry;
        self.note(format!("delay {number} after {previous:?}, {failure}, {}", sent_at.0));
        Some(ms(100 * (u64::from(*number) + 1)))
    }
}

const ONE_RETRY_THEN_SUCCESS: [&str; 8] = [
    "admit",
    "failed 1 server (503)",
    "delay 0 after None, server (503), 1",
    "admit",
    "failed 2 network",
    "delay 1 after Some(100ms), network, 2",
    "admit",
    "succeeded 3",
];

fn server() -> Server {
    Server::by(|arrival, _| match arrival {
        1 => 503.into(),
        2 => ConnectionReset.into(),
        _ => 200.into(),
    })
}

#[tokio::test(start_paused = true)]
async fn schedule_sees_every_attempt_and_its_end() {
    let diary = Diary::default();
    let client = RetryLayer::new(policy().backoff(diary.clone())).layer(server());
    client.oneshot(get()).await.unwrap();
    assert_eq!(diary.lines(), ONE_RETRY_THEN_SUCCESS);
}

#[tokio::test(start_paused = true)]
async fn own_schedule_sees_calls_not_the_policys() {
    let (of_policy, of_call) = (Diary::default(), Diary::default());
    let client = RetryLayer::new(policy().backoff(of_policy.clone())).layer(server());
    let request = get().with(options().backoff(SharedSchedule::new(of_call.clone())));
    client.oneshot(request).await.unwrap();
    assert_eq!(of_call.lines(), ONE_RETRY_THEN_SUCCESS);
    assert_eq!(of_policy.lines(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn schedule_sees_calls_that_are_not_retried() {
    let diary = Diary::default();
    let policy = policy().backoff(diary.clone());
    let client = RetryLayer::new(policy.clone()).layer(Server::statuses([200]));
    client.clone().oneshot(get().with(options().never_retry())).await.unwrap();
    assert_eq!(diary.lines(), ["admit", "succeeded 1"]);
    // Also through the adapters around it, and as the call's own schedule.
    let around = diary.clone().capped(ms(500)).take(3).then(Constant::new(ms(1))).immediate_first();
    let around = SharedSchedule::new(Arc::new(around.floor(ms(1)).jittered(Jitter::full())));
    let client = RetryLayer::new(policy.clone()).layer(Server::statuses([200]));
    let never = options().never_retry().backoff(around.clone());
    client.clone().oneshot(get().with(never)).await.unwrap();
    assert_eq!(diary.lines(), ["admit", "succeeded 1"]);
    let client = RetryLayer::new(policy.clone().backoff(around).max_attempts(1));
    client.layer(Server::statuses([200])).oneshot(get()).await.unwrap();
    assert_eq!(diary.lines(), ["admit", "succeeded 1"]);
    let client = RetryLayer::new(policy.clone()).layer(Server::statuses([503]));
    client.oneshot(post()).await.unwrap();
    assert_eq!(diary.lines(), ["admit", "failed 1 server (503)"]);
    let client = RetryLayer::new(policy).layer(Server::statuses([404]));
    client.oneshot(get()).await.unwrap();
    assert_eq!(diary.lines(), ["admit"], "a permanent failure says nothing of the load");
}

impl Budget for Diary {
    fn acquire(&self, destination: &str, failure: &Failure, _: Duration) -> Option<Permit> {
        self.note(format!("acquire {destination} {failure}"));
        struct Issuer(Diary);
        impl reattempt_core::PermitIssuer for Issuer {
            fn give_back(&self, cost: u32) {
                panic!("{cost} given back, though every retry was sent");
            }
            fn on_retry_end(&self, cost: u32, succeeded: bool) {
                self.0.note(format!("retry ended {cost} {succeeded}"));
            }
        }
        let cost = if failure.code().is_some() { 5 } else { 10 };
        Some(Permit::new(Arc::new(Issuer(self.clone())), cost))
    }

    fn on_success(&self, destination: &str, retries: u32) {
        self.note(format!("succeeded {destination} {retries}"));
    }

    fn on_failure(&self, destination: &str, failure: &Evidence, _: Duration) {
        self.note(format!("failed {destination} {failure}"));
    }
}

#[tokio::test(start_paused = true)]
async fn budget_gets_each_failure_and_end() {
    let diary = Diary::default();
    let client = RetryLayer::new(policy().budget(diary.clone())).layer(server());
    client.clone().oneshot(get()).await.unwrap();
    assert_eq!(
        diary.lines(),
        [
            "failed one.example server (503)",
            "acquire one.example server (503)",
            "retry ended 5 false",
            "failed one.example network",
            "acquire one.example network",
            "retry ended 10 true",
            "succeeded one.example 2",
        ]
    );
    client.oneshot(get()).await.unwrap();
    assert_eq!(diary.lines(), ["succeeded one.example 0"]);
}

#[tokio::test(start_paused = true)]
async fn budget_gets_failures_never_retried() {
    let diary = Diary::default();
    let client = RetryLayer::new(policy().budget(diary.clone())).layer(Server::statuses([503]));
    client.clone().oneshot(post()).await.unwrap();
    assert_eq!(diary.lines(), ["failed one.example server (503)"]);
    client.oneshot(get().with(Deadline::after(ms(50)))).await.unwrap();
    assert_eq!(diary.lines(), ["failed one.example server (503)"], "asked last, and so not asked");
}

#[tokio::test(start_paused = true)]
async fn budget_under_stock_layer_hears_same() {
    let diary = Diary::default();
    let client = tower::retry::RetryLayer::new(policy().budget(diary.clone()).stock()).layer(server());
    let request = get().map(|body| reattempt_replay::ReplayBody::new(body, &reattempt_replay::ReplayLimits::default()));
    client.oneshot(request).await.unwrap();
    assert_eq!(
        diary.lines(),
        [
            "failed one.example server (503)",
            "acquire one.example server (503)",
            "retry ended 5 false",
            "failed one.example network",
            "acquire one.example network",
            "retry ended 10 true",
            "succeeded one.example 2",
        ]
    );
}
