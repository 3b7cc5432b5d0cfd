//! Tests of a config's throttle.

use reattempt_core::StopReason;
use reattempt_grpc::{Code, ServiceConfig};
use tower::ServiceExt;

use super::server::{ABORTED, OK, Server, Step, UNAVAILABLE, pushed_back};
use super::{call, call_of, client, code_of, end_of, retried, throttled};

// THR-1, THR-4
#[tokio::test(start_paused = true)]
async fn methods_share_and_fill_one_bucket() {
    let text = throttled(&retried(2, "0.01s", "[14]"), 4.0, 0.5);
    let scripts = [("/a/Fails", vec![UNAVAILABLE]), ("/b/Works", vec![OK])];
    let server = Server::new(scripts);
    let client = client(&text, &server);
    let throttle = client.handle().throttle().clone();
    let left = || throttle.tokens_thousandths().unwrap();
    // Each failed attempt costs one token, even the last one (rule RET-1).
    assert_eq!(end_of(&client, call_of("/a/Fails")).await.1, StopReason::AttemptsExhausted);
    assert_eq!((server.count(), left()), (2, 2_000));
    assert_eq!(end_of(&client, call_of("/a/Fails")).await.1, StopReason::BudgetExhausted);
    assert_eq!((server.count(), left()), (3, 1_000), "the first attempt is sent, and no other");
    for tokens in [1_500, 2_000, 2_500] {
        assert_eq!(end_of(&client, call_of("/b/Works")).await.0.unwrap(), Code::Ok);
        assert_eq!(left(), tokens);
    }
}

// THR-4
#[tokio::test(start_paused = true)]
async fn success_earns_when_trailers_have_come() {
    let text = throttled("{}", 4.0, 0.5);
    let server = Server::new([("/a/A", vec![OK]), ("/a/B", vec![Step::Answer(Code::Internal)])]);
    let client = client(&text, &server);
    let throttle = client.handle().throttle().clone();
    throttle.failed();
    let answer = client.clone().oneshot(call_of("/a/A")).await.unwrap();
    assert_eq!(throttle.tokens_thousandths(), Some(3_000), "its status has not come yet");
    code_of(answer).await;
    assert_eq!(throttle.tokens_thousandths(), Some(3_500));
    assert_eq!(end_of(&client, call_of("/a/B")).await.0.unwrap(), Code::Internal);
    assert_eq!(throttle.tokens_thousandths(), Some(3_500));
}

// THR-3
#[tokio::test(start_paused = true)]
async fn only_listed_codes_cost_a_token() {
    // (the config, how the call ends, what is left of four tokens)
    let policy = retried(2, "0.01s", "[14]");
    let rows = [
        ("{}", UNAVAILABLE, 4_000),
        ("{}", pushed_back("-1"), 4_000),
        (&*policy, ABORTED, 4_000),
        (&*policy, Step::Answer(Code::Aborted), 4_000),
        (&*policy, Step::Answer(Code::Unavailable), 3_000),
        (&*policy, pushed_back("-1"), 3_000),
        (&*policy, Step::Only(Code::Aborted, Some("-1")), 3_000),
    ];
    for (index, (text, step, left)) in rows.into_iter().enumerate() {
        let server = Server::of([step]);
        let client = client(&throttled(text, 4.0, 0.5), &server);
        end_of(&client, call()).await.0.unwrap();
        assert_eq!(server.count(), 1, "{index}");
        assert_eq!(client.handle().throttle().tokens_thousandths(), Some(left), "{index}");
    }
}

// THR-1
#[tokio::test(start_paused = true)]
async fn thr_1_new_config_keeps_bucket_of_calls() {
    let text = throttled(&retried(2, "0.01s", "[14]"), 4.0, 0.5);
    let server = Server::of([UNAVAILABLE]);
    let client = client(&text, &server);
    end_of(&client, call()).await.0.unwrap();
    client.handle().update(ServiceConfig::parse(&text)).unwrap();
    end_of(&client, call()).await.0.unwrap();
    assert_eq!(server.count(), 3, "no free refill");
    assert_eq!(client.handle().throttle().tokens_thousandths(), Some(1_000));
}
