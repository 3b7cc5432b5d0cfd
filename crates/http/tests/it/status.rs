//! Tests of the table of statuses, one row per cell: the meaning, and whether a repeatable and any other request are
//! retried.

use http::StatusCode;
use reattempt_core::{FailureKind, Verdict};
use reattempt_http::verdict_of_status;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    Success,
    Fails,
    Retried,
}
use Outcome::{Fails, Retried, Success};

fn outcome(verdict: Verdict, repeatable: bool) -> Outcome {
    match verdict {
        Verdict::Success => Success,
        Verdict::Transient(_) if repeatable => Retried,
        Verdict::NotProcessed(_) => Retried,
        _ => Fails,
    }
}

fn verdict(code: u16) -> Verdict {
    verdict_of_status(StatusCode::from_u16(code).unwrap())
}

#[test]
fn each_status_by_repeatability() {
    // status, a repeatable request, one that is not, kind of failure
    let table: &[(u16, Outcome, Outcome, Option<FailureKind>)] = &[
        (100, Success, Success, None),
        (101, Success, Success, None),
        (103, Success, Success, None),
        (200, Success, Success, None),
        (201, Success, Success, None),
        (204, Success, Success, None),
        (206, Success, Success, None),
        (301, Success, Success, None),
        (304, Success, Success, None),
        (399, Success, Success, None),
        (425, Retried, Retried, Some(FailureKind::Other)),
        (429, Retried, Retried, Some(FailureKind::Throttled)),
        (408, Retried, Fails, Some(FailureKind::Server)),
        (500, Retried, Fails, Some(FailureKind::Server)),
        (502, Retried, Fails, Some(FailureKind::Server)),
        (503, Retried, Fails, Some(FailureKind::Server)),
        (504, Retried, Fails, Some(FailureKind::Server)),
        (509, Retried, Fails, Some(FailureKind::Server)),
        (512, Retried, Fails, Some(FailureKind::Server)),
        (520, Retried, Fails, Some(FailureKind::Server)),
        (599, Retried, Fails, Some(FailureKind::Server)),
        (409, Fails, Fails, None),
        (401, Fails, Fails, None),
        (400, Fails, Fails, None),
        (402, Fails, Fails, None),
        (403, Fails, Fails, None),
        (404, Fails, Fails, None),
        (405, Fails, Fails, None),
        (406, Fails, Fails, None),
        (407, Fails, Fails, None),
        (410, Fails, Fails, None),
        (411, Fails, Fails, None),
        (412, Fails, Fails, None),
        (413, Fails, Fails, None),
        (414, Fails, Fails, None),
        (415, Fails, Fails, None),
        (416, Fails, Fails, None),
        (417, Fails, Fails, None),
        (418, Fails, Fails, None),
        (420, Fails, Fails, None),
        (421, Fails, Fails, None),
        (422, Fails, Fails, None),
        (423, Fails, Fails, None),
        (424, Fails, Fails, None),
        (426, Fails, Fails, None),
        (428, Fails, Fails, None),
        (431, Fails, Fails, None),
        (451, Fails, Fails, None),
        (499, Fails, Fails, None),
        (501, Fails, Fails, None),
        (505, Fails, Fails, None),
        (506, Fails, Fails, None),
        (507, Fails, Fails, None),
        (508, Fails, Fails, None),
        (510, Fails, Fails, None),
        (511, Fails, Fails, None),
        (600, Fails, Fails, None),
        (999, Fails, Fails, None),
    ];
    for &(code, repeatable, other, kind) in table {
        let verdict = verdict(code);
        assert_eq!(outcome(verdict, true), repeatable, "{code}, repeatable");
        assert_eq!(outcome(verdict, false), other, "{code}, not repeatable");
        assert_eq!(verdict.failure().map(|failure| failure.kind()), kind, "{code}");
        if let Some(failure) = verdict.failure() {
            assert_eq!(failure.code(), Some(code));
        }
    }
}

#[test]
fn every_code_has_outcome_of_its_class() {
    for code in 100..=999 {
        let verdict = verdict(code);
        match code {
            100..=399 => assert_eq!(verdict, Verdict::Success, "{code}"),
            600..=999 => assert_eq!(verdict, Verdict::Permanent, "{code}"),
            _ => assert_ne!(verdict, Verdict::Success, "{code}"),
        }
    }
}

/// A proxy may send a 503 after the origin has processed the request, and may add its own Retry-After.
// trap 24
#[test]
fn status_503_is_no_proof_of_no_work() {
    let mut headers = http::HeaderMap::new();
    headers.insert("retry-after", "1".parse().unwrap());
    headers.insert("x-should-retry", "true".parse().unwrap());
    let hinted = reattempt_http::Hints::default().read(&headers, || panic!("no date, so no clock is read"));
    for code in [408, 500, 502, 503, 504] {
        let status = StatusCode::from_u16(code).unwrap();
        let classification = hinted.classification(verdict(code), status);
        assert_eq!(outcome(classification.verdict, false), Fails, "{code}");
        assert_eq!(outcome(classification.verdict, true), Retried, "{code}");
    }
}
