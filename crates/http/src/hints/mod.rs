//! Server hints: response headers that ask the client to delay its retries or to stop them.
//!
//! Headers that cannot be parsed are ignored, because a peer may send anything.

mod added;
mod date;
mod list;
mod number;
mod rate_limit;

use std::cell::LazyCell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::{DATE, GetAll, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reattempt_core::guard::Quota;
use reattempt_core::{Classification, Failure, FailureKind, ServerHint, Verdict};

use added::AddedNames;
use date::{date, epoch};
use number::{milliseconds, rounded_up, with_units};

static RETRY_AFTER_MS: [HeaderName; 3] = [
    HeaderName::from_static("retry-after-ms"),
    HeaderName::from_static("x-ms-retry-after-ms"),
    HeaderName::from_static("x-amz-retry-after"),
];
static SHOULD_RETRY: [HeaderName; 2] =
    [HeaderName::from_static("x-should-retry"), HeaderName::from_static("stripe-should-retry")];

/// Selects the response headers that are read for hints.
///
/// | header | value | default |
/// |---|---|---|
/// | `retry-after-ms`, `x-ms-retry-after-ms`, `x-amz-retry-after` | a delay in milliseconds; a fraction is rounded up | read |
/// | `Retry-After` (RFC 9110 §10.2.3) | a delay or a date in any of the forms below | read |
/// | the headers of [`delay_in`](Self::delay_in) | a delay or a date in any of the forms below | none |
/// | `RateLimit` and the headers in [`rate_limit`](Self::rate_limit) and [`quota_in`](Self::quota_in) | the time at which an exhausted quota is reset | not read: a retry rarely needs a full quota, and vendors disagree on the unit |
/// | `x-should-retry`, `stripe-should-retry` | `true` or `false`, in any case | read |
///
/// | form | meaning |
/// |---|---|
/// | `120`, `299.997` | seconds; a fraction is rounded up |
/// | `60s`, `6m0s`, `500 ms`, `1.5 hours` | numbers with units, from days to milliseconds; the sum is rounded up to milliseconds |
/// | `1790000000`, `1790000000000`, with or without a fraction | the time since 1970 in seconds or milliseconds; smaller numbers are delays |
/// | `Sun, 06 Nov 1994 08:49:37 GMT` | a date in one of HTTP's three formats, also with `UTC` or `+0000` |
/// | `1994-11-06T08:49:37Z`, `1994-11-06T09:49:37.5+01:00` | an ISO 8601 date and time with a zone |
///
/// - If several headers contain a delay, the first one in the first table is used, because it is the most precise.
/// - If a header has several values, on one line or several, the longest delay is used. A shorter one could make the
///   retry arrive too early for the server.
/// - A delay of zero sets no minimum: the schedule's delay is used.
/// - If no value of `Retry-After` or of a header in milliseconds can be read, the hint is
///   [`Unreadable`](ServerHint::Unreadable). The server has asked for a delay, so the retry is not sent at once.
/// - The value `false` of `x-should-retry` or `stripe-should-retry` prevents any retry. It takes precedence over `true`
///   and every other rule.
/// - The value `true` overrides the [table of statuses](crate::verdict_of_status). It does not override the client's
///   own rules or classifiers.
/// - Any other header that cannot be parsed is ignored.
/// - A date with the wrong day of the week cannot be read: `Mon, 06 Nov 1994` was a Sunday.
/// - A date with a leap second (`:60`) is read as the second after `:59`. A two-digit year from 70 on is in the 1900s,
///   and one below 70 in the 2000s.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::HeaderMap;
/// # use reattempt_core::ServerHint;
/// # use reattempt_http::Hints;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "1".parse()?);
/// headers.insert("retry-after-ms", "250".parse()?);
/// let hinted = Hints::default().read(&headers, SystemTime::now);
/// assert_eq!(hinted.hint, ServerHint::After(Duration::from_millis(250)));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hints {
    retry_after: bool,
    retry_after_ms: bool,
    should_retry: bool,
    rate_limit: bool,
    /// `true` if any header with a quota is read.
    quotas: bool,
    /// The names that the program has added, if there are any.
    added: Option<Arc<AddedNames>>,
}

impl Default for Hints {
    fn default() -> Self {
        Self::none().retry_after(true).retry_after_ms(true).should_retry(true)
    }
}

