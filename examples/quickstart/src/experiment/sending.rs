//! Sends all calls of a script through a client, a few at a time, and records how each one ended.

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use reattempt::report::{AttemptOutcome, ReportSlot};
use reattempt::schedule::FailureKind;
use reattempt::{CallOptions, Report, StopReason, TimedOut};
use tokio::task::JoinSet;
use tower::timeout::error::Elapsed;
use tower::{BoxError, Service, ServiceExt};

use super::journal::Sender;
use super::names::Names;
use super::script::{Call, Kind, Script};
use super::upload::Upload;

/// The most calls in flight at the same time.
const CONCURRENCY: usize = 32;

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) id: u32,
    pub(crate) kind: Kind,
    pub(crate) end: End,
    /// The retry layer's report; `None` from a client without one.
    pub(crate) report: Option<Report>,
}

/// The caller's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// A complete response with this status.
    Answered(StatusCode),
    /// A head, and then only a part of the body.
    BrokenOff,
    /// No connection.
    Refused,
    /// No answer in time.
    TimedOut,
    /// A connection that was lost.
    Lost,
}

/// Sends every call, in order, and calls `done` as each one ends.
///
/// # Errors
///
/// Fails if a request cannot be built or the client's `poll_ready` fails; never for a call that
/// fails.
pub(crate) async fn send_all<C>(
    mut client: C,
    sender: Sender,
    script: &Script,
    done: impl Fn(),
) -> Result<Vec<Sent>, BoxError>
where
    C: Service<Request<Upload>, Response = Response<Incoming>, Error = BoxError>,
    C::Future: Send + 'static,
{
    let mut under_way = JoinSet::new();
    let mut ended = Vec::new();
    for (id, call) in script.calls() {
        if under_way.len() >= CONCURRENCY
            && let Some(sent) = under_way.join_next().await
        {
            ended.push(sent?);
            done();
        }
        let slot = ReportSlot::default();
        let request = request(sender, id, call, &slot)?;
        // Called here instead of in the task. The retry layer draws delays from a seed by the order
        // of calls, which must be that of the script.
        let response = client.ready().await?.call(request);
        let kind = call.kind;
        under_way.spawn(async move {
            let end = End::of(response.await).await;
            Sent { id, kind, end, report: slot.take() }
        });
    }
    while let Some(sent) = under_way.join_next().await {
        ended.push(sent?);
        done();
    }
    ended.sort_unstable_by_key(|sent| sent.id);
    Ok(ended)
}

fn request(sender: Sender, id: u32, call: &Call, slot: &ReportSlot) -> Result<Request<Upload>, http::Error> {
    let uri = format!("http://{}/{sender}/{id}", Names::name_for(id, call));
    let mut request =
        Request::builder().method(call.kind.method()).uri(uri).extension(CallOptions::new().report_to(slot));
    if call.kind == Kind::PostWithKey {
        request = request.header("idempotency-key", format!("\"{sender}-{id}\""));
    }
    request.body(Upload::new(id, call.kind))
}

impl End {
    async fn of(result: Result<Response<Incoming>, BoxError>) -> Self {
        let response = match result {
            Ok(response) => response,
            Err(error) => return Self::of_error(&error),
        };
        let status = response.status();
        match response.into_body().collect().await {
            Ok(_) => End::Answered(status),
            Err(_) => End::BrokenOff,
        }
    }

    fn of_error(error: &BoxError) -> Self {
        if error.is::<Elapsed>() || error.is::<TimedOut>() {
            End::TimedOut
        } else if error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect) {
            End::Refused
        } else {
            End::Lost
        }
    }
}

impl Sent {
    /// Returns `true` if the caller got a complete 2xx response.
    pub(crate) fn is_ok(&self) -> bool {
        matches!(self.end, End::Answered(status) if status.is_success())
    }

    /// Returns the number of attempts whose connection was refused.
    pub(crate) fn refused(&self) -> u32 {
        let Some(report) = &self.report else {
            return u32::from(self.end == End::Refused);
        };
        report.attempts().iter().map(|attempt| u32::from(is_refused(&attempt.outcome))).sum()
    }

    /// Returns the reason why no further attempt was made, if there is a retry layer.
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        self.report.as_ref().map(Report::stop_reason)
    }
}

fn is_refused(outcome: &AttemptOutcome) -> bool {
    matches!(outcome, AttemptOutcome::Failed { failure, .. } if failure.kind() == FailureKind::Connect)
}
