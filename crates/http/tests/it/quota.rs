//! Tests of the quota that a response states, in every family of headers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};
use reattempt_core::ServerHint;
use reattempt_http::Hints;

fn quota(hints: &Hints, fields: &[(&'static str, &str)]) -> Option<(u32, u64)> {
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
        assert_eq!(quota(&read, fields), expected, "{fields:?}");
        assert_eq!(quota(&Hints::default(), fields), None, "{fields:?}");
    }
}

/// The forms that services send, with the clock at 2,000,000,000 s.
// field 20, field 22, field 23
#[test]
fn quota_is_read_as_services_send_it() {
    let read = Hints::none().rate_limit(true);
    let cases: [(&[(&str, &str)], _); 20] = [
        // GitLab
        (&[("ratelimit-remaining", "569"), ("ratelimit-reset", "2000000060")], Some((569, 60))),
        // A proxy has joined two lines.
        (&[("x-ratelimit-remaining", "991, 98"), ("x-ratelimit-reset", "60, 30")], Some((98, 60))),
        (&[("ratelimit-remaining", "7,6"), ("ratelimit-reset", "8")], Some((6, 8))),
        // Okta, Twitter
        (&[("x-rate-limit-remaining", "0"), ("x-rate-limit-reset", "2000000002")], Some((0, 2))),
        // Reddit
        (&[("x-ratelimit-remaining", "99.5"), ("x-ratelimit-reset", "300")], Some((99, 300))),
        // Discord
        (
            &[
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", "2000000001.47"),
                ("x-ratelimit-reset-after", "1.470"),
            ],
            Some((0, 2)),
        ),
        // Rocket.Chat
        (&[("x-ratelimit-remaining", "9"), ("x-ratelimit-reset", "2000000060000")], Some((9, 60))),
        // Atlassian
        (&[("x-ratelimit-remaining", "9"), ("x-ratelimit-reset", "2033-05-18T03:34Z")], Some((9, 40))),
        // OpenAI
        (&[("x-ratelimit-remaining-requests", "59"), ("x-ratelimit-reset-requests", "6m0s")], Some((59, 360))),
        (
            &[
                ("x-ratelimit-remaining-requests", "59"),
                ("x-ratelimit-reset-requests", "1s"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "7s"),
            ],
            Some((0, 7)),
        ),
        // Anthropic
        (
            &[
                ("anthropic-ratelimit-requests-remaining", "4"),
                ("anthropic-ratelimit-requests-reset", "2033-05-18T03:33:50Z"),
            ],
            Some((4, 30)),
        ),
        (
            &[
                ("anthropic-ratelimit-requests-remaining", "999"),
                ("anthropic-ratelimit-requests-reset", "2033-05-18T03:33:21Z"),
                ("anthropic-ratelimit-output-tokens-remaining", "0"),
                ("anthropic-ratelimit-output-tokens-reset", "2033-05-18T03:33:30Z"),
            ],
            Some((0, 10)),
        ),
        // Zendesk
        (
            &[("x-rate-limit-remaining", "699"), ("ratelimit-remaining", "699"), ("ratelimit-reset", "41")],
            Some((699, 41)),
        ),
        // Linear
        (&[("x-ratelimit-requests-remaining", "4"), ("x-ratelimit-requests-reset", "2000000007500")], Some((4, 7))),
        (
            &[("x-ratelimit-complexity-remaining", "0"), ("x-ratelimit-complexity-reset", "2000000060000")],
            Some((0, 60)),
        ),
        // Sentry
        (&[("x-sentry-rate-limit-remaining", "39"), ("x-sentry-rate-limit-reset", "2000000001")], Some((39, 1))),
        // Brevo
        (&[("x-sib-ratelimit-remaining", "0"), ("x-sib-ratelimit-reset", "9")], Some((0, 9))),
        (&[("x-ratelimit-remaining", "9"), ("x-ratelimit-reset", "90000")], None),
        (&[("x-ratelimit-remaining", "-1"), ("x-ratelimit-reset", "60")], None),
        (&[("x-ratelimit-remaining", "9"), ("x-ratelimit-reset", "later")], None),
    ];
    for (fields, expected) in cases {
        assert_eq!(quota(&read, fields), expected, "{fields:?}");
    }
}

/// A parameter that is skipped must still be well formed, or the list is ignored as a whole.
// RFC 9651 §4.2
#[test]
fn list_is_read_as_structured_field() {
    let whole = Some((7, 60));
    let lines: [(&[&[u8]], _); 62] = [
        // Spaces and tabs
        (&[b"  a;r=7;t=60  "], whole),
        (&[b"a;  r=7; t=60"], whole),
        (&[b"b \t,\t a;r=7;t=60"], whole),
        (&[b"b,a;r=7;t=60"], whole),
        (&[b"a;r=7;t=60,"], None),
        (&[b",a;r=7;t=60"], None),
        (&[b"a;r=7;t=60,,b"], None),
        (&[b"a ;r=7;t=60"], None),
        (&[b"a;\tr=7;t=60"], None),
        (&[b"a;r =7;t=60"], None),
        (&[b"a;r= 7;t=60"], None),
        (&[b"a;r=7;t=60 b"], None),
        (&[b"a;r=7;t=60;"], None),
        // Several lines are one list, even where a line breaks a string.
        (&[b"b", b"a;r=7;t=60"], whole),
        (&[b"a;r=7;t=60;x=\"1", b"2\""], whole),
        (&[b"a;r=7;t=60", b"?2"], None),
        (&[b"a;r=7;t=60", b""], None),
        (&[b""], None),
        // Keys
        (&[b"a;r=7;t=60;*a-_.*9"], whole),
        (&[b"a;r=1;t=60;r=7"], whole),
        (&[b"a;r=7;t=60;R=1"], None),
        (&[b"a;r=7;t=60;9=1"], None),
        (&[b"a;r=7;t=60;-=1"], None),
        // Inner lists and unknown types
        (&[b"(a b);r=7;t=60"], None),
        (&[b"a;r=7;t=60;x=#"], None),
        (&[b"a;r=7;t=60;x=\xe4"], None),
        // Numbers
        (&[b"a;r=007;t=60;x=-0"], whole),
        (&[b"a;r=7;t=60, b;r=-0;t=-0;r=8;t=61"], whole),
        (&[b"a;r=7;t=60;x=-999999999999999"], whole),
        (&[b"a;r=7;t=60;x=1000000000000000"], None),
        (&[b"a;r=7;t=60;x=123456789012.123"], whole),
        (&[b"a;r=7;t=60;x=1234567890123.1"], None),
        (&[b"a;r=7;t=60;x=1.1234"], None),
        (&[b"a;r=7;t=60;x=1."], None),
        (&[b"a;r=7;t=60;x=.1"], None),
        (&[b"a;r=7;t=60;x=--1"], None),
        (&[b"a;r=7.0;t=60"], None),
        // Strings and tokens
        (&[b"a;r=7;t=60;x=\"\\\"\\\\\""], whole),
        (&[b"a;r=7;t=60;x=\"\\n\""], None),
        (&[b"a;r=7;t=60;x=\"\t\""], None),
        (&[b"a;r=7;t=60;x=\""], None),
        (&[b"a;r=7;t=60;x=*/:!~"], whole),
        // Booleans
        (&[b"a;r=7;t=60;x=?1;y=?0"], whole),
        (&[b"a;r=7;t=60;x=?2"], None),
        // Dates have no fraction.
        (&[b"a;r=7;t=60;x=@-1659578233"], whole),
        (&[b"a;r=7;t=60;x=@1659578233.0"], None),
        (&[b"a;r=7;t=60;x=@"], None),
        // Bytes are base64.
        (&[b"a;r=7;t=60;x=:aGk=:;y=:aGk:;z=::;w=:aGl=:"], whole),
        (&[b"a;r=7;t=60;x=:aGk==:"], None),
        (&[b"a;r=7;t=60;x=:a=Gk:"], None),
        (&[b"a;r=7;t=60;x=:aGkaa:"], None),
        (&[b"a;r=7;t=60;x=:====:"], None),
        (&[b"a;r=7;t=60;x=:aG_k:"], None),
        (&[b"a;r=7;t=60;x=:aGk="], None),
        // Display strings are UTF-8, with lower-case escapes.
        (&[b"a;r=7;t=60;x=%\"f%c3%bc%c3%bc a%22b\\\""], whole),
        (&[b"a;r=7;t=60;x=%\"%C3%BC\""], None),
        (&[b"a;r=7;t=60;x=%\"%c3\""], None),
        (&[b"a;r=7;t=60;x=%\"%c\""], None),
        (&[b"a;r=7;t=60;x=%\"f\xc3\xbc\""], None),
        (&[b"a;r=7;t=60;x=%\"f"], None),
        (&[b"a;r=7;t=60;x=%f"], None),
        (&[b"a;r=7;t=60;x=%\"\t\""], None),
    ];
    for (lines, expected) in lines {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("ratelimit", HeaderValue::from_bytes(line).unwrap());
        }
        let read = Hints::none().rate_limit(true).quota(&headers, || SystemTime::UNIX_EPOCH);
        let shown: Vec<_> = lines.iter().map(|line| line.escape_ascii().to_string()).collect();
        assert_eq!(read.map(|quota| (quota.remaining, quota.reset.as_secs())), expected, "{shown:?}");
    }
}

fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

/// The names that a program adds are read by the rules of the known ones, whether those are read or not.
// field 23
#[test]
fn added_names_are_read() {
    let added = Hints::none().quota_in(name("x-left"), name("x-renewed")).quota_in(name("x-daily"), name("x-midnight"));
    let cases: [(&[(&str, &str)], _); 8] = [
        (&[("x-left", "7, 5"), ("x-renewed", "1m30s")], Some((5, 90))),
        (&[("x-left", "7"), ("x-renewed", "2000000060")], Some((7, 60))),
        (
            &[("x-left", "7"), ("x-renewed", "60"), ("x-daily", "3"), ("x-midnight", "2033-05-18T04:33:20Z")],
            Some((3, 3600)),
        ),
        (&[("x-left", "7"), ("x-renewed", "90000")], None),
        (&[("x-left", "7"), ("x-renewed", "soon")], None),
        (&[("x-left", "7")], None),
        (&[("x-left", "7"), ("x-renewed", "60"), ("age", "3")], None),
        (&[("ratelimit", "\"a\";r=50;t=30")], None),
    ];
    for (fields, expected) in cases {
        assert_eq!(quota(&added, fields), expected, "{fields:?}");
        assert_eq!(quota(&added.clone().rate_limit(true).rate_limit(false), fields), expected, "{fields:?}");
    }
    let both = added.rate_limit(true);
    assert_eq!(quota(&both, &[("ratelimit", "\"a\";r=50;t=30"), ("x-left", "2"), ("x-renewed", "60")]), Some((2, 60)));
}

/// An added header with a delay counts as `Retry-After` does, below it and above a quota.
// field 21, field 23
#[test]
fn added_delay_is_read() {
    let hints = Hints::default().delay_in(name("x-cooldown")).delay_in(name("x-pause")).rate_limit(true);
    let read = |fields: &[(&'static str, &str)]| {
        let headers = fields.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        hints.read(&headers.collect(), || UNIX_EPOCH + Duration::from_secs(2_000_000_000)).hint
    };
    let after = |seconds| ServerHint::After(Duration::from_secs(seconds));
    assert_eq!(read(&[("x-cooldown", "299.997")]), after(300));
    assert_eq!(read(&[("x-cooldown", "2000000060"), ("x-pause", "90 s")]), after(90));
    assert_eq!(read(&[("x-cooldown", "9"), ("retry-after", "3")]), after(3));
    let exhausted = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "60")];
    assert_eq!(read(&[exhausted[0], exhausted[1], ("x-pause", "9")]), after(9));
    assert_eq!(read(&exhausted), after(60));
    assert_eq!(read(&[("x-cooldown", "soon")]), ServerHint::Unreadable);
    assert_eq!(read(&[("x-cooldown", "")]), ServerHint::None);
}
