//! Tests of refusals that prove nothing about the request, because an earlier hop or a copy of it was already carried
//! out.

use std::io::ErrorKind::ConnectionRefused;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response};
use reattempt::classify::IDEMPOTENCY_KEY;
use reattempt::fallback::{Backup, FallbackLayer};
use reattempt::guard::contract::{Admit, Arrival, End, Guard};
use reattempt::guard::{GuardLayer, Refused};
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, Http, ReplayBody, RetryLayer, StopReason};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_http::follow_redirect::FollowRedirectLayer;

use super::support::refused;
use crate::calls::support::{Act, Attempt, Body, Mocked, ONE, Server, mocked, ms, policy, request};

type Below = BoxCloneSyncService<Attempt, Mocked, BoxError>;
type Bare = BoxCloneSyncService<Request<Body>, Mocked, BoxError>;

/// A guard that refuses attempts for 99 ms, following a script that is repeated.
#[derive(Clone)]
struct Refusing(&'static [bool], Arc<AtomicUsize>);

impl Refusing {
    fn by(script: &'static [bool]) -> Self {
        Self(script, Arc::default())
    }
}

impl Guard for Refusing {
    type Ticket = ();

    fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
        match self.0[self.1.fetch_add(1, Ordering::SeqCst) % self.0.len()] {
            true => Admit::Refused(refused().after(ms(99))),
            false => Admit::Admitted(()),
        }
    }

    fn end_ticket(&self, (): (), _: &End, _: Duration) -> Option<()> {
        None
    }
}

/// Returns a server that carries out each POST and redirects to the result.
fn form() -> Server {
    Server::by(|_, head| match head.method {
        Method::POST => Act::from(303).header("location", "/done"),
        _ => 200.into(),
    })
}

fn posts(server: &Server) -> usize {
    server.seen().iter().filter(|seen| seen.head.method == Method::POST).count()
}

/// Returns the client of a server behind a guard with this script.
fn guarded(script: &'static [bool], server: &Server) -> Below {
    let client = ServiceBuilder::new()
        .map_response(|response: Response<_>| {
            let mut mocked = mocked(response.status().as_u16());
            *mocked.headers_mut() = response.headers().clone();
            mocked
        })
        .layer(GuardLayer::http(Refusing::by(script)))
        .service(server.clone());
    Below::new(client)
}

/// Returns a client whose later hops are refused.
fn follower(server: &Server) -> Below {
    let below = guarded(&[false, true], server);
    Below::new(FollowRedirectLayer::new().layer(below))
}

/// Returns a service that sends each request twice, with one of the two refused.
fn twice(script: &'static [bool], server: &Server) -> Below {
    let below = guarded(script, server);
    Below::new(service_fn(move |first: Attempt| {
        let below = below.clone();
        async move {
            let (head, body) = first.into_parts();
            let second = Request::from_parts(head.clone(), ReplayBody::default());
            below.clone().oneshot(Request::from_parts(head, body)).await?;
            below.oneshot(second).await
        }
    }))
}

/// Sends the request through a retry layer. Returns the end of the call, and `true` if the caller gets the refusal.
async fn ended(http: Http, below: Below, request: Request<Body>) -> (StopReason, bool) {
    let slot = ReportSlot::default();
    let policy = policy().protocol(|_| http).max_attempts(4).boxed_errors();
    let client = RetryLayer::new(policy).layer(below);
    let ended = client.with_options(CallOptions::new().report_to(&slot)).oneshot(request).await;
    let is_refusal = ended.is_err_and(|error| error.is::<Refused>());
    (slot.take().unwrap().stop_reason(), is_refusal)
}

