//! Tests of the config in force: which one is chosen, what an invalid one leaves unchanged, and what a call keeps of
//! it.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use reattempt_core::snapshot::Inspect;
use reattempt_grpc::{NoServiceConfig, ServiceConfig, ServiceConfigHandle};

/// Returns a config with a timeout of this many seconds for every method.
fn within(seconds: u64) -> String {
    format!(r#"{{"methodConfig": [{{"name": [{{}}], "timeout": "{seconds}s"}}]}}"#)
}

fn throttled(max_tokens: u32, ratio: f64) -> String {
    format!(r#"{{"retryThrottling": {{"maxTokens": {max_tokens}, "tokenRatio": {ratio}}}}}"#)
}

fn seconds(handle: &ServiceConfigHandle) -> Option<u64> {
    let method = handle.for_method("/s/m").unwrap()?;
    Some(method.timeout.unwrap().as_secs())
}

fn update(handle: &ServiceConfigHandle, text: &str) {
    handle.update(ServiceConfig::parse(text)).unwrap();
}

/// Returns the errors of a text that was passed to a handle.
fn refused(handle: &ServiceConfigHandle, text: &str) -> String {
    handle.update(ServiceConfig::parse(text)).unwrap_err().to_string()
}

const BAD: &str = r#"{"methodConfig": [{"name": [{}], "timeout": "1s"}, {"waitForReady": 1}]}"#;
const WHY: &str = "methodConfig[1].waitForReady must be true or false, but it is 1";

#[test]
fn snapshot_has_policies_and_throttle() {
    let handle = ServiceConfigHandle::unresolved(ServiceConfig::default());
    let shown = || handle.inspect(Duration::ZERO).to_string();
    assert_eq!(shown(), "service_config: in_force false\n  retry_throttle: throttled false\n");
    refused(&handle, BAD);
    assert_eq!(shown().lines().next(), Some(&*format!("service_config: in_force false, error {WHY}")));
    update(
        &handle,
        r#"{
            "methodConfig": [
                {"name": [{}], "timeout": "2s"},
                {"name": [{"service": "a.B"}], "hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.1s"}},
                {"name": [{"service": "a.B", "method": "C"}], "retryPolicy": {
                    "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE", "ABORTED"]
                }}
            ],
            "retryThrottling": {"maxTokens": 4, "tokenRatio": 0.5}
        }"#,
    );
    handle.throttle().failed();
    handle.throttle().failed();
    handle.throttle().succeeded();
    assert_eq!(
        shown(),
        "service_config: in_force true\n  \
         method /a.B/: max_attempts 3, hedging_delay 100ms\n  \
         method /a.B/C: max_attempts 4, initial_backoff 100ms, max_backoff 1s, backoff_multiplier 2, \
         retryable_codes ABORTED UNAVAILABLE\n  \
         method: timeout 2s\n  \
         retry_throttle: tokens 2.5, throttled false\n"
    );
}

// SC-6
#[test]
fn invalid_config_keeps_the_last_valid_one() {
    let handle = ServiceConfigHandle::new(ServiceConfig::parse(&within(1)).unwrap());
    update(&handle, &within(2));
    for text in [BAD, "", "[]", "null"] {
        let why = refused(&handle, text);
        assert_eq!(seconds(&handle), Some(2), "{text:?}: {why}");
    }
    assert_eq!(refused(&handle, BAD), WHY);
    update(&handle, &within(3));
    assert_eq!(seconds(&handle), Some(3));
}

// SC-6
#[test]
fn invalid_config_keeps_none_supplied() {
    let handle = ServiceConfigHandle::new(ServiceConfig::parse(&within(1)).unwrap());
    refused(&handle, BAD);
    assert_eq!(seconds(&handle), Some(1), "none was supplied, and the default stays");
    update(&handle, &within(2));
    handle.use_default();
    refused(&handle, BAD);
    assert_eq!(seconds(&handle), Some(1), "none is supplied any more");
    let handle = ServiceConfigHandle::from(ServiceConfig::parse(&within(4)).unwrap());
    assert_eq!(seconds(&handle), Some(4), "a handle made of the default");
    refused(&ServiceConfigHandle::default(), BAD);
    assert_eq!(seconds(&ServiceConfigHandle::default()), None);
}

