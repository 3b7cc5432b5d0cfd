//! Guards around gRPC clients, which classify calls by their trailers and respond to refused calls.

use std::error::Error;

use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame};
use reattempt_core::guard::{Guard, GuardKind, Health, Reason, Refused};
use reattempt_core::{Classification, Rounded};
use reattempt_engine::CallOptions;
use reattempt_engine::body::Watch;
use reattempt_engine::error::ErrorMode;
use reattempt_engine::grpc::{Grpc, GrpcBody};
use reattempt_engine::protocol::{ClassifyOutcome, Protocol, SavedRequest};
use reattempt_engine::wall::grpc::{Unanswered, classify_error, fault, grpc_setters};
use reattempt_engine::wall::{PASSED, protocol_setters};
use reattempt_grpc::{Code, code_of_head};
use tower::BoxError;

use crate::body::{Held, guarded_body};
use crate::contract::GuardOutcome;
use crate::health::of_classification;
use crate::{GuardLayer, GuardedBody, Judged, OwnEnd, Pass};

impl<G: Guard> GuardLayer<G, Grpc> {
    /// Creates a layer that guards gRPC calls with the defaults of [`Grpc`].
    ///
    /// A refused call fails with UNAVAILABLE, or with RESOURCE_EXHAUSTED if the caller's own limit was exceeded. The
    /// response has the [`Refused`](crate::Refused) in its extensions, and the header `reattempt-refused` names
    /// the guard. The outcome of a call is recorded when its trailers arrive. A call whose response is dropped after a
    /// message is recorded as served. If the response is dropped earlier, the call is ignored.
    ///
    /// A tonic client's requests contain no host, so all calls through one layer share one state (see
    /// [destinations](Grpc)).
    ///
    /// | code | health |
    /// |---|---|
    /// | OK, and the codes that the caller causes (such as NOT_FOUND) | served |
    /// | UNKNOWN, INTERNAL, DATA_LOSS, a response without a status | failed |
    /// | UNAVAILABLE, DEADLINE_EXCEEDED | unavailable |
    /// | RESOURCE_EXHAUSTED | overloaded |
    /// | CANCELLED | ignored |
    pub fn grpc(guard: G) -> Self {
        Self::with(Grpc::new(), guard)
    }
}

impl<B, E, Mode> GuardOutcome<Response<B>, E, Mode> for Grpc
where
    B: Body<Error: Into<BoxError>>,
    Mode: ErrorMode<E>,
{
    type Guarded<G: Guard> = Response<GuardedBody<GrpcBody<B>, G, Grpc>>;

    fn health(
        &self,
        outcome: Result<&Response<B>, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
    ) -> (Classification, Judged) {
        let classification = self.classify_outcome(outcome, options, None::<&SavedRequest<B>>);
        let permanent = outcome.map(|response| || of_head(response.status(), response.headers()));
        let judged = of_classification(&classification, UNAVAILABLE, permanent);
        let judged = match outcome {
            Ok(response) if judged.health == Health::Unavailable && fault(response).is_some() => Judged::IGNORED,
            _ => judged,
        };
        (classification, judged)
    }

    fn own_end<G: Guard>(reason: OwnEnd) -> Result<Self::Guarded<G>, Mode::Error> {
        let answer = match reason {
            OwnEnd::Late(_) => GrpcBody::answering(Code::DeadlineExceeded, PASSED, Unanswered::LATE),
            OwnEnd::TimedOut { after, server, uploading } => {
                let server = server.map(|server| format!(" ({server})")).unwrap_or_default();
                let text = format!("the attempt timed out after {}{server}", Rounded(after));
                let mark = if uploading { Unanswered::UPLOADING } else { Unanswered::TIMED_OUT };
                GrpcBody::answering(Code::DeadlineExceeded, &text, mark)
            }
            OwnEnd::Unwritable(error) => {
                GrpcBody::answering(Code::Internal, &error.to_string(), Unanswered::UNWRITABLE)
            }
            OwnEnd::Refused(refused) => refused_answer(refused),
        };
        Ok(answer.map(|body| guarded_body(body, None)))
    }

    fn guarded<G: Guard>(response: Response<B>, open: bool, pass: Option<Pass<G, Self>>) -> Self::Guarded<G> {
        Self::answer(response, open).map(|body| guarded_body(body, pass))
    }
}

