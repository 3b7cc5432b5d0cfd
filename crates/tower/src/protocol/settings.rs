//! The HTTP protocol marker: what a policy may set about requests, bodies and statuses.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, Method, StatusCode, Uri};
use reattempt_core::{Failure, FailureKind, Judgement, Verdict};
use reattempt_http::{
    Hints, IDEMPOTENCY_KEY, ReplayLimits, is_repeatable, new_idempotency_key, verdict_of_status,
};

use super::{Outcome, Protocol, errors};
use crate::CallOptions;
use crate::options::SharedClassifier;

/// More than an error page has, and less than a new connection costs.
const DISCARD_LIMIT: u64 = 16 * 1024;

type Destination = Arc<dyn for<'a> Fn(&'a Uri) -> Cow<'a, str> + Send + Sync>;

/// HTTP: statuses, `Retry-After`, methods and replayable bodies.
#[derive(Clone)]
pub struct Http {
    pub(crate) replay: ReplayLimits,
    pub(crate) hints: Hints,
    pub(crate) discard_limit: u64,
    pub(crate) generate_keys: bool,
    pub(crate) destination: Option<Destination>,
    statuses: Vec<(StatusCode, Verdict)>,
    classifier: Option<SharedClassifier>,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            replay: ReplayLimits::default(),
            hints: Hints::default(),
            discard_limit: DISCARD_LIMIT,
            generate_keys: false,
            destination: None,
            statuses: Vec::new(),
            classifier: None,
        }
    }
}

impl Protocol for Http {
    type Head = http::request::Parts;
}

impl Http {
    pub(crate) fn set_status(&mut self, status: StatusCode, verdict: Verdict) {
        self.statuses.retain(|(other, _)| *other != status);
        self.statuses.push((status, verdict));
    }

    /// Asks `next` what the classifiers so far leave open.
    pub(crate) fn add_classifier(&mut self, next: SharedClassifier) {
        self.classifier = Some(match self.classifier.take() {
            None => next,
            Some(first) => Arc::new(move |outcome: Outcome<'_>| {
                first.classify(outcome).or_else(|| next.classify(outcome))
            }),
        });
    }

    /// Whether a request with this head may be retried, and whether it may be repeated.
    pub(crate) fn repeatability(&self, method: &Method, headers: &HeaderMap) -> Repeatability {
        let carry = method != Method::CONNECT && !headers.contains_key(http::header::UPGRADE);
        let repeatable = is_repeatable(method, headers);
        // A safe or idempotent method needs no key; what remains is repeatable by its key alone.
        Repeatability { carry, repeatable, keyed: repeatable && !method.is_idempotent() }
    }

    /// The same, after giving the request an idempotency key where that is asked for and needed.
    pub(crate) fn admit(&self, method: &Method, headers: &mut HeaderMap) -> Repeatability {
        let found = self.repeatability(method, headers);
        if !self.generate_keys || !found.carry || found.repeatable {
            return found;
        }
        headers.insert(IDEMPOTENCY_KEY, new_idempotency_key());
        Repeatability { repeatable: true, keyed: true, ..found }
    }

    /// The judgement of a response.
    #[inline]
    pub(crate) fn judge_response(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        options: Option<&CallOptions>,
    ) -> Judgement {
        let custom = self.custom(Outcome::Response { status, headers }, options);
        let verdict = custom.or_else(|| {
            self.statuses.iter().find(|(other, _)| *other == status).map(|(_, verdict)| *verdict)
        });
        let overridden = verdict.is_some();
        let verdict = verdict.unwrap_or_else(|| verdict_of_status(status));
        if verdict == Verdict::Success {
            return Judgement::new(verdict);
        }
        self.judge_refusal(status, headers, verdict, overridden)
    }

    /// Adds what the server asks for to a verdict that is not success.
    fn judge_refusal(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        verdict: Verdict,
        overridden: bool,
    ) -> Judgement {
        let hinted = self.hints.read(headers, SystemTime::now);
        let verdict = match (verdict, hinted.should_retry) {
            (Verdict::Permanent, Some(true)) if !overridden => {
                Verdict::Transient(Failure::new(FailureKind::Server).with_code(status.as_u16()))
            }
            (verdict, _) => verdict,
        };
        Judgement { verdict, hint: hinted.hint }
    }

    /// The judgement of an error.
    pub(crate) fn judge_error(
        &self,
        error: &(dyn Error + 'static),
        options: Option<&CallOptions>,
    ) -> Judgement {
        self.custom(Outcome::Error(error), options)
            .unwrap_or_else(|| errors::verdict_of_error(error))
            .into()
    }

    /// What the classifiers say, the call's own first.
    #[inline]
    fn custom(&self, outcome: Outcome<'_>, options: Option<&CallOptions>) -> Option<Verdict> {
        let of_call =
            options.and_then(CallOptions::classifier).and_then(|own| own.classify(outcome));
        of_call.or_else(|| self.classifier.as_ref()?.classify(outcome))
    }

    /// The budget's key of a request for `uri`.
    pub(crate) fn destination_of<'a>(&self, uri: &'a Uri, headers: &'a HeaderMap) -> Cow<'a, str> {
        match &self.destination {
            Some(destination) => destination(uri),
            None => uri
                .authority()
                .map(|authority| authority.as_str())
                .or_else(|| headers.get(http::header::HOST)?.to_str().ok())
                .unwrap_or_default()
                .into(),
        }
    }
}

/// What [`Http::repeatability`] found.
pub(crate) struct Repeatability {
    pub(crate) carry: bool,
    pub(crate) repeatable: bool,
    pub(crate) keyed: bool,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("replay", &self.replay)
            .field("hints", &self.hints)
            .field("discard_limit", &self.discard_limit)
            .field("generate_idempotency_keys", &self.generate_keys)
            .field("statuses", &self.statuses)
            .finish_non_exhaustive()
    }
}
