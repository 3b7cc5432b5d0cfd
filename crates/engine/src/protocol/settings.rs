//! The HTTP protocol's settings, and its classification of responses and errors.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use http::response::Parts;
use http::{Extensions, HeaderMap, StatusCode, Uri};
use reattempt_core::guard::Quota;
use reattempt_core::{Classification, Failure, Verdict, Warning};
use reattempt_http::{Hints, reset_reason, verdict_of_status};
use reattempt_replay::ReplayLimits;

use super::cloned::SavedClone;
use super::{Outcome, Protocol, Saved, errors, not_sent, proof};
use crate::call::body_verdict::BodyVerdict;
use crate::call::deadline::Deadline;
use crate::call::deadline_header::DeadlineHeader;
use crate::call::hook::Carried;
use crate::call::options::CallOptions;
use crate::call::options::{SharedClassifier, chained};
use crate::call::outcome::ProfileClassifier;
use crate::call::request_view::RequestView;
use crate::error_mode::OwnError;

/// The default drain limit. Most error pages are smaller, and reading this much is cheaper than a new connection.
const DRAIN_LIMIT: u64 = 16 * 1024;

/// HTTP/2's error code for refused streams (RFC 9113 §7).
const REFUSED_STREAM: u32 = 7;

/// The caller's function that determines a destination.
#[derive(Clone)]
pub(crate) enum DestinationRule {
    OfUri(Arc<OfUri>),
    OfRequest(Arc<OfRequest>),
}

type OfUri = dyn for<'a> Fn(&'a Uri) -> Cow<'a, str> + Send + Sync;

type OfRequest = dyn for<'a> Fn(RequestView<'a>) -> Cow<'a, str> + Send + Sync;

type OptionsFor = Arc<dyn for<'a> Fn(RequestView<'a>) -> Option<CallOptions> + Send + Sync>;

/// The HTTP protocol and its settings: which outcomes are retried, which server delays are respected, and how much of a
/// body is saved.
///
/// | outcome | request that may be repeated | any other request |
/// |---|---|---|
/// | 1xx, 2xx, 3xx | success | success |
/// | 425, 429 | retried | retried |
/// | 408, 500, 502, 503, 504, a 5xx that no RFC defines | retried | returned |
/// | every other 4xx and 5xx | returned | returned |
/// | proof that nothing was processed: whatever fails while connecting, `REFUSED_STREAM`, a `GOAWAY` that excludes the stream | retried | retried |
/// | connection lost after sending, no response in time, a response that is not HTTP | retried | returned |
/// | certificate rejected, invalid URI, a proxy that requires credentials or forbids the target, an error in the caller's own body | returned | returned |
///
/// Repeatable requests are GET, HEAD, OPTIONS, TRACE, QUERY, PUT and DELETE, any request with an `Idempotency-Key`, and
/// any that [`CallOptions::repeatable`](crate::CallOptions::repeatable) marks. If the inner service [follows
/// redirects](Http::redirects_below) (as reqwest does by default), no other request is retried.
///
/// | setting | default |
/// |---|---|
/// | [`on_status`](Http::on_status), [`classify`](Http::classify) | the table above |
/// | [`hints`](Http::hints) | every form of `Retry-After`, and `x-should-retry`; rate-limit reset headers are ignored |
/// | [`replay`](Http::replay) | per call 64 KiB of a streamed body, or all of a body in memory; 64 MiB in total, of which one destination gets at most 5/8 |
/// | [`drain_limit`](Http::drain_limit) | 16 KiB |
/// | [`destination`](Http::destination), [`destination_for`](Http::destination_for) | scheme, host and port |
/// | [`destination_by_host`](Http::destination_by_host) | `false`: requests without a host in the URI share one destination |
/// | [`generate_idempotency_keys`](Http::generate_idempotency_keys) | `false` |
/// | [`trust_idempotency_keys`](Http::trust_idempotency_keys) | `true` |
/// | [`refused_stream_is_proof`](Http::refused_stream_is_proof) | `true` |
/// | [`redirects_below`](Http::redirects_below) | detected |
/// | [`options_for`](Http::options_for) | no rules |
/// | [`deadline_header`](Http::deadline_header) | none |
///
/// ```
/// use http::StatusCode;
/// use reattempt::{Http, RetryPolicy, Verdict};
///
/// let http = Http::new().on_status(StatusCode::NOT_IMPLEMENTED, Verdict::transient()).generate_idempotency_keys(true);
/// let policy = RetryPolicy::with(http);
/// ```
#[derive(Clone)]
pub struct Http {
    pub(crate) replay: ReplayLimits,
    pub(crate) hints: Hints,
    pub(crate) drain_limit: u64,
    pub(crate) generate_keys: bool,
    /// `true` if an `Idempotency-Key` makes a request repeatable.
    pub(crate) trust_keys: bool,
    pub(crate) destination: Option<DestinationRule>,
    /// `true` if the `Host` header is the destination of a request without an authority.
    pub(crate) by_host: bool,
    /// `true` if the inner client follows redirects; `None` to detect that.
    pub(crate) redirects: Option<bool>,
    /// `true` if a reset with REFUSED_STREAM proves that the request was not processed.
    pub(crate) refused_stream_is_proof: bool,
    statuses: Vec<(StatusCode, Verdict)>,
    classifier: Option<SharedClassifier>,
    profile_classifier: Option<ProfileClassifier>,
    pub(super) options_for: Option<OptionsFor>,
    pub(super) deadline_header: Option<DeadlineHeader>,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            replay: ReplayLimits::default().by_destination(),
            hints: Hints::default(),
            drain_limit: DRAIN_LIMIT,
            generate_keys: false,
            trust_keys: true,
            destination: None,
            by_host: false,
            redirects: None,
            refused_stream_is_proof: true,
            statuses: Vec::new(),
            classifier: None,
            profile_classifier: None,
            options_for: None,
            deadline_header: None,
        }
    }
}

