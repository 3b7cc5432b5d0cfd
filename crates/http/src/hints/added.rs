//! The names of headers that a program adds to the known ones.

use std::sync::Arc;

use http::HeaderName;

use super::Hints;

/// The names of headers that a program has added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AddedNames {
    /// Headers with a delay.
    pub(super) delays: Vec<HeaderName>,
    /// Headers with the remaining calls and the time until the reset.
    pub(super) quotas: Vec<[HeaderName; 2]>,
}

impl Hints {
    /// Adds a header that contains a delay or a date in any of the forms of `Retry-After`. Can be called several times.
    ///
    /// It is read if neither `Retry-After` nor a header in milliseconds contains a delay. If several added headers
    /// contain one, the longest delay counts. Like `Retry-After`, a value that cannot be read is a request for a delay.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use http::{HeaderMap, HeaderName};
    /// # use reattempt_core::ServerHint;
    /// # use reattempt_http::Hints;
    ///
    /// let hints = Hints::default().delay_in(HeaderName::from_static("x-ratelimit-retry-after"));
    /// let mut headers = HeaderMap::new();
    /// headers.insert("x-ratelimit-retry-after", "42".parse()?);
    /// let hinted = hints.read(&headers, SystemTime::now);
    /// assert_eq!(hinted.hint, ServerHint::After(Duration::from_secs(42)));
    /// # Ok::<(), http::header::InvalidHeaderValue>(())
    /// ```
    #[must_use]
    pub fn delay_in(mut self, name: HeaderName) -> Self {
        self.added_mut().delays.push(name);
        self
    }

    /// Adds two headers with a quota: the remaining calls, and the time until the reset in any of the forms of
    /// `Retry-After`. Can be called several times.
    ///
    /// The added headers are read even if [`rate_limit`](Self::rate_limit) is off, with its rules.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use http::{HeaderMap, HeaderName};
    /// # use reattempt_http::Hints;
    ///
    /// let name = HeaderName::from_static;
    /// let hints = Hints::default().quota_in(name("x-calls-left"), name("x-calls-renewed"));
    /// let mut headers = HeaderMap::new();
    /// headers.insert("x-calls-left", "7".parse()?);
    /// headers.insert("x-calls-renewed", "1m30s".parse()?);
    /// let quota = hints.quota(&headers, SystemTime::now).unwrap();
    /// assert_eq!((quota.remaining, quota.reset), (7, Duration::from_secs(90)));
    /// # Ok::<(), http::header::InvalidHeaderValue>(())
    /// ```
    #[must_use]
    pub fn quota_in(mut self, remaining: HeaderName, reset: HeaderName) -> Self {
        self.added_mut().quotas.push([remaining, reset]);
        self.quotas = true;
        self
    }

    fn added_mut(&mut self) -> &mut AddedNames {
        Arc::make_mut(self.added.get_or_insert_default())
    }
}
