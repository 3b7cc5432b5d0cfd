//! The gRPC protocol: its settings, and the classification of responses and errors.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Response, StatusCode};
use http_body::Body;
use reattempt_control::RetryBudget;
use reattempt_core::{Classification, ServerHint, Verdict, Warning};
use reattempt_grpc::{
    Code, DescriptorSet, GRPC_STATUS, code_of_head, listed_code_of_head, pushback, retry_info, verdict_of_head,
};
use reattempt_replay::ReplayLimits;
use reattempt_schedule_exponential::Exponential;
use tower::BoxError;

use super::body::{GrpcBody, presentable};
use super::errors::{self, Unanswered};
use crate::call::finish::Finish;
use crate::call::hook::Carried;
use crate::call::in_use;
use crate::call::method::MethodOverrides;
use crate::call::options::CallOptions;
use crate::call::report::Report;
use crate::call::request_view::RequestView;
use crate::call::timed_out::RefusedResponse;
use crate::error_mode::Answered;
use crate::protocol::proof::{doubted, is_of_later_hop};
use crate::protocol::{
    ClassifyOutcome, DrainBody, Http, Outcome, OutcomeFacts, Protocol, Saved, not_sent, refusal_in, sealed,
};

/// The gRPC protocol with its settings: which codes are retried, which server delays are respected, and how much of
/// each request is saved.
///
/// A response is classified only if its headers contain the status. Any other response ends the retries, and
/// its [body](GrpcBody) reads the status in the trailers. [`RetryPolicy::grpc`](crate::RetryPolicy::grpc) lists what is
/// retried.
///
/// | setting | default |
/// |---|---|
/// | [`on_code`](Grpc::on_code), [`classify`](Grpc::classify) | the table of [`RetryPolicy::grpc`](crate::RetryPolicy::grpc) |
/// | [`repeatable`](Grpc::repeatable) | `false`: only calls whose options allow it |
/// | [`described_by`](Grpc::described_by) | no method is known to be repeatable |
/// | [`transparent_retries`](Grpc::transparent_retries) | `true` |
/// | [`retry_info`](Grpc::retry_info) | `false` |
/// | [`timeout`](Grpc::timeout) | none |
/// | [`replay`](Grpc::replay) | 256 KiB per call, 64 MiB for all calls |
/// | [`destination`](Grpc::destination) | scheme, host and port; empty if the request has no host |
///
/// A tonic client's requests contain no host, because tonic's `Channel` adds the host later. All calls then share one
/// destination with an empty name, which is usually right for a single channel. If observers need names, or several
/// channels share a budget or guard, use the generated client's `with_origin`, or [`destination`](Grpc::destination).
// COM-1
#[derive(Debug, Clone)]
pub struct Grpc {
    #[doc(hidden)]
    pub http: Http,
    /// `true` if every call may be processed twice.
    pub(crate) repeatable: bool,
    /// The verdicts set for codes, in the order in which they were set.
    codes: Vec<(Code, Verdict)>,
    /// The sets whose methods with a level may be processed twice.
    pub(super) described: Vec<DescriptorSet>,
    /// `true` if an unprocessed attempt is immediately replaced, at most once.
    pub(crate) replaces: bool,
    /// `true` if a `RetryInfo` is read.
    pub(crate) retry_info: bool,
    /// The time limit for a call.
    pub(crate) timeout: Option<Duration>,
}

impl Default for Grpc {
    fn default() -> Self {
        let http = Http::new().replay(ReplayLimits::default().per_call(256 * 1024));
        let (codes, described) = (Vec::new(), Vec::new());
        Self { http, repeatable: false, codes, described, replaces: true, retry_info: false, timeout: None }
    }
}

