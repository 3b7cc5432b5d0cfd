//! Profiles: the delays and limits of well-known libraries and services, by name.
//!
//! A profile sets the delays and limits of a policy. A limit or budget that is set on the policy itself, before or
//! after the profile, takes precedence. A profile never changes which requests are safe to repeat. It sets a budget
//! only if its table lists one.
//!
//! Three profiles also classify the service's failures, because delays alone would not suffice. GitHub, for example,
//! refuses requests with 403. The classifier is part of the profile, so one line of code, or one word in a policy file,
//! selects the delays and the classifier. For hedges and guards, use the classifier functions directly, such as
//! [`classify::github`](crate::classify::github).
//!
//! ```
//! use reattempt::{RetryPolicy, profile};
//!
//! let policy = RetryPolicy::http().profile(profile::stripe());
//! assert_eq!(policy.limits().max_attempts, 3);
//! ```
//!
//! [`retry`](crate::retry()), which retries any other operation, accepts a profile directly.
//!
//! Some services report failures in the body of a response. The profiles [`aws`], [`github`], [`google`], [`openai`]
//! and [`stripe`] have a rule of that name for it in [`classify`](crate::classify), for AWS `aws_json` and `aws_xml`.
//! It needs a [`PeekBodyLayer`][layer], which reads the body, and mostly the feature `json`.
//!
//! [layer]: https://docs.rs/reattempt/latest/reattempt/struct.PeekBodyLayer.html
//!
//! | profile | delays | attempts | elapsed time |
//! |---|---|---|---|
//! | [`standard`] | full jitter, 100 ms doubling to 5 s | 3 | 30 s |
//! | [`cenkalti`] | 500 ms growing by 50 % to 60 s, ± 50 % | | 15 min |
//! | [`cenkalti_short`] | the same | | 2 s |
//! | [`cenkalti_quick`] | 50 ms doubling to 150 ms, ± 50 % | | 250 ms |
//! | [`cenkalti_medium`] | 100 ms growing by 50 % to 500 ms, ± 50 % | | 1 s |
//! | [`cenkalti_slow`] | 100 ms doubling to 3 s, ± 50 % | | 10 s |
//! | [`go_backoff_linear`] | 250 ms, growing by 250 ms to 16 s | | |
//! | [`go_backoff_exponential`] | 5 s doubling to 320 s | | |
//! | [`go_backoff_uncapped`] | 1 min doubling | | |
//! | [`go_backoff_full_jitter`] | full jitter, 30 s doubling to 10 min | | |
//! | [`retryablehttp`] | 1 s doubling to 30 s | 5 | |
//! | [`retryablehttp_linear`] | a random delay from 1 s to 30 s, times the number of the retry | 5 | |
//! | [`aws`] | full jitter, 1 s doubling to 20 s; with its quota as the budget | 3 | |
//! | [`stripe`] | full jitter, 500 ms doubling to 4 s | 3 | |
//! | [`google`] | 1 s doubling to 16 s, each plus up to 1 s | 6 | |
//! | [`twitter_streaming`] | immediate, then depending on the kind of failure | | |
//! | [`github`] | 60 s doubling after a rate limit, otherwise like [`standard`]; with its classifier | 3 | 5 min |
//! | [`kubernetes`] | 1 s doubling to 30 s, ± 50 %; with its classifier | 11 | |
//! | [`openai`] | 500 ms doubling to 8 s, less up to a quarter; with its classifier | 3 | |
//!
//! An empty cell means that there is no limit, as in the source. The policy's budget still ends such calls. While no
//! call succeeds, the default budget grants three retries, or those of three lost connections. It grants more only
//! after ten minutes without a failure. For no limit at all, set [`RetryBudget::unlimited`].
//!
//! If the source has no jitter, neither does its profile. Clients that fail at the same time then also retry at the
//! same time; [`ScheduleExt::jittered`] spreads them out.

// structure(file-length): one list of profiles, most of it tables.

use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Failure, FailureKind, Jitter, Jittered, Schedule, ScheduleExt, SharedSchedule};
use reattempt_schedule_exponential::{Exponential, TruncatedExponential};
use reattempt_schedule_fixed::Linear;

#[cfg(feature = "http")]
use crate::protocol::services;

pub use crate::policy::Profile;