/// The hints found in the headers of one response, returned by [`Hints::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hinted {
    /// The delay that the server requested, or its request to stop.
    pub hint: ServerHint,
    /// The value of `x-should-retry` or `stripe-should-retry`. If it is `Some(false)`, the hint is
    /// [`ServerHint::Stop`].
    pub should_retry: Option<bool>,
}

impl Hints {
    /// Creates settings that read no hints.
    #[must_use]
    pub const fn none() -> Self {
        let (retry_after, retry_after_ms, should_retry, rate_limit) = (false, false, false, false);
        Self { retry_after, retry_after_ms, should_retry, rate_limit, quotas: false, added: None }
    }

    /// Sets whether `Retry-After` is read. On by default.
    #[must_use]
    pub const fn retry_after(mut self, read: bool) -> Self {
        self.retry_after = read;
        self
    }

    /// Sets whether `retry-after-ms`, `x-ms-retry-after-ms` (Azure) and `x-amz-retry-after` (AWS) are read. On by
    /// default.
    #[must_use]
    pub const fn retry_after_ms(mut self, read: bool) -> Self {
        self.retry_after_ms = read;
        self
    }

    /// Sets whether `x-should-retry` and `stripe-should-retry` are read. On by default.
    #[must_use]
    pub const fn should_retry(mut self, read: bool) -> Self {
        self.should_retry = read;
        self
    }

    /// Sets whether the rate-limit headers of well-known services are read. [`read`](Self::read) then reads the reset
    /// of an exhausted limit, and [`quota`](Self::quota) the quota. Off by default.
    ///
    /// | remaining | reset | sent by |
    /// |---|---|---|
    /// | `r` of `RateLimit: "name";r=0;t=30` | its `t`, in seconds | [draft-ietf-httpapi-ratelimit-headers][draft], from version 08 on |
    /// | `RateLimit-Remaining` | `RateLimit-Reset` | the draft up to version 06; [GitLab] (an epoch), [Zendesk] and [Resend] (seconds) |
    /// | `X-RateLimit-Remaining` | `X-RateLimit-Reset` | [GitHub] (an epoch), [Reddit] (seconds; a fraction of calls), [Rocket.Chat] (an epoch in milliseconds), [Atlassian] (ISO 8601) |
    /// | `X-RateLimit-Remaining` | `X-RateLimit-Reset-After` | [Discord] (seconds with a fraction) |
    /// | `X-Rate-Limit-Remaining` | `X-Rate-Limit-Reset` | [Okta] and [Twitter] (an epoch) |
    /// | `X-RateLimit-Remaining-Requests`, `…-Tokens` | `X-RateLimit-Reset-Requests`, `…-Tokens` | [OpenAI], Groq (`6m0s`) |
    /// | `X-RateLimit-Requests-Remaining`, `X-RateLimit-Complexity-Remaining` | `X-RateLimit-Requests-Reset`, `X-RateLimit-Complexity-Reset` | [Linear] (an epoch in milliseconds) |
    /// | `anthropic-ratelimit-requests-remaining`, `…-input-tokens-…`, `…-output-tokens-…` | `anthropic-ratelimit-requests-reset`, `…-input-tokens-…`, `…-output-tokens-…` | [Anthropic] (ISO 8601) |
    /// | `X-Sentry-Rate-Limit-Remaining` | `X-Sentry-Rate-Limit-Reset` | [Sentry] (an epoch) |
    /// | `X-Sib-RateLimit-Remaining` | `X-Sib-RateLimit-Reset` | [Brevo] (seconds) |
    ///
    /// [Slack] and [Notion] only send `Retry-After`, which is read by default. Salesforce's `Sforce-Limit-Info` and
    /// GitHub's `X-RateLimit-Used` contain no reset, so they are not read. [`quota_in`](Self::quota_in) adds other
    /// names.
    ///
    /// Below the first row, a reset has any of the forms of `Retry-After`. A delay of more than a day is ignored as
    /// absurd, but a date is not. A fraction of a remaining call is dropped.
    ///
    /// If several quotas are exhausted, the longest delay counts. A malformed `RateLimit` is ignored as a whole. None
    /// of them is read if `Age` is above 0, because the response then comes from a cache.
    ///
    /// [draft]: https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
    /// [GitLab]: https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/#response-headers
    /// [Zendesk]: https://developer.zendesk.com/documentation/ticketing/using-the-zendesk-api/best-practices-for-avoiding-rate-limiting/
    /// [Resend]: https://resend.com/changelog/api-rate-limit
    /// [GitHub]: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    /// [Reddit]: https://github.com/reddit-archive/reddit/wiki/API#rules
    /// [Rocket.Chat]: https://github.com/RocketChat/Rocket.Chat/blob/develop/apps/meteor/app/api/server/ApiClass.ts
    /// [Atlassian]: https://developer.atlassian.com/cloud/jira/platform/rate-limiting/
    /// [Discord]: https://docs.discord.com/developers/topics/rate-limits
    /// [Okta]: https://developer.okta.com/docs/reference/rl-best-practices/
    /// [Twitter]: https://docs.x.com/fundamentals/rate-limits
    /// [OpenAI]: https://platform.openai.com/docs/guides/rate-limits
    /// [Linear]: https://linear.app/developers/rate-limiting
    /// [Anthropic]: https://docs.anthropic.com/en/api/rate-limits
    /// [Sentry]: https://docs.sentry.io/api/ratelimits
    /// [Brevo]: https://developers.brevo.com/docs/limit-headers
    /// [Slack]: https://api.slack.com/apis/rate-limits
    /// [Notion]: https://developers.notion.com/reference/request-limits
    #[must_use]
    pub const fn rate_limit(mut self, read: bool) -> Self {
        self.rate_limit = read;
        self.quotas = read || self.added.is_some();
        self
    }

