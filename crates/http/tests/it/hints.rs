//! Server hints: each header in each form, what counts when several speak, and that no bytes at
//! all make the reader panic.

use std::cell::Cell;
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
        headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    headers
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Reads hints where no clock may be asked.
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
fn retry_after_in_seconds() {
    for (value, expected) in [
        ("0", seconds(0)),
        ("1", seconds(1)),
        ("120", seconds(120)),
        ("007", seconds(7)),
        (" 5\t", seconds(5)),
        ("", ServerHint::None),
        ("-1", ServerHint::None),
        ("1 s", ServerHint::None),
        ("1s", ServerHint::None),
        ("0x10", ServerHint::None),
        ("1e3", ServerHint::None),
        ("soon", ServerHint::None),
        ("5, 10", seconds(10)),
        ("120, 30", seconds(120)),
        ("120,soon,", seconds(120)),
        (",", ServerHint::None),
        ("\u{661}\u{662}", ServerHint::None),
    ] {
        let hinted = read(Hints::default(), &[("retry-after", value)]);
        assert_eq!(hinted.hint, expected, "{value:?}");
        assert_eq!(hinted.should_retry, None);
    }
}

// trap 19
#[test]
fn digits_saturate_and_others_are_no_number() {
    for (value, expected) in [
        // an epoch time read as seconds: decades, for the limits to refuse
        ("1790000000", seconds(1_790_000_000)),
        ("18446744073709551615", seconds(u64::MAX)),
        ("18446744073709551616", seconds(u64::MAX)),
        ("99999999999999999999999999999999999999999999", seconds(u64::MAX)),
        ("+1", ServerHint::None),
        ("1.0", ServerHint::None),
        ("\u{b2}", ServerHint::None),
    ] {
        assert_eq!(read(Hints::default(), &[("retry-after", value)]).hint, expected, "{value:?}");
    }
    for name in ["retry-after-ms", "x-ms-retry-after-ms"] {
        for (value, expected) in [
            ("18446744073709551615", millis(u64::MAX)),
            ("18446744073709551615.9", millis(u64::MAX)),
            ("99999999999999999999999999999999999999999999", millis(u64::MAX)),
            ("+1", ServerHint::None),
            ("\u{b2}", ServerHint::None),
        ] {
            assert_eq!(read(Hints::default(), &[(name, value)]).hint, expected, "{value:?}");
        }
    }
}

// trap 18
#[test]
fn hints_below_a_second_are_not_cut() {
    for name in ["retry-after-ms", "x-ms-retry-after-ms"] {
        for (value, expected) in [
            ("0", millis(0)),
            ("1", millis(1)),
            ("250", millis(250)),
            ("999", millis(999)),
            ("1500", millis(1500)),
            ("0.0", millis(0)),
            ("0.4", millis(1)),
            ("250.000", millis(250)),
            ("250.001", millis(251)),
            ("", ServerHint::None),
            (".", ServerHint::None),
            (".5", ServerHint::None),
            ("5.", ServerHint::None),
            ("1.2.3", ServerHint::None),
            ("-1", ServerHint::None),
            ("1e3", ServerHint::None),
        ] {
            assert_eq!(read(Hints::default(), &[(name, value)]).hint, expected, "{name} {value:?}");
        }
    }
    // A date whole seconds off a clock that shows half a second more.
    let clock = at(EXAMPLE - 1) + Duration::from_millis(500);
    let headers = headers(&[("retry-after", DATE_FORMS[0])]);
    assert_eq!(Hints::default().read(&headers, || clock).hint, millis(500));
}

#[test]
fn retry_after_date_counts_from_date_field() {
    for date in DATE_FORMS {
        for (own, expected) in [
            ("Sun, 06 Nov 1994 08:49:07 GMT", seconds(30)),
            ("Sunday, 06-Nov-94 08:48:37 GMT", seconds(60)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", seconds(0)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", seconds(0)),
        ] {
            let hinted = read(Hints::default(), &[("retry-after", date), ("date", own)]);
            assert_eq!(hinted.hint, expected, "{date} against {own}");
        }
    }
}