/// Returns the defaults of [`RetryPolicy::http`](crate::RetryPolicy::http).
///
/// | base | factor | cap | jitter | attempts | elapsed time | budget |
/// |---|---|---|---|---|---|---|
/// | 100 ms | 2 | 5 s | full | 3 | 30 s | [`RetryBudget::default`] |
pub fn standard() -> Profile<Exponential> {
    let mut profile = Profile::new(Exponential::default());
    profile.budget = Some(RetryBudget::default());
    profile
}

/// Returns the defaults of the Go library `cenkalti/backoff`, and of its ports to other languages.
///
/// | base | factor | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 500 ms | 1.5 | 60 s | ± 50 % | no limit | 15 min |
///
/// | retry | interval in s | delay in s, from | to |
/// |---|---|---|---|
/// | 1 | 0.5 | 0.25 | 0.75 |
/// | 2 | 0.75 | 0.375 | 1.125 |
/// | 3 | 1.125 | 0.5625 | 1.6875 |
/// | 4 | 1.6875 | 0.84375 | 2.53125 |
/// | 5 | 2.53125 | 1.265625 | 3.796875 |
/// | 6 | 3.796875 | 1.8984375 | 5.6953125 |
/// | 7 | 5.6953125 | 2.84765625 | 8.54296875 |
/// | 8 | 8.54296875 | 4.271484375 | 12.814453125 |
/// | 9 | 12.814453125 | 6.4072265625 | 19.2216796875 |
pub fn cenkalti() -> Profile<Exponential> {
    unlimited(symmetric(500, 1.5, 60_000), Some(Duration::from_secs(15 * 60)))
}

/// Returns [`cenkalti`] with a limit of 2 s on the elapsed time, for interactive callers.
///
/// | base | factor | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 500 ms | 1.5 | 60 s | ± 50 % | no limit | 2 s |
pub fn cenkalti_short() -> Profile<Exponential> {
    unlimited(symmetric(500, 1.5, 60_000), Some(Duration::from_secs(2)))
}

/// Returns cenkalti's delays for quick calls of about 30 ms.
///
/// | base | factor | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 50 ms | 2 | 150 ms | ± 50 % | no limit | 250 ms |
///
/// A 30 ms call that always fails is retried twice in seven of eight cases, otherwise once or, rarely, three times. The
/// call ends after 100 to 280 ms. The published estimates of 3–4 retries and 250–380 ms do not apply here. Those
/// estimates count attempts, and cenkalti checks the time only after the wait. Here, a delay that would exceed the
/// limit ends the call immediately.
pub fn cenkalti_quick() -> Profile<Exponential> {
    unlimited(symmetric(50, 2.0, 150), Some(Duration::from_millis(250)))
}

/// Returns cenkalti's delays for calls of about 100 ms.
///
/// | base | factor | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 100 ms | 1.5 | 500 ms | ± 50 % | no limit | 1 s |
///
/// A 100 ms call that always fails is usually retried three times. About one in twenty is retried four times, and very
/// few only twice. The call ends after 0.6 to 1.1 s. The published estimates are at most 5 retries and 1–1.5 s. The
/// published time does not apply here, for the reason given at [`cenkalti_quick`].
pub fn cenkalti_medium() -> Profile<Exponential> {
    unlimited(symmetric(100, 1.5, 500), Some(Duration::from_secs(1)))
}

/// Returns cenkalti's delays for slow calls of about 300 ms.
///
/// | base | factor | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 100 ms | 2 | 3 s | ± 50 % | no limit | 10 s |
///
/// A 300 ms call that always fails is usually retried six times. About one in five is retried seven times, and very few
/// five or eight times. The call ends after 5.5 to 10.3 s. The published estimates, 8–9 retries and 10–14 s, do not
/// apply here, for the reason given at [`cenkalti_quick`].
pub fn cenkalti_slow() -> Profile<Exponential> {
    unlimited(symmetric(100, 2.0, 3000), Some(Duration::from_secs(10)))
}

/// Returns the linear delays of the Go library go-backoff.
///
/// | base | step | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 250 ms | 250 ms | 16 s | none | no limit | no limit |
pub fn go_backoff_linear() -> Profile<Linear> {
    unlimited(network_errors(), None)
}

/// Returns the exponential delays of go-backoff.
///
/// | base | factor | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 5 s | 2 | 320 s | none | no limit | no limit |
pub fn go_backoff_exponential() -> Profile<Exponential> {
    unlimited(http_errors(), None)
}

/// Returns the exponential delays of go-backoff without a cap.
///
/// | base | factor | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 1 min | 2 | none | none | no limit | no limit |
pub fn go_backoff_uncapped() -> Profile<Exponential> {
    unlimited(rate_limited(), None)
}