    /// Reads the hints from a response's headers.
    ///
    /// The delay until a date is measured from the response's own `Date`, so it does not depend on the local clock.
    /// `wall_clock` is called at most once, and only for a date in a response without a valid `Date`. A date in the
    /// past gives a delay of zero. Overflowing numbers saturate.
    pub fn read(&self, headers: &HeaderMap, wall_clock: impl FnOnce() -> SystemTime) -> Hinted {
        if headers.is_empty() {
            return Hinted { hint: ServerHint::None, should_retry: None };
        }
        let should_retry = if self.should_retry { read_should_retry(headers) } else { None };
        let hint = if should_retry == Some(false) {
            ServerHint::Stop
        } else {
            self.wait(headers, &until(headers, wall_clock))
        };
        Hinted { hint, should_retry }
    }

    /// Reads the quota from a response's headers, regardless of its status. Returns `None` unless
    /// [`rate_limit`](Self::rate_limit) is on or [`quota_in`](Self::quota_in) has added names.
    ///
    /// If there are several quotas, returns the one with the fewest calls per second.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use http::HeaderMap;
    /// # use reattempt_http::Hints;
    ///
    /// let mut headers = HeaderMap::new();
    /// headers.insert("ratelimit", r#""burst";r=50;t=1, "daily";r=30;t=3600"#.parse()?);
    /// let quota = Hints::none().rate_limit(true).quota(&headers, SystemTime::now).unwrap();
    /// assert_eq!((quota.remaining, quota.reset), (30, Duration::from_secs(3600)));
    /// # Ok::<(), http::header::InvalidHeaderValue>(())
    /// ```
    #[inline]
    pub fn quota(&self, headers: &HeaderMap, wall_clock: impl FnOnce() -> SystemTime) -> Option<Quota> {
        if !self.quotas {
            return None;
        }
        rate_limit::quota(self, headers, &until(headers, wall_clock))
    }

    fn wait(&self, headers: &HeaderMap, until: Until<'_>) -> ServerHint {
        let mut wait = None;
        if self.retry_after_ms {
            wait = RETRY_AFTER_MS.iter().find_map(|name| longest(headers.get_all(name), &milliseconds));
        }
        if wait.is_none() && self.retry_after {
            wait = longest(headers.get_all(RETRY_AFTER), &|value| retry_after(value, until));
        }
        let delays = self.added.as_deref().map(|added| &*added.delays).unwrap_or_default();
        if wait.is_none() {
            let in_each = |name| longest(headers.get_all(name), &|value| retry_after(value, until));
            wait = delays.iter().filter_map(in_each).max();
        }
        if wait.is_none() && self.quotas {
            wait = rate_limit::wait(self, headers, until);
        }
        match wait {
            Some(wait) => ServerHint::After(wait),
            None if self.retry_after_ms && RETRY_AFTER_MS.iter().any(|name| has_value(headers, name)) => {
                ServerHint::Unreadable
            }
            None if self.retry_after && has_value(headers, &RETRY_AFTER) => ServerHint::Unreadable,
            None if delays.iter().any(|name| has_value(headers, name)) => ServerHint::Unreadable,
            None => ServerHint::None,
        }
    }
}

