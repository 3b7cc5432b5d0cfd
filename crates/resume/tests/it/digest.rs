//! The digest of a joined body (RFC 9530).

use http::HeaderValue;
use reattempt::report::ReportSlot;
use reattempt::resume::DigestMismatch;
use reattempt::{CallOptions, StopReason};
use tower::{Layer, ServiceExt};

use super::support::{Answer, LENGTH, Server, content, get, layer, read};

/// The digests of version 1, and of its bytes from 100 to 899.
const SHA_256: &str = "sha-256=:QpjkpuOMF6tX54KhjYNtrsK1bUhkEcc8Z2afbC71pZw=:";
const SHA_512: &str =
    "sha-512=:s0falHpHdwdSpFlEeGO89GexrkNj9kXGMontdXP/Mft9LQeCUxKXqHWY/+DmU4sXZjck4WlvIH/oYx0I24ZG2A==:";
const SHA_256_OF_PART: &str = "sha-256=:WPXcRyB5qG50xWX6+qdY8RFmtumBWU7GUHLZYijUtzE=:";

/// A wrong digest comes in place of the last frame, so the caller never has a whole wrong body.
#[tokio::test(start_paused = true)]
async fn joined_body_is_compared_with_digest() {
    let two = format!("unixsum=1234, {SHA_256}");
    let wrong = SHA_256.replace("Qpjk", "AAAA");
    let rows = [
        ("repr-digest", SHA_256, true),
        ("repr-digest", SHA_512, true),
        ("repr-digest", &two, true),
        ("repr-digest", &format!("{SHA_256};a=b"), true),
        ("content-digest", SHA_256, true),
        ("repr-digest", &wrong, false),
        ("content-digest", &wrong, false),
        ("repr-digest", "sha-256=::", false),
        // No digest that could be compared.
        ("repr-digest", "md5=:AAAA:", true),
        ("repr-digest", "sha-256=AAAA", true),
        ("repr-digest", "", true),
        ("digest", "sha-256=:AAAA:", true),
    ];
    for (name, value, holds) in rows {
        for cut in [400, LENGTH] {
            let server = Server::new([Answer::whole(1, cut).with(name, value), Answer::rest(1, 400, LENGTH)]);
            let slot = ReportSlot::default();
            let mut request = get();
            request.extensions_mut().insert(CallOptions::new().report_to(&slot));
            let body = layer().verify_digest().layer(server).oneshot(request).await.unwrap().into_body();
            let read = read(body).await;
            assert_eq!(read.error.is_none(), holds, "{name}: {value}");
            if holds {
                assert_eq!(read.data, content(1));
            } else {
                assert!(read.data.len() < LENGTH && content(1).starts_with(&read.data));
                let error = read.error.unwrap().downcast::<DigestMismatch>().unwrap();
                assert_eq!(error.found(), Some("QpjkpuOMF6tX54KhjYNtrsK1bUhkEcc8Z2afbC71pZw="));
                assert!(value.contains(error.expected()));
                assert!(error.to_string().starts_with("the digest of the body is Qpjkpu"));
            }
            let stop = if holds { StopReason::Succeeded } else { StopReason::Permanent };
            assert_eq!(slot.take().filter(|_| cut < LENGTH).map_or(stop, |report| report.stop_reason()), stop);
        }
    }
}

/// The representation's digest is not that of a range; the content's is. Without the setting, none is compared.
#[tokio::test(start_paused = true)]
async fn digest_of_own_range_is_its_contents() {
    for (name, value, verified, holds) in [
        ("content-digest", SHA_256_OF_PART, true, true),
        ("content-digest", SHA_256, true, false),
        ("content-digest", SHA_256, false, true),
        ("repr-digest", SHA_256, true, true),
    ] {
        let part = |start, end| {
            let answer = Answer::rest(1, start, end).with("content-range", format!("bytes {start}-899/1000"));
            answer.with("content-length", 900 - start).with(name, value)
        };
        let server = Server::new([part(100, 400), part(400, 900).ending(None)]);
        let mut request = get();
        request.headers_mut().insert("range", HeaderValue::from_static("bytes=100-899"));
        let layer = if verified { layer().verify_digest() } else { layer() };
        let read = read(layer.layer(server).oneshot(request).await.unwrap().into_body()).await;
        assert_eq!(read.error.is_none(), holds, "{name} {verified}");
    }
}
