//! Transparent retries (§6): attempts that the server's application never saw are replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use reattempt::grpc::service_config::{RetryThrottle, RetryThrottling, ServiceConfig, ServiceConfigLayer};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::{Report, RetryBudget};
use tokio::sync::Notify;
use tonic::body::Body;
use tower::{Layer, Service};

use super::*;

fn unprocessed() -> [Vec<Step>; 2] {
    [vec![Step::Reset(Reason::REFUSED_STREAM)], vec![Step::GoAwayBelow(Reason::NO_ERROR)]]
}

// TR-2
#[tokio::test]
async fn tr_2_only_one_attempt_is_replaced() {
    for script in unprocessed() {
        for (most, calls) in [(1, 2), (2, 3), (3, 4)] {
            let server = Server::start(std::iter::repeat_n(script.clone(), 9)).await;
            let mut client = client_of(&server, policy().max_attempts(most));
            client.say(Text::new("hello")).await.unwrap_err();
            assert_eq!(server.calls(), calls, "{most}, {script:?}");
        }
    }
}

// TR-4, RPH-2
#[tokio::test]
async fn tr_4_replacement_is_no_attempt() {
    for script in unprocessed() {
        // The second attempt is replaced, as the first would have been.
        let server = Server::start([refused(), script.clone(), refused()]).await;
        let throttle = RetryThrottle::from(RetryThrottling::new(10.0, 0.001));
        let mut client = client_of(&server, policy().budget(throttle.clone()));
        let answer = client.say(Text::new("hello")).await.unwrap();
        assert_eq!(answer.extensions().get::<Report>().unwrap().retries(), 2, "{script:?}");
        let previous = server.fields("grpc-previous-rpc-attempts");
        let numbers = previous.iter().map(Option::as_deref).collect::<Vec<_>>();
        assert_eq!(numbers, [None, Some("1"), Some("1"), Some("2")], "{script:?}");
        assert_eq!(throttle.tokens_thousandths(), Some(8_001), "{script:?}");

        let server = Server::start([script]).await;
        let mut client = client_of(&server, policy());
        client.say(Text::new("hello")).await.unwrap();
        assert_eq!(server.fields("grpc-previous-rpc-attempts"), [None, None]);
    }
}

/// A channel whose clones are not ready at the first poll.
struct Hesitant {
    inner: Channel,
    hesitates: bool,
    hesitated: Arc<AtomicUsize>,
}

impl Clone for Hesitant {
    fn clone(&self) -> Self {
        let (inner, hesitated) = (self.inner.clone(), Arc::clone(&self.hesitated));
        Self { inner, hesitates: true, hesitated }
    }
}

impl Service<http::Request<Body>> for Hesitant {
    type Response = http::Response<Body>;
    type Error = tonic::transport::Error;
    type Future = <Channel as Service<http::Request<Body>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if std::mem::take(&mut self.hesitates) {
            self.hesitated.fetch_add(1, Ordering::SeqCst);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        assert!(!self.hesitates, "called before it was ready");
        self.inner.call(request)
    }
}

#[tokio::test]
async fn replacement_waits_for_readiness() {
    for script in unprocessed() {
        let server = Server::start([script]).await;
        let (inner, hesitated) = (server.channel(), Arc::new(AtomicUsize::new(0)));
        let channel = Hesitant { inner, hesitates: false, hesitated: Arc::clone(&hesitated) };
        let mut client = EchoClient::new(RetryLayer::new(policy()).layer(channel));
        let before = hesitated.load(Ordering::SeqCst);
        client.say(Text::new("hello")).await.unwrap();
        assert_eq!((server.calls(), hesitated.load(Ordering::SeqCst) - before), (2, 1));
    }
}

/// A channel whose clones never become ready.
struct Stuck(Option<Channel>);

impl Clone for Stuck {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl Service<http::Request<Body>> for Stuck {
    type Response = http::Response<Body>;
    type Error = tonic::transport::Error;
    type Future = <Channel as Service<http::Request<Body>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.as_mut().map_or(Poll::Pending, |channel| channel.poll_ready(cx))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        self.0.as_mut().unwrap().call(request)
    }
}

// trap 09
#[tokio::test(start_paused = true)]
async fn hedge_replacement_never_ready_ends() {
    for script in unprocessed() {
        for most in [1, 2] {
            let server = Server::in_memory([script.clone()]);
            let policy = HedgePolicy::grpc().max_attempts(most).delay(Duration::from_secs(3600));
            let stuck = Stuck(Some(server.channel()));
            let mut client = EchoClient::new(HedgeLayer::new(policy).layer(stuck));
            let call = client.say(Text::new("hello"));
            let ended = tokio::time::timeout(Duration::from_secs(31), call).await;
            ended.expect("it waits without end").unwrap_err();
            assert_eq!(server.calls(), 1, "{script:?}");
        }
    }
}

