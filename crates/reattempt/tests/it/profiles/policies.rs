//! Tests of a profile in a policy: what it sets, what it leaves unchanged, and what the layer then does.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use reattempt::profile::Profile;
use reattempt::schedule::{Exponential, Failure, FailureKind, Reconnecting};
use reattempt::{ReplayBody, RetryBudget, RetryLayer, RetryPolicy, Verdict, profile, retry};
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};

use crate::profiles::support::{ms, secs};

type Body = Full<Bytes>;

/// A server that responds with these statuses in turn and then with 200, and records the times.
#[derive(Clone, Default)]
struct Server {
    statuses: Arc<Mutex<VecDeque<u16>>>,
    called: Arc<Mutex<Vec<Instant>>>,
}

impl Server {
    fn saying(statuses: impl IntoIterator<Item = u16>) -> Self {
        Self { statuses: Arc::new(Mutex::new(statuses.into_iter().collect())), ..Self::default() }
    }

    fn answer(&self) -> Response<Body> {
        self.called.lock().unwrap().push(Instant::now());
        let status = self.statuses.lock().unwrap().pop_front().unwrap_or(200);
        let mut response = Response::new(Body::default());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        response
    }

    /// Returns the delays between the calls so far, in whole milliseconds.
    fn delays(&self) -> Vec<u128> {
        let called = self.called.lock().unwrap();
        called.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect()
    }
}

/// Makes one call with this method through a layer with the policy.
macro_rules! call {
    ($policy:expr, $method:expr, $server:expr) => {{
        let server = $server.clone();
        let client = RetryLayer::new($policy).layer(service_fn(move |_: Request<ReplayBody<Body>>| {
            let response = server.answer();
            async move { Ok::<_, Infallible>(response) }
        }));
        let request = Request::builder().method($method).uri("http://example.com/");
        client.oneshot(request.body(Body::default()).unwrap()).await.unwrap().status()
    }};
}

#[tokio::test(start_paused = true)]
async fn the_layer_waits_as_the_profile_says() {
    let server = Server::saying([503; 10]);
    // The default budget would end a run without a success after three retries.
    let patient = || RetryPolicy::http().budget(RetryBudget::percent(10));
    let policy = patient().profile(profile::retryablehttp());
    assert_eq!(call!(policy, Method::GET, server), 503);
    assert_eq!(server.delays(), [1000, 2000, 4000, 8000]);

    let server = Server::saying([503; 10]);
    let policy = patient().profile(profile::google());
    assert_eq!(call!(policy, Method::GET, server), 503);
    let delays = server.delays();
    assert_eq!(delays.len(), 5);
    for (delay, least) in delays.into_iter().zip([1000, 2000, 4000, 8000, 16_000]) {
        assert!((least..=least + 1001).contains(&delay), "{delay}");
    }
}

