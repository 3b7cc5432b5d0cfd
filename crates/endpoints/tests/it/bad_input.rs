//! Tests of unusable lists and URLs: each gives a typed error with the value and the range.

use std::time::Duration;

use reattempt::endpoints::{Endpoints, EndpointsLayer};
use reattempt_testing_layers::cluster::{Cluster, WELL, get};

fn problem(urls: &[&str]) -> String {
    EndpointsLayer::http(urls).map(drop).unwrap_err().to_string()
}

#[test]
fn unusable_urls_are_errors() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "endpoint `[]` has no endpoint (at least 1)"),
        (&["/api"], "endpoint `/api` has no scheme or no host (`https://host/prefix`)"),
        (&["host"], "endpoint `host` has no scheme or no host (`https://host/prefix`)"),
        (&["http://"], "endpoint `http://` is no URL (`https://host/prefix`)"),
        (&["http://:80"], "endpoint `http://:80` has no host (`https://host/prefix`)"),
        (&["http://a:0x"], "endpoint `http://a:0x` has no valid port (1 to 65535)"),
        (&["http://a:70000"], "endpoint `http://a:70000` has no valid port (1 to 65535)"),
        (&["http://a:0"], "endpoint `http://a:0` has no valid port (1 to 65535)"),
        (&["ftp://a"], "endpoint `ftp://a` has another scheme (http or https)"),
        (
            &["http://a/?token=s3cret"],
            "endpoint `http://a/?...` has a query or a fragment (a base URL ends with its path)",
        ),
        (
            &["http://me:s3cret@a/"],
            "endpoint `http://a/` has a user name or a password (set an `Authorization` header)",
        ),
        (&["http://a/b/../c"], "endpoint `http://a/b/../c` has `.` or `..` in its path (a path without them)"),
        (&["http://a/b/..\\c"], "endpoint `http://a/b/..\\c` has `.` or `..` in its path (a path without them)"),
        (&["http://a/%2E%2e"], "endpoint `http://a/%2E%2e` has `.` or `..` in its path (a path without them)"),
        (&["http://a", "http://A:80/"], "endpoint `http://A:80/` is listed twice (each endpoint once)"),
        (&["http://a", "https://b"], "endpoint `https://b` has another scheme than the first (one scheme for all)"),
    ];
    for (urls, expected) in cases {
        assert_eq!(problem(urls), *expected);
    }
    let tiers = Endpoints::urls(["http://a"]).unwrap().or_else_urls(["http://a/"]);
    assert!(tiers.is_err());
    let empty: [&str; 0] = [];
    assert!(Endpoints::urls(["http://a"]).unwrap().or_else_urls(empty).is_err());
}

#[test]
fn unusable_names_are_errors() {
    for name in ["", "host", ":80", "host:", "host:x", "host:0", "host:70000", "::1:80", "http://host:80"] {
        let error = Endpoints::dns(name, Duration::from_secs(1)).map(drop).unwrap_err();
        assert_eq!(error.to_string(), format!("endpoint `{name}` has no host and port (`host:port`)"));
    }
    assert!(Endpoints::dns("[::1]:80", Duration::from_secs(1)).is_ok());
    let twice = Endpoints::list([1, 2, 1]).map(drop).unwrap_err();
    assert_eq!(twice.to_string(), "endpoint `1` is listed twice (each endpoint once)");
    assert!(Endpoints::list([1]).unwrap().or_else([1]).is_err());
    assert!(Endpoints::list([0; 0]).is_err());
}

#[tokio::test(start_paused = true)]
async fn unusable_update_changes_nothing() {
    let cluster = Cluster::of([WELL]);
    let balanced = cluster.balanced();
    let handle = balanced.endpoints();
    let none: [&str; 0] = [];
    assert!(handle.update(none, |_| unreachable!()).is_err());
    assert!(handle.update(["1", "1"], |_| unreachable!()).is_err());
    balanced.send(get()).await.unwrap();
    assert_eq!(cluster.seen(), ["0"]);

    let layer = EndpointsLayer::http(["http://a"]).unwrap();
    assert!(layer.endpoints().update_urls(["http://b", "b"]).is_err());
    assert_eq!(format!("{:?}", layer.endpoints().view()[0].name), "\"http://a\"");
    layer.endpoints().update_urls(["http://b", "http://a/"]).unwrap();
    assert_eq!(layer.endpoints().view().len(), 2);
}

#[test]
fn settings_without_effect_are_warned_about() {
    let urls = (0..101).map(|number| format!("http://host-{number}"));
    let layer = EndpointsLayer::http(urls).unwrap();
    assert_eq!(layer.validate().len(), 1);
    let endpoints = Endpoints::urls(["http://a"]).unwrap().attempt_timeout(Duration::ZERO);
    assert_eq!(EndpointsLayer::with(reattempt::Http::new(), endpoints).validate().len(), 1);
}
