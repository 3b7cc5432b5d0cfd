//! Tests of the limits on resumes: attempts, time, budget, deadline; and of their report.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use reattempt::report::{AttemptOutcome, ReportSlot};
use reattempt::standard::StandardLayer;
use reattempt::{CallOptions, Deadline, ReplayBody, RetryBudget, StopReason};
use tokio::time::{Instant, timeout};
use tower::util::MapRequest;
use tower::{Layer, ServiceExt};

use super::support::{Answer, LENGTH, Piece, Server, assert_broken, client, content, download, get, layer, read};

/// Reached only by a hanging body, in the paused clock's time.
const HANGS: Duration = Duration::from_secs(3600);

fn lost() -> Answer {
    Answer::failing(ErrorKind::ConnectionReset)
}

/// Sends a GET with these options, and returns the reason why the body ended.
async fn stop_of(server: &Server, layer: impl Layer<Server, Service = super::support::Client>) -> StopReason {
    let slot = ReportSlot::default();
    let mut request = get();
    request.extensions_mut().insert(CallOptions::new().report_to(&slot));
    let body = layer.layer(server.clone()).oneshot(request).await.unwrap().into_body();
    let read = timeout(HANGS, read(body)).await.unwrap();
    assert_broken(&read, 1, 400);
    slot.take().unwrap().stop_reason()
}

/// Five resumes without a new byte end the body, whatever kind of failure they meet.
#[tokio::test(start_paused = true)]
async fn five_resumes_without_a_byte_end_it() {
    let empty = || Answer::rest(1, 400, 400);
    let script = [Answer::whole(1, 400), lost(), empty(), Answer::status(503), empty(), lost(), empty()];
    let server = Server::new(script);
    assert_eq!(stop_of(&server, layer()).await, StopReason::AttemptsExhausted);
    assert_eq!(server.times(), [0, 100, 200, 300, 400, 500]);
}

/// A new byte starts the count anew.
#[tokio::test(start_paused = true)]
async fn new_byte_starts_count_anew() {
    let four = || [lost(), lost(), lost(), lost()];
    let script = [Answer::whole(1, 400)].into_iter().chain(four()).chain([Answer::rest(1, 400, 401)]);
    let server = Server::new(script.chain(four()).chain([Answer::rest(1, 401, LENGTH)]));
    assert_eq!(download(&server).await.data, content(1));
}

/// A resume that would start later than `max_elapsed` after the break is not sent, and one that hangs is cancelled
/// then. The time starts anew with each new byte.
#[tokio::test(start_paused = true)]
async fn elapsed_time_counts_from_last_break() {
    let limited = || layer().max_elapsed(Duration::from_millis(250));
    let server = Server::new([Answer::whole(1, 400), lost(), lost(), lost()]);
    assert_eq!(stop_of(&server, limited()).await, StopReason::ElapsedExhausted);
    assert_eq!(server.times(), [0, 100, 200]);

    let began = Instant::now();
    let server = Server::new([Answer::whole(1, 400), Answer::never()]);
    assert_eq!(stop_of(&server, limited()).await, StopReason::ElapsedExhausted);
    assert_eq!((began.elapsed().as_millis(), server.seen().len()), (250, 2));

    let rests = (1..LENGTH).map(|start| Answer::rest(1, start, start + 1));
    let server = Server::new([Answer::whole(1, 1)].into_iter().chain(rests));
    let body = limited().layer(server.clone()).oneshot(get()).await.unwrap().into_body();
    assert_eq!(read(body).await.data, content(1), "after {:?}", server.times().last());
}

/// The caller's deadline ends the wait for a resume, and prevents one that would start later.
#[tokio::test(start_paused = true)]
async fn deadline_ends_wait_for_resume() {
    for (script, requests, ends) in
        [(vec![Answer::never()], 2, 150), (vec![lost(), lost()], 2, 100), (vec![lost(), Answer::never()], 2, 100)]
    {
        let began = Instant::now();
        let server = Server::new([Answer::whole(1, 400)].into_iter().chain(script));
        let slot = ReportSlot::default();
        let mut request = get();
        request.extensions_mut().insert(Deadline::after(Duration::from_millis(150)));
        request.extensions_mut().insert(CallOptions::new().report_to(&slot));
        let body = client(&server).oneshot(request).await.unwrap().into_body();
        assert_broken(&timeout(HANGS, read(body)).await.unwrap(), 1, 400);
        assert_eq!(slot.take().unwrap().stop_reason(), StopReason::DeadlineExceeded);
        assert_eq!((server.seen().len(), began.elapsed().as_millis()), (requests, ends));
    }
}