// trap 48
#[tokio::test(start_paused = true)]
async fn post_is_sent_once_if_a_hop_is_refused() {
    for http in [Http::new(), Http::new().redirects_below(true)] {
        for body in ["pay", ""] {
            for below in [follower, |server: &Server| twice(&[false, true], server)] {
                let server = form();
                let post = request("POST", ONE, body);
                let end = ended(http.clone(), below(&server), post).await;
                assert_eq!(end, (StopReason::EarlierHop, true), "{body:?}");
                assert_eq!(posts(&server), 1, "{body:?}");
            }
        }
    }
}

/// A repeatable method or key does not override what the caller has stated.
// trap 48
#[tokio::test(start_paused = true)]
async fn call_marked_once_is_sent_once() {
    for method in [Method::PUT, Method::GET, Method::POST] {
        for body in ["pay", ""] {
            let server = Server::by(|_, head| match head.uri.path() {
                "/" => Act::from(303).header("location", "/done"),
                _ => 200.into(),
            });
            let mut call = request(method.as_str(), ONE, body);
            call.headers_mut().insert(IDEMPOTENCY_KEY, HeaderValue::from_static("one"));
            call.extensions_mut().insert(CallOptions::new().repeatable(false));
            let end = ended(Http::new(), follower(&server), call).await;
            assert_eq!((end, server.count()), ((StopReason::EarlierHop, true), 1), "{method}");
        }
    }
}

/// With `redirects_below(false)` the user states that there is no earlier hop.
// trap 48
#[tokio::test(start_paused = true)]
async fn refused_post_waits_and_is_sent() {
    for http in [Http::new(), Http::new().redirects_below(false)] {
        for body in ["pay", ""] {
            let server = Server::statuses([200]);
            let below = guarded(&[true, true, false], &server);
            let end = ended(http.clone(), below, request("POST", ONE, body)).await;
            assert_eq!(end, (StopReason::Succeeded, false), "{body:?}");
            assert_eq!(server.times().len(), 1);
        }
    }
}

// trap 48
#[tokio::test(start_paused = true)]
async fn later_hop_of_a_repeatable_call_waits() {
    let server = Server::by(|arrival, head| match (arrival, &head.method) {
        (_, &Method::PUT) => Act::from(303).header("location", "/done"),
        _ => 200.into(),
    });
    let below = FollowRedirectLayer::new().layer(guarded(&[false, true, false, false], &server));
    let end = ended(Http::new(), Below::new(below), request("PUT", ONE, "order")).await;
    assert_eq!((end, server.count()), ((StopReason::Succeeded, false), 3));
}

// trap 48
#[tokio::test(start_paused = true)]
async fn empty_post_is_sent_once_if_hop_is_unmade() {
    let server = Server::by(|_, head| match head.method {
        Method::POST => Act::from(303).header("location", "/done"),
        _ => ConnectionRefused.into(),
    });
    let below = Below::new(FollowRedirectLayer::new().layer(guarded(&[false], &server)));
    let end = ended(Http::new(), below, request("POST", ONE, "")).await;
    assert_eq!((end, posts(&server)), ((StopReason::EarlierHop, false), 1));
}

/// A service drops the body unread and sends another one, so the body cannot show that the first hop was sent.
// trap 48
#[tokio::test(start_paused = true)]
async fn replaced_body_proves_nothing() {
    for body in ["pay", ""] {
        for script in [&[false][..], &[false, true]] {
            let server = Server::by(|_, head| match head.uri.path() {
                "/" => Act::from(307).header("location", "/done"),
                _ => ConnectionRefused.into(),
            });
            let below = ServiceBuilder::new()
                .map_request(|request: Attempt| request.map(|_| ReplayBody::default()))
                .layer(FollowRedirectLayer::new())
                .service(guarded(script, &server));
            let (end, _) = ended(Http::new(), Below::new(below), request("POST", ONE, body)).await;
            assert_eq!((end, server.count()), (StopReason::EarlierHop, 2 - script.len() / 2), "{body:?}");
        }
    }
}

