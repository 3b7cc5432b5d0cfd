//! Deadlines on the wire (§13), under a paused clock.

use super::*;

/// Returns UNAVAILABLE with a pushback of this many milliseconds.
fn refused_for(milliseconds: &'static [u8]) -> Vec<Step> {
    let pushback = ("grpc-retry-pushback-ms", milliseconds);
    vec![Step::Read, Step::Only(head(&[("grpc-status", b"14"), pushback]))]
}

fn within(timeout: Duration) -> Request<Text> {
    let mut request = Request::new(Text::new("hello"));
    request.set_timeout(timeout);
    request
}

// DL-2
#[tokio::test(start_paused = true)]
async fn dl_2_each_attempt_sends_the_time_left() {
    let server = Server::in_memory([refused_for(b"250"), refused_for(b"700")]);
    let (mut client, _) = client(&server);
    client.say(within(Duration::from_secs(1))).await.unwrap();
    let told: Vec<_> = server.fields("grpc-timeout").into_iter().map(Option::unwrap).collect();
    assert_eq!(told, ["1000000u", "750000u", "50000000n"]);
}

// DL-4
#[tokio::test(start_paused = true)]
async fn dl_4_servers_deadline_is_a_plain_failure() {
    let script = vec![Step::Read, Step::Only(head(&[("grpc-status", b"4")]))];
    let server = Server::in_memory([script]);
    let (mut client, _) = client(&server);
    let answer = client.say(within(Duration::from_secs(1))).await.unwrap();
    assert_eq!(answer.into_inner(), Text::new("hello"));
    assert_eq!(server.calls(), 2);
}

// DL-8
#[tokio::test(start_paused = true)]
async fn dl_8_dropped_waiting_call_is_not_retried() {
    let server = Server::in_memory([refused_for(b"5000")]);
    let (mut client, slot) = client(&server);
    let call = client.say(Text::new("hello"));
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(server.calls(), 1);
    assert!(slot.take().is_none());
}

// DL-8
#[tokio::test(start_paused = true)]
async fn dl_8_dropped_call_cancels_its_attempt() {
    let server = Server::in_memory([refused(), vec![Step::Read, Step::Hang]]);
    let (mut client, _) = client(&server);
    {
        let call = client.say(Text::new("hello"));
        tokio::pin!(call);
        let second = server.until(|seen| seen.get(1).is_some_and(|seen| seen.body.is_some()));
        tokio::select! {
            biased;
            () = second => {}
            answer = &mut call => panic!("{answer:?}"),
        }
    }
    server.until(|seen| seen[1].given_up).await;
}

// DL-3, TN-4
#[tokio::test(start_paused = true)]
async fn dl_3_silent_server_is_cancelled() {
    for begin in [vec![], vec![Step::Read]] {
        let script: Vec<_> = begin.into_iter().chain([Step::Hang]).collect();
        let server = Server::in_memory([script]);
        let (mut client, slot) = client(&server);
        let began = tokio::time::Instant::now();
        let status = client.say(within(Duration::from_secs(1))).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        let took = began.elapsed().as_millis();
        assert!((998..=1001).contains(&took), "{took}");
        assert_eq!(slot.take().unwrap().stop_reason(), StopReason::DeadlineExceeded);
        server.until(|seen| seen[0].given_up).await;
        assert_eq!(server.calls(), 1);
    }
}

// DL-3
#[tokio::test(start_paused = true)]
async fn dl_3_second_attempt_has_the_time_left() {
    let server = Server::in_memory([refused_for(b"400"), vec![Step::Read, Step::Hang]]);
    let (mut client, _) = client(&server);
    let began = tokio::time::Instant::now();
    let status = client.say(within(Duration::from_secs(1))).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    let took = began.elapsed().as_millis();
    assert!((998..=1001).contains(&took), "{took}");
    server.until(|seen| seen[1].given_up).await;
}

// RET-3, DL-3
#[tokio::test(start_paused = true)]
async fn dl_3_deadline_ends_a_wait() {
    let server = Server::in_memory([refused_for(b"1500")]);
    let (mut client, slot) = client(&server);
    let status = client.say(within(Duration::from_secs(1))).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::DeadlineExceeded);
    assert_eq!(server.calls(), 1);
}

