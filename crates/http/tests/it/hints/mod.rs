//! Tests of server hints: each header in each form, the precedence of several headers, and arbitrary bytes, which must
//! not cause a panic.

mod retry_after;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proptest::prelude::*;
use reattempt_core::{FailureKind, ServerHint, Verdict};
use reattempt_http::{Hinted, Hints, verdict_of_status};

/// Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110 §5.6.7.
const EXAMPLE: u64 = 784_111_777;

const DATE_FORMS: [&str; 3] =
    ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"];

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Reads hints with a clock that must not be read.
fn read(hints: Hints, fields: &[(&'static str, &str)]) -> Hinted {
    hints.read(&headers(fields), || panic!("the wall clock was read"))
}

fn after(duration: Duration) -> ServerHint {
    ServerHint::After(duration)
}

fn seconds(seconds: u64) -> ServerHint {
    after(Duration::from_secs(seconds))
}

fn millis(millis: u64) -> ServerHint {
    after(Duration::from_millis(millis))
}

#[test]
fn should_retry() {
    for name in ["x-should-retry", "stripe-should-retry"] {
        for (value, expected, hint) in [
            ("true", Some(true), seconds(3)),
            ("True", Some(true), seconds(3)),
            ("TRUE ", Some(true), seconds(3)),
            ("false", Some(false), ServerHint::Stop),
            ("FALSE", Some(false), ServerHint::Stop),
            ("", None, seconds(3)),
            ("yes", None, seconds(3)),
            ("0", None, seconds(3)),
            ("falsey", None, seconds(3)),
        ] {
            let hinted = read(Hints::default(), &[(name, value), ("retry-after", "3")]);
            assert_eq!((hinted.should_retry, hinted.hint), (expected, hint), "{name}: {value:?}");
        }
    }
    let both = [("x-should-retry", "true"), ("stripe-should-retry", "false")];
    assert_eq!(read(Hints::default(), &both).should_retry, Some(false), "no outweighs yes");
    let twice = [("x-should-retry", "false"), ("x-should-retry", "true")];
    assert_eq!(read(Hints::default(), &twice).should_retry, Some(false));
    let joined = [("x-should-retry", "true, false")];
    assert_eq!(read(Hints::default(), &joined).should_retry, Some(false), "one line equals two (RFC 9110 §5.3)");
}

#[test]
fn should_retry_turns_failing_statuses_only() {
    let yes = read(Hints::default(), &[("x-should-retry", "true"), ("retry-after", "3")]);
    let silent = read(Hints::default(), &[]);

    for (code, kind) in [(409, FailureKind::Other), (501, FailureKind::Server)] {
        let status = StatusCode::from_u16(code).unwrap();
        let classification = yes.classification(verdict_of_status(status), status);
        let Verdict::Transient(failure) = classification.verdict else { panic!("{classification:?}") };
        assert_eq!((failure.kind(), failure.code()), (kind, Some(code)));
        assert_eq!(classification.hint, seconds(3));
        assert_eq!(silent.classification(verdict_of_status(status), status).verdict, Verdict::Permanent);
    }
    for code in [200, 304] {
        let status = StatusCode::from_u16(code).unwrap();
        assert_eq!(yes.classification(Verdict::Success, status).verdict, Verdict::Success);
        assert_eq!(yes.classification(Verdict::Permanent, status).verdict, Verdict::Permanent, "{code}");
    }
    for code in [429, 503] {
        let status = StatusCode::from_u16(code).unwrap();
        let verdict = verdict_of_status(status);
        assert_eq!(yes.classification(verdict, status).verdict, verdict, "already retryable");
    }
}

#[test]
fn rate_limit_reset_counts_only_on_request() {
    let own = ("date", DATE_FORMS[0]);
    for (fields, expected) in [
        (&[("ratelimit", r#""default";r=0;t=30"#)][..], seconds(30)),
        (&[("ratelimit", r#""default"; r=0; t=30"#)], seconds(30)),
        (&[("ratelimit", r#""default";t=30;pk=:cHNsd2Y=:;r=0"#)], seconds(30)),
        (&[("ratelimit", r#"default;r=0;t=30"#)], seconds(30)),
        (&[("ratelimit", r#""default";r=1;t=30"#)], ServerHint::None),
        (&[("ratelimit", r#""default";t=30"#)], ServerHint::None),
        (&[("ratelimit", r#""default";r=0"#)], ServerHint::None),
        (&[("ratelimit", r#""default";r=0;t=-5"#)], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t=10, "b";r=0;t=20, "c";r=7;t=3600"#)], seconds(20)),
        (&[("ratelimit", r#""a";r=0;t=10"#), ("ratelimit", r#""b";r=0;t=20"#)], seconds(20)),
        (&[("ratelimit", r#""a,;r=0;t=99\";r=0;t=98";r=1;t=5"#)], ServerHint::None),
        (&[("ratelimit", r#""unclosed;r=0;t=30"#)], ServerHint::None),
        (&[("ratelimit", "30")], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t=10, "b";r=0;t=20,"#)], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t=10 "b";r=0;t=20"#)], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t=10"#), ("ratelimit", "\"b")], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;T=10"#)], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t="10""#)], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t=10, "b";r=none"#)], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t=1.5"#)], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t=1000000000000000"#)], ServerHint::None),
        (&[("ratelimit", r#""a"; r=0 ;t=10"#)], ServerHint::None),
        (&[("ratelimit", r#""a\x";r=0;t=10"#)], ServerHint::None),
        (&[("ratelimit", r#"é;r=0;t=10"#)], ServerHint::None),
        (&[("ratelimit", r#"*a/b:c;r=0;t=10;x;y=?1;z=@5;d=-1.25;e=:YQ==:"#)], seconds(10)),
        (&[("ratelimit", r#""a\"\\";r=0;t=10;r=5;r=0"#)], seconds(10)),
        (&[("ratelimit", r#""a";r=0;t=10;*x=1;a_-.*9"#)], seconds(10)),
        (&[("ratelimit", r#""a";r=0;t=10;9=1"#)], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t=10;x=123456789012.123"#)], seconds(10)),
        (&[("ratelimit", r#""a";r=0;t=10;x=1234567890123.5"#)], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t=10;x=1.2345"#)], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t=10;x=1."#)], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t=10"#), ("age", "0")], seconds(10)),
        (&[("ratelimit", r#""a";r=0;t=10"#), ("age", "1")], ServerHint::None),
        (&[("ratelimit", r#""a";r=0;t=10"#), ("age", "old")], seconds(10)),
        (&[("ratelimit-reset", "30"), ("ratelimit-remaining", "0"), ("age", "9")], ServerHint::None),
        (&[("x-ratelimit-reset", "30"), ("x-ratelimit-remaining", "0"), ("age", "9")], ServerHint::None),
        (&[("ratelimit-reset", "30"), ("ratelimit-remaining", "0")], seconds(30)),
        (&[("ratelimit-reset", "30"), ("ratelimit-remaining", "4")], ServerHint::None),
        (&[("ratelimit-reset", "30")], ServerHint::None),
        (&[("x-ratelimit-reset", "30"), ("x-ratelimit-remaining", "0")], seconds(30)),
        (&[("x-ratelimit-reset", "30"), ("x-ratelimit-remaining", "1")], ServerHint::None),
        (&[("x-ratelimit-reset", "30")], ServerHint::None),
        // A delay beyond a day is absurd.
        (&[("x-ratelimit-reset", "86400"), ("x-ratelimit-remaining", "0"), own], seconds(86_400)),
        (&[("x-ratelimit-reset", "86401"), ("x-ratelimit-remaining", "0"), own], ServerHint::None),
        (&[("ratelimit-reset", "999999999"), ("ratelimit-remaining", "0"), own], ServerHint::None),
        (&[("x-ratelimit-reset", "1000000000"), ("x-ratelimit-remaining", "0"), own], seconds(1_000_000_000 - EXAMPLE)),
        (&[("x-ratelimit-reset", "99999999999999999999"), ("x-ratelimit-remaining", "0"), own], ServerHint::None),
        // Retry-After concerns this refusal, the quota all requests.
        (&[("retry-after", "2"), ("ratelimit", r#""default";r=0;t=30"#)], seconds(2)),
    ] {
        let asked = read(Hints::default().rate_limit(true), fields);
        assert_eq!(asked.hint, expected, "{fields:?}");
        if fields.iter().all(|(name, _)| *name != "retry-after") {
            assert_eq!(read(Hints::default(), fields).hint, ServerHint::None, "{fields:?}");
        }
    }
    let past = [("x-ratelimit-reset", "1000000000"), ("x-ratelimit-remaining", "0")];
    let hinted = Hints::default().rate_limit(true).read(&headers(&past), || at(1_000_000_060));
    assert_eq!(hinted.hint, seconds(0));
}

#[test]
fn each_hint_can_be_turned_off_alone() {
    let all = [("x-should-retry", "true"), ("retry-after-ms", "5"), ("retry-after", "9")];
    assert_eq!(read(Hints::default(), &all).hint, millis(5));
    assert_eq!(read(Hints::default().retry_after_ms(false), &all).hint, seconds(9));
    let neither = Hints::default().retry_after_ms(false).retry_after(false);
    assert_eq!(read(neither, &all).hint, ServerHint::None);
    assert_eq!(read(Hints::default().should_retry(false), &all).should_retry, None);
    let stop = [("x-should-retry", "false")];
    assert_eq!(read(Hints::default().should_retry(false), &stop).hint, ServerHint::None);
    assert_eq!(read(Hints::none(), &all).hint, ServerHint::None);
    assert_eq!(read(Hints::none(), &all).should_retry, None);
    assert_eq!(read(Hints::none().retry_after(true), &all).hint, seconds(9));
}

const NAMES: [&str; 14] = [
    "retry-after",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "x-should-retry",
    "stripe-should-retry",
    "date",
    "age",
    "ratelimit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-rate-limit-remaining",
    "x-rate-limit-reset",
];

/// Arbitrary header bytes, and texts that are close to meaningful ones.
fn value() -> impl Strategy<Value = HeaderValue> {
    let bytes = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        prop::sample::select(&["true", "FALSE", "false ", "true,false", "60s"][..]).prop_map(|text| text.into()),
        proptest::collection::vec(prop::sample::select(&b"0123456789+-. :,;\"\\rt=GMTSunNovZsmhd"[..]), 0..40),
        (0_u32..40, 0_u32..14, 0_u32..10_000, 0_u32..25, 0_u32..62).prop_map(|(day, month, year, hour, second)| {
            let months = "JanFebMarAprMayJunJulAugSepOctNovDecXyz\u{b2}bc";
            let month: String = months.chars().skip(month as usize * 3).take(3).collect();
            format!("Sun, {day:02} {month} {year:04} {hour:02}:59:{second:02} GMT").into_bytes()
        }),
    ];
    bytes.prop_filter_map("not a header value", |bytes| HeaderValue::from_bytes(&bytes).ok())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4096) })]

    #[test]
    fn no_bytes_make_the_reader_panic(
        fields in proptest::collection::vec((prop::sample::select(&NAMES[..]), value()), 0..8),
        clock in any::<u32>(),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, value);
        }
        for hints in [Hints::default(), Hints::default().rate_limit(true)] {
            let hinted = hints.read(&headers, || at(u64::from(clock)));
            prop_assert_eq!(hinted.hint == ServerHint::Stop, hinted.should_retry == Some(false));
        }
    }

    #[test]
    fn every_number_of_seconds_is_read(value in any::<u64>()) {
        let text = value.to_string();
        let is_date = (1_000_000_000..100_000_000_000).contains(&value)
            || (1_000_000_000_000..100_000_000_000_000).contains(&value);
        if !is_date {
            prop_assert_eq!(read(Hints::default(), &[("retry-after", &text)]).hint, seconds(value));
        }
        prop_assert_eq!(read(Hints::default(), &[("retry-after-ms", &text)]).hint, millis(value));
    }
}
