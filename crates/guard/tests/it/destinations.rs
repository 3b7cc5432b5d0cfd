//! Tests of the texts that name a destination in handles, and of the keys of calls.

use reattempt::guard::handle::{BreakerState, CircuitBreakerExt, Destination, RateLimitExt};
use reattempt::guard::{CircuitBreaker, GuardLayer, Limit, RateLimit};
use reattempt::{CallOptions, Http, RetryLayer, RetryPolicy};
use reattempt_testing_layers::calls::{Server, request};
use reattempt_testing_layers::guard::attempt;
use tower::Layer;

/// The forms in which a person writes a server, with a URL of its calls and one of another server.
const FORMS: [(&str, &str, &str); 16] = [
    ("one.example", "http://one.example/", "http://two.example/"),
    ("one.example", "https://one.example/", "https://one.example:8443/"),
    ("One.Example.", "https://one.example./", "http://one.example:8080/"),
    (" one.example\n", "http://ONE.example/", "http://one.example.org/"),
    ("one.example/orders?q=1#top", "http://one.example/", "http://example/"),
    ("one.example:80", "http://one.example/", "https://one.example/"),
    ("one.example:443", "https://one.example/", "http://one.example/"),
    ("one.example:8080", "http://one.example:8080/", "http://one.example/"),
    ("http://one.example", "http://one.example/", "https://one.example/"),
    ("HTTP://One.example:80/orders", "http://one.example:80/", "https://one.example:80/"),
    ("https://one.example:443/", "https://one.example/", "http://one.example/"),
    ("https://one.example:0443", "https://one.example/", "https://one.example:44/"),
    ("https://user:pass@one.example/", "https://one.example/", "http://one.example/"),
    ("[::1]:80", "http://[::1]/", "http://[::2]/"),
    ("https://[FE80::1]/", "https://[fe80::1]:443/", "http://[fe80::1]/"),
    ("https://one.example:", "https://one.example/", "http://one.example/"),
];

/// Texts that are no server.
const NONE: [&str; 12] = [
    "",
    " ",
    "one example",
    "http://",
    "http:///orders",
    "/orders",
    ".",
    "one.example:port",
    "one.example:65536",
    "::1",
    "1http://one.example",
    "b\u{fc}cher.example",
];

/// A breaker that is isolated for a text in any form refuses the calls to that server, and no others.
// field 26
#[tokio::test(start_paused = true)]
async fn every_form_isolates_its_server() {
    for (form, its, other) in FORMS {
        let breaker = CircuitBreaker::rate();
        breaker.isolate(form).unwrap();
        assert_eq!(breaker.state(form), BreakerState::ForcedOpen, "{form}");
        let server = Server::statuses([200]);
        let client = GuardLayer::http(breaker.clone()).layer(server.clone());
        assert!(client.send(attempt(its)).await.is_err(), "{form}: {its}");
        assert!(client.send(attempt(other)).await.is_ok(), "{form}: {other}");
        breaker.close(form).unwrap();
        assert!(client.send(attempt(its)).await.is_ok(), "{form}: {its}");
    }
}

/// A text that is no server is an error, without the credentials in it, and changes nothing.
// field 26
#[test]
fn unreadable_name_is_an_error() {
    let breaker = CircuitBreaker::rate();
    let limit = RateLimit::new(Limit::per_second(1), 1);
    for text in NONE {
        assert!(breaker.isolate(text).is_err() && breaker.close(text).is_err(), "{text}");
        assert!(limit.set_limit(text, Limit::ZERO).is_err() && limit.set_burst(text, 9).is_err(), "{text}");
        assert_eq!(breaker.state(text), BreakerState::Closed, "{text}");
    }
    let error = breaker.isolate("user:s3cr3t@one example").unwrap_err();
    let wanted = "`destination` must be a host with an optional scheme and port, such as `https://one.example:8443`, \
                  but it is `one example`";
    assert_eq!(error.to_string(), wanted);
    assert!(!format!("{error:?}").contains("s3cr3t"));
}

/// The keys of a program's own function are compared exactly. A text that is no host is its own key when it is read.
// field 26
#[tokio::test(start_paused = true)]
async fn own_keys_are_exact() {
    let breaker = CircuitBreaker::rate();
    let by_tenant = Http::new().destination_for(|request| String::from_utf8_lossy(request.header("x").unwrap_or(b"")));
    let server = Server::statuses([200]);
    let client = GuardLayer::with(by_tenant, breaker.clone()).layer(server.clone());
    let of = |tenant: &str| {
        let mut request = attempt("http://one.example/");
        request.headers_mut().insert("x", tenant.parse().unwrap());
        client.send(request)
    };
    breaker.isolate(Destination::key("Tenant 7")).unwrap();
    let eight = Destination::key("Tenant-8");
    breaker.isolate(&eight).unwrap();
    assert_eq!(breaker.state("Tenant 7"), BreakerState::ForcedOpen);
    assert_eq!(breaker.state(eight), BreakerState::ForcedOpen);
    assert!(of("Tenant 7").await.is_err() && of("Tenant-8").await.is_err());
    assert!(of("tenant-8").await.is_ok() && of("").await.is_ok());
    let limit = RateLimit::new(Limit::ZERO, 1);
    assert!(limit.allow("user 7", 1) && limit.allow("user 8", 1) && !limit.allow("user 7", 1));
}

/// A rule compares a server in any form.
// field 26
#[tokio::test(start_paused = true)]
async fn rule_matches_every_form() {
    for (form, its, other) in FORMS {
        let named = Destination::parse(form).unwrap();
        let once =
            Http::new().options_for(move |request| named.matches(request).then(|| CallOptions::new().never_retry()));
        let server = Server::statuses([503]);
        let client = RetryLayer::new(RetryPolicy::with(once).max_attempts(2)).layer(server.clone());
        let sent = async |url| {
            let before = server.count();
            client.send(request("GET", url, "")).await.unwrap();
            server.count() - before
        };
        assert_eq!((sent(its).await, sent(other).await), (1, 2), "{form}");
    }
}