/// Returns the full-jitter delays of go-backoff.
///
/// | base | factor | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 30 s | 2 | 10 min | full | no limit | no limit |
pub fn go_backoff_full_jitter() -> Profile<Exponential> {
    unlimited(full_jitter(30_000, 600_000), None)
}

/// Returns the defaults of the Go library `hashicorp/go-retryablehttp`.
///
/// | base | factor | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 1 s | 2 | 30 s | none | 5 | no limit |
pub fn retryablehttp() -> Profile<Exponential> {
    limited(Exponential::no_jitter(secs(1)).max_delay(secs(30)), 5)
}

/// Returns the jittered linear delays of go-retryablehttp: `n` times a random delay between the shortest and the
/// longest. `n` is the retry number, starting at 1.
///
/// | shortest | longest | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 1 s | 30 s | none | the whole range | 5 | no limit |
///
/// | retry | delay in s, from | to |
/// |---|---|---|
/// | 1 | 1 | 30 |
/// | 2 | 2 | 60 |
/// | 3 | 3 | 90 |
/// | 4 | 4 | 120 |
///
/// The profile has a [`Linear`] schedule with the middle of the range as its step, and a [`Jitter::symmetric`] that
/// reaches both ends. Other ranges can be built in the same way.
pub fn retryablehttp_linear() -> Profile<Jittered<Linear>> {
    // 15.5 s ± 14.5 s.
    let jitter = Jitter::symmetric(14.5 / 15.5);
    limited(Linear::new(Duration::from_millis(15_500)).jittered(jitter), 5)
}

/// Returns the settings of AWS clients in their standard mode.
///
/// | base | factor | cap | jitter | attempts | elapsed time | budget |
/// |---|---|---|---|---|---|---|
/// | 1 s | 2 | 20 s | full | 3 | no limit | [`RetryBudget::aws_quota`] |
///
/// Each call of `aws` creates a profile with its own quota. Policies built from clones of one profile share that quota.
pub fn aws() -> Profile<Exponential> {
    let mut profile = limited(full_jitter(1000, 20_000), 3);
    profile.budget = Some(RetryBudget::aws_quota());
    profile
}

/// Returns the delays that Stripe recommends for its clients.
///
/// | base | factor | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 500 ms | 2 | 4 s | full | 3 | no limit |
///
/// A POST is repeated only if it has an `Idempotency-Key`, which Stripe's API accepts:
/// [`generate_idempotency_keys`](crate::Http::generate_idempotency_keys) adds one.
pub fn stripe() -> Profile<Exponential> {
    limited(full_jitter(500, 4000), 3)
}

/// Returns the retry settings that Google documents for its APIs: truncated exponential backoff plus a random delay.
///
/// | retry | delay in s, from | to |
/// |---|---|---|
/// | 1 | 1 | 2 |
/// | 2 | 2 | 3 |
/// | 3 | 4 | 5 |
/// | 4 | 8 | 9 |
/// | 5 | 16 | 17 |
///
/// There are six attempts, and no limit on elapsed time.
pub fn google() -> Profile<TruncatedExponential> {
    limited(TruncatedExponential::default(), 6)
}

