//! Tests of methods that a config retries, and of their timeouts.

use std::time::Duration;

use reattempt::Deadline;
use reattempt::grpc::service_config::ServiceConfigLayer;
use reattempt_core::StopReason;
use reattempt_grpc::{Code, ServiceConfig, ServiceConfigHandle};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use super::server::{ABORTED, OK, Server, Step, UNAVAILABLE, pushed_back};
use super::{call, call_of, client, code_of, document, end_of, ends, parse, retried, retries};

// SC-1
#[tokio::test(start_paused = true)]
async fn each_method_is_retried_by_its_config() {
    let entry = |name: &str, attempts, codes| format!(r#"{{"name": [{name}], {}}}"#, retries(attempts, "0.01s", codes));
    let text = document(&[
        &entry("{}", 2, r#"["UNAVAILABLE"]"#),
        &entry(r#"{"service": "a.B"}"#, 3, r#"["UNAVAILABLE", "ABORTED"]"#),
        &entry(r#"{"service": "a.B", "method": "Get"}"#, 4, r#"["ABORTED"]"#),
        r#"{"name": [{"service": "a.B", "method": "Put"}]}"#,
    ]);
    // (path, how it fails, how often it is called)
    let rows = [
        ("/a.B/Get", ABORTED, 4),
        ("/a.B/Get", UNAVAILABLE, 1),
        ("/a.B/List", ABORTED, 3),
        ("/a.B/List", UNAVAILABLE, 3),
        ("/a.B/Put", UNAVAILABLE, 1),
        ("/c.D/Get", UNAVAILABLE, 2),
        ("/c.D/Get", ABORTED, 1),
        ("/nonsense", UNAVAILABLE, 2),
    ];
    for (path, step, count) in rows {
        let server = Server::new([(path, vec![step])]);
        let (code, _) = end_of(&client(&text, &server), call_of(path)).await;
        let expected = if step == ABORTED { Code::Aborted } else { Code::Unavailable };
        assert_eq!((code.unwrap(), server.count()), (expected, count), "{path}");
    }
}

// CALL-1, TR-1
#[tokio::test(start_paused = true)]
async fn seen_calls_do_not_retry_without_policy() {
    for text in ["{}", r#"{"methodConfig": [{"name": [{}], "timeout": "20s"}]}"#] {
        for step in [UNAVAILABLE, Step::Only(Code::ResourceExhausted, None), pushed_back("0")] {
            let server = Server::of([step, OK]);
            let (code, stop) = end_of(&client(text, &server), call()).await;
            assert_ne!(code.unwrap(), Code::Ok, "{text}");
            assert_eq!((server.count(), stop), (1, StopReason::Permanent), "{text}");
        }
        let server = Server::of([Step::Lost, OK]);
        let (code, stop) = end_of(&client(text, &server), call()).await;
        assert_eq!((code.unwrap(), stop), (Code::Unavailable, StopReason::Permanent));
        assert_eq!(server.count(), 1, "{text}");

        // What was not sent because of a failed connection is retried with the defaults.
        let server = Server::of([Step::NoConnection]);
        let (code, stop) = end_of(&client(text, &server), call()).await;
        assert_eq!((code.unwrap(), stop), (Code::Unavailable, StopReason::AttemptsExhausted));
        assert_eq!(server.count(), 3, "{text}");
    }
}

// TR-1
#[tokio::test(start_paused = true)]
async fn unmade_connection_is_unavailable() {
    for step in [Step::NoConnection, Step::Lost] {
        let server = Server::of([step, step, OK]);
        ends(&client(&retried(4, "0.01s", "[14]"), &server), Code::Ok, StopReason::Succeeded).await;
        assert_eq!(server.count(), 3);
        let server = Server::of([step, OK]);
        let (code, stop) = end_of(&client(&retried(4, "0.01s", "[10]"), &server), call()).await;
        assert_eq!((code.unwrap(), stop), (Code::Unavailable, StopReason::Permanent));
        assert_eq!(server.count(), 1);
    }
}

// BK-1, BK-2, BK-3
#[tokio::test(start_paused = true)]
async fn delays_are_the_configs_within_a_fifth() {
    let text = retried(5, "1s", "[14]").replace("10s", "3s");
    let mut shortest = [u128::MAX; 4];
    let mut longest = [0; 4];
    for _ in 0..200 {
        let server = Server::of([UNAVAILABLE]);
        end_of(&client(&text, &server), call()).await.0.unwrap();
        for (index, pair) in server.times().windows(2).enumerate() {
            shortest[index] = shortest[index].min(pair[1] - pair[0]);
            longest[index] = longest[index].max(pair[1] - pair[0]);
        }
    }
    for (index, usual) in [1000, 2000, 3000, 3000].into_iter().enumerate() {
        let (low, high) = (usual * 8 / 10, usual * 12 / 10);
        assert!((low..low + usual / 20).contains(&shortest[index]), "{shortest:?}");
        assert!((high - usual / 20..=high + 1).contains(&longest[index]), "{longest:?}");
    }
}

// PB-5
#[tokio::test(start_paused = true)]
async fn pb_5_after_pushback_backoff_begins_anew() {
    let text = retried(5, "1s", "[14]");
    let server = Server::of([UNAVAILABLE, UNAVAILABLE, pushed_back("7000"), UNAVAILABLE]);
    end_of(&client(&text, &server), call()).await.0.unwrap();
    let times = server.times();
    let delays: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((800..=1201).contains(&delays[0]) && (1600..=2401).contains(&delays[1]), "{delays:?}");
    assert_eq!(delays[2], 7000);
    assert!((800..=1201).contains(&delays[3]), "{delays:?}");
}

// CALL-6
#[tokio::test(start_paused = true)]
async fn call_under_way_keeps_its_config() {
    let server = Server::of([UNAVAILABLE]);
    let handle = ServiceConfigHandle::new(parse(&retried(4, "1s", "[14]")));
    let client = ServiceConfigLayer::new(handle.clone()).layer(server.clone());
    let begun = tokio::spawn(client.clone().oneshot(call()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.count(), 1);
    handle.update(ServiceConfig::parse("{}")).unwrap();
    code_of(begun.await.unwrap().unwrap()).await;
    assert_eq!(server.count(), 4);
    end_of(&client, call()).await.0.unwrap();
    assert_eq!(server.count(), 5, "the next call has no policy any more");
}

// CALL-8
#[tokio::test(start_paused = true)]
async fn call_8_clients_cap_lowers_attempts() {
    // (the config's attempts, the client's cap, how often the server is called)
    let rows = [(9, None, 5), (9, Some(7), 7), (3, Some(7), 3), (9, Some(2), 2), (9, Some(0), 1)];
    for (attempts, cap, count) in rows {
        let server = Server::of([UNAVAILABLE]);
        let mut layer = ServiceConfigLayer::new(parse(&retried(attempts, "0.01s", "[14]")));
        if let Some(cap) = cap {
            layer = layer.max_attempts(cap);
        }
        end_of(&layer.layer(server.clone()), call()).await.0.unwrap();
        assert_eq!(server.count(), count, "{attempts}, {cap:?}");
    }
}

// DL-1
#[tokio::test(start_paused = true)]
async fn smaller_timeout_counts() {
    let text = r#"{"methodConfig": [{"name": [{}], "timeout": "2s"}]}"#;
    for (own, ends_at, told) in [(None, 2000, "2000000u"), (Some("9S"), 2000, "2000000u"), (Some("1S"), 1000, "1S")] {
        let server = Server::of([Step::Hang]);
        let mut call = call();
        if let Some(own) = own {
            call.headers_mut().insert("grpc-timeout", own.parse().unwrap());
        }
        let began = Instant::now();
        let (code, stop) = end_of(&client(text, &server), call).await;
        assert_eq!((code.unwrap(), stop), (Code::DeadlineExceeded, StopReason::DeadlineExceeded));
        assert_eq!(began.elapsed().as_millis(), ends_at, "{own:?}");
        assert_eq!(server.fields("grpc-timeout"), [Some(told.to_owned())], "{own:?}");
    }
    let server = Server::of([Step::Hang]);
    let mut call = call();
    call.extensions_mut().insert(Deadline::after(Duration::from_millis(500)));
    let began = Instant::now();
    assert_eq!(end_of(&client(text, &server), call).await.0.unwrap(), Code::DeadlineExceeded);
    assert_eq!(began.elapsed().as_millis(), 500);
}

// SC-12
#[tokio::test(start_paused = true)]
async fn timeout_of_0_ends_call_at_once() {
    let server = Server::of([OK]);
    let text = r#"{"methodConfig": [{"name": [{}], "timeout": "0s"}]}"#;
    let (code, _) = end_of(&client(text, &server), call()).await;
    assert_eq!((code.unwrap(), server.count()), (Code::DeadlineExceeded, 0));
}