impl Protocol for Http {
    type Head = http::request::Parts;

    #[inline]
    fn take_carried(head: &mut http::request::Parts) -> Option<Carried> {
        if head.extensions.is_empty() { None } else { head.extensions.remove() }
    }
    type Mode = OwnError;

    fn classifies(&self) -> bool {
        self.classifier.is_some() || self.profile_classifier.is_some()
    }

    fn is_plain(&self) -> bool {
        !self.generate_keys && self.options_for.is_none() && self.deadline_header.is_none()
    }

    fn set_profile_classifier(&mut self, classifier: Option<ProfileClassifier>) -> bool {
        self.profile_classifier = classifier;
        true
    }

    fn polls(&self) -> bool {
        self.statuses.iter().any(|(_, verdict)| verdict.is_pending())
    }

    fn change_hints(&mut self, change: &dyn Fn(Hints) -> Hints) {
        self.hints = change(std::mem::replace(&mut self.hints, Hints::none()));
    }

    fn change_status(&mut self, status: StatusCode, verdict: Verdict) {
        self.set_status(status, verdict);
    }

    fn set_repeatable(&mut self, repeatable: bool) {
        let options = CallOptions::new().repeatable(repeatable);
        self.add_options_for(Arc::new(move |_: RequestView<'_>| Some(options.clone())));
    }

    fn unused_by_hedging(&self) -> Vec<Warning> {
        self.retry_only_settings()
    }

    fn body_limits(&self) -> Option<(usize, usize)> {
        Some((self.replay.per_call_limit(), self.replay.memory_ref().limit()))
    }
}

impl Http {
    pub(crate) fn set_status(&mut self, status: StatusCode, verdict: Verdict) {
        self.statuses.retain(|(other, _)| *other != status);
        self.statuses.push((status, verdict));
    }

    /// Adds a classifier after the existing ones.
    pub(crate) fn add_classifier(&mut self, next: SharedClassifier) {
        self.classifier = Some(chained(self.classifier.take(), next));
    }

    /// Adds a rule after the existing ones.
    pub(crate) fn add_options_for(&mut self, next: OptionsFor) {
        self.options_for = Some(match self.options_for.take() {
            None => next,
            Some(first) => Arc::new(move |request| match (first(request), next(request)) {
                (Some(first), Some(next)) => Some(first.or(&next)),
                (first, next) => first.or(next),
            }),
        });
    }

    /// Writes the time left until a call's deadline to the attempt that is about to be sent.
    #[inline]
    pub(super) fn write_deadline(&self, headers: &mut HeaderMap, deadline: Option<Deadline>) {
        if let (Some(header), Some(deadline)) = (&self.deadline_header, deadline) {
            header.write(headers, deadline);
        }
    }

    /// Writes the time left anew to an attempt that has waited, if it has the header.
    pub(super) fn renew_header(&self, headers: &mut HeaderMap, deadline: Deadline) {
        if self.deadline_header.as_ref().is_some_and(|header| headers.contains_key(header.name())) {
            self.write_deadline(headers, Some(deadline));
        }
    }

    #[inline]
    pub(crate) fn has_no_classifier(&self) -> bool {
        self.classifier.is_none()
    }

    /// Returns `true` if only the default rules apply, and they classify the status as a success.
    #[doc(hidden)]
    #[inline]
    pub fn is_plain_success(&self, status: StatusCode, extensions: &Extensions, options: Option<&CallOptions>) -> bool {
        let by_the_table = self.classifier.is_none() && self.statuses.is_empty();
        by_the_table && options.is_none() && status.is_success() && BodyVerdict::of(extensions).is_none()
    }

    /// Returns the classification of a response.
    #[inline]
    pub(crate) fn classify_response(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        extensions: &Extensions,
        options: Option<&CallOptions>,
        saved: Option<&impl Saved>,
    ) -> ClassifiedOutcome {
        if self.is_plain_success(status, extensions, options) {
            return ClassifiedOutcome { classification: Verdict::Success.into(), overridden: false };
        }
        let request = saved.and_then(|saved| saved.view().known());
        self.classify_in_detail(status, headers, BodyVerdict::of(extensions), options, request)
    }

    /// Classifies a response for which [`is_plain_success`](Self::is_plain_success) is `false`.
    fn classify_in_detail(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: Option<&BodyVerdict>,
        options: Option<&CallOptions>,
        request: Option<RequestView<'_>>,
    ) -> ClassifiedOutcome {
        let outcome = Outcome::of_response(status, headers).with_request(request);
        let of_status = || {
            let found = self.statuses.iter().find(|(other, _)| *other == status);
            found.map(|(_, verdict)| Classification::new(*verdict))
        };
        let of_body = || body.and_then(BodyVerdict::classification);
        // The profile judges what the default rules classify as a failure.
        let of_profile = || self.profile_classifier.and_then(|profile| profile(outcome));
        let own = self.custom(outcome, options).or_else(of_body).or_else(of_status);
        let overridden = own.is_some();
        let own = own.unwrap_or_else(|| match verdict_of_status(status) {
            Verdict::Success => Verdict::Success.into(),
            verdict => of_profile().unwrap_or_else(|| verdict.into()),
        });
        if own.verdict == Verdict::Success {
            // A success whose body broke is a lost connection.
            if let Some(failure) = body.and_then(BodyVerdict::failure) {
                return ClassifiedOutcome { classification: Verdict::Transient(failure).into(), overridden };
            }
            return ClassifiedOutcome { classification: own.verdict.into(), overridden };
        }
        let hinted = self.hints.read(headers, SystemTime::now);
        let mut verdict = match overridden {
            // The client's `on_status` verdict overrides `x-should-retry: true`. Both the client and the server can
            // prevent a retry, and neither can force one.
            true => own.verdict,
            false => hinted.classification(own.verdict, status).verdict,
        };
        if let Verdict::Transient(failure) | Verdict::NotProcessed(failure) = &mut verdict
            && failure.code().is_none()
        {
            *failure = failure.with_code(status.as_u16());
        }
        ClassifiedOutcome { classification: verdict.with_hint(own.hint.or(hinted.hint)), overridden }
    }

    /// Returns the quota in a response, if rate-limit hints are enabled.
    #[doc(hidden)]
    #[inline]
    pub fn quota(&self, headers: &HeaderMap) -> Option<Quota> {
        self.hints.quota(headers, SystemTime::now)
    }

    /// Returns the classification of an error.
    pub(crate) fn classify_error(
        &self,
        error: &(dyn Error + 'static),
        options: Option<&CallOptions>,
        saved: Option<&impl Saved>,
    ) -> ClassifiedOutcome {
        if errors::refusal_in(error).is_some() {
            return ClassifiedOutcome { classification: not_sent(), overridden: false };
        }
        let outcome = Outcome::of_error(error).with_request(saved.and_then(|saved| saved.view().known()));
        let custom = self.custom(outcome, options);
        let of_table = || self.with_accepted_proof(errors::verdict_of_error(error), error).into();
        let of_profile = || self.profile_classifier.and_then(|profile| profile(outcome));
        let classification = custom.or_else(of_profile).unwrap_or_else(of_table);
        ClassifiedOutcome { classification, overridden: custom.is_some() }
    }

    /// Returns the classification of an outcome whose request is not the caller's, so that no classifier reads it.
    #[doc(hidden)]
    pub fn classify_without_request(
        &self,
        outcome: Result<&Parts, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
    ) -> Classification {
        const NO_REQUEST: Option<&SavedClone<()>> = None;
        let judged = match outcome {
            Ok(head) => {
                let Parts { status, headers, extensions, .. } = head;
                self.classify_response(*status, headers, extensions, options, NO_REQUEST)
            }
            Err(error) => self.classify_error(error, options, NO_REQUEST),
        };
        judged.unless_doubted(outcome.map(|head| &head.extensions), |_| false)
    }

    /// Returns `false` if the error is a proof that the settings do not accept.
    pub(crate) fn accepts_proof(&self, error: &(dyn Error + 'static)) -> bool {
        self.refused_stream_is_proof || reset_reason(error) != Some(REFUSED_STREAM)
    }

    /// Returns the default verdict, but without a proof that the settings do not accept.
    pub(crate) fn with_accepted_proof(&self, verdict: Verdict, error: &(dyn Error + 'static)) -> Verdict {
        match verdict {
            Verdict::NotProcessed(failure) if !self.accepts_proof(error) => Verdict::Transient(failure),
            verdict => verdict,
        }
    }

    /// Returns the classifiers' verdict. The call's own classifiers come first.
    #[inline]
    pub(crate) fn custom(&self, outcome: Outcome<'_>, options: Option<&CallOptions>) -> Option<Classification> {
        let of_call = options.and_then(CallOptions::classifier).and_then(|own| own.classify(outcome));
        of_call.or_else(|| self.classifier.as_ref()?.classify(outcome))
    }
}

/// A classification with its origin: the caller or the default rules.
pub(crate) struct ClassifiedOutcome {
    classification: Classification,
    overridden: bool,
}

impl ClassifiedOutcome {
    /// Returns the classification, but without a [doubtful](proof::doubted) proof. The caller's own proof is accepted
    /// even after redirects.
    #[inline]
    pub(crate) fn unless_doubted(
        self,
        outcome: Result<&Extensions, &(dyn Error + 'static)>,
        hops: impl FnOnce(&Failure) -> bool,
    ) -> Classification {
        let Self { classification, overridden } = self;
        proof::doubted(classification, outcome, |failure| !overridden && hops(failure))
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("replay", &self.replay)
            .field("hints", &self.hints)
            .field("drain_limit", &self.drain_limit)
            .field("generate_idempotency_keys", &self.generate_keys)
            .field("trust_idempotency_keys", &self.trust_keys)
            .field("refused_stream_is_proof", &self.refused_stream_is_proof)
            .field("statuses", &self.statuses)
            .field("deadline_header", &self.deadline_header)
            .finish_non_exhaustive()
    }
}