/// The stack from the page on the order of layers, and one with the redirects inside.
// trap 48
#[tokio::test(start_paused = true)]
async fn backup_gets_no_post_of_a_refused_hop() {
    for (retried, inside) in [(true, false), (true, true), (false, false)] {
        let (server, backup) = (form(), Server::statuses([200]));
        let passing = |below: Below| {
            let client = ServiceBuilder::new()
                .map_request(|request: Request<Body>| request.map(ReplayBody::passthrough))
                .service(below);
            Bare::new(client)
        };
        let retries = RetryLayer::new(policy().max_attempts(1).boxed_errors());
        let below = match (retried, inside) {
            (true, true) => Bare::new(retries.layer(follower(&server))),
            (true, false) => {
                let below = retries.layer(guarded(&[false, true], &server));
                Bare::new(FollowRedirectLayer::new().layer(below))
            }
            (false, _) => passing(follower(&server)),
        };
        let backup_client = passing(guarded(&[false], &backup));
        let client = FallbackLayer::backup(backup_client).layer(below);
        let error = client.send(request("POST", ONE, "pay")).await.unwrap_err();
        assert!(error.is::<Refused>(), "{error}");
        assert_eq!((posts(&server), backup.count()), (1, 0), "{retried} {inside}");
    }
}

/// The guard confirms that it refused the very request that the fallback sent, even through the retry layer.
// trap 48
#[tokio::test(start_paused = true)]
async fn backup_gets_a_post_that_a_guard_refused() {
    let refuses: [&[bool]; 2] = [&[true], &[true, true, true]];
    for script in refuses {
        for attempts in [1, 3] {
            let (server, backup) = (Server::statuses([200]), Server::statuses([200]));
            let retries = RetryLayer::new(policy().max_attempts(attempts).boxed_errors());
            let below = retries.layer(guarded(script, &server));
            let backup_client = retries.layer(guarded(&[false], &backup));
            let client = FallbackLayer::with(Http::new(), Backup::new(backup_client)).layer(below);
            assert_eq!(client.send(request("POST", ONE, "pay")).await.unwrap().status(), 200);
            assert_eq!((server.count(), backup.count()), (0, 1));
        }
    }
}

/// If a retry after a wait is carried out and its later hop is refused, the earlier proof is void.
// trap 48
#[tokio::test(start_paused = true)]
async fn testimony_of_an_earlier_attempt_is_void() {
    let (server, backup) = (form(), Server::statuses([200]));
    let retries = RetryLayer::new(policy().max_attempts(3).boxed_errors());
    let below = FollowRedirectLayer::new().layer(guarded(&[true, false, true], &server));
    let client = FallbackLayer::backup(retries.layer(guarded(&[false], &backup))).layer(retries.layer(below));
    let error = client.send(request("POST", ONE, "pay")).await.unwrap_err();
    assert!(error.is::<Refused>(), "{error}");
    assert_eq!((posts(&server), backup.count()), (1, 0));
}

/// reqwest's own redirects are below the guard. A reqwest error may hide a refusal of its later hop.
// trap 48
#[cfg(feature = "reqwest")]
#[tokio::test(start_paused = true)]
async fn refusal_around_reqwest_is_proof() {
    for (follows, expected) in [(None, (2, true)), (Some(false), (2, true)), (Some(true), (1, false))] {
        let http = follows.map_or(Http::new(), |follows| Http::new().redirects_below(follows));
        let arrivals = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&arrivals);
        let below = service_fn(move |_: reqwest::Request| {
            let first = seen.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                match first {
                    true => Err(BoxError::from(refused().after(ms(99)))),
                    false => Ok(reqwest::Response::from(Response::new(""))),
                }
            }
        });
        let policy = policy().protocol(|_| http).boxed_errors();
        let post = reqwest::Request::new(Method::POST, ONE.parse().unwrap());
        let ended = RetryLayer::new(policy).layer(below).oneshot(post).await;
        assert_eq!((arrivals.load(Ordering::SeqCst), ended.is_ok()), expected);
    }
}
