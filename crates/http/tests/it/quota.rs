//! Tests of the quota that a response states, in every family of headers.

use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderMap, HeaderName};
use reattempt_http::Hints;

fn quota(hints: Hints, fields: &[(&'static str, &str)]) -> Option<(u32, u64)> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(HeaderName::from_static(name), value.parse().unwrap());
    }
    let clock = || UNIX_EPOCH + Duration::from_secs(2_000_000_000);
    let quota = hints.quota(&headers, clock)?;
    Some((quota.remaining, quota.reset.as_secs()))
}

#[test]
fn quota_is_read_from_every_family() {
    let read = Hints::none().rate_limit(true);
    let cases: [(&[(&str, &str)], _); 14] = [
        (&[("ratelimit", "\"a\";r=50;t=30")], Some((50, 30))),
        (&[("ratelimit", "\"a\";r=50;t=1, \"b\";r=3;t=3600")], Some((3, 3600))),
        (&[("ratelimit", "\"a\";r=0;t=5"), ("ratelimit", "\"b\";r=0;t=9, \"c\";r=1;t=99")], Some((0, 9))),
        (&[("ratelimit", "\"a\";r=5"), ("ratelimit-remaining", "7"), ("ratelimit-reset", "8")], Some((7, 8))),
        (&[("ratelimit", "\"a\";r=5;t=x")], None),
        (&[("ratelimit", "\"a\";r=-5;t=3")], None),
        (&[("ratelimit-remaining", "7"), ("ratelimit-remaining", "6"), ("ratelimit-reset", "8")], Some((6, 8))),
        (&[("ratelimit-remaining", "7")], None),
        (&[("x-ratelimit-remaining", "2"), ("x-ratelimit-reset", "60")], Some((2, 60))),
        (&[("x-ratelimit-remaining", "2"), ("x-ratelimit-reset", "2000000060")], Some((2, 60))),
        (&[("x-ratelimit-remaining", "2"), ("x-ratelimit-reset", "1999999999")], Some((2, 0))),
        (&[("ratelimit", "\"a\";r=99999999999;t=1")], Some((u32::MAX, 1))),
        (&[("ratelimit", "\"a\";r=5;t=3"), ("age", "1")], None),
        (&[("retry-after", "5")], None),
    ];
    for (fields, expected) in cases {
        assert_eq!(quota(read, fields), expected, "{fields:?}");
        assert_eq!(quota(Hints::default(), fields), None, "{fields:?}");
    }
}