/// A body that is polled long after the delay sends no resume beyond its time.
#[tokio::test(start_paused = true)]
async fn late_poll_sends_no_resume() {
    for (deadline, stop) in
        [(Some(Duration::from_secs(20)), StopReason::DeadlineExceeded), (None, StopReason::ElapsedExhausted)]
    {
        let server = Server::new([Answer::whole(1, 400), Answer::rest(1, 400, LENGTH)]);
        let slot = ReportSlot::default();
        let mut request = get();
        request.extensions_mut().insert(CallOptions::new().report_to(&slot));
        if let Some(after) = deadline {
            request.extensions_mut().insert(Deadline::after(after));
        }
        let body = client(&server).oneshot(request).await.unwrap().into_body();
        let mut reading = tokio_test::task::spawn(read(body));
        tokio_test::assert_pending!(reading.poll());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_broken(&tokio_test::assert_ready!(reading.poll()), 1, 400);
        assert_eq!((slot.take().unwrap().stop_reason(), server.seen().len()), (stop, 1));
    }
}

/// reqwest's total timeout counts from the first request: it ends the wait, and limits each part to what is left.
#[tokio::test(start_paused = true)]
async fn reqwest_timeout_is_not_renewed() {
    let server = Server::new([Answer::whole(1, 400), Answer::never()]);
    let limits = Arc::new(Mutex::new(Vec::new()));
    let (seen, inner) = (Arc::clone(&limits), server.clone());
    let service = tower::service_fn(move |request: reqwest::Request| {
        seen.lock().unwrap().push(request.timeout().map(Duration::as_millis));
        let call = inner.clone().oneshot(http::Request::try_from(request).unwrap());
        async move { call.await.map(|response| reqwest::Response::from(response.map(reqwest::Body::wrap))) }
    });
    let slot = ReportSlot::default();
    let client = layer().layer(service).with_options(CallOptions::new().report_to(&slot));
    let mut request = reqwest::Request::new(http::Method::GET, "http://one.example/file".parse().unwrap());
    *request.timeout_mut() = Some(Duration::from_millis(150));
    let began = Instant::now();
    assert!(timeout(HANGS, client.oneshot(request).await.unwrap().bytes()).await.unwrap().is_err());
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::DeadlineExceeded);
    assert_eq!((&*limits.lock().unwrap(), began.elapsed().as_millis()), (&vec![Some(150), Some(50)], 150));
}

/// The server's delay is respected.
#[tokio::test(start_paused = true)]
async fn retry_after_delays_the_resume() {
    let busy = Answer::status(503).with("retry-after", 2);
    let server = Server::new([Answer::whole(1, 400), busy, Answer::rest(1, 400, LENGTH)]);
    assert_eq!(download(&server).await.data, content(1));
    assert!((2100..2400).contains(server.times().last().unwrap()), "{:?}", server.times());
}

/// The default budget ends a download from a server that breaks after each byte: ten tokens. Parts that bring 64 KiB
/// or the rest return their tokens.
#[tokio::test(start_paused = true)]
async fn budget_ends_download_of_single_bytes() {
    let rests = (1..LENGTH).map(|start| Answer::rest(1, start, start + 1));
    let server = Server::new([Answer::whole(1, 1)].into_iter().chain(rests));
    let body = layer().budget(RetryBudget::default()).layer(server.clone()).oneshot(get()).await.unwrap().into_body();
    let read = read(body).await;
    let requests = server.seen().len();
    assert!((4..=11).contains(&requests), "{requests}");
    assert_broken(&read, 1, requests);
}

#[tokio::test(start_paused = true)]
async fn worthwhile_parts_return_their_tokens() {
    let budget = RetryBudget::default();
    let layer = layer().budget(budget.clone());
    for _ in 0..50 {
        let server = Server::new([Answer::whole(1, 400), Answer::rest(1, 400, LENGTH)]);
        let body = layer.layer(server.clone()).oneshot(get()).await.unwrap().into_body();
        assert_eq!(read(body).await.data, content(1));
    }
    let long = 64 * 1024;
    let piece = |_| Piece::Data(vec![0; long].into());
    let mut script = Vec::new();
    for part in 0..50 {
        let reset = Piece::Error(ErrorKind::ConnectionReset);
        let mut answer = Answer { pieces: vec![piece(part), reset], ..Answer::rest(1, 0, 0) };
        answer = match part {
            0 => Answer { status: 200, ..answer }.with("content-range", "").with("content-length", 50 * long),
            part => answer.with("content-range", format!("bytes {}-{}/{}", part * long, 50 * long - 1, 50 * long)),
        };
        script.push(answer);
    }
    script.last_mut().unwrap().pieces.pop();
    let server = Server::new(script);
    let body = layer.layer(server.clone()).oneshot(get()).await.unwrap().into_body();
    assert_eq!((read(body).await.data.len(), server.seen().len()), (50 * long, 50));
}