#[test]
fn retry_after_date_falls_back_to_the_clock() {
    for date in DATE_FORMS {
        for own in [None, Some(""), Some("yesterday"), Some("784111777")] {
            let mut headers = headers(&[("retry-after", date), ("retry-after", date)]);
            if let Some(own) = own {
                headers.insert("date", own.parse().unwrap());
            }
            let reads = Cell::new(0);
            let mut clocks = [at(EXAMPLE - 45), at(EXAMPLE + 45), UNIX_EPOCH].into_iter();
            for expected in [45, 0, EXAMPLE] {
                let clock = clocks.next().unwrap();
                let hinted = Hints::default().read(&headers, || {
                    reads.set(reads.get() + 1);
                    clock
                });
                assert_eq!(hinted.hint, seconds(expected), "{date}");
            }
            assert_eq!(reads.get(), 3, "once for each reading");
        }
    }
}

#[test]
fn the_clock_is_not_read_without_need() {
    for fields in [
        &[][..],
        &[("retry-after", "5")],
        &[("retry-after", "tomorrow")],
        &[("retry-after-ms", "5"), ("retry-after", DATE_FORMS[0])],
        &[("x-should-retry", "false"), ("retry-after", DATE_FORMS[0])],
    ] {
        read(Hints::default(), fields); // panics if it is
    }
    read(Hints::none(), &[("retry-after", DATE_FORMS[0])]);
}

#[test]
fn most_precise_wait_wins_over_garbage() {
    for (fields, expected) in [
        (&[("retry-after", "2"), ("retry-after-ms", "1250")][..], millis(1250)),
        (&[("retry-after", "2"), ("x-ms-retry-after-ms", "1250")], millis(1250)),
        (&[("x-ms-retry-after-ms", "7"), ("retry-after-ms", "1250")], millis(1250)),
        (&[("x-ms-retry-after-ms", "7"), ("retry-after-ms", "soon")], millis(7)),
        (&[("retry-after", "2"), ("retry-after-ms", "soon")], seconds(2)),
        (&[("retry-after", "soon"), ("retry-after-ms", "soon")], ServerHint::None),
    ] {
        assert_eq!(read(Hints::default(), fields).hint, expected, "{fields:?}");
    }
}

#[test]
fn the_longest_of_several_values_counts() {
    for (fields, expected) in [
        (&[("retry-after", "2"), ("retry-after", "9"), ("retry-after", "5")][..], seconds(9)),
        (&[("retry-after", "-2"), ("retry-after", "5")], seconds(5)),
        (&[("retry-after-ms", "2"), ("retry-after-ms", "9")], millis(9)),
        (
            &[
                ("retry-after", "10"),
                ("retry-after", DATE_FORMS[0]),
                ("date", "Sun, 06 Nov 1994 08:49:07 GMT"),
            ],
            seconds(30),
        ),
        (
            &[
                (
                    "retry-after",
                    "Sun, 06 Nov 1994 08:49:37 GMT, 10, Sunday, 06-Nov-94 08:49:17 GMT",
                ),
                ("date", "Sun, 06 Nov 1994 08:49:07 GMT"),
            ],
            seconds(30),
        ),
        (&[("retry-after-ms", "2, 9.5 ,3")], millis(10)),
    ] {
        assert_eq!(read(Hints::default(), fields).hint, expected, "{fields:?}");
    }
}

#[test]
fn leap_second_is_the_second_after_59() {
    let own = ("date", "Sat, 31 Dec 2016 23:59:30 GMT");
    for date in [
        "Sat, 31 Dec 2016 23:59:60 GMT",
        "Saturday, 31-Dec-16 23:59:60 GMT",
        "Sat Dec 31 23:59:60 2016",
    ] {
        assert_eq!(
            read(Hints::default(), &[("retry-after", date), own]).hint,
            seconds(30),
            "{date}"
        );
    }
    for garbage in ["Sat, 31 Dec 2016 23:60:00 GMT", "Sat, 31 Dec 2016 23:59:61 GMT", ":60"] {
        let hinted = read(Hints::default(), &[("retry-after", garbage), own]);
        assert_eq!(hinted.hint, ServerHint::None, "{garbage}");
    }
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
}

