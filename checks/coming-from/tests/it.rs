//! The page's code of other libraries. It stands here once more, where it is compiled.

#![allow(missing_docs, reason = "tests")]

use std::io::ErrorKind;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;

const PAGE: &str = include_str!("../../../crates/reattempt/src/guide/coming_from.md");

/// Returns the code without what rustfmt decides: white space, and commas before a closing parenthesis.
fn squeezed(code: &str) -> String {
    code.split_whitespace().collect::<String>().replace(",)", ")")
}

/// Each paragraph of the page's code is compiled below.
#[test]
fn page_has_the_compiled_code() {
    let compiled = squeezed(include_str!("it.rs"));
    let blocks: Vec<_> = PAGE.split("```rust,ignore\n").skip(1).collect();
    assert_eq!(blocks.len(), 11);
    for block in blocks {
        for code in block.split("```").next().unwrap_or_default().split("\n\n") {
            assert!(compiled.contains(&squeezed(code)), "not compiled:\n{code}");
        }
    }
}

async fn read() -> std::io::Result<String> {
    Ok(String::new())
}

fn connect() -> std::io::Result<()> {
    Ok(())
}

mod tower_retry {
    use tower::retry::{Policy, RetryLayer};

    use super::{Bytes, Full, Request, Response};

    #[derive(Clone)]
    struct Attempts(u32);

    impl<Res, E> Policy<Request<Full<Bytes>>, Response<Res>, E> for Attempts {
        type Future = std::future::Ready<()>;

        fn retry(
            &mut self,
            _: &mut Request<Full<Bytes>>,
            result: &mut Result<Response<Res>, E>,
        ) -> Option<Self::Future> {
            let failed = result.as_ref().map_or(true, |response| response.status().is_server_error());
            self.0 = self.0.checked_sub(1).filter(|_| failed)?;
            Some(std::future::ready(()))
        }

        fn clone_request(&mut self, request: &Request<Full<Bytes>>) -> Option<Request<Full<Bytes>>> {
            Some(request.clone())
        }
    }

    #[test]
    fn tower_is_compiled() {
        let layer = RetryLayer::new(Attempts(2));
        let mut policy = Attempts(1);
        let (mut request, mut failed) = (Request::default(), Err::<Response<()>, _>(()));
        assert!(policy.retry(&mut request, &mut failed).is_some());
        assert!(policy.retry(&mut request, &mut failed).is_none());
        let _ = layer;
    }
}

#[test]
fn reqwest_retry_is_compiled() {
    use reqwest_middleware::ClientBuilder;
    use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};

    let policy = ExponentialBackoff::builder()
        .retry_bounds(Duration::from_millis(100), Duration::from_secs(5))
        .build_with_max_retries(3);
    let client =
        ClientBuilder::new(reqwest::Client::new()).with(RetryTransientMiddleware::new_with_policy(policy)).build();
    drop(client);
}

#[test]
fn backoff_of_a_client_is_compiled() {
    use backoff::ExponentialBackoffBuilder;

    let call = async |client: reqwest::Client| {
        let delays = ExponentialBackoffBuilder::new()
            .with_multiplier(2.0)
            .with_max_elapsed_time(Some(Duration::from_secs(60)))
            .build();
        let response = backoff::future::retry(delays, || async {
            let response = client.get("http://orders.example/1").send().await?;
            response.error_for_status().map_err(|error| match error.status() {
                Some(status) if status.is_client_error() => backoff::Error::permanent(error),
                _ => backoff::Error::transient(error),
            })
        })
        .await?;
        Ok::<_, reqwest::Error>(response)
    };
    drop(call(reqwest::Client::new()));
}

mod backoff_decided_by_the_operation {
    use std::cell::Cell;
    use std::future::{Future, ready};
    use std::pin::pin;
    use std::task::{Context, Waker};

    use backoff::{ExponentialBackoff, ExponentialBackoffBuilder};

    use super::Duration;

    #[derive(Debug)]
    enum Refused {
        Busy(Duration),
        Closed,
    }

    async fn send() -> Result<(), Refused> {
        [Refused::Busy(Duration::ZERO), Refused::Closed].into_iter().try_for_each(Err)
    }

    async fn book() -> Result<(), backoff::Error<Refused>> {
        Err(match send().await {
            Ok(()) => return Ok(()),
            Err(Refused::Busy(wait)) => backoff::Error::retry_after(Refused::Busy(wait), wait),
            Err(refused) => backoff::Error::permanent(refused),
        })
    }

