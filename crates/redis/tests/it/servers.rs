//! Tests with several servers: a cluster, and a server behind sentinels.

#![cfg(all(feature = "cluster", feature = "sentinel"))]

use std::time::Duration;

use reattempt_redis::{BudgetStore, FleetBudget, RedisStore, RedisStoreError};
use tokio::time::{sleep, timeout};

use crate::server::{Server, sentinel};
use crate::support::{TOKEN, budget, empty, patient, retries_withheld, retry, returns};

const BOUND: Duration = Duration::from_secs(30);

const CLUSTER: [&str; 4] = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];

pub(crate) async fn is_up(server: &Server) {
    until(|| server.shows(&["CLUSTER", "INFO"], "cluster_state:ok")).await;
}

/// Starts two servers with half of the slots each.
async fn cluster() -> Option<[Server; 2]> {
    let servers = [Server::on_port(&CLUSTER).await?, Server::on_port(&CLUSTER).await?];
    servers[0].command(&["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]);
    servers[1].command(&["CLUSTER", "ADDSLOTSRANGE", "8192", "16383"]);
    let other = servers[1].address();
    let (host, port) = other.split_once(':').unwrap();
    servers[0].command(&["CLUSTER", "MEET", host, port]);
    for server in &servers {
        is_up(server).await;
    }
    Some(servers)
}

#[tokio::test]
async fn cluster_has_buckets_on_each_server() {
    let Some(servers) = cluster().await else { return };
    let store = RedisStore::cluster(&[servers[0].url()]).unwrap();
    for number in 0..20 {
        let key = format!("reattempt:2:{number}");
        let mut granted = 0;
        while store.settle(&key, 0, TOKEN, 0).await.unwrap() {
            granted += 1;
        }
        assert!((10..=11).contains(&granted), "{key}: {granted}");
    }
    for server in &servers {
        let keys: u64 = redis::from_redis_value(server.command(&["DBSIZE"])).unwrap();
        assert!(keys > 0, "each has some");
    }
    assert_eq!(store.warnings().await.unwrap(), []);
    // A client of one server does not follow redirections to the other, and decides alone for its keys.
    let alone = RedisStore::new(servers[0].url()).unwrap();
    let mut moved = 0;
    for number in 0..20 {
        let answer = alone.settle(&format!("reattempt:2:{number}"), 0, 0, 0).await;
        moved += u32::from(answer.is_err_and(|error| error.to_string().contains("MOVED")));
    }
    assert!((1..20).contains(&moved), "{moved}");
}

#[tokio::test]
async fn cluster_that_is_down_leaves_alone() {
    let Some(server) = Server::on_port(&CLUSTER).await else { return };
    let budgets = [budget(server.url()), patient(RedisStore::cluster(&[server.url()]).unwrap())];
    for budget in &budgets {
        retries_withheld(budget).await;
    }
    server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    is_up(&server).await;
    for budget in &budgets {
        returns(budget).await;
    }
}

#[tokio::test]
async fn sentinel_names_the_server() {
    let Some(server) = Server::on_port(&[]).await else { return };
    let Some(sentinel) = sentinel(&server.address(), "").await else { return };
    let budget = patient(RedisStore::sentinel(&[sentinel.url()], "main").unwrap());
    returns(&budget).await;
    assert!(retry(&budget).await);
    let other = patient(RedisStore::sentinel(&[sentinel.url()], "other").unwrap());
    retries_withheld(&other).await;
}

/// Silent sentinels before the one that answers take more time than a question has. The connection is made anyway.
#[tokio::test]
async fn silent_sentinels_are_passed_over() {
    let Some(server) = Server::on_port(&[]).await else { return };
    let sentinel = sentinel(&server.address(), "").await.unwrap();
    let silent = [(); 4].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let urls = silent.each_ref().map(|it| format!("redis://{}", it.local_addr().unwrap()));
    let urls: Vec<_> = urls.iter().map(String::as_str).chain([sentinel.url()]).collect();
    let budget = FleetBudget::new(RedisStore::sentinel(&urls, "main").unwrap());
    returns(&budget).await;
}

/// The permissions that the docs of this crate list are enough.
#[tokio::test]
async fn few_permissions_suffice() {
    let few = ["~reattempt:*", "-@all", "+eval", "+evalsha", "+get", "+set", "+time"];
    let allow = |server: &Server, more: &[&str]| {
        let words = ["ACL", "SETUSER", "app", "on", ">secret"];
        server.command(&words.iter().chain(&few).chain(more).copied().collect::<Vec<_>>());
    };
    let Some(node) = Server::on_port(&CLUSTER).await else { return };
    node.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    is_up(&node).await;
    allow(&node, &["+cluster|slots"]);
    let url = format!("redis://app:secret@{}", node.address());
    returns(&patient(RedisStore::cluster(&[&url]).unwrap())).await;

    let server = Server::on_port(&[]).await.unwrap();
    let sentinel = sentinel(&server.address(), "").await.unwrap();
    allow(&server, &["+role"]);
    let url = sentinel.url().replace("redis://", "redis://app:secret@");
    returns(&patient(RedisStore::sentinel(&[&url], "main").unwrap())).await;
}

/// A replica that became the primary without data has full buckets, once.
// F-9
#[tokio::test]
async fn empty_replica_promoted_grants_ten_more() {
    let Some(mut primary) = Server::on_port(&[]).await else { return };
    let address = primary.address();
    let (host, port) = address.split_once(':').unwrap();
    let replica = Server::on_port(&["--replicaof", host, port, "--replica-read-only", "no"]).await.unwrap();
    until(|| replica.shows(&["INFO", "replication"], "master_link_status:up")).await;
    let settings = "sentinel down-after-milliseconds main 300\nsentinel failover-timeout main 3000\n";
    let sentinel = sentinel(&address, settings).await.unwrap();
    until(|| sentinel.shows(&["INFO", "sentinel"], "slaves=1")).await;
    let store = RedisStore::sentinel(&[sentinel.url()], "main").unwrap();
    let (budget, taken) = (patient(store.clone()), empty(&store).await);
    assert!((10..=12).contains(&taken), "{taken}");

    replica.command(&["FLUSHALL"]);
    primary.kill();
    retries_withheld(&budget).await;
    until(|| replica.shows(&["INFO", "replication"], "role:master")).await;
    returns(&budget).await;
    let taken = empty(&store).await;
    assert!((7..=11).contains(&taken), "{taken}: one or two went to the budget");
}

/// Waits until a server has reached a state.
async fn until(mut is_so: impl FnMut() -> bool) {
    let waits = async {
        while !is_so() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(BOUND, waits).await.unwrap();
}

#[test]
fn empty_list_of_urls_is_refused() {
    assert_eq!(RedisStore::cluster(&[]).unwrap_err(), RedisStoreError::NoUrl);
    assert_eq!(RedisStore::sentinel(&[], "main").unwrap_err(), RedisStoreError::NoUrl);
    let text = "the list of the store's URLs is empty: it must have at least one";
    assert_eq!(RedisStoreError::NoUrl.to_string(), text);
}
