//! Tests of the behaviours that users of reqwest-retry know: each is kept or changed as the table in the docs states.

use std::io::ErrorKind;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use reattempt::body::ReplayLimits;
use reattempt::schedule::Exponential;
use reattempt::{CallOptions, Http, RetryPolicy, Verdict};
use reqwest::Body;
use tokio::time::Instant;

use crate::support::{Answer, Server, URL, client, policy};

/// Calls a server that responds with this status, then with 200. Returns the final status and the number of requests.
async fn get_after(status: u16) -> (u16, usize) {
    let server = Server::statuses([status]);
    let response = client(policy(), &server).get(URL).send().await.unwrap();
    (response.status().as_u16(), server.seen().len())
}

#[tokio::test(start_paused = true)]
async fn transient_status_is_retried() {
    for status in [408, 425, 429, 500, 502, 503, 504, 520, 599] {
        assert_eq!(get_after(status).await, (200, 2), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn lasting_status_is_returned() {
    let successes = [200, 201, 202, 203, 204, 205, 206, 207, 226];
    let redirects = [300, 301, 302, 303, 304, 307, 308];
    let refusals = [
        400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422, 423, 424,
        426, 428, 431, 451,
    ];
    let lasting = [501, 505, 506, 507, 508, 510, 511];
    for status in successes.into_iter().chain(redirects).chain(refusals).chain(lasting) {
        assert_eq!(get_after(status).await, (status, 1), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn status_can_be_made_transient() {
    let of_proxy = |outcome: reattempt::classify::Outcome<'_>| {
        let failure = reattempt::schedule::Failure::new(reattempt::schedule::FailureKind::Server);
        (outcome.status()? == 507).then_some(Verdict::Transient(failure))
    };
    let server = Server::statuses([507]);
    let policy = policy().protocol(|http| http.classify(of_proxy));
    let response = client(policy, &server).get(URL).send().await.unwrap();
    assert_eq!((response.status().as_u16(), server.seen().len()), (200, 2));
}

#[tokio::test(start_paused = true)]
async fn post_is_repeated_only_if_it_may_be() {
    let sent = async |options: Option<CallOptions>, key: bool, policy| {
        let server = Server::statuses([503]);
        let mut request = client(policy, &server).post(URL).body("once");
        if let Some(options) = options {
            request = request.with_extension(options);
        }
        if key {
            request = request.header("idempotency-key", "order-17");
        }
        let _ = request.send().await.unwrap();
        server.seen().len()
    };
    assert_eq!(sent(None, false, policy()).await, 1);
    assert_eq!(sent(None, true, policy()).await, 2);
    assert_eq!(sent(Some(CallOptions::new().repeatable(true)), false, policy()).await, 2);

    let as_before = |http: Http| http.options_for(|_| Some(CallOptions::new().repeatable(true)));
    assert_eq!(sent(None, false, policy().protocol(as_before)).await, 2);
}

#[tokio::test(start_paused = true)]
async fn last_response_is_returned() {
    let server = Server::statuses([500, 502, 503, 504]);
    let response = client(policy().max_attempts(3), &server).get(URL).send().await.unwrap();
    assert_eq!((response.status().as_u16(), server.seen().len()), (503, 3));
}

#[tokio::test(start_paused = true)]
async fn delays_double_up_to_the_longest() {
    let server = Server::statuses([503; 5]);
    let schedule = Exponential::no_jitter(Duration::from_secs(1)).max_delay(Duration::from_secs(3));
    let policy = policy().backoff(schedule).max_attempts(5).max_elapsed(None);
    let began = Instant::now();
    let _ = client(policy, &server).get(URL).send().await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(1 + 2 + 3 + 3));
}

#[tokio::test(start_paused = true)]
async fn retry_after_the_time_limit_is_not_sent() {
    let server = Server::statuses([503; 9]);
    let schedule = Exponential::no_jitter(Duration::from_secs(1));
    let policy = policy().backoff(schedule).max_attempts(9).max_elapsed(Duration::from_secs(4));
    let began = Instant::now();
    let _ = client(policy, &server).get(URL).send().await.unwrap();
    assert_eq!((server.seen().len(), began.elapsed()), (3, Duration::from_secs(1 + 2)));
}

#[tokio::test(start_paused = true)]
async fn servers_delay_is_obeyed() {
    let server = Server::new([Answer::WithHeader(503, "retry-after", "2")]);
    let began = Instant::now();
    let response = client(policy(), &server).get(URL).send().await.unwrap();
    assert_eq!(response.status(), 200);
    // The layer adds up to a tenth, so that many clients do not return at once.
    let delay = began.elapsed().as_millis();
    assert!((2_000..=2_200).contains(&delay), "{delay} ms");
}

#[tokio::test(start_paused = true)]
async fn budget_withholds_retries() {
    let server = Server::new((0..9_999).map(|_| Answer::Status(503)));
    let client = client(RetryPolicy::http(), &server);
    for _ in 0..300 {
        let _ = client.get(URL).send().await.unwrap();
    }
    let retries = server.seen().len() - 300;
    assert!((1..300).contains(&retries), "{retries} retries");
}

#[tokio::test(start_paused = true)]
async fn stream_is_sent_again_while_it_is_kept() {
    let pieces = || stream::iter(["in ", "pieces"].map(|it| Ok::<_, std::io::Error>(Bytes::from(it))));
    let server = Server::statuses([503]);
    let body = Body::wrap_stream(pieces());
    let response = client(policy(), &server).put(URL).body(body).send().await.unwrap();
    assert_eq!((response.status().as_u16(), server.seen().len()), (200, 2));

    // Nothing is kept, but the first attempt is still sent.
    let server = Server::statuses([503]);
    let keeps_nothing = policy().protocol(|http| http.replay(ReplayLimits::default().per_call(0)));
    let body = Body::wrap_stream(pieces());
    let response = client(keeps_nothing, &server).put(URL).body(body).send().await.unwrap();
    assert_eq!((response.status().as_u16(), server.seen().len()), (503, 1));
}

#[tokio::test(start_paused = true)]
async fn bytes_stay_bytes_in_every_attempt() {
    let server = Server::statuses([503]);
    let _ = client(policy(), &server).put(URL).body("bytes").send().await.unwrap();
    let bodies = server.seen().into_iter().map(|seen| seen.bytes.unwrap()).collect::<Vec<_>>();
    assert_eq!(bodies, [b"bytes", b"bytes"]);
}

#[tokio::test(start_paused = true)]
async fn error_of_middleware_below_is_classified() {
    let server = Server::new([Answer::Broken(ErrorKind::ConnectionReset)]);
    let response = client(policy(), &server).get(URL).send().await.unwrap();
    assert_eq!((response.status().as_u16(), server.seen().len()), (200, 2));

    let server = Server::new([Answer::Broken(ErrorKind::PermissionDenied)]);
    client(policy(), &server).get(URL).send().await.unwrap_err();
    assert_eq!(server.seen().len(), 1);
}