impl Grpc {
    /// Sets the verdict for outcomes with this code. The verdict does not apply to statuses with undefined numbers,
    /// whatever code the caller gets for them.
    // RET-5
    pub(crate) fn set_code(&mut self, code: Code, verdict: Verdict) {
        self.codes.push((code, verdict));
        self.http.add_classifier(Arc::new(move |outcome: Outcome<'_>| {
            let listed = listed_code_of_head(outcome.status()?, outcome.headers()?);
            (listed == Some(code)).then_some(verdict)
        }));
    }

    /// Returns the classification of an outcome that no server sent.
    fn classify_unanswered(&self, unanswered: Unanswered, method: Option<&dyn MethodOverrides>) -> Classification {
        let set = unanswered.code().and_then(|code| self.codes.iter().find(|(own, _)| *own == code));
        let set = set.and_then(|(_, verdict)| unanswered.overridden_by(*verdict));
        set.map_or_else(|| unanswered.classification(method), Verdict::into)
    }

    /// Returns `true` if this head ends the retries without a classifier, as most do.
    #[inline]
    fn commits<B>(&self, response: &Response<B>) -> bool {
        let head = response.headers();
        let broke = || in_use::BODIES.is_begun() && response.extensions().get::<Unanswered>().is_some();
        self.http.has_no_classifier() && code_of_head(response.status(), head).is_none() && !broke()
    }

    /// Returns the classification of a response head or trailers, or `None` if the head ends the retries.
    fn classify_status(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        options: Option<&CallOptions>,
        request: Option<RequestView<'_>>,
    ) -> Option<Classification> {
        let outcome = Outcome::of_response(status, headers).with_request(request);
        let custom = self.http.custom(outcome, options);
        let method = options.and_then(CallOptions::method);
        let own: Classification = match (custom, method) {
            (Some(own), _) => own,
            (None, None) => verdict_of_head(status, headers)?.into(),
            (None, Some(method)) => {
                code_of_head(status, headers)?;
                method.verdict(listed_code_of_head(status, headers).map(Code::number)).into()
            }
        };
        let hint = self.hint(headers);
        Some(match (own.verdict, hint) {
            (Verdict::Success, _) => own.verdict.into(),
            // The server asks for the retry, so it vouches that a retry is safe.
            (Verdict::Transient(failure), ServerHint::Exactly(_)) => {
                Verdict::NotProcessed(failure).with_hint(own.hint.or(hint))
            }
            (verdict, _) => verdict.with_hint(own.hint.or(hint)),
        })
    }

    /// Returns the server's hint: its pushback, otherwise its `RetryInfo`.
    // RI-4
    #[doc(hidden)]
    pub fn hint(&self, headers: &HeaderMap) -> ServerHint {
        match pushback(headers) {
            ServerHint::None if self.retry_info => retry_info(headers).map_or(ServerHint::None, ServerHint::AtLeast),
            hint => hint,
        }
    }
}

impl sealed::Sealed for Grpc {}

impl Protocol for Grpc {
    type Head = http::request::Parts;

    #[inline]
    fn take_carried(head: &mut http::request::Parts) -> Option<Carried> {
        if head.extensions.is_empty() { None } else { head.extensions.remove() }
    }
    type Mode = Answered;

    const CODE_NAMES: &'static [&'static str] = &Code::NAMES;

    fn body_limits(&self) -> Option<(usize, usize)> {
        self.http.body_limits()
    }

    /// Returns delays of 100 ms, doubling up to 5 s, with ± 20 % jitter.
    fn default_backoff() -> Exponential {
        Exponential::symmetric(Duration::from_millis(100), 0.2)
    }

    /// Returns an unlimited budget, because gRPC's throttle is part of the service config.
    fn default_budget() -> RetryBudget {
        RetryBudget::unlimited()
    }

    /// Returns a status, so that a tonic client reports DEADLINE_EXCEEDED to its caller.
    #[cfg(feature = "tonic")]
    fn source_of_time_limit() -> Option<BoxError> {
        Some(Box::new(tonic::Status::deadline_exceeded("a time limit of the call has passed")))
    }

    /// Returns `true`, because every call that ends with OK adds tokens.
    // THR-4
    fn credits_every_call(&self) -> bool {
        true
    }

    fn is_plain(&self) -> bool {
        self.http.is_plain()
    }

    fn classifies(&self) -> bool {
        self.http.classifies()
    }

    fn replaces(&self) -> bool {
        self.replaces
    }

    fn change_code(&mut self, name: &str, verdict: Verdict) {
        if let Some((number, _)) = (0..).zip(Code::NAMES).find(|(_, other)| *other == name) {
            self.set_code(Code::from_number(number), verdict);
        }
    }

    fn set_repeatable(&mut self, repeatable: bool) {
        self.repeatable = repeatable;
    }

    /// Returns a warning for each declaration of repeatable calls, because every call through a hedge layer may be
    /// hedged.
    fn unused_by_hedging(&self) -> Vec<Warning> {
        const DEFAULT: &str = "the default, because hedging does not use it";
        let repeatable = self.repeatable.then(|| Warning::new("repeatable", true, DEFAULT));
        let described = !self.described.is_empty();
        repeatable.into_iter().chain(described.then(|| Warning::new("described_by", "set", DEFAULT))).collect()
    }

    fn explained(error: BoxError) -> BoxError {
        errors::explained(error)
    }

    fn classify_trailers(&self, trailers: &HeaderMap, options: Option<&CallOptions>) -> Verdict {
        let classification = self.classify_status(StatusCode::OK, trailers, options, None);
        classification.map_or(Verdict::Permanent, |classification| classification.verdict)
    }
}

impl<B: Body> ClassifyOutcome<Response<B>> for Grpc {
    type Drain = DrainBody<B>;
    type Answer = Response<GrpcBody<B>>;