impl<B: Body, G: Guard> Watch<GrpcBody<B>> for Held<G, Grpc>
where
    B::Error: Into<BoxError>,
{
    type Error = BoxError;

    fn error(error: BoxError) -> BoxError {
        error
    }

    fn read_frame(&mut self, frame: Option<Result<&Frame<B::Data>, &BoxError>>, is_over: impl FnOnce() -> bool) {
        self.watch(frame, is_over, of_trailers, of_broken_body);
    }

    fn is_open(&self) -> bool {
        self.needs_outcome()
    }
}

/// Returns the health of a call whose response ended with these trailers.
fn of_trailers(grpc: &Grpc, trailers: &HeaderMap, options: Option<&CallOptions>) -> Judged {
    let verdict = grpc.classify_trailers(trailers, options);
    let classification = verdict.with_hint(grpc.hint(trailers));
    of_classification(&classification, UNAVAILABLE, Ok(|| of_head(StatusCode::OK, trailers)))
}

/// Returns the health of a call whose response body failed.
fn of_broken_body(_: &Grpc, error: &BoxError, options: Option<&CallOptions>) -> Judged {
    let method = options.and_then(CallOptions::method);
    let classification = classify_error(&**error, method);
    of_classification(&classification, UNAVAILABLE, Err::<fn() -> Health, _>(&**error))
}

/// The codes of a server that does not accept calls, or does not finish them in time.
const UNAVAILABLE: &[u16] = &[Code::DeadlineExceeded.number(), Code::Unavailable.number()];

/// The header that names the guard in a refusal.
pub(crate) const REFUSED_BY: http::HeaderName = http::HeaderName::from_static("reattempt-refused");

fn refused_answer<B>(refused: Refused) -> Response<GrpcBody<B>> {
    // Any other refusal is due to the state of the server or of a guard without a name.
    let is_own_limit = match refused.reason() {
        Reason::WaitTooLong => refused.guard() != GuardKind::ENDPOINTS,
        Reason::Full | Reason::RateExceeded | Reason::TooLarge => refused.guard() != GuardKind::UNNAMED,
        _ => false,
    };
    let (code, mark) = if is_own_limit {
        (Code::ResourceExhausted, Unanswered::TURNED_AWAY)
    } else {
        (Code::Unavailable, Unanswered::REFUSED)
    };
    let mut answer = GrpcBody::answering(code, &refused.to_string(), mark);
    let name = http::HeaderValue::try_from(refused.guard().name().replace(' ', "-"));
    let name = name.unwrap_or(http::HeaderValue::from_static("guard"));
    answer.headers_mut().insert(REFUSED_BY, name);
    answer.extensions_mut().insert(refused);
    answer
}

/// Returns the health for a status that is not retryable.
fn of_head(status: StatusCode, headers: &HeaderMap) -> Health {
    match code_of_head(status, headers) {
        Some(Code::ResourceExhausted) => Health::Overloaded,
        // A response without a status is treated as UNKNOWN (ST-3).
        None | Some(Code::Unknown | Code::Internal | Code::DataLoss) => Health::Failed,
        Some(Code::Unavailable | Code::DeadlineExceeded) => Health::Unavailable,
        // The caller has cancelled the call.
        Some(Code::Cancelled) => Health::Ignored,
        Some(_) => Health::Served,
    }
}

/// The gRPC settings that affect guards.
impl<G: Guard, Mode> GuardLayer<G, Grpc, Mode> {
    protocol_setters!(Grpc: reading);
    grpc_setters!(codes, hints);
}
