//! Tests of destinations: the name that budgets and observers get.

use std::borrow::Cow;

use http::Uri;
use reattempt::RetryLayer;
use tower::{Layer, ServiceExt};

use crate::regressions::support::{Log, Policy, Server, With, policy, request, tokens};

/// Returns the only bucket that a retried request has opened, after checking that the observer got the same name.
async fn destination(policy: Policy, uri: &str, host: Option<&'static str>) -> String {
    let (budget, log) = (tokens(10.0), Log::default());
    let policy = policy.budget(budget.clone()).observe_with(log.clone());
    let mut request = request("GET", uri, "");
    if let Some(host) = host {
        request = request.header("host", host);
    }
    RetryLayer::new(policy).layer(Server::statuses([503, 200])).oneshot(request).await.unwrap();
    let buckets = budget.destinations();
    assert_eq!(buckets.len(), 1, "{buckets:?}");
    let name = buckets[0].0.to_string();
    let lines = log.lines();
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert!(line.starts_with(&format!("{name}: ")), "{line:?} is not about {name:?}");
    }
    name
}

#[tokio::test(start_paused = true)]
async fn it_is_host_and_port_and_nothing_else() {
    let rows = [
        ("http://one.example/path?query", "one.example"),
        // No password reaches a log.
        ("http://bob:secret@one.example/", "one.example"),
        ("http://bob:secret@one.example:8080/", "one.example:8080"),
        ("http://bob:secret@ONE.example:80/", "one.example"),
        ("http://One.Example/", "one.example"),
        ("http://One.Example:8080/", "one.example:8080"),
        ("http://one.example:08080/", "one.example:8080"),
        ("http://one.example:0080/", "one.example"),
        // A scheme's default port is removed; another scheme's default port stays.
        ("http://one.example:80/", "one.example"),
        ("https://one.example:443/", "https://one.example"),
        ("https://one.example/", "https://one.example"),
        ("http://one.example:443/", "one.example:443"),
        ("https://one.example:80/", "https://one.example:80"),
        ("http://one.example:/", "one.example"),
        ("ws://one.example:80/", "ws://one.example:80"),
        ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
        // The colons of an address do not start a port.
        ("http://[::1]/", "[::1]"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("http://[::1]:80/", "[::1]"),
        ("https://bob@[2001:DB8::1]:443/", "https://[2001:db8::1]"),
        ("https://[2001:DB8::1]:8443/", "https://[2001:db8::1]:8443"),
        // An absolute name is the same host.
        ("http://one.example./", "one.example"),
        ("http://One.Example.:8080/", "one.example:8080"),
        ("https://bob@one.example.:443/", "https://one.example"),
        ("https://one.example./", "https://one.example"),
        ("https://one.example.:8443/", "https://one.example:8443"),
    ];
    for (uri, expected) in rows {
        assert_eq!(destination(policy(), uri, None).await, expected, "{uri}");
    }
}

/// A request without an authority has one key, whatever its caller has written into the `Host` header.
// trap 53
#[tokio::test(start_paused = true)]
async fn host_field_chooses_no_destination() {
    for host in [None, Some("one.example"), Some("two.example:8080"), Some("no host at all")] {
        assert_eq!(destination(policy(), "/", host).await, "", "{host:?}");
    }
}

/// A long key is replaced by its hash, for the budget and for the observer.
// trap 54
#[tokio::test(start_paused = true)]
async fn long_key_is_replaced_by_its_hash() {
    let hosts = ["a", "b"].map(|letter| format!("{}.{letter}.example", "a".repeat(60_000)));
    let mut keys = Vec::new();
    for host in &hosts {
        let by_uri = destination(policy(), &format!("http://{host}/"), None).await;
        assert_eq!(destination(policy(), &format!("http://{host}/"), None).await, by_uri);
        keys.push(by_uri);
        let chosen = policy().protocol(|http| http.destination(|uri| uri.to_string().into()));
        keys.push(destination(chosen, &format!("http://{host}/"), None).await);
    }
    assert!(keys.iter().all(|key| key.len() == 33 && key.starts_with('#')), "{keys:?}");
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 4);
}

/// The client's owner may select the header.
// trap 53
#[tokio::test(start_paused = true)]
async fn host_field_names_destination_if_asked() {
    let rows = [
        ("/", Some("one.example"), "one.example"),
        ("/", Some("one.example:8080"), "one.example:8080"),
        ("/", Some("[::1]:8080"), "[::1]:8080"),
        ("/", Some("ONE.example"), "one.example"),
        ("/", Some("bob:secret@one.example:8080"), "one.example:8080"),
        ("/", Some("no host at all"), ""),
        ("/", Some("one.example."), "one.example"),
        ("/", None, ""),
        // The URI has precedence over the header.
        ("http://one.example/", Some("two.example"), "one.example"),
    ];
    for (uri, host, expected) in rows {
        let policy = policy().protocol(|http| http.destination_by_host(true));
        assert_eq!(destination(policy, uri, host).await, expected, "{uri} {host:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_of_the_users_is_taken_as_it_is() {
    fn path(uri: &Uri) -> Cow<'_, str> {
        uri.path().into()
    }
    let rows = [("http://one.example/A", None, "/A"), ("/B", Some("one.example"), "/B")];
    for (uri, host, expected) in rows {
        assert_eq!(destination(policy().protocol(|http| http.destination(path)), uri, host).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn http_and_https_share_no_bucket() {
    for port in ["", ":8080"] {
        let plain = destination(policy(), &format!("http://one.example{port}/"), None).await;
        let secure = destination(policy(), &format!("https://one.example{port}/"), None).await;
        assert_ne!(plain, secure);
    }
}
