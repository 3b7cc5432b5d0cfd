//! A service config on the wire: methods of one channel that are retried, hedged or neither.

use reattempt::grpc::service_config::{Client, ServiceConfig, ServiceConfigHandle, ServiceConfigLayer};

use super::*;

const CONFIG: &str = r#"{
    "methodConfig": [{
        "name": [{"service": "reattempt.testing.Echo", "method": "Say"}],
        "retryPolicy": {
            "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "0.1s",
            "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE", "INTERNAL"]
        }
    }, {
        "name": [{"service": "reattempt.testing.Echo", "method": "Repeat"}],
        "timeout": "3s",
        "hedgingPolicy": {
            "maxAttempts": 3, "hedgingDelay": "0.5s", "nonFatalStatusCodes": ["UNAVAILABLE"]
        }
    }]
}"#;

fn configured(server: &Server) -> (EchoClient<Client<Channel>>, ServiceConfigHandle) {
    let handle = ServiceConfigHandle::new(ServiceConfig::parse(CONFIG).unwrap());
    let layer = ServiceConfigLayer::new(handle.clone());
    (EchoClient::new(ServiceBuilder::new().layer(layer).service(server.channel())), handle)
}

// SC-18
#[tokio::test(start_paused = true)]
async fn sc_18_reset_is_retried_if_code_is_listed() {
    // (the server's reset of the stream, the expected number of calls)
    let rows = [
        (Reason::INTERNAL_ERROR, 2),
        (Reason::NO_ERROR, 2),
        (Reason::PROTOCOL_ERROR, 2),
        (Reason::CANCEL, 1),
        (Reason::ENHANCE_YOUR_CALM, 1),
    ];
    for (reason, calls) in rows {
        let server = Server::in_memory([vec![Step::Read, Step::Reset(reason)]]);
        let answer = configured(&server).0.say(Text::new("hello")).await;
        assert_eq!((server.calls(), answer.is_ok()), (calls, calls == 2), "{reason}");
    }
    for end in [vec![Step::Cut], vec![Step::Read, Step::Cut]] {
        let server = Server::in_memory([end]);
        configured(&server).0.say(Text::new("hello")).await.unwrap();
        assert_eq!(server.calls(), 2);
    }
}

// HG-3
#[tokio::test(start_paused = true)]
async fn hg_3_first_answer_cancels_the_losers() {
    let server = Server::in_memory([
        vec![Step::Read, Step::Hang],
        vec![Step::Read, Step::Hang],
        [vec![Step::Read, Step::Head(head(&[]))], vec![Step::Echo; 3], succeeds().split_off(3)].concat(),
    ]);
    let (mut client, _) = configured(&server);
    let mut answers = client.repeat(Text::new("one")).await.unwrap().into_inner();
    server.until(|seen| seen[0].given_up && seen[1].given_up).await;
    for _ in 0..3 {
        assert_eq!(answers.message().await.unwrap(), Some(Text::new("one")));
    }
    assert_eq!(answers.message().await.unwrap(), None);
    let previous = server.fields("grpc-previous-rpc-attempts");
    let numbers: Vec<_> = previous.iter().map(Option::as_deref).collect();
    assert_eq!(numbers, [None, Some("1"), Some("2")], "rule RPH-3");
    let told: Vec<_> = server.fields("grpc-timeout").into_iter().map(Option::unwrap).collect();
    assert_eq!(told, ["3000000u", "2500000u", "2000000u"]);
}

// HG-11
#[tokio::test(start_paused = true)]
async fn hg_11_the_deadline_ends_all_attempts() {
    let server = Server::in_memory(std::iter::repeat_n(vec![Step::Read, Step::Hang], 3));
    let (mut client, _) = configured(&server);
    let status = client.repeat(Text::new("one")).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert_eq!(server.calls(), 3);
    server.until(|seen| seen.iter().all(|seen| seen.given_up)).await;
}

// CALL-6
#[tokio::test(start_paused = true)]
async fn call_6_config_is_replaced_during_a_wait() {
    let server = Server::in_memory([refused(), refused(), refused()]);
    let (client, handle) = configured(&server);
    let begun = tokio::spawn({
        let mut client = client.clone();
        async move { client.say(Text::new("hello")).await }
    });
    server.until(|seen| seen.len() == 1).await;
    handle.update(ServiceConfig::parse("{}")).unwrap();
    assert_eq!(begun.await.unwrap().unwrap().into_inner(), Text::new("hello"));
    assert_eq!(server.calls(), 4, "it goes on as it began");

    let server = Server::in_memory([refused()]);
    let (mut client, handle) = configured(&server);
    handle.update(ServiceConfig::parse("{}")).unwrap();
    assert_eq!(client.say(Text::new("hello")).await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(server.calls(), 1);
}
