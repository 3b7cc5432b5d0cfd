//! Tests of refused URLs, users and commands, and of secrets that no error may contain.

use reattempt_core::Random;
use reattempt_redis::BudgetStore;
use reattempt_redis::{FleetBudget, RedisStore, RedisStoreError};
use reattempt_testing::Seeded;

use crate::script::choose;
use crate::server::Server;
use crate::support::{budget, logged, retries_withheld, retry, returns};

/// A password that no text may contain.
const SECRET: &str = "xyzzy-plugh";

fn with_secret(server: &Server) -> String {
    format!("redis://default:{SECRET}@{}", server.address())
}

#[tokio::test]
async fn wrong_password_leaves_processes_alone() {
    let Some(server) = Server::on_port(&["--requirepass", "right"]).await else { return };
    let (budget, log) = logged(&with_secret(&server));
    retries_withheld(&budget).await;
    let log = log.lock().unwrap().clone();
    assert!(log.contains("the server refused the user or the password"), "{log}");
    assert!(!format!("{log}{budget:?}").contains(SECRET));

    let right = crate::support::budget(&format!("redis://:right@{}", server.address()));
    assert!(retry(&right).await);
    assert_eq!(right.stats().granted, 1);

    let (none, log) = logged(server.url());
    retries_withheld(&none).await;
    assert!(log.lock().unwrap().contains("NOAUTH"), "{log:?}");
}

/// An error names its cause, and neither the address nor the password.
#[tokio::test]
async fn cause_of_a_failed_connection_is_named() {
    let closed = crate::server::free_port();
    for (address, cause) in [
        (format!("127.0.0.1:{closed}"), "the server refused the connection"),
        ("no-such-host.invalid:6379".to_owned(), "the look-up of the host failed"),
    ] {
        let store = RedisStore::new(&format!("redis://user:{SECRET}@{address}")).unwrap();
        let error = store.settle("k", 0, 1, 0).await.unwrap_err();
        assert_eq!(error.to_string(), format!("the store failed: {cause}"));
        assert!(!format!("{error:?}").contains(SECRET));
    }
}

#[tokio::test]
async fn read_only_server_leaves_processes_alone() {
    let Some(server) = Server::start(&[]).await else { return };
    let (budget, log) = logged(server.url());
    assert!(retry(&budget).await);
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    retries_withheld(&budget).await;
    assert!(log.lock().unwrap().contains("READONLY"), "{log:?}");
    server.command(&["REPLICAOF", "NO", "ONE"]);
    returns(&budget).await;
}

#[tokio::test]
async fn missing_permission_leaves_alone() {
    let Some(server) = Server::on_port(&[]).await else { return };
    server.command(&["ACL", "SETUSER", "app", "on", &format!(">{SECRET}"), "~*", "+@all", "-@scripting"]);
    let (budget, log) = logged(&format!("redis://app:{SECRET}@{}", server.address()));
    retries_withheld(&budget).await;
    let text = log.lock().unwrap().clone();
    assert!(text.contains("NOPERM") && !text.contains(SECRET), "{text}");
    let few = ["+eval", "+evalsha", "+get", "+set", "+time"];
    let words: Vec<_> = ["ACL", "SETUSER", "app", "-@all"].into_iter().chain(few).collect();
    server.command(&words);
    returns(&budget).await;
}

/// Errors do not contain a server's text, because some servers repeat the commands that they refuse, including the
/// password.
#[tokio::test]
async fn errors_contain_no_text_of_the_server() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://user:{SECRET}@{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut buffer = [0; 1024];
            while let Ok(read @ 1..) = connection.read(&mut buffer).await {
                let text = format!("-{SECRET} unknown command, with args `{SECRET}`\r\n");
                let commands = buffer[..read].iter().filter(|byte| **byte == b'*').count();
                let _ = connection.write_all(text.repeat(commands).as_bytes()).await;
            }
        }
    });
    let (budget, log) = logged(&url);
    retries_withheld(&budget).await;
    let log = log.lock().unwrap().clone();
    assert!(log.contains("the store failed"), "{log}");
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn invalid_url_is_refused_without_its_text() {
    for url in ["", "redis", "http://h", "redis://", "redis://u:xyzzy-plugh@h:99999", "redis://h/x"] {
        let error = RedisStore::new(url).unwrap_err();
        assert_eq!(error, RedisStoreError::InvalidUrl, "{url}");
        assert!(!format!("{error} {error:?}").contains(SECRET));
    }
    assert_eq!(
        RedisStoreError::InvalidUrl.to_string(),
        "the URL of the store is invalid: it must be redis://, rediss://, valkey://, valkeys:// or unix://, with a host \
         or a path"
    );
}

/// Any text is a store or an error, never a panic, and neither has the password in its texts.
#[test]
fn any_text_is_a_store_or_an_error() {
    let parts = [
        "redis",
        "://",
        ":",
        "/",
        "@",
        "?",
        "#",
        "[",
        "]",
        "%",
        "%zz",
        "%00",
        "localhost",
        "::1",
        "0",
        "65536",
        "-1",
        "db=1",
        "protocol=9",
        "insecure",
        "unix",
        "rediss",
        "ä",
        "\0",
        " ",
        "\n",
        SECRET,
        "user",
        "..",
        "&",
        "=",
    ];
    let random = &mut Seeded::new(1);
    let mut stores = 0;
    for number in 0..20_000 {
        let mut text: String = if number % 2 == 0 { format!("redis://user:{SECRET}@") } else { String::new() };
        (0..random.next_u64() % 8).for_each(|_| text.push_str(choose(random, &parts)));
        let shown = match RedisStore::new(&text) {
            Ok(store) => {
                stores += 1;
                format!("{store:?} {:?}", FleetBudget::new(store.clone()))
            }
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!shown.contains(SECRET), "{text:?}: {shown}");
    }
    assert!((100..19_000).contains(&stores), "{stores}");
    assert!(RedisStore::new(&format!("redis://{}", "x".repeat(1_000_000))).is_ok(), "the resolver refuses it");
}

#[test]
fn debug_output_has_no_password() {
    let store = RedisStore::new("redis://user:xyzzy-plugh@budget.internal").unwrap();
    assert_eq!(format!("{store:?}"), "RedisStore { servers: one server, .. }");
    let fleet = budget("redis://user:xyzzy-plugh@budget.internal");
    assert!(!format!("{fleet:?}").contains(SECRET));
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_without_the_feature_is_refused() {
    for url in ["rediss://h", "valkeys://h", "REDISS://h"] {
        assert_eq!(RedisStore::new(url).unwrap_err(), RedisStoreError::TlsFeatureOff);
    }
    let text = RedisStoreError::TlsFeatureOff.to_string();
    assert_eq!(text, "the URL of the store asks for TLS: it needs the feature `tls` of reattempt-redis");
}

/// A TLS store works without an installed cryptography provider, although rustls would panic without one.
#[cfg(feature = "tls")]
#[tokio::test]
async fn tls_store_has_its_cryptography() {
    let Some(server) = Server::on_port(&[]).await else { return };
    let budget = budget(&format!("rediss://{}", server.address()));
    retries_withheld(&budget).await;
    let stats = budget.stats();
    assert!(stats.failed + stats.late > 0, "the server has no TLS: {stats:?}");
}