/// Each resume is an attempt in the report, which the slot receives when the body ends.
#[tokio::test(start_paused = true)]
async fn each_resume_is_in_the_report() {
    let script = [Answer::whole(1, 400), Answer::status(503), Answer::rest(1, 400, 700), Answer::rest(1, 700, LENGTH)];
    let server = Server::new(script);
    let slot = ReportSlot::default();
    let mut request = get();
    request.extensions_mut().insert(CallOptions::new().report_to(&slot));
    let events = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&events);
    let layer = layer().observe(move |to, event| noted.lock().unwrap().push(format!("{to}: {event}")));
    let response = layer.layer(server.clone()).oneshot(request).await.unwrap();
    assert!(slot.take().is_none(), "nothing broke yet");
    read(response.into_body()).await;
    let report = slot.take().unwrap();
    assert_eq!(
        report.to_string(),
        "attempt 1 at 0s: network: connection reset, next in 100ms\n\
         attempt 2 at 100ms: server (503), next in 100ms\n\
         attempt 3 at 200ms: network: connection reset, next in 100ms\n\
         attempt 4 at 300ms: succeeded\n\
         stopped: succeeded"
    );
    assert_eq!((report.retries(), report.winner()), (3, Some(4)));
    let last = events.lock().unwrap().last().cloned();
    assert_eq!(last.as_deref(), Some("one.example: succeeded on attempt 4"));
}

/// The report of a changed file names the difference.
#[tokio::test(start_paused = true)]
async fn report_names_the_difference() {
    let server = Server::new([Answer::whole(1, 400), Answer::whole(2, LENGTH)]);
    let slot = ReportSlot::default();
    let mut request = get();
    request.extensions_mut().insert(CallOptions::new().report_to(&slot));
    read(client(&server).oneshot(request).await.unwrap().into_body()).await;
    let report = slot.take().unwrap();
    assert_eq!(report.stop_reason(), StopReason::Permanent);
    let AttemptOutcome::PermanentFailure { error: Some(error), .. } = &report.attempts()[1].outcome else {
        panic!("{report}")
    };
    assert_eq!(&**error, "the response does not continue the body: its status is 200, not 206");
}

/// The report of an error that is not resumed has its text.
#[tokio::test(start_paused = true)]
async fn report_has_text_of_permanent_error() {
    let script = [Answer::whole(1, 400), lost(), Answer::failing(ErrorKind::InvalidInput)];
    let slot = ReportSlot::default();
    let mut request = get();
    request.extensions_mut().insert(CallOptions::new().report_to(&slot));
    read(client(&Server::new(script)).oneshot(request).await.unwrap().into_body()).await;
    let report = slot.take().unwrap();
    let AttemptOutcome::PermanentFailure { error: Some(error), .. } = &report.attempts()[2].outcome else {
        panic!("{report}")
    };
    assert_eq!(&**error, "invalid input parameter");
}

/// Without a runtime nothing can wait, so the caller gets the break; nothing panics.
#[test]
fn without_runtime_caller_gets_break() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let server = runtime.block_on(async { Server::new([Answer::whole(1, 400), Answer::rest(1, 400, LENGTH)]) });
    let body = runtime.block_on(async { client(&server).oneshot(get()).await.unwrap().into_body() });
    let mut reading = tokio_test::task::spawn(read(body));
    let read = tokio_test::assert_ready!(reading.poll());
    assert_broken(&read, 1, 400);
}

/// A poll of a body that stalls is pending, and the deadline does not interrupt it: it is the inner client's part.
#[tokio::test(start_paused = true)]
async fn stall_is_not_a_break() {
    let server = Server::new([Answer::whole(1, 400).ending(Piece::Stall)]);
    let body = client(&server).oneshot(get()).await.unwrap().into_body();
    let hang = tokio::time::timeout(Duration::from_secs(3600), body.collect());
    assert!(hang.await.is_err());
    assert_eq!(server.seen().len(), 1);
}

/// The end of a standard stack's total time limits the resumes inside of it, and each of their requests finds it.
#[tokio::test(start_paused = true)]
async fn total_time_from_above_limits_resumes() {
    let found = Arc::new(Mutex::new(Vec::new()));
    let record = found.clone();
    let server = Server::new([Answer::whole(1, 400), Answer::rest(1, 400, 500), lost(), lost(), lost()]);
    let recorded = MapRequest::new(server.clone(), move |request: Request<ReplayBody<String>>| {
        record.lock().unwrap().push(Deadline::of(request.extensions()));
        request
    });
    let stack =
        StandardLayer::http().total_time(Duration::from_millis(350)).attempt_timeout(Duration::from_millis(100));
    let deadline = Some(Deadline::after(Duration::from_millis(350)));
    let body = stack.layer(layer().layer(recorded)).send(get()).await.unwrap().into_body();
    let read = timeout(HANGS, read(body)).await.unwrap();
    assert_broken(&read, 1, 500);
    assert_eq!(server.times(), [0, 100, 200, 300], "a further one would be too late");
    assert_eq!(*found.lock().unwrap(), [deadline; 4]);
}
