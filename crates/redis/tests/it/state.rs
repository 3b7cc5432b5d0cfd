//! Tests of a store's data: lost, broken, foreign or hostile. No process is refused more, and none is granted more.

use std::time::{Duration, SystemTime};

use reattempt_core::Budget;
use reattempt_redis::rule::State;
use reattempt_redis::{BudgetStore, RedisStore, StoreWarning};

use crate::server::Server;
use crate::support::{KEY, TOKEN, ask, budget, confirmed, empty, retries_withheld, retry, returns};

#[tokio::test]
async fn processes_share_one_bucket() {
    let Some(server) = Server::start(&[]).await else { return };
    let mut granted = 0;
    for _ in 0..30 {
        granted += u32::from(retry(&budget(server.url())).await);
    }
    assert!((10..=12).contains(&granted), "{granted}");
    let lives: u64 = redis::from_redis_value(server.command(&["PTTL", KEY])).unwrap();
    assert!((30_000..=40_000).contains(&lives), "{lives}");
}

#[tokio::test]
async fn flushed_script_is_sent_again() {
    let Some(server) = Server::start(&[]).await else { return };
    let budget = budget(server.url());
    for _ in 0..5 {
        assert!(retry(&budget).await);
        server.command(&["SCRIPT", "FLUSH"]);
    }
    let stats = budget.stats();
    assert_eq!((stats.granted, stats.failed, stats.alone), (5, 0, 0), "{stats:?}");
}

// F-9
#[tokio::test]
async fn flushed_data_grants_ten_more() {
    let Some(server) = Server::start(&[]).await else { return };
    let store = RedisStore::new(server.url()).unwrap();
    for _ in 0..3 {
        let taken = empty(&store).await;
        assert!((10..=12).contains(&taken), "{taken}");
        server.command(&["FLUSHALL"]);
    }
}

/// A value that is not a state counts as absent, whatever its type.
#[tokio::test]
async fn rubbish_is_a_full_bucket() {
    let Some(server) = Server::start(&[]).await else { return };
    let store = RedisStore::new(server.url()).unwrap();
    for rubbish in ["", "rubbish", "1e9 1", "-5 3", "1 2 3", "\0\u{ff}", "99999999999999999999 1"] {
        server.command(&["SET", KEY, rubbish]);
        let taken = empty(&store).await;
        assert!((10..=11).contains(&taken), "{rubbish:?}: {taken}");
    }
    for other in [&["LPUSH", KEY, "1"][..], &["SADD", KEY, "1"], &["XADD", KEY, "*", "a", "b"]] {
        server.command(&["DEL", KEY]);
        server.command(other);
        let taken = empty(&store).await;
        assert!((10..=11).contains(&taken), "{other:?}: {taken}");
    }
}

#[tokio::test]
async fn state_from_a_clock_far_ahead_is_set_back() {
    let Some(server) = Server::start(&[]).await else { return };
    let store = RedisStore::new(server.url()).unwrap();
    server.command(&["SET", KEY, "500000 99999999999999"]);
    assert!(!store.settle(KEY, 0, TOKEN, 0).await.unwrap());
    let state = State::parse(&server.text(&["GET", KEY]).unwrap()).unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let moment = Duration::from_millis(state.at);
    assert_eq!(state.tokens, 500_000);
    assert!(moment.abs_diff(now) < Duration::from_secs(60), "{state}");
}

#[tokio::test]
async fn hostile_names_have_keys_of_their_own() {
    let Some(server) = Server::start(&[]).await else { return };
    let budget = budget(server.url());
    let long = "x".repeat(100_000);
    let failure = reattempt_core::Failure::new(reattempt_core::FailureKind::Server);
    let names = ["", " ", "\r\nFLUSHALL\r\n", "\0", "{a}{b}", "*", "a:b:c", "ä€😀", &long, "$(kill)"];
    for name in names {
        let permit = budget.acquire_after_failure(name, &failure.into(), Duration::ZERO).unwrap();
        assert!(confirmed(&permit).await, "{name:?}");
        drop(permit.spend());
    }
    assert_eq!(budget.stats().granted, names.len() as u64);
    let keys: Vec<String> = redis::from_redis_value(server.command(&["KEYS", "*"])).unwrap();
    assert_eq!(keys.len(), names.len(), "{keys:?}");
    assert!(keys.iter().all(|key| key.len() <= 200 && key.starts_with("reattempt:2:")));
}

