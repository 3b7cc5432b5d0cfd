//! Tests of the layer above others: retries, guards, hedges, a set of endpoints.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::Request;
use reattempt::fallback::FallbackLayer;
use reattempt::guard::{Bulkhead, GuardLayer};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::report::ReportSlot;
use reattempt::resume::ResumeLayer;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, RetryBudget, RetryLayer, RetryPolicy};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use super::support::{Answer, LENGTH, Piece, Server, assert_broken, content, get, layer, read};

fn lost() -> Answer {
    Answer::failing(ErrorKind::ConnectionReset)
}

/// The retry layer below repeats the first call, but no resume: attempts do not multiply.
// trap 28
#[tokio::test(start_paused = true)]
async fn retry_layer_below_does_not_multiply() {
    let retries = || RetryPolicy::http().boxed_errors().backoff(Constant::immediate()).budget(RetryBudget::unlimited());
    let script = [lost(), lost(), Answer::whole(1, 400), lost(), lost(), lost(), lost(), lost(), lost(), lost()];
    let server = Server::new(script);
    let client = ServiceBuilder::new().layer(layer()).layer(RetryLayer::new(retries())).service(server.clone());
    let body = client.oneshot(get()).await.unwrap().into_body();
    assert!(read(body).await.error.is_some());
    assert_eq!(server.seen().len(), 3 + 5);

    let script = [lost(), Answer::whole(1, 400), lost(), Answer::rest(1, 400, LENGTH)];
    let server = Server::new(script);
    let client = ServiceBuilder::new().layer(layer()).layer(RetryLayer::new(retries())).service(server.clone());
    let body = client.oneshot(get()).await.unwrap().into_body();
    assert_eq!(read(body).await.data, content(1));
}

/// A retry layer below writes no report of a resume to the caller's slot.
#[tokio::test(start_paused = true)]
async fn retry_layer_below_reports_no_resume() {
    let retries = RetryPolicy::http().boxed_errors().backoff(Constant::immediate()).budget(RetryBudget::unlimited());
    let server = Server::new([Answer::whole(1, 400), Answer::rest(1, 400, LENGTH).ending(Piece::Stall)]);
    let client = ServiceBuilder::new().layer(layer()).layer(RetryLayer::new(retries)).service(server.clone());
    let slot = ReportSlot::default();
    let mut request = get();
    request.extensions_mut().insert(CallOptions::new().report_to(&slot));
    let mut body = client.oneshot(request).await.unwrap().into_body();
    slot.take().expect("the report of the first call");
    while server.seen().len() < 2 {
        http_body_util::BodyExt::frame(&mut body).await.unwrap().unwrap();
    }
    assert!(slot.take().is_none(), "the body goes on");
}

/// The content of a fallback is not joined to that of the server, even with the same tag.
#[tokio::test(start_paused = true)]
async fn part_of_fallback_is_not_joined() {
    let server = Server::new([Answer::whole(1, 400), Answer::status(503)]);
    let backup = Server::new([Answer::rest(1, 400, LENGTH)]);
    let client =
        ServiceBuilder::new().layer(layer()).layer(FallbackLayer::backup(backup.clone())).service(server.clone());
    let read = read(client.oneshot(get()).await.unwrap().into_body()).await;
    assert_broken(&read, 1, 400);
    assert_eq!(backup.seen().len(), 1);
}

/// A guard's place belongs to one part: the only place is free when the rest is requested.
#[tokio::test(start_paused = true)]
async fn guard_below_ends_with_each_part() {
    let server = Server::new([Answer::whole(1, 400), Answer::rest(1, 400, 700), Answer::rest(1, 700, LENGTH)]);
    let client = ServiceBuilder::new().layer(layer()).layer(GuardLayer::http(Bulkhead::new(1))).service(server.clone());
    let response = client.clone().oneshot(get()).await.unwrap();
    assert!(client.clone().oneshot(get()).await.is_err(), "the place is taken");
    assert_eq!(read(response.into_body()).await.data, content(1));
    assert!(client.oneshot(get()).await.is_ok(), "the place is free");
}

#[tokio::test(start_paused = true)]
async fn hedge_layer_below_is_transparent() {
    let hedges = HedgePolicy::http().boxed_errors().budget(RetryBudget::unlimited());
    let server = Server::new([Answer::whole(1, 400), Answer::rest(1, 400, LENGTH)]);
    let client = ServiceBuilder::new().layer(layer()).layer(HedgeLayer::new(hedges)).service(server.clone());
    let body = client.oneshot(get()).await.unwrap().into_body();
    assert_eq!(read(body).await.data, content(1));
}

/// A service with a counter in each clone, which picks a server with it.
#[derive(Clone)]
struct RoundRobin {
    server: Server,
    next: usize,
    picks: Arc<Mutex<Vec<usize>>>,
}

impl Service<Request<String>> for RoundRobin {
    type Response = <Server as Service<Request<String>>>::Response;
    type Error = <Server as Service<Request<String>>>::Error;
    type Future = <Server as Service<Request<String>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Request<String>>::poll_ready(&mut self.server, cx)
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        self.picks.lock().unwrap().push(self.next);
        self.next += 1;
        self.server.call(request)
    }
}

/// Each resume is sent by a clone of the previous one's instance.
// trap 42
#[tokio::test(start_paused = true)]
async fn resumes_do_not_repeat_a_pick() {
    let server = Server::new([Answer::whole(1, 400), lost(), lost(), Answer::rest(1, 400, LENGTH)]);
    let picks = Arc::<Mutex<Vec<usize>>>::default();
    let client = layer().layer(RoundRobin { server, next: 0, picks: Arc::clone(&picks) });
    let body = client.oneshot(get()).await.unwrap().into_body();
    assert_eq!(read(body).await.data, content(1));
    assert_eq!(*picks.lock().unwrap(), [0, 0, 1, 2]);
}

/// With one budget, both layers spend the same tokens.
#[tokio::test(start_paused = true)]
async fn budget_is_shared_with_retries() {
    let budget = RetryBudget::default();
    let retries = RetryPolicy::http().boxed_errors().backoff(Constant::immediate()).budget(budget.clone());
    let resumes = ResumeLayer::http().backoff(Constant::immediate()).budget(budget).max_attempts(100);
    let script = [Answer::whole(1, 400)].into_iter().chain((0..100).map(|_| lost()));
    let server = Server::new(script);
    let client = ServiceBuilder::new().layer(resumes).layer(RetryLayer::new(retries)).service(server.clone());
    assert!(read(client.clone().oneshot(get()).await.unwrap().into_body()).await.error.is_some());
    let spent = server.seen().len();
    assert!(spent <= 11, "{spent}");
    assert!(client.oneshot(get()).await.is_err());
    assert_eq!(server.seen().len(), spent + 1, "no token is left for a retry");
}
