//! The names of endpoints in reports, events, logs and errors.

use std::sync::{Arc, Mutex};

use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::observe::{Event, Observer};
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, Report, RetryBudget, RetryLayer, TimedOut};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::TracingLog;
use reattempt_testing_layers::cluster::{Cluster, Does, WELL, get, policy};
use tower::{BoxError, Layer};

/// Writes down every event.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Observer for Lines {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        self.0.lock().unwrap().push(event.to_string());
    }
}

impl Lines {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn endpoints(report: &Report) -> Vec<Option<&str>> {
    report.attempts().iter().map(|attempt| attempt.endpoint.as_deref()).collect()
}

/// Each attempt of a retried call has the name of its endpoint, in the report and in the events.
// D-16
#[tokio::test(start_paused = true)]
async fn retried_attempts_have_endpoints() {
    let cluster = Cluster::of([Does::Status(408); 3]);
    let lines = Lines::default();
    let policy = policy(3).budget(RetryBudget::unlimited()).observe_with(lines.clone());
    let client = RetryLayer::new(policy).layer(cluster.balanced());
    let answer = client.send(get()).await.unwrap();
    let (report, seen) = (Report::of(&answer).unwrap(), cluster.seen());
    assert_eq!(endpoints(report), seen.iter().map(|name| Some(&**name)).collect::<Vec<_>>());
    let [first, second, third] = seen.try_into().unwrap();
    assert_eq!(
        report.to_string(),
        format!(
            "attempt 1 to {first} at 0s: server (408), next in 1s\n\
             attempt 2 to {second} at 1s: server (408), next in 1s\n\
             attempt 3 to {third} at 2s: server (408)\n\
             stopped: all allowed attempts have been made"
        )
    );
    let failed = format!("attempt 2 to {second}: server (408)");
    assert!(lines.take().contains(&failed));
}

/// A call that succeeds at once has the name in its only event, and one without endpoints has none.
// D-16
#[tokio::test(start_paused = true)]
async fn success_has_its_endpoint() {
    let (cluster, lines) = (Cluster::of([WELL]), Lines::default());
    let layer = RetryLayer::new(policy(3).observe_with(lines.clone()));
    layer.layer(cluster.balanced()).send(get()).await.unwrap();
    layer.layer(cluster.client("0")).send(get()).await.unwrap();
    assert_eq!(lines.take(), ["succeeded on attempt 1 to 0", "succeeded on attempt 1"]);
}

/// The winner and the cancelled attempts of a hedged call have their names.
// D-16
#[tokio::test(start_paused = true)]
async fn hedged_attempts_have_endpoints() {
    let cluster = Cluster::of([Does::Hang, WELL]);
    let lines = Lines::default();
    let policy = HedgePolicy::http().delay(ms(20)).budget(RetryBudget::unlimited()).boxed_errors();
    let client = HedgeLayer::new(policy.observe_with(lines.clone())).layer(cluster.balanced());
    let mut hedged = 0;
    for _ in 0..20 {
        let answer = client.send(get()).await.unwrap();
        let (seen, lines) = (cluster.seen(), lines.take());
        let winner = seen.len();
        assert_eq!(lines.last(), Some(&format!("succeeded on attempt {winner} to 1")));
        if let Some(report) = Report::of(&answer) {
            assert_eq!(endpoints(report), [Some("0"), Some("1")], "{seen:?}");
            hedged += 1;
        }
    }
    assert!(hedged > 0);
}

/// A failed hedge has its name, also in its event.
// D-16
#[tokio::test(start_paused = true)]
async fn failed_hedge_has_its_endpoint() {
    let cluster = Cluster::of([Does::Reset; 2]);
    let (slot, lines) = (ReportSlot::default(), Lines::default());
    let policy = HedgePolicy::http().delay(ms(20)).max_attempts(2).budget(RetryBudget::unlimited()).boxed_errors();
    let client = HedgeLayer::new(policy.observe_with(lines.clone())).layer(cluster.balanced());
    client.clone().with_options(CallOptions::new().report_to(&slot)).send(get()).await.unwrap_err();
    let (report, seen) = (slot.take().unwrap(), cluster.seen());
    assert_eq!(endpoints(&report), seen.iter().map(|name| Some(&**name)).collect::<Vec<_>>());
    let lines = lines.take();
    for (number, name) in [(1, &seen[0]), (2, &seen[1])] {
        let begin = format!("attempt {number} to {name}: ");
        assert!(lines.iter().any(|line| line.starts_with(&begin)), "{begin}{lines:?}");
    }
}

/// The error of a time limit names the endpoint whose attempt it has interrupted, whichever layer has the limit.
// D-16
#[tokio::test(start_paused = true)]
async fn timeout_names_its_endpoint() {
    for outer in [true, false] {
        let cluster = Cluster::of([Does::Hang]);
        let error: BoxError = match outer {
            true => RetryLayer::new(policy(1).attempt_timeout(secs(1))).layer(cluster.balanced()).send(get()).await,
            false => RetryLayer::new(policy(1)).layer(cluster.list().attempt_timeout(secs(1)).http()).send(get()).await,
        }
        .map(drop)
        .unwrap_err();
        assert_eq!(error.to_string(), "the attempt timed out after 1s (0)");
        assert_eq!(error.downcast_ref::<TimedOut>().and_then(TimedOut::endpoint), Some("0"));
    }
}

/// An attempt that a guard sends later has its name too.
// D-16
#[tokio::test(start_paused = true)]
async fn attempt_sent_late_has_its_endpoint() {
    use reattempt::guard::{GuardLayer, Limit, RateLimit};
    let cluster = Cluster::of([Does::Status(408); 2]);
    let limit = RateLimit::new(Limit::per_second(1), 1).queue(8, secs(9));
    let guarded = GuardLayer::http(limit).layer(cluster.balanced());
    let client = RetryLayer::new(policy(2).budget(RetryBudget::unlimited())).layer(guarded);
    for _ in 0..3 {
        let answer = client.send(get()).await.unwrap();
        let seen = cluster.seen();
        let expected: Vec<_> = seen.iter().map(|name| Some(&**name)).collect();
        assert_eq!(endpoints(Report::of(&answer).unwrap()), expected);
    }
}

/// An endpoint that has left the set while its attempt ran still has its name.
// D-16
#[tokio::test(start_paused = true)]
async fn endpoint_that_left_has_its_name() {
    let cluster = Cluster::of([Does::Hang]);
    let balanced = cluster.balanced();
    let handle = balanced.endpoints();
    let client = RetryLayer::new(policy(2).attempt_timeout(secs(1))).layer(balanced);
    let call = tokio::spawn(client.send(get()));
    tokio::time::sleep(ms(500)).await;
    let other = cluster.clone();
    handle.update(["1"], move |name| other.client(name)).unwrap();
    let answer = call.await.unwrap().unwrap();
    assert_eq!(endpoints(Report::of(&answer).unwrap()), [Some("0"), Some("1")]);
}

/// Both lines of the log of a call have the field.
// D-16
#[tokio::test(start_paused = true)]
async fn log_has_the_endpoint() {
    use reattempt::observe::TracingObserver;
    let cluster = Cluster::of([Does::Status(408)]);
    let log = TracingLog::default();
    {
        let _subscribed = log.subscribe();
        let client = RetryLayer::new(policy(2).observe_with(TracingObserver)).layer(cluster.balanced());
        cluster.set("0", Does::Status(503));
        let call = tokio::spawn(client.send(get()));
        tokio::time::sleep(ms(500)).await;
        cluster.set("0", WELL);
        call.await.unwrap().unwrap();
    }
    let lines = log.lines();
    for text in ["attempt failed", "succeeded"] {
        let line = lines.iter().find(|line| line.contains(text)).unwrap();
        assert!(line.contains("endpoint=\"0\""), "{line}");
    }
}