impl Hinted {
    /// Combines these hints with the verdict for the same response.
    ///
    /// `x-should-retry: true` turns a permanent verdict for a 4xx or 5xx status into a transient one. The request is
    /// then retried if it is [repeatable](crate::is_repeatable). The header changes no other verdict.
    ///
    /// ```
    /// # use std::time::SystemTime;
    /// use http::{HeaderMap, StatusCode};
    /// # use reattempt_core::Verdict;
    /// # use reattempt_http::{Hints, verdict_of_status};
    ///
    /// let mut headers = HeaderMap::new();
    /// headers.insert("x-should-retry", "true".parse()?);
    /// let hinted = Hints::default().read(&headers, SystemTime::now);
    ///
    /// let conflict = StatusCode::CONFLICT;
    /// let classification = hinted.classification(verdict_of_status(conflict), conflict);
    /// assert!(matches!(classification.verdict, Verdict::Transient(_)));
    /// # Ok::<(), http::header::InvalidHeaderValue>(())
    /// ```
    #[must_use]
    pub fn classification(&self, verdict: Verdict, status: StatusCode) -> Classification {
        let kind = if status.is_server_error() { FailureKind::Server } else { FailureKind::Other };
        let failing = status.is_client_error() || status.is_server_error();
        let verdict = match verdict {
            Verdict::Permanent if failing && self.should_retry == Some(true) => {
                Verdict::Transient(Failure::new(kind).with_code(status.as_u16()))
            }
            verdict => verdict,
        };
        verdict.with_hint(self.hint)
    }
}

/// A function that measures the time until a date on the server's clock.
type Until<'a> = &'a dyn Fn(SystemTime) -> Duration;

/// Returns a function that measures the time until a date on the server's clock.
fn until(headers: &HeaderMap, wall_clock: impl FnOnce() -> SystemTime) -> impl Fn(SystemTime) -> Duration {
    let now = LazyCell::new(|| headers.get(DATE).and_then(|own| date(own.as_bytes())).unwrap_or_else(wall_clock));
    move |date| date.duration_since(*now).unwrap_or(Duration::ZERO)
}

/// Reads a `Retry-After`: a delay in seconds or with units, or a date in any form.
fn retry_after(value: &[u8], until: Until<'_>) -> Option<Duration> {
    if let Some(date) = epoch(value).or_else(|| date(value)) {
        return Some(until(date));
    }
    rounded_up(value).map(Duration::from_secs).or_else(|| with_units(value))
}

/// Returns `true` if this header contains anything.
fn has_value(headers: &HeaderMap, name: &HeaderName) -> bool {
    each(headers.get_all(name)).any(|value| !value.is_empty())
}

/// Returns the longest delay among a header's values. Values that cannot be parsed are skipped.
fn longest(values: GetAll<'_, HeaderValue>, parse: &dyn Fn(&[u8]) -> Option<Duration>) -> Option<Duration> {
    each(values).filter_map(parse).max()
}

/// Returns each value of a header, on one line or several.
fn each<'a>(values: GetAll<'a, HeaderValue>) -> impl Iterator<Item = &'a [u8]> {
    values.into_iter().flat_map(|value| members(value.as_bytes()))
}

/// Splits a line into values, because a proxy may have joined several. A comma after a day's name is part of a date.
fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let mut commas = line.iter().enumerate().filter(|(_, byte)| **byte == b',');
        // Only the first comma of a member can follow a day's name. Each byte is therefore read only a few times,
        // whatever the peer sends.
        let splits = |(place, _): (usize, &u8)| {
            let before = line[..place].trim_ascii();
            let day = !before.is_empty() && before.iter().all(u8::is_ascii_alphabetic);
            (!day).then_some(place)
        };
        let comma = commas.find_map(splits);
        rest = comma.map(|comma| &line[comma + 1..]);
        Some(line[..comma.unwrap_or(line.len())].trim_ascii())
    })
}

fn read_should_retry(headers: &HeaderMap) -> Option<bool> {
    let mut retry = None;
    let lines = SHOULD_RETRY.iter().flat_map(|name| headers.get_all(name));
    for value in lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii) {
        if value.eq_ignore_ascii_case(b"false") {
            return Some(false); // `false` takes precedence over `true`
        }
        if value.eq_ignore_ascii_case(b"true") {
            retry = Some(true);
        }
    }
    retry
}
