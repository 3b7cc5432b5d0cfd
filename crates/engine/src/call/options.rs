//! The options of one call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "http")]
use http::StatusCode;
use reattempt_core::{Classification, Classifier, SharedSchedule, Verdict};

use super::deadline::Deadline;
use super::method::MethodOverrides;
use super::nesting::Nesting;
#[cfg(feature = "http")]
use super::outcome::Outcome;
use super::report::ReportSlot;

#[cfg(feature = "http")]
/// A classifier of HTTP outcomes.
pub(crate) type SharedClassifier = Arc<dyn for<'a> Classifier<Outcome<'a>> + Send + Sync>;

#[cfg(feature = "http")]
/// Returns a classifier that calls `first`, then `next` if the result is `None`.
pub(crate) fn chained(first: Option<SharedClassifier>, next: SharedClassifier) -> SharedClassifier {
    match first {
        None => next,
        Some(first) => Arc::new(move |outcome: Outcome<'_>| first.classify(outcome).or_else(|| next.classify(outcome))),
    }
}

/// The options of one call, which override the policy's settings.
///
/// Add them to the extensions of an `http::Request`, or set them for all calls of a handle with
/// [`Retry::with_options`](crate::Retry::with_options). Use a handle for reqwest, whose requests have no public
/// extensions. The request's options take precedence over the handle's, and the handle's over the policy. If either the
/// request or the handle forbids retries, the call is not retried.
///
/// Each layer uses the options that apply to it and ignores the others. Options set on an outer retry or hedge handle
/// do not reach guards and fallbacks, except for the deadline.
///
/// | option | retry layer | hedging | [`retry`](crate::retry()) | guards, fallback |
/// |---|---|---|---|---|
/// | [`never_retry`](Self::never_retry) | yes | yes | yes | no |
/// | [`repeatable`](Self::repeatable) | yes | yes | yes | fallback |
/// | [`max_attempts`](Self::max_attempts) | yes | up to the policy's cap | yes | no |
/// | [`max_elapsed`](Self::max_elapsed), [`max_server_delay`](Self::max_server_delay) | yes | yes | yes | no |
/// | [`attempt_timeout`](Self::attempt_timeout) | with boxed errors | no | no | no |
/// | [`deadline`](Self::deadline) | yes | yes | yes | yes |
/// | [`backoff`](Self::backoff) | yes | no | yes | no |
/// | `on_status`, `classify` | yes | yes | no | yes |
/// | [`report_to`](Self::report_to) | yes | yes | yes | no |
///
/// Tower's own `tower::retry::RetryLayer` uses the same options as the retry layer, except `attempt_timeout`.
///
/// ```
/// use std::time::Duration;
/// use reattempt::{CallOptions, Deadline};
///
/// let mut request = http::Request::post("http://shop.example/orders").body(()).unwrap();
/// request.extensions_mut().insert(
///     CallOptions::new()
///         .repeatable(true) // the server finds duplicates by the order number
///         .max_attempts(5)
///         .deadline(Deadline::after(Duration::from_secs(2))),
/// );
/// ```
#[derive(Clone, Default)]
pub struct CallOptions {
    own: Option<Arc<OptionValues>>,
    method: Option<Arc<dyn MethodOverrides>>,
    /// The client's maximum number of attempts, which limits the overrides for a method.
    most_attempts: u32,
    never: bool,
}

#[derive(Clone, Default)]
struct OptionValues {
    repeatable: Option<bool>,
    max_attempts: Option<u32>,
    max_elapsed: Option<Option<Duration>>,
    max_server_delay: Option<Duration>,
    attempt_timeout: Option<Duration>,
    deadline: Option<Deadline>,
    schedule: Option<SharedSchedule>,
    #[cfg(feature = "http")]
    classifier: Option<SharedClassifier>,
    slot: Option<ReportSlot>,
    nesting: Option<Nesting>,
}

impl CallOptions {
    /// Creates options without overrides.
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns retries off for this call, or for the calls of a handle with these options. No policy can turn them on
    /// again. The request body is not saved, so an unprocessed attempt is not replaced either.
    ///
    /// [`RetryPolicy::never_retry`](crate::RetryPolicy::never_retry) does the same for all calls.
    #[doc(alias("disabled", "no_retry", "off"))]
    pub fn never_retry(self) -> Self {
        Self { never: true, ..self }
    }

    /// Sets whether the request may be processed twice. With `true`, a POST is retried like a PUT. With `false`, a
    /// request is not repeated if the server may have processed it. Default: depends on the method and the
    /// `Idempotency-Key`.
    #[doc(alias("idempotent", "safe", "retryable"))]
    pub fn repeatable(self, repeatable: bool) -> Self {
        self.set(|settings| settings.repeatable = Some(repeatable))
    }

    /// Sets the maximum number of attempts, including the first. 0 is raised to 1, and `None` removes the limit.
    /// Default: the policy's value.
    #[doc(alias("max_retries", "max_tries"))]
    pub fn max_attempts(self, attempts: impl Into<Option<u32>>) -> Self {
        let attempts = attempts.into().unwrap_or(u32::MAX);
        self.set(|settings| settings.max_attempts = Some(attempts))
    }

    /// Sets the maximum time from the start of the call to the start of its last attempt. `None` removes the limit.
    /// Default: the policy's value.
    #[doc(alias = "total_timeout")]
    pub fn max_elapsed(self, elapsed: impl Into<Option<Duration>>) -> Self {
        let elapsed = elapsed.into();
        self.set(|settings| settings.max_elapsed = Some(elapsed))
    }

    /// Sets the maximum delay that the server may ask for. If it asks for more, the call is not retried. `None` removes
    /// the limit. Default: the policy's value.
    pub fn max_server_delay(self, delay: impl Into<Option<Duration>>) -> Self {
        let delay = delay.into().unwrap_or(Duration::MAX);
        self.set(|settings| settings.max_server_delay = Some(delay))
    }

    /// Sets the time limit of each attempt, up to its response head. Default: the policy's value.
    ///
    /// This option applies only to retry policies that can interrupt an attempt: those with
    /// [`attempt_timeout`](crate::RetryPolicy::attempt_timeout) or [`boxed_errors`](crate::RetryPolicy::boxed_errors).
    /// Other policies, layers whose settings come from a config, and hedging ignore it. There, `attempt_timeout` of a
    /// guard layer limits each attempt.
    #[doc(alias = "timeout")]
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        self.set(|settings| settings.attempt_timeout = Some(timeout))
    }

    /// Sets the time by which the call must end. If the request also has a [`Deadline`] in its extensions, the earlier
    /// one applies.
    pub fn deadline(self, deadline: Deadline) -> Self {
        self.set(|settings| settings.deadline = Some(deadline))
    }

    /// Sets the schedule of delays for this call. Default: the policy's value.
    pub fn backoff(self, schedule: SharedSchedule) -> Self {
        self.set(|settings| settings.schedule = Some(schedule))
    }

    /// Overrides the verdict for one status, for this call.
    #[cfg(feature = "http")]
    pub fn on_status(self, status: StatusCode, verdict: Verdict) -> Self {
        self.classify(move |outcome| (outcome.status() == Some(status)).then_some(verdict))
    }

    /// Adds a classifier, which is called after the classifiers that were added to these options earlier, and before
    /// the policy's.
    ///
    /// If the classifier returns `None`, the next one decides. A classifier may also return a hint, as in
    /// [`Http::classify`](crate::Http::classify).
    #[cfg(feature = "http")]
    pub fn classify<C, V>(self, classifier: C) -> Self
    where
        C: for<'a> Fn(Outcome<'a>) -> Option<V> + Send + Sync + 'static,
        V: Into<Classification>,
    {
        self.set(|settings| {
            settings.classifier = Some(chained(settings.classifier.take(), Arc::new(classifier)));
        })
    }

    /// Sets the slot that receives the call's report when the call ends with a response or an error.
    pub fn report_to(self, slot: &ReportSlot) -> Self {
        let slot = slot.clone();
        self.set(|settings| settings.slot = Some(slot))
    }

    /// Returns the slot set with [`report_to`](Self::report_to).
    pub fn report_slot(&self) -> Option<&ReportSlot> {
        self.slot()
    }

    fn set(mut self, change: impl FnOnce(&mut OptionValues)) -> Self {
        change(Arc::make_mut(self.own.get_or_insert_default()));
        self
    }
}