#[tokio::test(start_paused = true)]
async fn profile_never_sets_what_is_repeatable() {
    for (name, profile) in profile::all() {
        let server = Server::saying([503; 3]);
        let policy = RetryPolicy::http().profile(profile);
        assert_eq!(call!(policy, Method::POST, server), 503, "{name}");
        assert_eq!(server.delays(), [], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn aws_quota_returns_what_last_retry_paid() {
    let policy = RetryPolicy::http().profile(profile::aws());
    let server = Server::saying([503, 503]);
    assert_eq!(call!(policy.clone(), Method::GET, server), 200);
    assert_eq!(policy.budget_ref().balance("example.com"), 495.0);
    assert_eq!(call!(policy.clone(), Method::GET, Server::default()), 200);
    assert_eq!(policy.budget_ref().balance("example.com"), 496.0);
    assert_eq!(call!(policy.clone(), Method::GET, Server::saying([503; 9])), 503);
    assert_eq!(policy.budget_ref().balance("example.com"), 486.0);
}

#[test]
fn settings_after_profile_hold() {
    let budget = RetryBudget::ratio(0.5).capacity(77.0);
    let policy = RetryPolicy::http().max_server_delay(secs(7)).budget(budget);
    let policy = policy.profile(profile::stripe());
    assert_eq!((policy.limits().max_attempts, policy.limits().max_elapsed), (3, None));
    assert_eq!(policy.limits().max_server_delay, secs(7));
    assert_eq!(policy.budget_ref().balance("a"), 77.0);

    let policy = policy.profile(profile::aws()).max_attempts(9).max_elapsed(secs(2));
    let limits = policy.limits();
    assert_eq!((limits.max_attempts, limits.max_elapsed), (9, Some(secs(2))));
    assert_eq!(policy.budget_ref().balance("a"), 77.0, "the budget was set before");
}

#[test]
fn a_profile_undoes_no_setting_before_it() {
    let own = RetryPolicy::http().max_attempts(7).max_elapsed(secs(3)).profile(profile::aws());
    let limits = own.limits();
    assert_eq!((limits.max_attempts, limits.max_elapsed), (7, Some(secs(3))));
    assert_eq!(own.budget_ref().balance("a"), 500.0, "the quota is part of the profile");

    let other = RetryPolicy::http().profile(profile::google()).profile(profile::stripe());
    assert_eq!(other.limits().max_attempts, 3, "the last profile counts");
}

#[test]
fn it_goes_into_policies_of_every_protocol() {
    let grpc = RetryPolicy::grpc().profile(profile::google());
    assert_eq!(grpc.limits().max_attempts, 6);
    assert_eq!(grpc.budget_ref().balance("a"), f64::INFINITY, "no budget unless one is given");
    let failed = |_: Result<&(), &(dyn std::error::Error + 'static)>| Verdict::Success;
    let cloned = RetryPolicy::cloned(failed).profile(profile::cenkalti().shared());
    assert_eq!(cloned.limits().max_elapsed, Some(secs(900)));
}

#[test]
fn aws_profiles_have_quotas_clones_share() {
    let (one, other) = (profile::aws(), profile::aws());
    let budget = one.clone().budget.unwrap();
    let failure = Failure::new(FailureKind::Timeout);
    let permit = reattempt::budget::Budget::acquire(&budget, "a", &failure, Duration::ZERO);
    drop(permit.unwrap().spend());
    assert_eq!(one.budget.unwrap().balance("a"), 490.0);
    assert_eq!(other.budget.unwrap().balance("a"), 500.0);
}

#[test]
fn own_profile_begins_with_default_limits() {
    let mut profile = Profile::new(Exponential::equal_jitter(ms(50)));
    assert_eq!((profile.max_attempts, profile.max_elapsed), (3, Some(secs(30))));
    profile.max_attempts = 4;
    assert_eq!(RetryPolicy::http().profile(profile).limits().max_attempts, 4);
}

/// A stream's owner and its layer share one run of delays. The next call continues it, until a message has arrived.
#[tokio::test(start_paused = true)]
async fn stream_continues_its_last_call() {
    let profile = profile::twitter_streaming().map(Reconnecting::new);
    let reconnecting = profile.schedule.clone();
    let calm = Verdict::NotProcessed(Failure::new(FailureKind::Throttled));
    let policy = RetryPolicy::http()
        .profile(profile)
        .budget(RetryBudget::unlimited())
        .protocol(|http| http.on_status(StatusCode::from_u16(420).unwrap(), calm));

    let server = Server::saying([503, 503, 420]);
    assert_eq!(call!(policy.clone(), Method::GET, server), 200);
    assert_eq!(server.delays(), [0, 5000, 60_000]);
    // The stream broke before a message arrived.
    let server = Server::saying([420, 503]);
    assert_eq!(call!(policy.clone(), Method::GET, server), 200);
    assert_eq!(server.delays(), [120_000, 10_000]);

    reconnecting.reset();
    let server = Server::saying([420, 420]);
    assert_eq!(call!(policy, Method::GET, server), 200);
    assert_eq!(server.delays(), [0, 60_000]);
}

#[tokio::test(start_paused = true)]
async fn an_operation_takes_a_profile_as_it_is() {
    let fails = |times: u32| {
        let mut tries = 0;
        move || {
            tries += 1;
            let failed = tries <= times;
            async move { if failed { Err("down") } else { Ok(()) } }
        }
    };
    // More than the default budget would pay for: here there is none.
    assert!(retry(profile::go_backoff_linear(), fails(30)).await.is_ok());
    assert!(retry(profile::google(), fails(5)).await.is_ok());
    assert!(retry(profile::google(), fails(6)).await.is_err());
    let aws = profile::aws();
    let quota = aws.budget.clone().unwrap();
    assert!(retry(aws, fails(9)).await.is_err());
    assert_eq!(quota.destinations().len(), 1, "the quota of the profile was asked");
}