    fn classify_outcome(
        &self,
        outcome: Result<&Response<B>, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
        saved: Option<&impl Saved>,
    ) -> Classification {
        let request = || saved.and_then(|saved| saved.view().known());
        let method = options.and_then(CallOptions::method);
        // `own` is `true` if the proof comes from this client, not from a server's code or a classifier.
        let (classification, own) = match outcome {
            Ok(response) if options.is_none() && self.commits(response) => {
                return Verdict::Success.into();
            }
            Ok(response) if errors::refusal(response).is_some() => (not_sent(), true),
            Err(error) if refusal_in(error).is_some() => (not_sent(), true),
            Ok(response) => match response.extensions().get::<Unanswered>() {
                // An inner layer created the response, or its body broke. Classifiers are only for server responses.
                Some(unanswered) => (self.classify_unanswered(*unanswered, method), true),
                None => {
                    let (status, headers) = (response.status(), response.headers());
                    let classified = self.classify_status(status, headers, options, request());
                    (classified.unwrap_or(Verdict::Success.into()), false)
                }
            },
            Err(error) => match self.http.custom(Outcome::of_error(error).with_request(request()), options) {
                Some(custom) => (custom, false),
                None => {
                    let table = self.classify_unanswered(Unanswered::of(error), method);
                    let verdict = match method {
                        Some(_) => table.verdict,
                        None => self.http.with_accepted_proof(table.verdict, error),
                    };
                    (verdict.with_hint(table.hint), true)
                }
            },
        };
        doubted(classification, outcome.map(Response::extensions), |failure| own && is_of_later_hop(failure, saved))
    }

    fn code(response: &Response<B>) -> Option<u16> {
        code_of_head(response.status(), response.headers()).map(Code::number)
    }

    fn drain(&self, response: Response<B>) -> (DrainBody<B>, Option<RefusedResponse>) {
        DrainBody::new(response, self.http.drain_limit)
    }

    fn attach(&self, response: &mut Response<B>, report: Report) {
        response.extensions_mut().insert(report);
    }

    /// Returns `true` if the status follows in the trailers. A successful head then ends the retries, but not the call.
    #[inline]
    fn is_open(&self, response: &Response<B>, succeeded: bool) -> bool {
        let headers = response.headers();
        match succeeded {
            true => !headers.contains_key(GRPC_STATUS),
            false => code_of_head(response.status(), headers).is_none(),
        }
    }

    #[inline]
    fn may_stall(&self, response: &Response<B>) -> bool {
        !response.body().is_end_stream()
    }

    #[inline]
    fn answer(mut response: Response<B>, open: bool) -> Response<GrpcBody<B>> {
        if !open {
            let status = response.status();
            presentable(status, response.headers_mut());
        }
        response.map(|body| GrpcBody::new(body, None))
    }

    fn watched(mut response: Response<B>, finish: Finish) -> Response<GrpcBody<B>> {
        if finish.has_status {
            presentable(response.status(), response.headers_mut());
        }
        response.map(|body| GrpcBody::new(body, Some(finish)))
    }

    fn refused(&self, head: &RefusedResponse) -> Option<Self::Answer> {
        Some(GrpcBody::of_head(head))
    }

    fn facts(&self, outcome: Result<&Response<B>, &(dyn Error + 'static)>) -> OutcomeFacts {
        let facts = OutcomeFacts::of(outcome.map(Response::extensions));
        match outcome {
            Ok(response) => OutcomeFacts {
                refused: errors::refusal(response),
                refused_here: errors::is_refused(response),
                fault: errors::fault(response),
                responded: response.extensions().get::<Unanswered>().is_none(),
                ..facts
            },
            Err(error) => {
                let proven = self.replaces && !facts.from_fallback && self.http.accepts_proof(error);
                OutcomeFacts { undone: facts.undone.filter(|_| proven), under_any_code: true, ..facts }
            }
        }
    }

    fn too_late(&self, text: &str, report: impl FnOnce() -> Option<Report>) -> Option<Self::Answer> {
        let answer = GrpcBody::answering(Code::DeadlineExceeded, text, Unanswered::LATE);
        Some(with_report(answer, report()))
    }

    /// Returns `true` for CANCELLED. A server that enforces the deadline responds with that code (tonic's server), or
    /// resets the stream with it.
    fn is_timer(&self, outcome: Result<&Response<B>, &(dyn Error + 'static)>) -> bool {
        match outcome {
            Ok(response) => code_of_head(response.status(), response.headers()) == Some(Code::Cancelled),
            Err(error) => errors::is_timer(error),
        }
    }

    /// Creates a response with the code for an error, such as UNAVAILABLE for a lost connection.
    fn unanswered(error: &(dyn Error + 'static), report: Option<Report>) -> Option<Self::Answer> {
        let (code, text, mark) = errors::in_terms_of_grpc(error)?;
        Some(with_report(GrpcBody::answering(code, &text, mark), report))
    }
}

/// Adds the call's report to the response, if there is one.
fn with_report<B>(mut answer: Response<GrpcBody<B>>, report: Option<Report>) -> Response<GrpcBody<B>> {
    if let Some(report) = report {
        answer.extensions_mut().insert(report);
    }
    answer
}
