//! Tests of recorded calls: the script that an observer writes, its use, and invalid recordings.

use std::io::ErrorKind;

use http::StatusCode;
use reattempt::observe::{Event, Observer, Proof};
use reattempt::report::AttemptOutcome;
use reattempt::schedule::{Constant, Failure, FailureKind};
use reattempt::{RetryLayer, RetryPolicy};
use reattempt_faults::{Faults, Recorder, Recording, Script, ServiceFault, Step};
use tower::{Layer, ServiceExt};

use crate::support::{BUSY, ms, request, retry};

const HOST: &str = "orders.example";

/// Records three calls, 100 ms apart, to a server with these faults. Each call has up to two attempts, 10 ms apart.
async fn record(steps: Vec<Step<ServiceFault>>) -> Recorder {
    let faults = Faults::new(steps);
    let recorder = Recorder::new();
    let policy = RetryPolicy::http().boxed_errors().backoff(Constant::new(ms(10))).max_attempts(2);
    let client = RetryLayer::new(policy.observe_with(recorder.clone())).layer(faults.service());
    for _ in 0..3 {
        let _ = client.clone().oneshot(request("GET", "http://orders.example/secret?token=1", "")).await;
        tokio::time::sleep(ms(100)).await;
    }
    recorder
}

#[tokio::test(start_paused = true)]
async fn observer_writes_outcomes_as_a_script() {
    let lost = ServiceFault::Error(ErrorKind::ConnectionReset);
    let recorder = record(vec![BUSY.into(), Step::new(ServiceFault::NoFault), Step::new(lost).times(2)]).await;
    assert_eq!((recorder.destinations(), recorder.is_full()), (vec![HOST.to_owned()], false));
    let recording = recorder.recording(HOST).unwrap();
    let text = recording.to_toml();
    assert_eq!(
        text,
        "# 3 calls in 220 ms. A request meets the outcome that was last recorded before it.\n\
        may-remain = true\n\n[recording]\ndestination = \"orders.example\"\nend-ms = 220\n\
        calls-ms = [0, 110, 220]\n\n\
        [[step]]\nfault = { status = 503 }\nfrom-ms = 0\nto-ms = 10\nalways = true\n\n\
        [[step]]\nfault = { error = \"connection-reset\" }\nfrom-ms = 110\nto-ms = 220\nalways = true\n"
    );
    let read = Recording::from_toml(&text).unwrap();
    assert_eq!((read.to_toml(), read.destination()), (text.clone(), HOST));
    assert!(read.calls().eq([0, 110, 220].map(ms)) && read.end() == ms(220));
    for (at, fault) in [(0, BUSY), (9, BUSY), (10, ServiceFault::NoFault), (110, lost), (300, ServiceFault::NoFault)] {
        assert_eq!((recording.fault_at(ms(at)), read.fault_at(ms(at))), (fault, fault), "at {at} ms");
    }
    assert_eq!(format!("{:?}", Script::<ServiceFault>::from_toml(&text).unwrap()), format!("{:?}", recording.script()));
}

/// Another client meets the recorded outage at the recorded time.
#[tokio::test(start_paused = true)]
async fn recorded_script_is_played_by_time() {
    let recording = record(vec![BUSY.into(), Step::new(BUSY).times(3)]).await.recording(HOST).unwrap();
    let faults = Faults::new(recording.script());
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(retry(&mut faults.service(), 1, &request("GET", "/", "")).await.unwrap().status().as_u16());
        tokio::time::sleep(ms(80)).await;
    }
    assert_eq!(seen, [503, 503, 503, 200]);
}

/// Of several outcomes within a millisecond the last counts, and an attempt that replaces another is no further call.
#[test]
fn recorded_call_is_counted_once() {
    let recorder = Recorder::new();
    let failure = Failure::new(FailureKind::Connect);
    let outcome = AttemptOutcome::Failed { failure, error: None, cause: None };
    for _ in 0..2 {
        recorder.on_event(HOST, &Event::AttemptFailed { attempt: 1, outcome: &outcome, endpoint: None });
        recorder.on_event(HOST, &Event::WillReplace { attempt: 1, proof: Proof::RefusedStream });
        recorder.on_event(HOST, &Event::Succeeded { attempts: 1, endpoint: None });
    }
    let recording = recorder.recording(HOST).unwrap();
    assert_eq!((recording.calls().len(), recording.fault_at(ms(1))), (2, ServiceFault::NoFault));
}

#[tokio::test(start_paused = true)]
async fn recording_has_no_secrets() {
    let not_found = ServiceFault::Status(StatusCode::NOT_FOUND);
    let recorder = record(vec![not_found.into()]).await;
    let recording = recorder.recording(HOST).unwrap();
    assert!(recording.to_toml().contains("fault = { status = 404 }"), "{}", recording.to_toml());
    assert!(!format!("{recorder:?}{}", recording.to_toml()).contains("token"));
    assert_eq!(recorder.recording("other.example"), None);
}

#[test]
fn wrong_recordings_are_named_with_place() {
    let head = "[recording]\ndestination = \"a\"\nend-ms = 9\n";
    let step = |more: &str| format!("{head}calls-ms = []\n[[step]]\nfault = \"hang\"\n{more}");
    let twice = step(
        "from-ms = 1\nto-ms = 5\nalways = true\n[[step]]\nfault = \"hang\"\nfrom-ms = 4\nto-ms = 6\nalways = true",
    );
    for (text, line, problem) in [
        ("may-remain = true".to_owned(), 1, "only a recorded script"),
        (format!("{head}calls-ms = [1, 10]"), 1, "later than `end-ms`"),
        (format!("{head}calls-ms = [-1]"), 4, "calls-ms: invalid value: integer `-1`"),
        (head.to_owned(), 1, "missing field `calls-ms`"),
        (step("from-ms = 1\nto-ms = 2"), 5, "a recorded step has"),
        (step("from-ms = 1\nto-ms = 2\nalways = true\ncall = \"b\""), 5, "a recorded step has"),
        (step("always = true"), 5, "a recorded step has"),
        (twice, 10, "begins before the previous one ends"),
    ] {
        let error = Recording::from_toml(&text).unwrap_err();
        assert_eq!(error.line(), Some(line), "{text}: {error}");
        assert!(error.to_string().contains(problem), "{text}: {error}");
    }
}
