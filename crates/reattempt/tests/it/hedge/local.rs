//! Tests of attempts that end on this side: shed, refused by a breaker, or with an unknown error type.

use std::error::Error;
use std::fmt;
use std::io::ErrorKind::{ConnectionRefused, PermissionDenied};

use http::{Request, StatusCode};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt_core::Verdict;
use reattempt_replay::ReplayBody;
use tower::load_shed::error::Overloaded;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

use crate::hedge::budget::Heard;
use crate::hedge::support::{Act, Answer, Body, Log, Server, get, ms, tokens, transient};
use crate::hedge::{policy, report};

/// A breaker's own error type, known only to its own crate.
#[derive(Debug)]
struct Open;

impl fmt::Display for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the breaker is open")
    }
}

impl Error for Open {}

/// Returns the errors of layers on this side.
fn errors() -> [fn() -> BoxError; 3] {
    [|| Overloaded::new().into(), || Open.into(), || "unknown".into()]
}

/// Passes each call's first attempt to the server, and fails the others with an error.
fn only_first(
    server: Server,
    error: impl Fn() -> BoxError + Clone + Send + 'static,
) -> impl Service<Request<ReplayBody<Body>>, Response = Answer, Error = BoxError, Future: Send> + Clone {
    service_fn(move |request: Request<ReplayBody<Body>>| {
        let (server, error) = (server.clone(), error.clone());
        async move {
            match request.extensions().get::<reattempt::retry::AttemptNumber>() {
                None => server.oneshot(request).await.map_err(BoxError::from),
                Some(_) => Err(error()),
            }
        }
    })
}

// trap 36
#[tokio::test(start_paused = true)]
async fn local_error_of_a_hedge_leaves_the_first() {
    for error in errors() {
        let server = Server::by(|_, _| Act::from(200).later(ms(500)));
        let client = HedgeLayer::new(policy().boxed_errors());
        let client = client.layer(only_first(server.clone(), error));
        let answer = client.oneshot(get()).await.unwrap();
        assert_eq!((answer.status(), server.cancelled()), (StatusCode::OK, 0), "{}", error());
    }
}

// trap 36
#[tokio::test(start_paused = true)]
async fn local_error_of_a_hedge_with_load_shed() {
    let server = Server::by(|_, _| Act::from(200).later(ms(500)));
    let client = ServiceBuilder::new()
        .layer(HedgeLayer::new(policy().boxed_errors()))
        .load_shed()
        .concurrency_limit(1)
        .service(server.clone());
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!((answer.status(), server.count()), (StatusCode::OK, 1));
    assert_eq!(report(&answer), None, "a hedge that was refused was not sent");
}

/// Whatever a classifier makes of an error, it is not fatal to the other attempts.
// trap 36
#[tokio::test(start_paused = true)]
async fn classified_permanent_error_leaves_first() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(200).later(ms(500)),
        _ => ConnectionRefused.into(),
    });
    let policy =
        policy().protocol(|http| http.classify(|outcome| outcome.status().is_none().then_some(Verdict::Permanent)));
    let answer = HedgeLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status(), report(&answer)), (StatusCode::OK, Some((3, 1))));
    assert_eq!(server.times(), [0, 100, 200], "nor does it bring the next forward");
}

#[tokio::test(start_paused = true)]
async fn unknown_error_of_the_last_in_flight_ends() {
    let server = Server::by(|arrival, _| match arrival {
        2 => Act::Fail(PermissionDenied),
        _ => Act::Fail(PermissionDenied).later(ms(150)),
    });
    let client = HedgeLayer::new(policy().max_attempts(5)).layer(server.clone());
    let error = client.oneshot(get()).await.unwrap_err();
    assert_eq!((error.attempt, server.times()), (1, vec![0, 100]), "and brings no other forward");
}

// G-21
#[tokio::test(start_paused = true)]
async fn refused_hedge_gives_its_token_back() {
    let heard = Heard::default();
    let server = Server::by(|_, _| Act::from(200).later(ms(500)));
    let client = HedgeLayer::new(policy().boxed_errors().budget(heard.clone()));
    let client = client.layer(only_first(server, || Overloaded::new().into()));
    client.oneshot(get()).await.unwrap();
    let once = ["asked for timeout", "given back 7", "credited 0"];
    assert_eq!(heard.lines(), once, "nor is it tried again");
}