// SC-6
#[test]
fn default_does_not_replace_invalid_config() {
    let handle = ServiceConfigHandle::unresolved(ServiceConfig::parse(&within(1)).unwrap());
    let none: NoServiceConfig = handle.for_method("/s/m").unwrap_err();
    assert_eq!(none.to_string(), "no service config has been chosen yet");
    assert!(none.errors().is_none() && none.source().is_none());

    refused(&handle, BAD);
    let none = handle.current().unwrap_err();
    assert_eq!(none.to_string(), "no valid service config has been supplied yet");
    assert_eq!(none.errors().unwrap().to_string(), WHY);
    assert_eq!(none.source().unwrap().to_string(), WHY);
    refused(&handle, "7");
    let why = handle.for_method("/s/m").unwrap_err().errors().unwrap().to_string();
    assert!(why.ends_with("but it is 7"), "the last one's errors: {why}");

    let resolved = handle.clone();
    handle.use_default();
    assert_eq!(seconds(&resolved), Some(1), "that none is supplied is a choice");
    let other = ServiceConfigHandle::unresolved(ServiceConfig::default());
    refused(&other, BAD);
    update(&other, &within(2));
    assert_eq!(seconds(&other), Some(2));
    refused(&other, BAD);
    assert_eq!(seconds(&other), Some(2), "from the first choice on there always is one");
}

// SC-6
#[test]
fn empty_config_is_a_choice() {
    let handle = ServiceConfigHandle::new(ServiceConfig::parse(&within(1)).unwrap());
    update(&handle, "{}");
    assert_eq!(seconds(&handle), None);
    assert_eq!(*handle.current().unwrap(), ServiceConfig::default());
}

// CALL-6
#[test]
fn call_under_way_keeps_what_it_was_given() {
    let handle = ServiceConfigHandle::default();
    update(&handle, &within(1));
    let kept = handle.for_method("/s/m").unwrap().unwrap();
    update(&handle, &within(2));
    assert_eq!(kept.timeout.unwrap().as_secs(), 1);
    assert_eq!(seconds(&handle), Some(2));
}

// THR-1
#[test]
fn new_config_is_no_free_refill() {
    let handle = ServiceConfigHandle::new(ServiceConfig::parse(&throttled(10, 0.5)).unwrap());
    let throttle = handle.throttle().clone();
    for _ in 0..6 {
        throttle.failed();
    }
    // (the config, what is left)
    let rows = [
        (throttled(10, 0.5), Some(4_000)),
        (throttled(10, 0.1), Some(4_000)),
        (throttled(20, 0.5), Some(8_000)),
        (throttled(5, 0.5), Some(2_000)),
        (within(1), None),
        (throttled(5, 0.5), Some(5_000)),
    ];
    for (text, left) in rows {
        update(&handle, &text);
        assert_eq!(throttle.tokens_thousandths(), left, "{text}");
    }
    throttle.failed();
    refused(&handle, BAD);
    assert_eq!(throttle.tokens_thousandths(), Some(4_000), "a bad config changes nothing");
    handle.use_default();
    assert_eq!(throttle.tokens_thousandths(), Some(8_000), "the default's own bucket, as full");
}

// THR-1
#[test]
fn no_throttle_before_a_config() {
    let default = ServiceConfig::parse(&throttled(10, 0.5)).unwrap();
    let handle = ServiceConfigHandle::unresolved(default);
    assert_eq!(handle.throttle().tokens_thousandths(), None);
    handle.use_default();
    assert_eq!(handle.throttle().tokens_thousandths(), Some(10_000));
}

#[test]
fn every_thread_sees_one_config_or_other() {
    let handle = ServiceConfigHandle::default();
    let texts = [within(7), throttled(4, 1.0)];
    update(&handle, &texts[0]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let config = handle.current().unwrap();
                    let timeout = config.for_method("/s/m").map(|method| method.timeout.unwrap());
                    assert_eq!(timeout.is_none(), config.retry_throttling().is_some());
                }
            });
        }
        for number in 0..500 {
            update(&handle, &texts[number % 2]);
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(handle.throttle().tokens_thousandths(), Some(4_000));
}

#[test]
fn handle_is_shared_and_shows_config() {
    fn shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    let handle = ServiceConfigHandle::from(ServiceConfig::default());
    shared(&handle);
    let same = handle.current().unwrap();
    assert!(Arc::ptr_eq(&same, &handle.current().unwrap()));
    let shown = format!("{:?}", ServiceConfigHandle::unresolved(ServiceConfig::default()));
    assert!(shown.starts_with("ServiceConfigHandle { current: Err(NoServiceConfig"), "{shown}");
}
