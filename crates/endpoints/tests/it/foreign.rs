//! Requests for other hosts, in a gateway, and paths that try to leave a prefix.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use reattempt::endpoints::{Endpoints, EndpointsError, EndpointsLayer, ForeignHosts};
use reattempt::{Http, ReplayBody, RetryLayer};
use reattempt_testing_layers::cluster::{Body, policy};
use tower::{BoxError, Layer, service_fn};

const SERVERS: [&str; 2] = ["http://one:81/api", "http://two/api"];

/// Sends a request through retries, and returns the URLs that were sent.
async fn sent(layer: EndpointsLayer, method: Method, target: &str) -> Result<Vec<String>, BoxError> {
    let urls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&urls);
    let client = service_fn(move |request: Request<ReplayBody<Body>>| {
        seen.lock().unwrap().push(request.uri().to_string());
        async { Ok::<_, Infallible>(Response::new(Body::default())) }
    });
    let request = Request::builder().method(method).uri(target).body(Body::default()).unwrap();
    let sent = RetryLayer::new(policy(3)).layer(layer.clone().layer(client)).send(request).await;
    assert!(layer.endpoints().view().iter().all(|view| view.failing == 0.0 && view.in_flight == 0));
    let urls = std::mem::take(&mut *urls.lock().unwrap());
    assert_eq!(sent.is_err(), urls.is_empty());
    sent.map(|_| urls)
}

fn layer(foreign: Option<ForeignHosts>) -> EndpointsLayer {
    let endpoints = Endpoints::urls(SERVERS).unwrap().base("http://orders/v1").unwrap();
    EndpointsLayer::with(Http::new(), foreign.into_iter().fold(endpoints, Endpoints::foreign_hosts))
}

/// Requests for the base and for a server of the set are never foreign.
#[tokio::test]
async fn foreign_requests_follow_the_setting() {
    for target in [
        "http://evil.example/v1/a",
        "http://evil.example/",
        "https://orders/v1/a",
        "http://orders:8080/v1/a",
        "http://orders/v10/a",
        "http://orders/",
        "http://orders@evil.example/v1/a",
        "http://one/api/a",
        "http://two/apis",
    ] {
        for foreign in [None, Some(ForeignHosts::Pass)] {
            assert_eq!(sent(layer(foreign), Method::GET, target).await.unwrap(), [target]);
        }
        let error = sent(layer(Some(ForeignHosts::Refuse)), Method::GET, target).await.unwrap_err();
        assert!(error.downcast_ref::<EndpointsError>().is_some_and(EndpointsError::is_foreign), "{error}");
        let sent = sent(layer(Some(ForeignHosts::Base)), Method::GET, target).await.unwrap();
        let path = target.splitn(4, '/').nth(3).unwrap();
        assert!(SERVERS.iter().any(|server| sent == [format!("{server}/{path}")]), "{sent:?}");
    }
    for foreign in [ForeignHosts::Pass, ForeignHosts::Refuse, ForeignHosts::Base] {
        for target in ["http://one:81/api/a", "http://TWO:80/api"] {
            assert_eq!(sent(layer(Some(foreign)), Method::GET, target).await.unwrap(), [target]);
        }
        for target in ["http://orders/v1/a", "/a"] {
            let sent = sent(layer(Some(foreign)), Method::GET, target).await.unwrap();
            assert!(SERVERS.iter().any(|server| sent == [format!("{server}/a")]), "{sent:?}");
        }
    }
}

/// A tunnel and a request to the server as a whole have no path, so they have no place at a base URL.
#[tokio::test]
async fn targets_without_a_path_are_refused() {
    for (method, target) in [(Method::CONNECT, "evil.example:22"), (Method::OPTIONS, "*")] {
        for foreign in [ForeignHosts::Refuse, ForeignHosts::Base] {
            let error = sent(layer(Some(foreign)), method.clone(), target).await.unwrap_err();
            assert!(error.downcast_ref::<EndpointsError>().is_some_and(EndpointsError::is_foreign), "{error}");
        }
        assert_eq!(sent(layer(None), method, target).await.unwrap(), [target]);
    }
}

#[tokio::test]
async fn error_names_the_host_without_credentials() {
    let error = sent(layer(Some(ForeignHosts::Refuse)), Method::GET, "http://user:secret@evil.example/a").await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "endpoint `evil.example` is neither the base URL of the requests nor a server of the set (`foreign_hosts`)"
    );
}

/// Servers resolve dots, and some decode the path first.
#[tokio::test]
async fn prefix_is_not_left() {
    let whole = || EndpointsLayer::http(["http://one"]).unwrap();
    for rest in [
        "../admin",
        "a/../../admin",
        "..",
        "a/..",
        "./a",
        "%2e%2e/admin",
        "%2E%2e/admin",
        ".%2e/admin",
        "a%2f..%2fadmin",
        "..%2Fadmin",
        "..%5cadmin",
        "..\\admin",
    ] {
        for start in ["/", "http://orders/v1/", "http://evil.example/"] {
            let target = format!("{start}{rest}");
            let error = sent(layer(Some(ForeignHosts::Base)), Method::GET, &target).await.unwrap_err();
            let text = error.downcast_ref::<EndpointsError>().unwrap().to_string();
            assert!(text.contains("is not left by a path with `.` or `..`"), "{target}: {text}");
        }
        // A server of the set is not foreign, but its prefix is not left either.
        let target = format!("http://one:81/api/{rest}");
        let error = sent(layer(Some(ForeignHosts::Refuse)), Method::GET, &target).await.unwrap_err();
        assert!(error.downcast_ref::<EndpointsError>().is_some_and(EndpointsError::is_foreign), "{target}: {error}");
        // Without a prefix, there is nothing to leave.
        let target = format!("/{rest}");
        assert_eq!(sent(whole(), Method::GET, &target).await.unwrap(), [format!("http://one{target}")]);
    }
    for rest in ["...", ".a", "a..b/c", "%2e%2ea", "a?b=/../c", "100%25"] {
        let sent = sent(layer(None), Method::GET, &format!("/{rest}")).await.unwrap();
        assert!(SERVERS.iter().any(|server| sent == [format!("{server}/{rest}")]), "{sent:?}");
    }
}

/// With a base URL of its own, a redirect to the leader goes there. Where the base is the leader, it goes anywhere.
#[tokio::test]
async fn leader_is_reached_by_its_own_address() {
    let apart = || {
        let endpoints = Endpoints::urls(["http://one", "http://two"]).unwrap().base("http://replicas").unwrap();
        EndpointsLayer::with(Http::new(), endpoints)
    };
    let plain = || EndpointsLayer::http(["http://one", "http://two"]).unwrap();
    let mut elsewhere = 0;
    for _ in 0..64 {
        assert_eq!(sent(apart(), Method::PUT, "http://one/key").await.unwrap(), ["http://one/key"]);
        let sent = sent(plain(), Method::PUT, "http://one/key").await.unwrap();
        elsewhere += usize::from(sent == ["http://two/key"]);
    }
    assert!(elsewhere > 0);
}