/// Internal methods.
impl CallOptions {
    /// Removes the slot for the report.
    #[doc(hidden)]
    #[cfg(feature = "http")]
    pub fn without_report(self) -> Self {
        self.set(|settings| settings.slot = None)
    }

    /// Coordinates the call with other layers' calls on the way of a request that has no extensions of its own. Inserts
    /// the markers for the layers inside, and returns the options with those of this call.
    #[doc(hidden)]
    #[cfg(feature = "http")]
    pub fn nested_in(self, extensions: &mut http::Extensions) -> Self {
        let nesting = extensions.get::<Nesting>().map(Nesting::inside).unwrap_or_default();
        extensions.insert(nesting.clone());
        self.set(|settings| settings.nesting = Some(nesting))
    }

    /// Gives `to` the markers of `from`, which are those outside the call.
    #[doc(hidden)]
    #[cfg(feature = "http")]
    pub fn restore_nesting(from: &http::Extensions, to: &mut http::Extensions) {
        match from.get::<Nesting>().cloned() {
            Some(outside) => drop(to.insert(outside)),
            None => drop(to.remove::<Nesting>()),
        }
    }

    pub(crate) fn nesting(&self) -> Option<&Nesting> {
        self.own.as_ref()?.nesting.as_ref()
    }

    /// Fills in missing options from the handle's.
    pub(crate) fn or(self, handle: &Self) -> Self {
        let own = match (self.own, &handle.own) {
            (Some(own), Some(handle)) => Some(Arc::new(own.or(handle))),
            (own, handle) => own.or_else(|| handle.clone()),
        };
        let (method, most_attempts) = match self.method {
            None => (handle.method.clone(), handle.most_attempts),
            method => (method, self.most_attempts),
        };
        Self { own, method, most_attempts, never: self.never || handle.never }
    }