#[test]
fn should_retry_turns_failing_statuses_only() {
    let yes = read(Hints::default(), &[("x-should-retry", "true"), ("retry-after", "3")]);
    let silent = read(Hints::default(), &[]);

    for (code, kind) in [(409, FailureKind::Other), (501, FailureKind::Server)] {
        let status = StatusCode::from_u16(code).unwrap();
        let classification = yes.judge(verdict_of_status(status), status);
        let Verdict::Transient(failure) = classification.verdict else {
            panic!("{classification:?}")
        };
        assert_eq!((failure.kind(), failure.code()), (kind, Some(code)));
        assert_eq!(classification.hint, seconds(3));
        assert_eq!(silent.judge(verdict_of_status(status), status).verdict, Verdict::Permanent);
    }
    for code in [200, 304] {
        let status = StatusCode::from_u16(code).unwrap();
        assert_eq!(yes.judge(Verdict::Success, status).verdict, Verdict::Success);
        assert_eq!(yes.judge(Verdict::Permanent, status).verdict, Verdict::Permanent, "{code}");
    }
    for code in [429, 503] {
        let status = StatusCode::from_u16(code).unwrap();
        let verdict = verdict_of_status(status);
        assert_eq!(yes.judge(verdict, status).verdict, verdict, "already retryable");
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
        (
            &[("ratelimit-reset", "30"), ("ratelimit-remaining", "0"), ("age", "9")],
            ServerHint::None,
        ),
        (
            &[("x-ratelimit-reset", "30"), ("x-ratelimit-remaining", "0"), ("age", "9")],
            ServerHint::None,
        ),
        (&[("ratelimit-reset", "30"), ("ratelimit-remaining", "0")], seconds(30)),
        (&[("ratelimit-reset", "30"), ("ratelimit-remaining", "4")], ServerHint::None),
        (&[("ratelimit-reset", "30")], ServerHint::None),
        (&[("x-ratelimit-reset", "30"), ("x-ratelimit-remaining", "0")], seconds(30)),
        (&[("x-ratelimit-reset", "30"), ("x-ratelimit-remaining", "1")], ServerHint::None),
        (&[("x-ratelimit-reset", "30")], ServerHint::None),
        (
            &[("x-ratelimit-reset", "999999999"), ("x-ratelimit-remaining", "0"), own],
            seconds(999_999_999),
        ),
        (
            &[("x-ratelimit-reset", "1000000000"), ("x-ratelimit-remaining", "0"), own],
            seconds(1_000_000_000 - EXAMPLE),
        ),
        (
            &[("x-ratelimit-reset", "99999999999999999999"), ("x-ratelimit-remaining", "0"), own],
            seconds(u64::MAX),
        ),
        // Retry-After was said of this refusal, the quota of all requests.
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

const NAMES: [&str; 12] = [
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
];

/// Any bytes that can stand in a header, and texts near the ones that mean something.
fn value() -> impl Strategy<Value = HeaderValue> {
    let bytes = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        proptest::collection::vec(
            prop::sample::select(&b"0123456789+-. :,;\"\\rt=GMTSunNov"[..]),
            0..40
        ),
        (0_u32..40, 0_u32..14, 0_u32..10_000, 0_u32..25, 0_u32..62).prop_map(
            |(day, month, year, hour, second)| {
                let months = "JanFebMarAprMayJunJulAugSepOctNovDecXyz\u{b2}bc";
                let month: String = months.chars().skip(month as usize * 3).take(3).collect();
                format!("Sun, {day:02} {month} {year:04} {hour:02}:59:{second:02} GMT").into_bytes()
            }
        ),
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
        prop_assert_eq!(read(Hints::default(), &[("retry-after", &text)]).hint, seconds(value));
        prop_assert_eq!(read(Hints::default(), &[("retry-after-ms", &text)]).hint, millis(value));
    }
}
