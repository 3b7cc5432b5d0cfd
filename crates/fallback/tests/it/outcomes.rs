//! Tests of fallbacks: which outcomes they replace, and what the caller sees.

use std::error::Error as _;
use std::io::ErrorKind;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use reattempt::error::TimeLimit;
use reattempt::fallback::{Backup, BackupFailed, Failed, FallbackBody, FallbackLayer, FellBack};
use reattempt::guard::{GuardLayer, Refused};
use reattempt::{CallOptions, Deadline, Http, ReplayBody, Report, RetryLayer, RetryPolicy, TimedOut};
use reattempt_testing_layers::calls::{
    Act, AnswerBody, Body, Broken, Log, ONE, Server, With, answer, failing, get, ms, policy, post, put, request, tokens,
};
use reattempt_testing_layers::guard::{Recorder, refused};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};

type Answer = Response<FallbackBody<AnswerBody>>;

pub(crate) fn spare(_: &Failed) -> Option<Response<Bytes>> {
    Some(Response::new(Bytes::from_static(b"spare")))
}

async fn call(server: Server, request: Request<Body>) -> Result<Answer, BoxError> {
    let retries = RetryLayer::new(policy());
    ServiceBuilder::new().layer(FallbackLayer::http(spare)).layer(retries).service(server).send(request).await
}

fn failed(answer: &Answer) -> Option<&Failed> {
    answer.extensions().get::<FellBack>().map(FellBack::failed)
}

async fn text(answer: Answer) -> Bytes {
    answer.into_body().collect().await.unwrap().to_bytes()
}

#[tokio::test(start_paused = true)]
async fn fallback_replaces_failures_alone() {
    for (status, replaced) in [
        (200, false),
        (304, false),
        (404, false),
        (409, false),
        (408, true),
        (429, true),
        (500, true),
        (501, false),
        (503, true),
    ] {
        let answer = call(Server::statuses([status]), get()).await.unwrap();
        assert_eq!(failed(&answer).is_some(), replaced, "{status}");
        assert_eq!(answer.status().as_u16(), if replaced { 200 } else { status });
    }
    let answer = call(Server::by(|_, _| ErrorKind::ConnectionReset.into()), get()).await.unwrap();
    assert!(failed(&answer).unwrap().outcome().unwrap_err().is::<Broken>());
}

#[tokio::test(start_paused = true)]
async fn fallback_contains_the_own_outcome() {
    let server = Server::by(|_, _| Act::from(503).header("x-reason", "load"));
    let answer = call(server.clone(), get()).await.unwrap();
    assert_eq!(server.count(), 3, "after all retries");
    let head = failed(&answer).unwrap().outcome().unwrap();
    assert_eq!((head.status.as_u16(), &head.headers["x-reason"]), (503, &"load".parse().unwrap()));
    assert_eq!(answer.extensions().get::<Report>().unwrap().attempts().len(), 3);
    assert_eq!(text(answer).await, "spare");
}

