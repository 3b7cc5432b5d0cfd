//! The delay, or the stop, that a server asks for in the headers of a refusal.
//!
//! Each header is text from the peer. A header that cannot be read is ignored.

mod list;
mod number;
mod rate_limit;

use std::cell::LazyCell;
use std::time::{Duration, SystemTime};

use http::header::{AsHeaderName, DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, StatusCode};
use reattempt_core::{Classification, Failure, FailureKind, ServerHint, Verdict};

use number::{delta_seconds, milliseconds};

static RETRY_AFTER_MS: [HeaderName; 2] =
    [HeaderName::from_static("retry-after-ms"), HeaderName::from_static("x-ms-retry-after-ms")];
static SHOULD_RETRY: [HeaderName; 2] =
    [HeaderName::from_static("x-should-retry"), HeaderName::from_static("stripe-should-retry")];

/// Which of a server's hints are read.
///
/// | header | value | default |
/// |---|---|---|
/// | `retry-after-ms`, `x-ms-retry-after-ms` | milliseconds; a fraction is rounded up | read |
/// | `Retry-After` | whole seconds or one of the three HTTP dates (RFC 9110 §10.2.3) | read |
/// | `x-should-retry`, `stripe-should-retry` | `true` or `false`, in any case | read |
/// | `RateLimit`, `RateLimit-Reset`, `X-RateLimit-Reset` | when the quota fills up again; only while none is left | not read: a full quota is not what every failure waits for, and the vendors disagree on the unit |
///
/// Of several waits the first in the order of this table counts, being the most precise. Of several
/// values of one header, on one line or on several, the longest counts, because a shorter one would come
/// back sooner than the server asked. A wait of zero sets no minimum: the schedule's delay stands. A header
/// that cannot be read is passed over. A single `false` outweighs any `true`.
///
/// `true` stands above the table of statuses and below the client's own rules: a status or an outcome that the
/// client has given a verdict keeps it. `false` stands above all of them.
///
/// A date with a leap second (`:60`) is read as the second after `:59`. A two-digit year from 70 on is one
/// of the last century, and one below 70 of this.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::HeaderMap;
/// use reattempt_core::ServerHint;
/// use reattempt_http::Hints;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "1".parse()?);
/// headers.insert("retry-after-ms", "250".parse()?);
/// let hinted = Hints::default().read(&headers, SystemTime::now);
/// assert_eq!(hinted.hint, ServerHint::After(Duration::from_millis(250)));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    retry_after: bool,
    retry_after_ms: bool,
    should_retry: bool,
    rate_limit: bool,
}

impl Default for Hints {
    fn default() -> Self {
        Self { retry_after: true, retry_after_ms: true, should_retry: true, rate_limit: false }
    }
}

/// The hints in the headers of one response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hinted {
    /// The wait, or the request to stop, if there was one.
    pub hint: ServerHint,
    /// The value of `x-should-retry` or `stripe-should-retry`. If it is `Some(false)`, the hint is
    /// [`ServerHint::Stop`].
    pub should_retry: Option<bool>,
}

impl Hints {
    /// No hint is read.
    #[must_use]
    pub const fn none() -> Self {
        Self { retry_after: false, retry_after_ms: false, should_retry: false, rate_limit: false }
    }

    /// Sets whether `Retry-After` is read. On by default.
    #[must_use]
    pub const fn retry_after(mut self, read: bool) -> Self {
        self.retry_after = read;
        self
    }

    /// Sets whether `retry-after-ms` and `x-ms-retry-after-ms` are read. On by default.
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

    /// Sets whether the resets of an exhausted rate limit are read. Off by default.
    ///
    /// - `RateLimit: "name";r=0;t=30` (draft-ietf-httpapi-ratelimit-headers, from version 08 on);
    ///   with several limits the longest wait of those that have nothing left; a malformed field is
    ///   ignored as a whole;
    /// - `RateLimit-Reset` beside `RateLimit-Remaining: 0` (the draft's versions up to 06): seconds;
    /// - `X-RateLimit-Reset` beside `X-RateLimit-Remaining: 0`: seconds, or, from 1,000,000,000 on
    ///   (a wait of 31 years, or a date in 2001), seconds since 1970.
    ///
    /// None of them is read if `Age` is above 0, for then the response comes from a cache.
    #[must_use]
    pub const fn rate_limit(mut self, read: bool) -> Self {
        self.rate_limit = read;
        self
    }