#[tokio::test(start_paused = true)]
async fn sent_hedge_that_fails_keeps_its_token() {
    for error in [|| Open.into(), || BoxError::from("unknown")] {
        let heard = Heard::default();
        let server = Server::by(|_, _| Act::from(200).later(ms(150)));
        let client = HedgeLayer::new(policy().boxed_errors().budget(heard.clone()));
        client.layer(only_first(server, error)).oneshot(get()).await.unwrap();
        let lost = ["asked for timeout", "hedge ended 7 false", "credited 1"];
        assert_eq!(heard.lines(), lost);
    }
}

// trap 30
#[tokio::test(start_paused = true)]
async fn refused_hedge_does_not_hide_the_response() {
    let server = Server::statuses([503]);
    let policy = policy().budget(tokens(5.0));
    let client = HedgeLayer::new(policy.clone().boxed_errors());
    let client = client.layer(only_first(server.clone(), || Overloaded::new().into()));
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), report(&answer), server.count()), (503, None, 1));
    assert_eq!(policy.budget_ref().balance("one.example"), 5.0);
}

#[tokio::test(start_paused = true)]
async fn refused_first_attempt_is_the_outcome() {
    let client = HedgeLayer::new(policy().boxed_errors());
    let refuses =
        service_fn(|_: Request<ReplayBody<Body>>| async { Err::<Answer, BoxError>(Overloaded::new().into()) });
    let error = client.layer(refuses).oneshot(get()).await.unwrap_err();
    assert!(error.is::<Overloaded>());
}

// trap 39
#[tokio::test(start_paused = true)]
async fn error_earns_no_credit() {
    for verdict in [Some(Verdict::Success), Some(Verdict::Permanent), None] {
        let heard = Heard::default();
        let server = Server::by(|_, _| PermissionDenied.into());
        let policy = policy().budget(heard.clone());
        let policy =
            policy.protocol(|http| http.classify(move |outcome| verdict.filter(|_| outcome.status().is_none())));
        HedgeLayer::new(policy).layer(server).oneshot(get()).await.unwrap_err();
        assert!(heard.lines().is_empty(), "{verdict:?}: {:?}", heard.lines());
    }
}

// trap 39
#[tokio::test(start_paused = true)]
async fn failed_request_body_earns_no_credit() {
    let heard = Heard::default();
    let server = Server::statuses([200]);
    let body = crate::hedge::support::failing();
    let request = Request::get(crate::hedge::support::ONE).body(body).unwrap();
    let policy = HedgePolicy::http().delay(ms(100)).budget(heard.clone());
    HedgeLayer::new(policy).layer(server).oneshot(request).await.unwrap_err();
    assert!(heard.lines().is_empty(), "{:?}", heard.lines());
}

#[tokio::test(start_paused = true)]
async fn fatal_response_is_told_what_was_paid() {
    let server = Server::by(|arrival, _| match arrival {
        2 => 404.into(),
        _ => Act::Hang,
    });
    let heard = Heard::default();
    let client = HedgeLayer::new(policy().budget(heard.clone())).layer(server);
    client.oneshot(get()).await.unwrap();
    assert_eq!(heard.lines(), ["asked for timeout", "hedge ended 7 false", "credited 1"]);
}

#[tokio::test(start_paused = true)]
async fn observer_is_told_of_a_refused_hedge() {
    let log = Log::default();
    let server = Server::by(|_, _| Act::from(200).later(ms(500)));
    let client = HedgeLayer::new(policy().boxed_errors().observe_with(log.clone()));
    let client = client.layer(only_first(server, || Overloaded::new().into()));
    client.oneshot(get()).await.unwrap();
    assert_eq!(log.lines().len(), 3, "{:#?}", log.lines());
    assert!(log.lines()[1].contains("attempt 2"), "{:#?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn transient_error_verdict_hedges_at_once() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::Fail(PermissionDenied),
        _ => 200.into(),
    });
    let policy = policy().protocol(|http| http.classify(|outcome| outcome.status().is_none().then(|| transient(1))));
    let client = HedgeLayer::new(policy).layer(server.clone());
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!(server.times(), [0, 0]);
}