    /// Returns these options with the overrides of the call's method and the client's maximum number of attempts.
    pub(crate) fn with_method(self, method: Arc<dyn MethodOverrides>, most_attempts: u32) -> Self {
        Self { method: Some(method), most_attempts, ..self }
    }

    /// Returns `true` if the options forbid retries, and set nothing else that has an effect on a single attempt.
    #[inline]
    pub(crate) fn only_forbids(&self) -> bool {
        self.never
            && self.method.is_none()
            && self
                .own
                .as_ref()
                .is_none_or(|own| own.schedule.is_none() && own.slot.is_none() && own.deadline.is_none())
    }
    pub(crate) fn never(&self) -> bool {
        self.never
    }
    #[doc(hidden)]
    pub fn get_repeatable(&self) -> Option<bool> {
        self.own.as_ref()?.repeatable
    }
    pub(crate) fn get_max_attempts(&self) -> Option<u32> {
        let own = self.own.as_ref().and_then(|own| own.max_attempts);
        own.or_else(|| Some(self.method()?.max_attempts()?.min(self.most_attempts)))
    }
    pub(crate) fn get_max_elapsed(&self) -> Option<Option<Duration>> {
        self.own.as_ref()?.max_elapsed
    }
    pub(crate) fn get_max_server_delay(&self) -> Option<Duration> {
        self.own.as_ref()?.max_server_delay
    }
    pub(crate) fn get_attempt_timeout(&self) -> Option<Duration> {
        self.own.as_ref()?.attempt_timeout
    }
    /// Returns the deadline. A method's timeout starts now.
    // DL-1
    pub(crate) fn get_deadline(&self) -> Option<Deadline> {
        let own = self.own.as_ref().and_then(|own| own.deadline);
        let timeout = self.method().and_then(|method| method.timeout()).map(Deadline::after);
        own.into_iter().chain(timeout).min()
    }
    pub(crate) fn get_schedule(&self) -> Option<&SharedSchedule> {
        self.own.as_ref()?.schedule.as_ref()
    }
    #[cfg(feature = "http")]
    pub(crate) fn classifier(&self) -> Option<&SharedClassifier> {
        self.own.as_ref()?.classifier.as_ref()
    }
    #[cfg(feature = "http")]
    pub(crate) fn classifies(&self) -> bool {
        self.classifier().is_some()
    }
    pub(crate) fn slot(&self) -> Option<&ReportSlot> {
        self.own.as_ref()?.slot.as_ref()
    }
    #[doc(hidden)]
    pub fn method(&self) -> Option<&dyn MethodOverrides> {
        self.method.as_deref()
    }
}

impl OptionValues {
    /// Fills in missing settings from the handle's.
    fn or(&self, handle: &Self) -> Self {
        #[cfg(feature = "http")]
        let classifier = match (&self.classifier, &handle.classifier) {
            (own, None) => own.clone(),
            (own, Some(handle)) => Some(chained(own.clone(), handle.clone())),
        };
        Self {
            repeatable: self.repeatable.or(handle.repeatable),
            max_attempts: self.max_attempts.or(handle.max_attempts),
            max_elapsed: self.max_elapsed.or(handle.max_elapsed),
            max_server_delay: self.max_server_delay.or(handle.max_server_delay),
            attempt_timeout: self.attempt_timeout.or(handle.attempt_timeout),
            deadline: self.deadline.or(handle.deadline),
            schedule: self.schedule.clone().or_else(|| handle.schedule.clone()),
            #[cfg(feature = "http")]
            classifier,
            slot: self.slot.clone().or_else(|| handle.slot.clone()),
            nesting: self.nesting.clone().or_else(|| handle.nesting.clone()),
        }
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = OptionValues::default();
        let settings = self.own.as_deref().unwrap_or(&none);
        f.debug_struct("CallOptions")
            .field("never_retry", &self.never)
            .field("repeatable", &settings.repeatable)
            .field("max_attempts", &settings.max_attempts)
            .field("max_elapsed", &settings.max_elapsed)
            .field("max_server_delay", &settings.max_server_delay)
            .field("attempt_timeout", &settings.attempt_timeout)
            .field("deadline", &settings.deadline)
            .finish_non_exhaustive()
    }
}