// THR-8
#[tokio::test]
async fn thr_8_empty_bucket_allows_a_replacement() {
    let throttle = RetryThrottle::from(RetryThrottling::new(1.0, 0.001));
    throttle.failed();
    let server = Server::start([vec![Step::Reset(Reason::REFUSED_STREAM)]]).await;
    let mut client = client_of(&server, policy().budget(throttle));
    client.say(Text::new("hello")).await.unwrap();
    assert_eq!(server.calls(), 2);
}

// TR-8
#[tokio::test]
async fn tr_8_the_two_switches_are_independent() {
    let script = || vec![Step::Reset(Reason::REFUSED_STREAM)];
    // (`true` if attempts are replaced, the most attempts, the expected calls)
    for (replaced, most, calls) in [(true, 1, 2), (false, 1, 1), (false, 2, 2), (true, 2, 3)] {
        let server = Server::start([script(), script(), script()]).await;
        let policy = policy().max_attempts(most).protocol(|grpc| grpc.transparent_retries(replaced));
        client_of(&server, policy).say(Text::new("hello")).await.unwrap_err();
        assert_eq!(server.calls(), calls, "{replaced}, {most}");
    }
    let server = Server::start([script()]).await;
    let mut request = Request::new(Text::new("hello"));
    request.extensions_mut().insert(CallOptions::new().never_retry());
    client_of(&server, policy()).say(request).await.unwrap_err();
    assert_eq!(server.calls(), 1);
}

// CALL-2
#[tokio::test]
async fn call_2_method_without_policy_is_replaced() {
    for script in unprocessed() {
        let server = Server::start([script.clone()]).await;
        let layer = ServiceConfigLayer::new(ServiceConfig::default());
        let configured = ServiceBuilder::new().layer(layer.clone()).service(server.channel());
        EchoClient::new(configured).say(Text::new("hello")).await.unwrap();
        assert_eq!(server.calls(), 2, "{script:?}");

        let server = Server::start([script.clone(), script.clone()]).await;
        let configured = ServiceBuilder::new().layer(layer).service(server.channel());
        EchoClient::new(configured).say(Text::new("hello")).await.unwrap_err();
        assert_eq!(server.calls(), 2, "the next is an ordinary failure: {script:?}");
    }
}

// CALL-2
#[tokio::test]
async fn call_2_replacement_needs_no_listed_code() {
    let text = r#"{"methodConfig": [{"name": [{}], "retryPolicy": {
        "maxAttempts": 3, "initialBackoff": "0.000000001s", "maxBackoff": "0.000000001s",
        "backoffMultiplier": 1, "retryableStatusCodes": ["ABORTED"]
    }}], "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.001}}"#;
    for (script, calls) in unprocessed().into_iter().flat_map(|one| {
        let (one, two) = (vec![one.clone()], vec![one.clone(), one]);
        [(one, (2, true)), (two, (2, false))]
    }) {
        let server = Server::start(script.clone()).await;
        let layer = ServiceConfigLayer::new(ServiceConfig::parse(text).unwrap());
        let throttle = layer.handle().throttle().clone();
        let configured = ServiceBuilder::new().layer(layer).service(server.channel());
        let answer = EchoClient::new(configured).say(Text::new("hello")).await;
        assert_eq!((server.calls(), answer.is_ok()), calls, "{script:?}");
        assert_eq!(throttle.tokens_thousandths(), Some(10_000), "{script:?}");
    }
}