/// Any text is a prefix. Each has keys of its own, of at most 200 bytes.
#[tokio::test]
async fn any_prefix_has_keys_of_its_own() {
    let Some(server) = Server::start(&[]).await else { return };
    let long = "ä".repeat(50_000);
    let prefixes = ["", " ", ":", "\r\nFLUSHALL\r\n", "\0", "{a}", "*", "shop", "shop:rate", "ä€😀", &long, &long[2..]];
    for prefix in prefixes {
        let budget = budget(server.url()).prefix(prefix);
        assert!(retry(&budget).await, "{prefix:?}");
        assert_eq!(budget.stats().granted, 1, "{prefix:?}");
    }
    let keys: Vec<String> = redis::from_redis_value(server.command(&["KEYS", "*"])).unwrap();
    assert_eq!(keys.len(), prefixes.len(), "{keys:?}");
    assert!(keys.iter().all(|key| key.len() <= 200), "{keys:?}");
}

/// A process asks the store for at most 1024 destinations. For the others it decides alone, and no call fails.
#[tokio::test]
async fn many_destinations_are_bounded() {
    let Some(server) = Server::start(&[]).await else { return };
    let budget = budget(server.url());
    let failure = reattempt_core::Failure::new(reattempt_core::FailureKind::Server);
    let mut sent = 0;
    for number in 0..100_000 {
        let name = format!("host-{number}");
        let permit = budget.acquire_after_failure(&name, &failure.into(), Duration::ZERO);
        sent += u32::from(permit.is_some());
        drop(permit.map(reattempt_core::Permit::spend));
    }
    assert_eq!(sent, 100_000);
    let stats = budget.stats();
    assert_eq!((stats.asked, stats.alone), (1024, 100_000 - 1024), "{stats:?}");
}

#[tokio::test]
async fn other_version_has_a_bucket_of_its_own() {
    let Some(server) = Server::start(&[]).await else { return };
    server.command(&["SET", "reattempt:1:a", "0 0"]);
    assert!(retry(&budget(server.url())).await);
    assert_eq!(server.text(&["GET", "reattempt:1:a"]).as_deref(), Some("0 0"));
    assert!(!retry_in_emptied_prefix(&server).await, "a prefix is a fleet");
}

async fn retry_in_emptied_prefix(server: &Server) -> bool {
    let store = RedisStore::new(server.url()).unwrap();
    while store.settle("shop:2:a", 0, TOKEN, 0).await.unwrap() {}
    retry(&budget(server.url()).prefix("shop")).await
}

#[tokio::test]
async fn full_server_leaves_processes_alone() {
    let Some(server) = Server::start(&["--maxmemory-policy", "noeviction"]).await else { return };
    let budget = budget(server.url());
    assert!(retry(&budget).await);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    retries_withheld(&budget).await;
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    returns(&budget).await;
}

#[tokio::test]
async fn evicting_server_is_warned_of() {
    let Some(server) = Server::start(&[]).await else { return };
    let store = RedisStore::new(server.url()).unwrap();
    let set = |name, value| drop(server.command(&["CONFIG", "SET", name, value]));
    set("maxmemory", "100mb");
    for (policy, is_safe) in
        [("noeviction", true), ("volatile-ttl", true), ("allkeys-lru", false), ("volatile-lru", false)]
    {
        set("maxmemory-policy", policy);
        let warnings = store.warnings().await.unwrap();
        let expected = [StoreWarning::EvictsKeys(policy.to_owned())];
        assert_eq!(warnings, if is_safe { &[][..] } else { &expected });
    }
    set("maxmemory", "0");
    assert_eq!(store.warnings().await.unwrap(), [], "without a bound nothing is evicted");
}

/// The settings are asked for on a new connection, if the last one is broken.
#[tokio::test]
async fn warnings_survive_a_restart() {
    let Some(mut server) = Server::start(&[]).await else { return };
    let store = RedisStore::new(server.url()).unwrap();
    store.warnings().await.unwrap();
    server.kill();
    store.warnings().await.unwrap_err();
    server.restart().await;
    assert_eq!(store.warnings().await.unwrap(), []);
}

#[tokio::test]
async fn dropped_retry_returns_its_token() {
    let Some(server) = Server::start(&[]).await else { return };
    let budget = budget(server.url());
    for _ in 0..30 {
        let permit = ask(&budget).unwrap();
        assert!(confirmed(&permit).await);
        drop(permit);
        // The next question reports what this one returns.
    }
    assert_eq!(budget.stats().granted, 30);
}
