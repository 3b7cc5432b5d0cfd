//! Attempts that end without a response, and the retries after them (§5, §6).

use super::*;

/// Returns the number of calls to the server, by a client whose calls may be repeated and by one
/// whose calls may not.
async fn calls(script: &[Step]) -> (usize, usize) {
    let (server, answer, _) = call([script.to_vec()]).await;
    let repeatable = (server.calls(), answer.is_ok());
    let server = Server::start([script.to_vec()]).await;
    let retry = ServiceBuilder::new().layer(RetryLayer::new(unmarked())).service(server.channel());
    let answer = EchoClient::new(retry).say(Text::new("hello")).await;
    let once = (server.calls(), answer.is_ok());
    assert_eq!(repeatable.0 > 1, repeatable.1, "{script:?}");
    assert_eq!(once.0 > 1, once.1, "{script:?}");
    (repeatable.0, once.0)
}

// TR-2
#[tokio::test]
async fn tr_2_a_refused_stream_was_not_processed() {
    let refused = Step::Reset(Reason::REFUSED_STREAM);
    assert_eq!(calls(std::slice::from_ref(&refused)).await, (2, 2));
    assert_eq!(calls(&[Step::Read, refused]).await, (2, 2));
}

// TR-2
#[tokio::test]
async fn tr_2_goaway_below_the_stream_is_proof() {
    let reasons = [Reason::NO_ERROR, Reason::ENHANCE_YOUR_CALM, Reason::INTERNAL_ERROR];
    for reason in reasons {
        assert_eq!(calls(&[Step::GoAwayBelow(reason)]).await, (2, 2), "{reason}");
    }
}

// TR-7
#[tokio::test]
async fn tr_7_goaway_above_the_stream_is_ignored() {
    let begin = [Step::Read, Step::GoAwayAbove(Reason::NO_ERROR)];
    let script: Vec<_> = begin.iter().cloned().chain(succeeds().into_iter().skip(1)).collect();
    let (server, answer, stop) = call([script]).await;
    assert_eq!(answer.unwrap(), "hello");
    assert_eq!((server.calls(), stop), (1, StopReason::Succeeded));

    let script: Vec<_> = begin.into_iter().chain([refused().remove(1)]).collect();
    let (server, answer, _) = call([script]).await;
    assert_eq!(answer.unwrap(), "hello");
    let connections: Vec<_> = server.arrivals().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [1, 2], "the retry goes to a connection that takes new streams");
}

// OUT-2
#[tokio::test]
async fn out_2_lost_connection_is_no_proof() {
    assert_eq!(calls(&[Step::Cut]).await, (2, 1));
    assert_eq!(calls(&[Step::Read, Step::Cut]).await, (2, 1));
}

// RET-5
#[tokio::test]
async fn ret_5_reset_before_headers_is_no_proof() {
    // (reason, the caller's code, `true` if another attempt may succeed)
    let rows = [
        (Reason::CANCEL, Code::Cancelled),
        (Reason::INTERNAL_ERROR, Code::Internal),
        (Reason::NO_ERROR, Code::Internal),
        (Reason::ENHANCE_YOUR_CALM, Code::ResourceExhausted),
        (Reason::PROTOCOL_ERROR, Code::Internal),
    ];
    for (reason, code) in rows {
        let script = [Step::Read, Step::Reset(reason)];
        let server = Server::start([script.to_vec()]).await;
        let retry = ServiceBuilder::new().layer(RetryLayer::new(unmarked())).service(server.channel());
        let status = EchoClient::new(retry).say(Text::new("hello")).await.unwrap_err();
        assert_eq!((status.code(), server.calls()), (code, 1), "{reason}: {status}");
    }
}
