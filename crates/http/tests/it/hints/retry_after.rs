//! Tests of `Retry-After` and its more precise forms.

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reattempt_core::ServerHint;
use reattempt_http::Hints;

use super::{DATE_FORMS, EXAMPLE, at, headers, millis, read, seconds};

#[test]
fn retry_after_in_seconds() {
    for (value, expected) in [
        ("0", seconds(0)),
        ("1", seconds(1)),
        ("120", seconds(120)),
        ("007", seconds(7)),
        (" 5\t", seconds(5)),
        ("", ServerHint::None),
        ("-1", ServerHint::Unreadable),
        ("0x10", ServerHint::Unreadable),
        ("1e3", ServerHint::Unreadable),
        ("soon", ServerHint::Unreadable),
        ("5, 10", seconds(10)),
        ("120, 30", seconds(120)),
        ("120,soon,", seconds(120)),
        (",", ServerHint::None),
        (" ", ServerHint::None),
        ("\u{661}\u{662}", ServerHint::Unreadable),
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
        // decades, for the limits to refuse
        ("999999999", seconds(999_999_999)),
        ("100000000000", seconds(100_000_000_000)),
        ("18446744073709551615", seconds(u64::MAX)),
        ("18446744073709551616", seconds(u64::MAX)),
        ("99999999999999999999999999999999999999999999", seconds(u64::MAX)),
        ("+1", ServerHint::Unreadable),
        ("1.0", seconds(1)),
        ("\u{b2}", ServerHint::Unreadable),
    ] {
        assert_eq!(read(Hints::default(), &[("retry-after", value)]).hint, expected, "{value:?}");
    }
    for name in ["retry-after-ms", "x-ms-retry-after-ms"] {
        for (value, expected) in [
            ("18446744073709551615", millis(u64::MAX)),
            ("18446744073709551615.9", millis(u64::MAX)),
            ("99999999999999999999999999999999999999999999", millis(u64::MAX)),
            ("+1", ServerHint::Unreadable),
            ("\u{b2}", ServerHint::Unreadable),
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
            (".", ServerHint::Unreadable),
            (".5", ServerHint::Unreadable),
            ("5.", ServerHint::Unreadable),
            ("1.2.3", ServerHint::Unreadable),
            ("-1", ServerHint::Unreadable),
            ("1e3", ServerHint::Unreadable),
        ] {
            assert_eq!(read(Hints::default(), &[(name, value)]).hint, expected, "{name} {value:?}");
        }
    }
    // A date at a whole second, and a clock half a second past one.
    let clock = at(EXAMPLE - 1) + Duration::from_millis(500);
    let headers = headers(&[("retry-after", DATE_FORMS[0])]);
    assert_eq!(Hints::default().read(&headers, || clock).hint, millis(500));
}

#[test]
fn date_of_a_wrong_day_is_ignored() {
    let wrong = DATE_FORMS[0].replace("Sun, ", "Mon, ");
    let headers = [("retry-after", wrong.as_str()), ("date", "Sun, 06 Nov 1994 08:49:07 GMT")];
    assert_eq!(read(Hints::default(), &headers).hint, ServerHint::Unreadable);
}

/// Each form is a delay of 30 s from the response's own date.
// field 21
#[test]
fn other_forms_are_read() {
    let own = ("date", "Sun, 06 Nov 1994 08:49:07 GMT");
    for value in [
        "29.001",
        "30.0",
        "30s",
        "30 s",
        "30 seconds",
        "0m30s",
        "29999.5ms",
        "30000ms",
        "0.5 min",
        "0h0m30s",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "1994-11-06T08:49:37Z",
        "1994-11-06T08:49:36.5Z",
        "1994-11-06 08:49:37 UTC",
        "1994-11-06T09:49:37+01:00",
        "1994-11-06T03:19:37-0530",
        "1994-11-06T09:49:37+01",
    ] {
        assert_eq!(read(Hints::default(), &[("retry-after", value), own]).hint, seconds(30), "{value}");
    }
    for (value, expected) in [("299.997", 300), ("6m0s", 360), ("1h", 3600), ("1d2h", 93_600), ("1 hour 5 min", 3900)] {
        assert_eq!(read(Hints::default(), &[("retry-after", value), own]).hint, seconds(expected), "{value}");
    }
    assert_eq!(read(Hints::default(), &[("retry-after", "7.6605s")]).hint, millis(7661));
    assert_eq!(read(Hints::default(), &[("retry-after", "0.0000000001s")]).hint, millis(1));
    let huge = read(Hints::default(), &[("retry-after", "99999999999999999999d")]);
    assert_eq!(huge.hint, millis(u64::MAX));
}