    /// The page's table has these differences.
    #[test]
    fn hints_are_unlimited_and_closures_early() {
        struct Never;

        impl backoff::future::Sleeper for Never {
            type Sleep = std::future::Pending<()>;

            fn sleep(&self, _: Duration) -> Self::Sleep {
                std::future::pending()
            }
        }

        let calls = Cell::new(0);
        let hint = || {
            calls.set(calls.get() + 1);
            if calls.get() < 1_000 { Err(backoff::Error::retry_after((), Duration::ZERO)) } else { Ok(()) }
        };
        let no_time = || ExponentialBackoffBuilder::new().with_max_elapsed_time(Some(Duration::ZERO)).build();
        assert!(backoff::retry(no_time(), hint).is_ok());
        assert_eq!(calls.replace(0), 1_000);

        let operation = || ready(hint());
        let mut call = pin!(backoff::future::Retry::new(Never, no_time(), |_, _| {}, operation));
        assert_eq!(calls.get(), 1, "not yet awaited");
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(calls.get(), 2, "during the delay");
    }

    #[test]
    fn backoff_is_compiled() {
        let call = async || {
            let notify = |refused, delay| eprintln!("{refused:?}; again in {delay:?}");
            backoff::future::retry_notify(ExponentialBackoff::default(), book, notify).await?;
            Ok::<_, Refused>(())
        };
        drop(call());
    }
}

#[test]
fn backon_is_compiled() {
    use backon::{ExponentialBuilder, Retryable};

    let call = async || {
        let text = read
            .retry(ExponentialBuilder::default().with_jitter())
            .when(|error| error.kind() != ErrorKind::PermissionDenied)
            .await?;
        Ok::<_, std::io::Error>(text)
    };
    drop(call());
}

#[test]
fn tokio_retry_is_compiled() {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use tokio_retry::strategy::{ExponentialBackoff, FixedInterval, jitter};
    use tokio_retry::{Retry, RetryIf};

    // The page's table has these delays.
    let delays = ExponentialBackoff::from_millis(10).take(3);
    assert_eq!(delays.map(|it| it.as_millis()).collect::<Vec<_>>(), [10, 100, 1_000]);
    let delays = ExponentialBackoff::from_millis(3_000).take(2);
    assert_eq!(delays.map(|it| it.as_secs()).collect::<Vec<_>>(), [3, 9_000]);
    let call = async || {
        let delays = ExponentialBackoff::from_millis(2).factor(100).map(jitter).take(3);
        let text = Retry::start(delays, read).await?;
        Ok::<_, std::io::Error>(text)
    };
    drop(call());
    let call = async |stopped: AtomicBool| {
        let is_due = |error: &std::io::Error| error.kind() != ErrorKind::PermissionDenied && !stopped.load(Relaxed);
        let text = RetryIf::start(FixedInterval::from_millis(5_000).map(jitter), read, is_due).await?;
        Ok::<_, std::io::Error>(text)
    };
    drop(call(AtomicBool::new(false)));
}

#[test]
fn tower_resilience_is_compiled() {
    use tower_resilience_retry::RetryLayer;

    type Layer = RetryLayer<Request<Full<Bytes>>, Response<Full<Bytes>>, std::io::Error>;

    let failed = |response: &Response<Full<Bytes>>| response.status().is_server_error();
    let layer: Layer = RetryLayer::builder()
        .max_attempts(3)
        .exponential_backoff(Duration::from_millis(100))
        .retry_on_response(failed)
        .build();
    drop(layer);
}

#[test]
fn seatbelt_is_compiled() {
    use seatbelt::retry::Retry;
    use seatbelt::{RecoveryInfo, ResilienceContext};
    use tick::Clock;

    // Its clock needs a runtime.
    let layer = || {
        type Outcome = std::io::Result<Response<Full<Bytes>>>;

        let context = ResilienceContext::<Request<Full<Bytes>>, Outcome>::new(Clock::new_tokio());
        let layer = Retry::layer("orders", &context)
            .max_retry_attempts(3)
            .base_delay(Duration::from_millis(100))
            .clone_input()
            .recovery_with(|outcome: &Outcome, _| match outcome {
                Ok(response) if !response.status().is_server_error() => RecoveryInfo::never(),
                _ => RecoveryInfo::retry(),
            });
        drop(layer);
    };
    let _ = layer;
}

#[test]
fn aws_smithy_is_compiled() {
    use aws_smithy_types::retry::RetryConfig;

    let retries = RetryConfig::standard().with_max_attempts(4).with_max_backoff(Duration::from_secs(5));
    assert_eq!(retries.max_attempts(), 4);
    // The page's table has these defaults.
    let standard = RetryConfig::standard();
    assert_eq!((standard.max_attempts(), standard.initial_backoff()), (3, Duration::from_secs(1)));
    assert_eq!(standard.max_backoff(), Duration::from_secs(20));
}

#[test]
fn failsafe_is_compiled() {
    use failsafe::{CircuitBreaker, Config, Error};

    let breaker = Config::new().build();
    match breaker.call(connect) {
        Err(Error::Inner(error)) => eprintln!("it failed: {error}"),
        Err(Error::Rejected) => eprintln!("not tried"),
        Ok(()) => {}
    }
}