// DL-3
#[tokio::test(start_paused = true)]
async fn dl_3_deadline_ends_a_stalled_answer() {
    let head = Step::Head(head(&[]));
    for data in [None, Some(message("one")), Some(message("one").slice(..4))] {
        let script = [Step::Read, head.clone()].into_iter();
        let script = script.chain(data.clone().map(Step::Data)).chain([Step::Hang]);
        let server = Server::in_memory([script.collect()]);
        let (mut client, _) = client(&server);
        let began = tokio::time::Instant::now();
        let mut answers = client.repeat(within(Duration::from_secs(1))).await.unwrap().into_inner();
        let status = loop {
            match answers.message().await {
                Ok(Some(one)) => assert_eq!(one, Text::new("one")),
                other => break other.unwrap_err(),
            }
        };
        assert_eq!(status.code(), Code::DeadlineExceeded, "{data:?}: {status}");
        let took = began.elapsed().as_millis();
        assert!((998..=1001).contains(&took), "{took}");
        server.until(|seen| seen[0].given_up).await;
    }
}

/// A service config whose policy lists these codes, under a throttle.
fn config(policy: &str, codes: &str) -> reattempt::grpc::service_config::ServiceConfig {
    let policy = match policy {
        "retryPolicy" => format!(
            r#""retryPolicy": {{"maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.01s",
            "backoffMultiplier": 1, "retryableStatusCodes": {codes}}}"#
        ),
        _ => format!(
            r#""hedgingPolicy": {{"maxAttempts": 2, "hedgingDelay": "0.1s",
            "nonFatalStatusCodes": {codes}}}"#
        ),
    };
    let text = format!(
        r#"{{"methodConfig": [{{"name": [{{}}], {policy}}}],
        "retryThrottling": {{"maxTokens": 10, "tokenRatio": 0.1}}}}"#
    );
    reattempt::grpc::service_config::ServiceConfig::parse(&text).unwrap()
}

/// Calls a method of each kind until its deadline, after a first call that opens the connection if
/// `warm`.
async fn four_kinds<S>(service: S, warm: bool) -> Vec<Code>
where
    S: tonic::client::GrpcService<tonic::body::Body> + Clone,
    S::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <S::ResponseBody as http_body::Body>::Error: Into<tower::BoxError> + Send,
{
    fn timed<T>(message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(Duration::from_millis(250));
        request
    }
    let mut client = EchoClient::new(service);
    if warm {
        client.say(Text::new("warm")).await.unwrap();
    }
    let messages = || {
        futures_util::stream::unfold((), async |()| {
            tokio::time::sleep(Duration::from_millis(60)).await;
            Some((Text::new("more"), ()))
        })
    };
    let ends = [
        client.say(timed(Text::new("hello"))).await.map(drop),
        client.gather(timed(Box::pin(messages()))).await.map(drop),
        client.repeat(timed(Text::new("hello"))).await.map(drop),
        client.talk(timed(Box::pin(messages()))).await.map(drop),
    ];
    ends.into_iter().map(|end| end.unwrap_err().code()).collect()
}

/// tonic's channel times the same field, and is polled first.
// TN-4, trap 44
#[tokio::test(start_paused = true)]
async fn tn_4_warm_channel_exceeds_the_deadline() {
    for warm in [false, true] {
        for policy in ["retryPolicy", "hedgingPolicy"] {
            for codes in [r#"["ABORTED"]"#, r#"["UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED"]"#] {
                let hangs = std::iter::repeat_n(vec![Step::Hang], 20);
                let server = Server::in_memory(warm.then(succeeds).into_iter().chain(hangs));
                let handle = reattempt::grpc::service_config::ServiceConfigHandle::new(config(policy, codes));
                let layer = reattempt::grpc::service_config::ServiceConfigLayer::new(handle.clone());
                let service = ServiceBuilder::new().layer(layer).service(server.channel());
                let ends = four_kinds(service, warm).await;
                assert_eq!(ends, [Code::DeadlineExceeded; 4], "{policy} {codes}");
                assert_eq!(handle.throttle().tokens_thousandths(), Some(10_000), "no token is taken");
            }
        }
    }
}