    /// Reads the hints of one answer.
    ///
    /// A date is measured against the answer's own `Date`, for then it does not matter how wrong
    /// this machine's clock is. `wall_clock` is asked only for a date without a readable `Date`
    /// beside it, and once at most. A date in the past is a wait of zero. No value overflows: a
    /// number of any length saturates.
    pub fn read(&self, headers: &HeaderMap, wall_clock: impl FnOnce() -> SystemTime) -> Hinted {
        if headers.is_empty() {
            return Hinted { hint: ServerHint::None, should_retry: None };
        }
        let should_retry = if self.should_retry { read_should_retry(headers) } else { None };
        let hint = if should_retry == Some(false) {
            ServerHint::Stop
        } else {
            self.wait(headers, wall_clock).map_or(ServerHint::None, ServerHint::After)
        };
        Hinted { hint, should_retry }
    }

    fn wait(
        &self,
        headers: &HeaderMap,
        wall_clock: impl FnOnce() -> SystemTime,
    ) -> Option<Duration> {
        let now = LazyCell::new(|| {
            headers.get(DATE).and_then(|date| http_date(date.as_bytes())).unwrap_or_else(wall_clock)
        });
        let until = |date: SystemTime| date.duration_since(*now).unwrap_or(Duration::ZERO);

        let mut wait = None;
        if self.retry_after_ms {
            wait = RETRY_AFTER_MS.iter().find_map(|name| longest(headers, name, milliseconds));
        }
        if wait.is_none() && self.retry_after {
            wait = longest(headers, &RETRY_AFTER, |value| {
                delta_seconds(value).or_else(|| http_date(value).map(until))
            });
        }
        if wait.is_none() && self.rate_limit {
            wait = rate_limit::wait(headers, until);
        }
        wait
    }
}

impl Hinted {
    /// Puts this together with the verdict that a table or a classifier gave on the same answer.
    ///
    /// `x-should-retry: true` turns a permanent verdict on a failing status (4xx or 5xx) into a
    /// transient one, which is retried where the request is repeatable. It never touches a success,
    /// and never makes an unrepeatable request repeatable.
    ///
    /// ```
    /// # use std::time::SystemTime;
    /// use http::{HeaderMap, StatusCode};
    /// use reattempt_core::Verdict;
    /// use reattempt_http::{Hints, verdict_of_status};
    ///
    /// let mut headers = HeaderMap::new();
    /// headers.insert("x-should-retry", "true".parse()?);
    /// let hinted = Hints::default().read(&headers, SystemTime::now);
    ///
    /// let conflict = StatusCode::CONFLICT;
    /// let classification = hinted.judge(verdict_of_status(conflict), conflict);
    /// assert!(matches!(classification.verdict, Verdict::Transient(_)));
    /// # Ok::<(), http::header::InvalidHeaderValue>(())
    /// ```
    #[must_use]
    pub fn judge(&self, verdict: Verdict, status: StatusCode) -> Classification {
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

/// The longest wait among the values of one header, leaving out those that `parse` cannot read.
fn longest(
    headers: &HeaderMap,
    name: impl AsHeaderName,
    parse: impl Fn(&[u8]) -> Option<Duration>,
) -> Option<Duration> {
    let values = headers.get_all(name).into_iter();
    values.flat_map(|value| members(value.as_bytes())).filter_map(parse).max()
}

/// The values on one line, as a proxy may have joined them. A date has a comma of its own, behind the name
/// of its day.
fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let splits = |(place, byte): (usize, &u8)| {
            let before = line[..place].trim_ascii();
            let day = !before.is_empty() && before.iter().all(u8::is_ascii_alphabetic);
            (*byte == b',' && !day).then_some(place)
        };
        let comma = line.iter().enumerate().find_map(splits);
        rest = comma.map(|comma| &line[comma + 1..]);
        Some(line[..comma.unwrap_or(line.len())].trim_ascii())
    })
}

fn read_should_retry(headers: &HeaderMap) -> Option<bool> {
    let values = SHOULD_RETRY.iter().flat_map(|name| headers.get_all(name));
    values
        .filter_map(|value| match value.as_bytes().trim_ascii() {
            value if value.eq_ignore_ascii_case(b"true") => Some(true),
            value if value.eq_ignore_ascii_case(b"false") => Some(false),
            _ => None,
        })
        .min() // false, where both were said
}

/// RFC 9110 §5.6.7: "A recipient that parses a timestamp value in an HTTP field MUST accept all
/// three HTTP-date formats."
fn http_date(value: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(value).ok()?;
    if let Ok(date) = httpdate::parse_http_date(text) {
        return Some(date);
    }
    // A leap second, which RFC 5322 and so RFC 9110 allow.
    let (before, after) = text.rsplit_once(":60").filter(|(_, after)| !after.starts_with(':'))?;
    let before = httpdate::parse_http_date(&format!("{before}:59{after}")).ok()?;
    before.checked_add(Duration::from_secs(1))
}
