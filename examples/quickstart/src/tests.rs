//! The quickstart's experiment without its output. Its figures can be recomputed from its log, a
//! seed gives the same figures again, and its count of unsafe repeats detects them.

use std::collections::{HashMap, HashSet};
use std::future::{Ready, ready};

use crate::experiment::figures::Figures;
use crate::experiment::journal::Sender;
use crate::experiment::script::{Kind, Reply, Script, Wait};
use crate::experiment::sending::{Sent, send_all};
use crate::experiment::upload::Upload;
use crate::experiment::{Experiment, clients};
use http::{Request, Response};
use hyper::body::Incoming;
use reattempt::StopReason;
use serde_json::Value;
use tower::retry::{Policy, RetryLayer};
use tower::{BoxError, Layer};

/// Enough calls for every kind of fault, and few enough to be quick.
const CALLS: u32 = 80;

/// The output and the log of one run of both clients.
struct Run {
    unwrapped: String,
    reattempt: String,
    log: String,
    /// The calls of the wrapped client.
    sent: Vec<Sent>,
}

async fn run(seed: u64) -> Run {
    let experiment = Experiment::start(seed, CALLS).await.unwrap();
    let (script, journal) = (&experiment.script, &experiment.journal);
    let plain = clients::unwrapped(experiment.names().unwrap());
    let wrapped = clients::reattempt(experiment.names().unwrap(), seed, CALLS);
    let unwrapped = send_all(plain, Sender::Unwrapped, script, || ()).await.unwrap();
    let sent = send_all(wrapped, Sender::Reattempt, script, || ()).await.unwrap();
    let mut log = Vec::new();
    journal.write_to(&mut log).unwrap();
    let run = Run {
        unwrapped: Figures::new(Sender::Unwrapped, &unwrapped, journal).to_string(),
        reattempt: Figures::new(Sender::Reattempt, &sent, journal).to_string(),
        log: String::from_utf8(log).unwrap(),
        sent,
    };
    experiment.stop().await;
    run
}

/// Recomputes the figures of one client from the log: attempts, calls that were ok, unsafe repeats.
fn recount(log: &str, client: &str) -> (usize, usize, usize) {
    let (mut attempts, mut ok, mut unsafe_repeats) = (0, HashSet::new(), 0);
    let mut executed = HashSet::new();
    let mut seen: HashMap<u64, u64> = HashMap::new();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["client"] != client {
            continue;
        }
        let call = line["call"].as_u64().unwrap();
        let number = seen.entry(call).or_default();
        *number += 1;
        assert_eq!(line["attempt_seen"], *number, "the attempts of a call are in order");
        attempts += 1;
        if line["method"] == "POST" && line["key"] == false && executed.contains(&call) {
            unsafe_repeats += 1;
        }
        if line["executed"] == true {
            executed.insert(call);
        }
        if line["answer"] == 200 {
            ok.insert(call);
        }
    }
    (attempts, ok.len(), unsafe_repeats)
}

#[tokio::test]
async fn the_lines_can_be_recomputed_from_the_log() {
    let run = run(3).await;

    let (attempts, ok, _) = recount(&run.log, "unwrapped");
    assert_eq!(run.unwrapped, format!("unwrapped: calls {CALLS} ok {ok} attempts {attempts}"));
    let again = |line: &str| line.contains("unwrapped") && !line.contains("\"attempt_seen\":1,");
    assert!(!run.log.lines().any(again), "the client as it is makes one attempt");

    let (attempts, ok_wrapped, unsafe_repeats) = recount(&run.log, "reattempt");
    assert_eq!(unsafe_repeats, 0);
    assert!(ok_wrapped > ok, "the layer mends some calls: {ok_wrapped}, {ok} without it");
    let amplification = attempts as f64 / f64::from(CALLS);
    assert_eq!(
        run.reattempt,
        format!(
            "reattempt: calls {CALLS} ok {ok_wrapped} attempts {attempts} amplification \
             {amplification:.2} unsafe-repeats 0"
        )
    );

    let starved = |sent: &Sent| sent.stop_reason() == Some(StopReason::BudgetExhausted);
    assert!(!run.sent.iter().any(starved), "the budget has room for every retry");

    // Every attempt of a client is in the log or among the refused connections.
    let made: usize = run.sent.iter().map(|sent| sent.report.as_ref().unwrap().attempts().len()).sum();
    let refused: u32 = run.sent.iter().map(Sent::refused).sum();
    assert!(refused > 0, "some connections are refused");
    assert_eq!(made, attempts + usize::try_from(refused).unwrap());
}