/// Returns the reconnection rules for Twitter's streaming API.
///
/// The first retry is sent immediately after any failure. Later retries are delayed:
///
/// | failure | base | growth | cap |
/// |---|---|---|---|
/// | no response: the network | 250 ms | by 250 ms | 16 s |
/// | an HTTP status | 5 s | doubling | 320 s |
/// | HTTP 420 | 60 s | doubling | none |
///
/// Each kind of failure has its own count. There is no limit on attempts or elapsed time, and no jitter.
///
/// In a policy, all counts restart with each call, which is enough for connecting. The retry layer cannot detect that
/// the stream has ended. The stream's owner therefore keeps the schedule in a
/// [`Reconnecting`](crate::schedule::Reconnecting), and resets it after each message.
///
/// ```
/// use reattempt::{Verdict, profile, retry};
/// use reattempt::schedule::{Failure, Reconnecting};
///
/// # struct Stream;
/// # impl Stream {
/// #     async fn next(&mut self) -> Result<Option<&str>, Failure> { Ok(None) }
/// # }
/// # async fn connect() -> Result<Stream, Failure> { Ok(Stream) }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let profile = profile::twitter_streaming().map(Reconnecting::new);
/// let reconnecting = profile.schedule.clone();
/// let read = || async {
///     let mut stream = connect().await?;
///     while let Some(message) = stream.next().await? {
///         reconnecting.reset();
///         println!("{message}");
///     }
///     Ok(())
/// };
/// retry(profile, read).classify(|failure: &Failure| Verdict::Transient(*failure)).await
/// # }).map_err(|_| std::io::ErrorKind::Other)?;
/// # Ok::<_, std::io::Error>(())
/// ```
///
/// For an HTTP client, use this schedule in the retry policy, with a verdict that makes 420 retryable:
///
/// ```
/// use http::StatusCode;
/// use reattempt::{Http, RetryBudget, RetryPolicy, Verdict, profile};
/// use reattempt::schedule::{Failure, FailureKind, Reconnecting};
///
/// let profile = profile::twitter_streaming().map(Reconnecting::new);
/// let reconnecting = profile.schedule.clone();
/// let calm = Verdict::NotProcessed(Failure::new(FailureKind::Throttled));
/// let http = Http::new().on_status(StatusCode::from_u16(420)?, calm);
/// let policy = RetryPolicy::with(http).profile(profile).budget(RetryBudget::unlimited());
/// // For each message of the stream:
/// reconnecting.reset();
/// # Ok::<_, http::status::InvalidStatusCode>(())
/// ```
pub fn twitter_streaming() -> Profile<SharedSchedule> {
    let by_failure = http_errors()
        .for_failures(|failure: &Failure| failure.code().is_none(), network_errors())
        .for_failures(|failure: &Failure| failure.code() == Some(420), rate_limited());
    unlimited(SharedSchedule::new(by_failure.immediate_first()), None)
}

/// Returns the rules for clients of GitHub's REST API.
///
/// | failure | delays | longest delay that the server may ask for | attempts | elapsed time |
/// |---|---|---|---|---|
/// | rate limit: 429, and 403 that [`classify::github`](crate::classify::github) recognises | the delay that the server asks for, otherwise 60 s doubling, each plus up to 6 s | 60 s | 3 | 5 min |
/// | any other | full jitter, 100 ms doubling to 5 s | 60 s | 3 | 5 min |
///
/// GitHub documents the first row, and forbids requests before the delay has passed. The second row and the limits are
/// our choice. If the hourly quota is reset in more than 60 s, the call ends with GitHub's response, and the stop
/// reason is [`ServerDelayTooLong`](crate::StopReason::ServerDelayTooLong). To wait for the reset, raise both limits:
///
/// ```
/// use std::time::Duration;
/// use reattempt::{RetryPolicy, profile};
///
/// let hour = Duration::from_secs(3600);
/// let patient = RetryPolicy::http().profile(profile::github()).max_server_delay(hour).max_elapsed(2 * hour);
/// ```
pub fn github() -> Profile<SharedSchedule> {
    let limited = TruncatedExponential::new(secs(60), u32::MAX, secs(6));
    let by_failure =
        Exponential::default().for_failures(|failure: &Failure| failure.kind() == FailureKind::Throttled, limited);
    let mut profile = unlimited(SharedSchedule::new(by_failure), Some(secs(5 * 60)));
    profile.max_attempts = 3;
    #[cfg(feature = "http")]
    {
        profile.classifier = Some(services::github);
    }
    profile
}

/// Returns the rules of client-go for a Kubernetes API server.
///
/// | base | factor | cap | jitter | attempts | elapsed time |
/// |---|---|---|---|---|---|
/// | 1 s | 2 | 30 s | ± 50 % | 11 | no limit |
///
/// [`classify::kubernetes`](crate::classify::kubernetes) decides which responses are retried. A `Retry-After` replaces
/// the delay. client-go waits for 1 s after a lost connection. We added growth and jitter, because all clients lose
/// their connections at once when an API server restarts.
///
/// A PATCH is not repeated, because the layer cannot determine whether that is safe. A server-side apply may be
/// repeated:
///
/// ```
/// use reattempt::{CallOptions, Http, RetryPolicy, profile};
///
/// let http = Http::new().options_for(|request| {
///     let applies = request.header("content-type")? == b"application/apply-patch+yaml";
///     applies.then(|| CallOptions::new().repeatable(true))
/// });
/// let policy = RetryPolicy::with(http).profile(profile::kubernetes());
/// ```
pub fn kubernetes() -> Profile<Exponential> {
    let profile = limited(symmetric(1000, 2.0, 30_000), 11);
    #[cfg(feature = "http")]
    let profile = Profile { classifier: Some(services::kubernetes), ..profile };
    profile
}