/// Neither the mark nor the failure contains a response's headers, or the query of a URL in an error.
#[tokio::test(start_paused = true)]
async fn fallback_shows_no_credentials() {
    const URL: &str = "http://user:secret@one.example/?api_key=secret";
    for status in [Some(503), None] {
        let server = Server::by(move |_, _| match status {
            Some(status) => Act::from(status).header("set-cookie", "secret"),
            None => Act::Error(std::io::Error::new(ErrorKind::ConnectionReset, URL)),
        });
        let answer = call(server, get()).await.unwrap();
        let mark = answer.extensions().get::<FellBack>().unwrap();
        let failed = mark.failed();
        for text in [format!("{failed}"), format!("{failed:?}"), format!("{mark:#?}")] {
            assert!(!text.contains("secret"), "{text}");
            let kept = ["503", "one.example", "broke"].iter().any(|part| text.contains(part));
            assert!(kept, "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn declined_fallback_leaves_the_outcome() {
    let layer = FallbackLayer::http(|failed: &Failed| {
        assert_eq!(failed.to_string(), "500 Internal Server Error");
        None
    });
    let server = Server::by(|_, _| Act::Answer(answer(500, "own words")));
    let answer = layer.layer(RetryLayer::new(policy()).layer(server)).send(get()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert!(failed(&answer).is_none());
    assert_eq!(text(answer).await, "own words");
}

/// A proxy sends the body with this `content-length`.
#[tokio::test(start_paused = true)]
async fn body_of_a_fallback_has_its_length() {
    let length = |body: &FallbackBody<AnswerBody>| (body.size_hint().exact(), body.is_end_stream());
    for (status, text) in [(503, "spare"), (503, ""), (200, "own"), (200, "")] {
        let make = move |_: &Failed| Some(Response::new(Bytes::from(text)));
        let server = Server::by(move |_, _| Act::Answer(answer(status, text)));
        let client = FallbackLayer::http(make).layer(RetryLayer::new(policy()).layer(server));
        let mut body = client.send(get()).await.unwrap().into_body();
        assert_eq!(length(&body), (Some(text.len() as u64), text.is_empty()), "{status} {text:?}");
        while let Some(frame) = body.frame().await {
            frame.unwrap();
        }
        assert_eq!(length(&body), (Some(0), true), "{status} {text:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fallback_types_show_their_state() {
    let layer = FallbackLayer::http(spare).on_permanent(true);
    let shown = format!("{layer:?}");
    assert!(shown.starts_with("FallbackLayer { protocol: Http"), "{shown}");
    assert!(shown.ends_with("on_permanent: true, .. }"), "{shown}");
    let mut client = layer.layer(RetryLayer::new(policy()).layer(Server::statuses([200])));
    let ready = ServiceExt::<Request<Body>>::ready(&mut client).await.unwrap();
    let call = ready.call(get());
    assert_eq!(format!("{call:?}"), r#"ResponseFuture { state: "calling", .. }"#);
    let body = FallbackBody::<Full<Bytes>>::default();
    assert_eq!(format!("{body:?}"), "FallbackBody { inner: None, bytes: None }");
}

#[tokio::test(start_paused = true)]
async fn permanent_failures_only_if_asked() {
    let log = Log::default();
    let layer = FallbackLayer::http(spare).on_permanent(true).observe_with(log.clone());
    let client = layer.layer(RetryLayer::new(policy()).layer(Server::statuses([404, 200])));
    assert!(failed(&client.send(get()).await.unwrap()).is_some());
    assert!(failed(&client.send(get()).await.unwrap()).is_none());
    assert_eq!(log.lines(), ["one.example: a fallback was used"]);
}

#[tokio::test(start_paused = true)]
async fn fallback_notifies_all_observers() {
    let (first, second) = (Log::default(), Log::default());
    let layer = FallbackLayer::http(spare).observe_with(first.clone()).observe_with(second.clone());
    let client = layer.layer(RetryLayer::new(policy()).layer(Server::statuses([503])));
    assert!(failed(&client.send(get()).await.unwrap()).is_some());
    assert_eq!(first.lines(), ["one.example: a fallback was used"]);
    assert_eq!(first.lines(), second.lines());
}

#[tokio::test(start_paused = true)]
async fn own_body_error_has_no_fallback() {
    let client = FallbackLayer::http(spare).on_permanent(true).layer(Server::statuses([200]));
    let limits = reattempt_replay::ReplayLimits::default();
    let body = reattempt_replay::ReplayBody::new(failing(), &limits);
    let request = Request::put(ONE).body(body).unwrap();
    assert!(client.send(request).await.unwrap_err().is::<Broken>());
}

#[tokio::test(start_paused = true)]
async fn fallback_earns_no_budget_credit() {
    let budget = tokens(2.0);
    let retries = RetryPolicy::http().budget(budget.clone());
    let client = FallbackLayer::http(spare).layer(retries.layer(Server::statuses([503])));
    for _ in 0..3 {
        assert!(failed(&client.send(get()).await.unwrap()).is_some());
    }
    assert!(budget.balance("one.example") < 1.0);
}

#[tokio::test(start_paused = true)]
async fn refusals_of_guards_are_replaced() {
    let recorder = Recorder::default();
    recorder.refuse(refused());
    let client = ServiceBuilder::new()
        .layer(FallbackLayer::http(spare))
        .layer(RetryLayer::new(policy().boxed_errors()))
        .layer(GuardLayer::http(recorder))
        .service(Server::statuses([200]));
    let answer = client.send(post()).await.unwrap();
    let mark = answer.extensions().get::<FellBack>().unwrap();
    assert!(mark.failed().outcome().unwrap_err().is::<Refused>());
}

/// Returns a client of a server that responds with 503, and a backup that follows a script.
fn with_backup(
    http: Http,
    first: u16,
    backup: &Server,
) -> impl AsyncFn(Request<Body>) -> Result<Answer, BoxError> + use<> {
    let retries = RetryLayer::new(policy().max_attempts(1));
    let client = FallbackLayer::with(http, Backup::new(retries.layer(backup.clone())))
        .layer(retries.layer(Server::statuses([first])));
    async move |request| client.send(request).await
}

/// The server itself gets them all.
#[tokio::test(start_paused = true)]
async fn backup_gets_no_credentials() {
    let secret = |name: &'static str, sensitive: bool| {
        let mut value = http::HeaderValue::from_static("secret");
        value.set_sensitive(sensitive);
        (http::HeaderName::from_static(name), value)
    };
    let secrets = [
        secret("authorization", false),
        secret("cookie", false),
        secret("cookie", false),
        secret("proxy-authorization", false),
        secret("x-api-key", true),
    ];
    for strips in [false, true] {
        let (server, mirror) = (Server::statuses([503]), Server::statuses([200]));
        let retries = RetryLayer::new(policy().max_attempts(1));
        let backup = Backup::new(retries.layer(mirror.clone()));
        let backup = if strips { backup.without_credentials() } else { backup };
        let client = FallbackLayer::with(Http::new(), backup).layer(retries.layer(server.clone()));
        let mut call = request("PUT", ONE, "hello").header("x-trace", "7");
        secrets.clone().into_iter().for_each(|(name, value)| {
            call.headers_mut().append(name, value);
        });
        client.send(call).await.unwrap();
        let left = |server: &Server| {
            let headers = &server.seen()[0].head.headers;
            assert_eq!(headers["x-trace"], "7");
            headers.values().filter(|value| *value == "secret").count()
        };
        assert_eq!((left(&server), left(&mirror)), (5, if strips { 0 } else { 5 }));
    }
}

#[tokio::test(start_paused = true)]
async fn backup_answers_repeatable_requests() {
    let backup = Server::by(|_, _| Act::Answer(answer(200, "backup")));
    let send = with_backup(Http::new(), 503, &backup);
    let answer = send(request("PUT", ONE, "hello")).await.unwrap();
    assert_eq!(failed(&answer).unwrap().outcome().unwrap().status, 503);
    assert_eq!(text(answer).await, "backup");
    assert_eq!(backup.seen()[0].body.as_deref(), Some(&b"hello"[..]));
    // The server may have processed it.
    assert_eq!(send(post()).await.unwrap().status(), 503);
    assert_eq!(backup.count(), 1);
    // The server has certainly not processed it.
    let send = with_backup(Http::new(), 429, &backup);
    assert_eq!(send(post()).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn backup_gets_a_post_that_was_not_sent() {
    let backup = Server::statuses([200]);
    let recorder = Recorder::default();
    recorder.refuse(refused());
    let retries = RetryLayer::new(policy().boxed_errors());
    let guards = GuardLayer::http(recorder);
    let client = FallbackLayer::backup(retries.layer(GuardLayer::http(Recorder::default()).layer(backup.clone())))
        .layer(retries.layer(guards.layer(Server::statuses([200]))));
    assert_eq!(client.send(post()).await.unwrap().status(), 200);
    assert_eq!(backup.count(), 1);
}

/// An inner service may have followed a redirect after the first server did the work.
// trap 35
#[tokio::test(start_paused = true)]
async fn backup_gets_post_if_no_hop_was_before() {
    for (http, backed) in
        [(Http::new(), 0), (Http::new().redirects_below(true), 0), (Http::new().redirects_below(false), 1)]
    {
        let backup = Server::statuses([200]);
        let retries = RetryLayer::new(policy().max_attempts(1));
        let server = Server::by(|_, _| ErrorKind::ConnectionRefused.into());
        let client = FallbackLayer::with(http, Backup::new(retries.layer(backup.clone()))).layer(retries.layer(server));
        let answer = client.send(post()).await;
        assert_eq!((backup.count(), answer.is_ok()), (backed, backed == 1));
    }
}

/// Whatever the backup does, its outcome is the last real one, and the call's own outcome is still readable.
// trap 49
#[tokio::test(start_paused = true)]
async fn failed_backup_is_the_outcome() {
    let backup = Server::statuses([500]);
    let answer = with_backup(Http::new(), 503, &backup)(get()).await.unwrap();
    assert_eq!(answer.status(), 500);
    assert_eq!(failed(&answer).unwrap().outcome().unwrap().status, 503);

    let backup = Server::by(|_, _| ErrorKind::BrokenPipe.into());
    let error = with_backup(Http::new(), 503, &backup)(get()).await.unwrap_err();
    assert_eq!(error.to_string(), "the backup failed after 503 Service Unavailable");
    let failed = error.downcast::<BackupFailed>().unwrap();
    assert_eq!(failed.failed().outcome().unwrap().status, 503);
    assert!(failed.source().unwrap().is::<Broken>());
    let shown = format!("{failed:?}");
    assert!(shown.starts_with("BackupFailed { failed: Response"), "{shown}");
}

// trap 49
#[tokio::test(start_paused = true)]
async fn failed_backup_notifies_no_observer() {
    let log = Log::default();
    let retries = RetryLayer::new(policy().max_attempts(1));
    let client = FallbackLayer::backup(retries.layer(Server::statuses([500, 200])))
        .observe_with(log.clone())
        .layer(retries.layer(Server::statuses([503])));
    for (status, notified) in [(500, 0), (200, 1)] {
        assert_eq!(client.send(get()).await.unwrap().status(), status);
        assert_eq!(log.lines().len(), notified);
    }
}

// trap 49
#[tokio::test(start_paused = true)]
async fn backup_ends_at_the_deadline() {
    let backup = Server::by(|_, _| Act::Hang);
    let began = Instant::now();
    let request = post().with(Deadline::after(ms(250)));
    let error = with_backup(Http::new(), 429, &backup)(request).await.unwrap_err();
    assert!(error.is::<BackupFailed>(), "{error}");
    let limit = error.source().unwrap().downcast_ref::<TimedOut>().unwrap();
    assert_eq!((limit.limit(), limit.after()), (TimeLimit::Deadline, ms(250)));
    assert_eq!((began.elapsed(), backup.cancelled()), (ms(250), 1));
}

/// A server recognises only keys that it has seen itself.
#[tokio::test(start_paused = true)]
async fn key_sends_no_post_to_the_backup() {
    let keyed = || post().header("idempotency-key", "one");
    let permitted = || post().with(CallOptions::new().repeatable(true));
    for (status, request, backed) in [(503, keyed(), 0), (429, keyed(), 1), (503, permitted(), 1), (503, put(), 1)] {
        let backup = Server::statuses([200]);
        with_backup(Http::new(), status, &backup)(request).await.unwrap();
        assert_eq!(backup.count(), backed, "{status}");
    }
}

/// A slow backup does not hold the failed call's place.
#[tokio::test(start_paused = true)]
async fn refused_response_ends_before_the_backup() {
    let guarded = |recorder: &Recorder, server| {
        ServiceBuilder::new()
            .map_request(|request: Request<Body>| request.map(ReplayBody::passthrough))
            .layer(GuardLayer::http(recorder.clone()))
            .service(server)
    };
    let recorder = Recorder::holding();
    let server = Server::by(|_, _| Act::Answer(answer(503, "a long explanation")));
    let backup = Server::by(|_, _| Act::from(200).later(ms(1_000)));
    let backup = guarded(&Recorder::default(), backup);
    let client = FallbackLayer::backup(backup).layer(guarded(&recorder, server));
    let call = tokio::spawn(client.send(get()));
    tokio::time::sleep(ms(10)).await;
    assert_eq!(recorder.log(), ["admitted", "Unavailable", "Dropped"]);
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
}

/// The retry layer ends the call at its deadline, so no time is left for the backup.
#[tokio::test(start_paused = true)]
async fn backup_is_not_called_too_late() {
    let backup = Server::statuses([200]);
    let retries = RetryLayer::new(policy().boxed_errors());
    let server = Server::by(|_, _| Act::Hang);
    // A retry layer around the backup would check the deadline.
    let bare = ServiceBuilder::new()
        .map_request(|request: Request<Body>| request.map(ReplayBody::passthrough))
        .service(backup.clone());
    let client = FallbackLayer::backup(bare).layer(retries.layer(server));
    let error = client.send(get().with(Deadline::after(ms(250)))).await.unwrap_err();
    assert!(error.is::<TimedOut>(), "{error}");
    assert_eq!(backup.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropped_call_has_no_fallback() {
    let backup = Server::statuses([200]);
    let retries = RetryLayer::new(policy());
    let server = Server::by(|_, _| Act::Hang);
    let client = FallbackLayer::backup(retries.layer(backup.clone())).layer(retries.layer(server));
    assert!(tokio::time::timeout(ms(10), client.send(get())).await.is_err());
    assert_eq!(backup.count(), 0);
}