#[tokio::test]
async fn log_has_its_documented_fields() {
    let run = run(4).await;
    let first = run.log.lines().next().unwrap();
    let fields = ["client", "call", "method", "key", "attempt_seen", "executed", "answer"];
    let mut at = 0;
    for field in fields {
        let found = first.find(&format!("\"{field}\":")).unwrap();
        assert!(found > at || field == "client", "{field} is out of place in {first}");
        at = found;
    }
    let of_line = |line| serde_json::from_str::<Value>(line).unwrap();
    for line in run.log.lines().map(of_line) {
        assert_eq!(line.as_object().unwrap().len(), fields.len(), "{line}");
        let answer = &line["answer"];
        assert!(answer.is_u64() || answer == "reset" || answer == "slow", "{line}");
        assert_ne!(answer, 400, "every body arrived whole, on every attempt: {line}");
    }
}

#[tokio::test]
async fn the_same_seed_gives_the_same_lines() {
    let (first, second) = (run(5).await, run(5).await);
    assert_eq!(first.unwrapped, second.unwrapped);
    assert_eq!(first.reattempt, second.reattempt);
    assert_eq!(first.log, second.log);
}

/// A client that repeats every failure, up to three attempts, as many retry loops do.
#[derive(Debug, Clone)]
struct Naive {
    retries_left: u32,
}

impl<E> Policy<Request<Upload>, Response<Incoming>, E> for Naive {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Request<Upload>, result: &mut Result<Response<Incoming>, E>) -> Option<Ready<()>> {
        if result.as_ref().is_ok_and(|response| response.status().is_success()) {
            return None;
        }
        self.retries_left = self.retries_left.checked_sub(1)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Request<Upload>) -> Option<Request<Upload>> {
        Some(request.clone())
    }
}

#[tokio::test]
async fn naive_client_has_unsafe_repeats() -> Result<(), BoxError> {
    let experiment = Experiment::start(3, CALLS).await?;
    let plain = clients::unwrapped(experiment.names()?);
    let naive = RetryLayer::new(Naive { retries_left: 2 }).layer(plain);
    send_all(naive, Sender::Unwrapped, &experiment.script, || ()).await?;

    let counted = experiment.journal.unsafe_repeats(Sender::Unwrapped);
    assert!(counted > 0, "it repeats POSTs that had been carried out");
    let mut log = Vec::new();
    experiment.journal.write_to(&mut log)?;
    let (_, _, recounted) = recount(&String::from_utf8(log)?, "unwrapped");
    assert_eq!(counted, u32::try_from(recounted)?);
    experiment.stop().await;
    Ok(())
}

/// The script at the quickstart's default size has every kind of fault.
#[test]
fn a_script_has_every_fault() {
    for seed in 0..20 {
        let script = Script::draw(seed, 300);
        for kind in Kind::ALL {
            assert!(script.calls().any(|(_, call)| call.kind == kind), "{kind}, seed {seed}");
        }
        let steps = || script.calls().map(|(_, call)| (call, call.step(1)));
        let has = |matches: fn(&Reply) -> bool| steps().any(|(_, step)| matches(&step.reply));
        assert!(has(|reply| matches!(reply, Reply::Status(503, Wait::Unsaid))));
        assert!(has(|reply| matches!(reply, Reply::Status(503, Wait::Seconds(_)))), "seed {seed}");
        assert!(has(|reply| matches!(reply, Reply::Status(503, Wait::Millis(_)))));
        assert!(has(|reply| matches!(reply, Reply::Status(429, _))));
        assert!(has(|reply| matches!(reply, Reply::Status(500, _))));
        assert!(has(|reply| matches!(reply, Reply::Reset)));
        assert!(has(|reply| matches!(reply, Reply::BreakOff)), "seed {seed}");
        assert!(has(|reply| matches!(reply, Reply::Slow)));
        assert!(script.calls().any(|(_, call)| call.refuses(0) && !call.refuses(2)));
        let hopeless = |status: u16| {
            let same = |reply| matches!(reply, Reply::Status(other, _) if other == status);
            steps().any(|(call, _)| (1..9).all(|arrival| same(call.step(arrival).reply)))
        };
        assert!(hopeless(500) || hopeless(503), "seed {seed}");
        let executed_503 = steps().any(|(_, step)| step.executed && matches!(step.reply, Reply::Status(503, _)));
        assert!(executed_503, "a 503 after the work was carried out");
    }
}

#[test]
fn longer_script_begins_like_a_shorter_one() {
    let (short, long) = (Script::draw(7, 10), Script::draw(7, 100));
    for ((id, short), (_, long)) in short.calls().zip(long.calls()) {
        assert_eq!(format!("{short:?}"), format!("{long:?}"), "call {id}");
    }
    assert_ne!(format!("{long:?}"), format!("{:?}", Script::draw(8, 100)));
}