/// The methods of this config are hedged, and no failure leaves the other attempts running.
const HEDGED: &str = r#"{
    "methodConfig": [{"name": [{}], "hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "0.5s"}}],
    "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.001}
}"#;

/// Calls a server with hedging. Returns the number of attempts in the caller's report, and the
/// numbers that the server received.
async fn hedged(
    scripts: impl IntoIterator<Item = Vec<Step>>,
    change: impl FnOnce(ServiceConfigLayer) -> ServiceConfigLayer,
) -> (Result<u32, Code>, Vec<Option<String>>) {
    let server = Server::in_memory(scripts);
    let layer = change(ServiceConfigLayer::new(ServiceConfig::parse(HEDGED).unwrap()));
    let throttle = layer.handle().throttle().clone();
    let configured = ServiceBuilder::new().layer(layer).service(server.channel());
    let answer = EchoClient::new(configured).say(Text::new("hello")).await;
    let attempts = |answer: tonic::Response<Text>| {
        let attempts = answer.extensions().get().map_or(1, |report: &Report| report.retries() + 1);
        assert_eq!(answer.into_inner(), Text::new("hello"));
        attempts
    };
    assert_eq!(throttle.tokens_thousandths(), Some(10_000), "no failure was one that is listed");
    let answer = answer.map(attempts).map_err(|status| status.code());
    (answer, server.fields("grpc-previous-rpc-attempts"))
}

// TR-6
#[tokio::test(start_paused = true)]
async fn tr_6_unprocessed_hedge_is_replaced() {
    let (none, one) = (None, Some("1".to_owned()));
    let hang = || vec![Step::Read, Step::Hang];
    for script in unprocessed() {
        let (answer, numbers) = hedged([script.clone()], |layer| layer).await;
        assert_eq!((answer.unwrap(), numbers), (1, vec![none.clone(); 2]), "{script:?}");

        let (answer, numbers) = hedged([hang(), script.clone()], |layer| layer).await;
        let told = vec![none.clone(), one.clone(), one.clone()];
        assert_eq!((answer.unwrap(), numbers), (2, told), "{script:?}");

        // The replacement of the first goes on beside the second, which is not one of them.
        let (answer, numbers) = hedged([script.clone(), hang()], |layer| layer).await;
        let told = vec![none.clone(), none.clone(), one.clone()];
        assert_eq!((answer.unwrap(), numbers), (2, told), "{script:?}");

        // A further one is an ordinary failure, which is fatal here.
        let (answer, numbers) = hedged([script.clone(), script.clone()], |layer| layer).await;
        assert_eq!((answer.is_err(), numbers.len()), (true, 2), "{script:?}");
    }
}

// TR-8
#[tokio::test(start_paused = true)]
async fn tr_8_the_two_switches_of_hedges_too() {
    for script in unprocessed() {
        let (answer, numbers) = hedged([script.clone()], |layer| layer.max_attempts(1)).await;
        assert_eq!((answer.unwrap(), numbers.len()), (1, 2), "{script:?}");
        let off =
            |layer: ServiceConfigLayer| layer.hedges(|policy| policy.protocol(|grpc| grpc.transparent_retries(false)));
        let (answer, numbers) = hedged([script.clone()], off).await;
        assert_eq!((answer.is_err(), numbers.len()), (true, 1), "{script:?}");
    }
}

// TR-9
#[tokio::test]
async fn tr_9_waiting_call_outlives_connection() {
    let cut = Arc::new(Notify::new());
    let first = vec![Step::Read, Step::Wait(Arc::clone(&cut)), Step::Cut];
    let server = Server::start([succeeds(), first]).await;
    server.allow(1);
    let policy = policy().max_attempts(1).budget(RetryBudget::default());
    let mut client = client_of(&server, policy);
    client.say(Text::new("so that the limit is known")).await.unwrap();
    let call = |text| {
        let mut client = client.clone();
        tokio::spawn(async move { client.say(Text::new(text)).await })
    };
    let first = call("one");
    server.until(|seen| seen.len() == 2).await;
    // hyper accepts one call more than the server allows, and its error does not show whether it
    // was sent.
    let second = call("two");
    whatever_this_process_can_do().await;
    let third = call("three");
    whatever_this_process_can_do().await;
    cut.notify_one();
    first.await.unwrap().unwrap_err();
    second.await.unwrap().unwrap_err();
    assert_eq!(third.await.unwrap().unwrap().into_inner(), Text::new("three"));
    assert_eq!(server.calls(), 3);
    assert_eq!(server.fields("grpc-previous-rpc-attempts"), [None, None, None]);
}

async fn whatever_this_process_can_do() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

// TR-8
#[tokio::test]
async fn tr_8_hedging_off_keeps_replacements() {
    let config = ServiceConfig::parse(r#"{"methodConfig": [{"name": [{}], "hedgingPolicy": {"maxAttempts": 3}}]}"#);
    let layer = ServiceConfigLayer::new(config.unwrap()).max_attempts(1);
    for script in unprocessed() {
        let server = Server::start([script]).await;
        let channel = ServiceBuilder::new().layer(layer.clone()).service(server.channel());
        EchoClient::new(channel).say(Text::new("hello")).await.unwrap();
        assert_eq!(server.calls(), 2);
    }
}