/// A number of seconds or milliseconds that is too large for a delay is a time since 1970.
#[test]
fn large_numbers_are_dates() {
    let date = ("date", "Fri, 13 Feb 2009 23:31:00 GMT");
    for value in ["1234567890", "1234567889.2", "1234567890000", "1234567889999.5"] {
        assert_eq!(read(Hints::default(), &[("retry-after", value), date]).hint, seconds(30), "{value}");
        let reset = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", value), date];
        assert_eq!(read(Hints::none().rate_limit(true), &reset).hint, seconds(30), "{value}");
    }
}

/// A delay that cannot be read is no permission to come back at once.
// trap 67
#[test]
fn unreadable_delay_is_still_asked_for() {
    for value in [
        "1 week",
        "s",
        "1s1s",
        "1s1m",
        "1m s",
        "1.s",
        "5 s,",
        "1:30",
        "1994-11-06",
        "1994-11-06T08:49:37",
        "1994-13-06T08:49:37Z",
        "1994-02-29T08:49:37Z",
        "1900-01-01T00:00:00Z",
        "1994-11-06T08:49.5Z",
        "1994-11-06T24:49:37Z",
        "1994-11-06T08:49:37+1:00",
        "94-11-06T08:49:37Z",
        "Sun, 06 Nov 1994 08:49:37 CET",
    ] {
        let expected = if value == "5 s," { seconds(5) } else { ServerHint::Unreadable };
        assert_eq!(read(Hints::default(), &[("retry-after", value)]).hint, expected, "{value}");
    }
    let reset = [("retry-after", "soon"), ("ratelimit", "\"a\";r=0;t=9")];
    assert_eq!(read(Hints::default().rate_limit(true), &reset).hint, seconds(9));
    assert_eq!(read(Hints::default().retry_after(false), &reset).hint, ServerHint::None);
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
        (&[("retry-after", "soon"), ("retry-after-ms", "soon")], ServerHint::Unreadable),
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
            &[("retry-after", "10"), ("retry-after", DATE_FORMS[0]), ("date", "Sun, 06 Nov 1994 08:49:07 GMT")],
            seconds(30),
        ),
        (
            &[
                ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT, 10, Sunday, 06-Nov-94 08:49:17 GMT"),
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
    for date in ["Sat, 31 Dec 2016 23:59:60 GMT", "Saturday, 31-Dec-16 23:59:60 GMT", "Sat Dec 31 23:59:60 2016"] {
        assert_eq!(read(Hints::default(), &[("retry-after", date), own]).hint, seconds(30), "{date}");
    }
    for garbage in ["Sat, 31 Dec 2016 23:60:00 GMT", "Sat, 31 Dec 2016 23:59:61 GMT", ":60"] {
        let hinted = read(Hints::default(), &[("retry-after", garbage), own]);
        assert_eq!(hinted.hint, ServerHint::Unreadable, "{garbage}");
    }
}

// A server chooses the length of its headers, up to a few hundred kilobytes with hyper. The time to read one must not
// be quadratic.
#[test]
fn long_line_is_read_at_once() {
    const LENGTH: usize = 1 << 20;
    for (piece, then) in [("a", ""), (" ", "a"), ("a,", ""), (",", ""), ("a", ",,,"), ("a ,", "")] {
        let line = format!("x{}{then}", piece.repeat(LENGTH / piece.len()));
        let (done, read) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let hint = Hints::default().read(&headers(&[("retry-after", &line)]), SystemTime::now);
            done.send(hint.hint).unwrap();
        });
        let hint = read.recv_timeout(Duration::from_secs(60));
        assert_eq!(hint, Ok(ServerHint::Unreadable), "{piece:?} and then {then:?}");
    }
}