/// Returns the rules of OpenAI's own clients.
///
/// | retry | delay in s, from | to |
/// |---|---|---|
/// | 1 | 0.375 | 0.5 |
/// | 2 | 0.75 | 1 |
/// | 3 | 1.5 | 2 |
/// | 4 | 3 | 4 |
/// | 5 | 6 | 8 |
/// | 6 | 6 | 8 |
///
/// There are three attempts, and no limit on elapsed time. `retry-after-ms` and `Retry-After` replace the delay. If
/// they ask for more than 120 s, the call is not retried. [`classify::openai`](crate::classify::openai) classifies the
/// responses.
///
/// OpenAI's clients repeat every request. This profile repeats a POST only after 429 or with proof that it was not
/// processed, because the API has no idempotency keys. A repeated completion costs tokens again, and may be stored
/// twice. If that is acceptable, mark the requests to these paths as repeatable:
///
/// ```
/// use reattempt::{CallOptions, Http, RetryPolicy, profile};
///
/// let http = Http::new().options_for(|request| {
///     let generates = ["/chat/completions", "/embeddings"].iter().any(|end| request.path().ends_with(end));
///     generates.then(|| CallOptions::new().repeatable(true))
/// });
/// let policy = RetryPolicy::with(http).profile(profile::openai());
/// ```
pub fn openai() -> Profile<Exponential> {
    // 0.75 to 1 times 500 ms is 437.5 ms ± 1/7.
    let from = Duration::from_micros(437_500);
    let mut profile = limited(Exponential::symmetric(from, 1.0 / 7.0).max_delay(secs(7)), 3);
    profile.max_server_delay = secs(120);
    #[cfg(feature = "http")]
    {
        profile.classifier = Some(services::openai);
    }
    profile
}

/// Returns every profile with its constructor's name, for tools that offer a choice of profiles.
pub fn all() -> [(&'static str, Profile<SharedSchedule>); 19] {
    [
        ("standard", standard().shared()),
        ("cenkalti", cenkalti().shared()),
        ("cenkalti_short", cenkalti_short().shared()),
        ("cenkalti_quick", cenkalti_quick().shared()),
        ("cenkalti_medium", cenkalti_medium().shared()),
        ("cenkalti_slow", cenkalti_slow().shared()),
        ("go_backoff_linear", go_backoff_linear().shared()),
        ("go_backoff_exponential", go_backoff_exponential().shared()),
        ("go_backoff_uncapped", go_backoff_uncapped().shared()),
        ("go_backoff_full_jitter", go_backoff_full_jitter().shared()),
        ("retryablehttp", retryablehttp().shared()),
        ("retryablehttp_linear", retryablehttp_linear().shared()),
        ("aws", aws().shared()),
        ("stripe", stripe().shared()),
        ("google", google().shared()),
        ("twitter_streaming", twitter_streaming()),
        ("github", github()),
        ("kubernetes", kubernetes().shared()),
        ("openai", openai().shared()),
    ]
}

/// Creates a profile with this many attempts.
fn limited<S: Schedule>(schedule: S, max_attempts: u32) -> Profile<S> {
    let mut profile = unlimited(schedule, None);
    profile.max_attempts = max_attempts;
    profile
}

/// Creates a profile without a limit on attempts.
fn unlimited<S: Schedule>(schedule: S, max_elapsed: Option<Duration>) -> Profile<S> {
    let mut profile = Profile::new(schedule);
    profile.max_attempts = u32::MAX;
    profile.max_elapsed = max_elapsed;
    profile
}

/// Creates a schedule with ± 50 % jitter, in milliseconds.
fn symmetric(base: u64, factor: f64, cap: u64) -> Exponential {
    Exponential::symmetric(Duration::from_millis(base), 0.5).factor(factor).max_delay(Duration::from_millis(cap))
}

/// Creates a doubling schedule with full jitter, in milliseconds.
fn full_jitter(base: u64, cap: u64) -> Exponential {
    Exponential::from_millis(base).max_delay(Duration::from_millis(cap))
}

fn network_errors() -> Linear {
    Linear::new(Duration::from_millis(250)).max_delay(secs(16))
}

fn http_errors() -> Exponential {
    Exponential::no_jitter(secs(5)).max_delay(secs(320))
}

fn rate_limited() -> Exponential {
    Exponential::no_jitter(secs(60)).no_max_delay()
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
