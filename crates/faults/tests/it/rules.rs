//! Tests of each rule with a client that keeps it and one that breaks it, and of the failure's text.

use http::Request;
use reattempt_faults::{CALL_HEADER, Faults, Ledger, Rule, Script, ServiceFault, Violation};
use tower::{Service, ServiceExt};

use crate::support::{BUSY, ms, panic_of, request, retry};

#[track_caller]
fn violation(ledger: &Ledger, rule: Rule) -> Violation {
    ledger.check(rule).unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn repeated_post_is_shown_as_a_time_line() {
    let faults = Faults::new([BUSY]);
    let mut server = faults.service();
    retry(&mut server, 1, &request("GET", "/other", "")).await.unwrap();
    let other = Faults::new([BUSY]);
    retry(&mut other.service(), 2, &request("POST", "/pay", "tea")).await.unwrap();
    let text = panic_of(|| _ = other.ledger().no_unsafe_repeat());
    assert_eq!(
        text,
        "call \"POST /pay\" was carried out 2 times, and may not be repeated\n\
        \x20   time  connection  request    body                  carried out  answer\n\
        \x20   0 ms  server      POST /pay  3 B 56e4c91944536249  yes          503\n\
        \x20 100 ms  server      POST /pay  3 B 56e4c91944536249  yes          200"
    );
}

#[tokio::test(start_paused = true)]
async fn repeat_is_safe_with_key_or_proof() {
    let faults = Faults::new([BUSY, BUSY]);
    let mut server = faults.service();
    retry(&mut server, 2, &request("PUT", "/pay", "tea")).await.unwrap();
    let mut keyed = request("POST", "/pay", "tea");
    keyed.headers_mut().insert("idempotency-key", "7".parse().unwrap());
    retry(&mut server, 2, &keyed).await.unwrap();
    faults.ledger().no_unsafe_repeat();
    assert_eq!(faults.ledger().arrivals()[2].call, "7");

    let throttled = ServiceFault::Status(http::StatusCode::TOO_MANY_REQUESTS);
    let faults = Faults::new([throttled]);
    retry(&mut faults.service(), 2, &request("POST", "/pay", "tea")).await.unwrap();
    faults.ledger().no_unsafe_repeat();
}

/// Two servers in a cluster share a ledger: a request that both carry out is a repeat.
#[tokio::test(start_paused = true)]
async fn cluster_has_one_ledger() {
    let ledger = Ledger::new();
    let one = Faults::in_cluster([BUSY], "one", &ledger);
    let two = Faults::<ServiceFault>::in_cluster(Script::default(), "two", &ledger);
    let post = request("POST", "/pay", "tea");
    for faults in [&one, &two] {
        faults.service().oneshot(post.clone()).await.unwrap();
        let first = faults.ledger().arrivals().len() == 1;
        assert_eq!(ledger.check(Rule::NoUnsafeRepeat).is_ok(), first);
    }
    let text = violation(&ledger, Rule::NoUnsafeRepeat).to_string();
    assert!(text.contains("0 ms  one ") && text.contains("0 ms  two "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn attempts_and_amplification_are_bounded() {
    let faults = Faults::new([BUSY, BUSY]);
    let mut server = faults.service();
    for target in ["/one", "/two", "/three", "/four"] {
        retry(&mut server, 3, &request("GET", target, "")).await.unwrap();
    }
    let ledger = faults.ledger();
    ledger.at_most_attempts(3).amplification_at_most(1.5);
    let broken = violation(ledger, Rule::AtMostAttempts(2));
    assert_eq!(broken.arrivals().len(), 3, "of the one call");
    assert!(broken.to_string().starts_with("call \"GET /one\" arrived 3 times, at most 2 are allowed"));
    let broken = violation(ledger, Rule::AmplificationAtMost(1.4)).to_string();
    assert!(broken.starts_with("6 arrivals of 4 calls, at most 1.4 each"), "{broken}");
    Ledger::new().amplification_at_most(0.0);
}

#[tokio::test(start_paused = true)]
async fn late_arrival_breaks_deadline() {
    let faults = Faults::new([BUSY, BUSY, BUSY]);
    let mut server = faults.service();
    let mut call = request("POST", "/service/method", "");
    retry(&mut server, 2, &call).await.unwrap();
    let ledger = faults.ledger();
    ledger.no_arrival_after_deadline(ms(100));
    let broken = violation(ledger, Rule::NoArrivalAfterDeadline(ms(99))).to_string();
    assert!(broken.contains("arrived 100ms after its first arrival, its deadline is 99ms"), "{broken}");

    call.headers_mut().insert("grpc-timeout", "50000u".parse().unwrap());
    call.headers_mut().insert(CALL_HEADER, "two".parse().unwrap());
    retry(&mut server, 2, &call).await.unwrap();
    let broken = violation(ledger, Rule::NoArrivalAfterDeadline(ms(1000))).to_string();
    assert!(broken.starts_with("call \"two\" arrived 100ms"), "{broken}");
}

#[tokio::test(start_paused = true)]
async fn changed_body_is_not_intact() {
    for (second, what) in [("te", "changed its body from 3 to 2 bytes"), ("tee", "changed the bytes of its body")] {
        let faults = Faults::new([BUSY]);
        let mut server = faults.service();
        for body in ["tea", second] {
            retry(&mut server, 1, &request("PUT", "/", body)).await.unwrap();
        }
        let broken = violation(faults.ledger(), Rule::BodiesIntact);
        assert!(broken.to_string().contains(what), "{broken}");
        assert_eq!(broken.rule(), Rule::BodiesIntact);
    }
    let faults = Faults::new([BUSY]);
    retry(&mut faults.service(), 2, &request("PUT", "/", "tea")).await.unwrap();
    faults.ledger().bodies_intact();
}

#[tokio::test(start_paused = true)]
async fn exchange_under_way_is_left_open() {
    let faults = Faults::new([ServiceFault::Hang]);
    let mut server = faults.service();
    let ready: &mut _ = ServiceExt::<Request<String>>::ready(&mut server).await.unwrap();
    let call = ready.call(request("GET", "/", ""));
    let broken = violation(faults.ledger(), Rule::NothingLeftOpen).to_string();
    assert!(broken.starts_with("1 exchanges and 0 connections are open\n"), "{broken}");
    assert!(broken.contains("none yet"), "{broken}");
    drop(call);
    faults.ledger().all_closed().await;
    faults.ledger().nothing_left_open();
}
