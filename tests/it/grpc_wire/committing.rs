//! The commit of a call (§3), and trailers-only responses (§15).

use super::*;

/// Failing trailers, of a kind that is retried before the commit.
fn unavailable() -> Step {
    Step::Trailers(fields(&[("grpc-status", b"14"), ("grpc-message", b"gone")]))
}

/// Checks that the call ends after its first attempt, with UNAVAILABLE.
async fn is_committed(script: Vec<Step>) {
    let shown = format!("{script:?}");
    let (server, answer, stop) = call([script]).await;
    let status = answer.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{shown}");
    assert_eq!((server.calls(), stop), (1, StopReason::Succeeded), "{shown}");
}

// ST-1
#[tokio::test]
async fn st_1_lone_headers_frame_is_trailers_only() {
    let (server, answer, _) = call([refused()]).await;
    assert_eq!(answer.unwrap(), "hello");
    assert_eq!(server.calls(), 2);
}

// ST-1, TN-6
#[tokio::test]
async fn st_1_status_in_headers_is_trailers_only() {
    let head = || Step::Head(head(&[("grpc-status", b"14")]));
    for script in [vec![Step::Read, head(), Step::End], vec![head(), Step::Hang]] {
        let shown = format!("{script:?}");
        let (server, answer, _) = call([script]).await;
        assert_eq!(answer.unwrap(), "hello", "{shown}");
        assert_eq!(server.calls(), 2, "{shown}");
    }
}

// COM-1
#[tokio::test]
async fn com_1_headers_and_then_a_message_commit() {
    is_committed(vec![Step::Read, Step::Head(head(&[])), Step::Data(message("one")), unavailable()]).await;
}

// COM-1
#[tokio::test]
async fn com_1_headers_alone_commit() {
    is_committed(vec![Step::Read, Step::Head(head(&[])), unavailable()]).await;
    is_committed(vec![Step::Head(head(&[("x-of-the-server", b"1")])), unavailable()]).await;
}

// COM-1
#[tokio::test]
async fn com_1_part_of_a_message_commits() {
    let part = message("a message that is cut").slice(..7);
    for end in [unavailable(), Step::Reset(Reason::REFUSED_STREAM), Step::Cut] {
        let script = vec![Step::Read, Step::Head(head(&[])), Step::Data(part.clone()), end.clone()];
        let (server, answer, stop) = call([script]).await;
        assert!(answer.is_err(), "{end:?}");
        assert_eq!((server.calls(), stop), (1, StopReason::Succeeded), "{end:?}");
    }
}

// COM-1, TR-5
#[tokio::test]
async fn tr_5_headers_end_all_retries() {
    let reasons =
        [Reason::REFUSED_STREAM, Reason::NO_ERROR, Reason::CANCEL, Reason::INTERNAL_ERROR, Reason::ENHANCE_YOUR_CALM];
    for data in [None, Some(Step::Data(message("one")))] {
        let ends = reasons.into_iter().map(Step::Reset).chain([Step::Cut]);
        for end in ends.chain([Step::GoAwayBelow(Reason::NO_ERROR)]) {
            let begin = [Step::Read, Step::Head(head(&[]))].into_iter().chain(data.clone());
            let script: Vec<_> = begin.chain([end.clone()]).collect();
            let (server, answer, _) = call([script]).await;
            assert!(answer.is_err(), "{data:?} {end:?}: {answer:?}");
            assert_eq!(server.calls(), 1, "{data:?} {end:?}");
        }
    }
}

// ST-2, ST-3
#[tokio::test]
async fn st_2_missing_status_is_unknown() {
    let script = vec![Step::Read, Step::Head(head(&[])), Step::End];
    let (server, answer, _) = call([script]).await;
    assert_eq!(answer.unwrap_err().code(), Code::Unknown);
    assert_eq!(server.calls(), 1);
}

// ST-4
#[tokio::test]
async fn st_4_the_details_do_not_decide() {
    // google.rpc.Status with code 14.
    let details = ("grpc-status-details-bin", &b"CA4"[..]);
    let script = vec![Step::Only(head(&[("grpc-status", b"3"), details]))];
    let (server, answer, stop) = call([script]).await;
    assert_eq!(answer.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!((server.calls(), stop), (1, StopReason::Permanent));
    // And with code 3.
    let details = ("grpc-status-details-bin", &b"CAM"[..]);
    let script = vec![Step::Only(head(&[("grpc-status", b"14"), details]))];
    let (server, answer, _) = call([script]).await;
    assert_eq!(answer.unwrap(), "hello");
    assert_eq!(server.calls(), 2);
}

// RET-4
#[tokio::test]
async fn ret_4_ok_is_not_retried() {
    let pushback = ("grpc-retry-pushback-ms", &b"0"[..]);
    let script = vec![Step::Only(head(&[("grpc-status", b"0"), pushback]))];
    let (server, answer, stop) = call([script]).await;
    assert!(answer.is_err(), "a unary call without a message");
    assert_eq!((server.calls(), stop), (1, StopReason::Succeeded));
}

// RET-5
#[tokio::test]
async fn ret_5_invalid_status_is_unknown() {
    for status in [&b"17"[..], b"300", b"-1", b"", b"14 14", b"UNAVAILABLE", b"\xff", b"014x"] {
        let script = vec![Step::Only(head(&[("grpc-status", status)]))];
        let (server, answer, stop) = call([script]).await;
        assert_eq!(answer.unwrap_err().code(), Code::Unknown, "{status:?}");
        assert_eq!((server.calls(), stop), (1, StopReason::Permanent), "{status:?}");
    }
}

// OUT-1
#[tokio::test]
async fn out_1_http_answer_is_judged_by_status() {
    // (status, code, `true` if it is retried)
    let rows = [
        (400, Code::Internal, false),
        (401, Code::Unauthenticated, false),
        (403, Code::PermissionDenied, false),
        (404, Code::Unimplemented, false),
        (429, Code::Unavailable, true),
        (502, Code::Unavailable, true),
        (503, Code::Unavailable, true),
        (504, Code::Unavailable, true),
        (500, Code::Unknown, false),
        (302, Code::Unknown, false),
    ];
    for (status, code, retried) in rows {
        let script = || vec![Step::Read, Step::Only(head_of(status, &[]))];
        let (server, answer, _) = call([script(), script(), script()]).await;
        assert_eq!(answer.unwrap_err().code(), code, "{status}");
        assert_eq!(server.calls(), if retried { 3 } else { 1 }, "{status}");
    }
    // A page of the proxy's own does not commit either.
    let page = Step::Data(Bytes::from_static(b"<html>"));
    let (server, answer, _) = call([vec![Step::Head(head_of(503, &[])), page, Step::End]]).await;
    assert_eq!((answer.unwrap(), server.calls()), ("hello".to_owned(), 2));
}
