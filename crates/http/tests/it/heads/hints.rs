//! Tests that reading the hints of any response head neither panics nor invents a delay.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reattempt_core::{ServerHint, Verdict};
use reattempt_http::{Hints, verdict_of_status};

use super::input::Input;

const NAMES: &[&str] = &[
    "retry-after",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "x-should-retry",
    "stripe-should-retry",
    "ratelimit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-reset-after",
    "x-rate-limit-remaining",
    "x-rate-limit-reset",
    "date",
    "age",
];
const VALUES: &[&str] = &[
    "0",
    "1",
    "9",
    "99999999999999999999999",
    "1000000000",
    ".",
    ",",
    ", ",
    ";",
    "\"",
    "\\",
    "=",
    "r=",
    "t=",
    "q=",
    "w=",
    "\"default\";r=0;t=30",
    "-",
    "+",
    " ",
    "\t",
    "true",
    "FALSE",
    "false",
    "e5",
    "\u{b2}",
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "Fri, 31 Dec 9999 23:59:60 GMT",
    "Sun",
    "Nov",
    "08:49",
    " GMT",
    " UTC",
    "1994-11-06T08:49:37",
    "Z",
    "+01:00",
    "6m0s",
    "ms",
    "d",
    "2000000000",
    "2000000000000",
];

/// The latest date that HTTP can express is not further away than this.
const LONGEST_DATE: Duration = Duration::from_secs(8_100 * 366 * 24 * 3600);

/// Reads the hints of the response head that `data` encodes, with every combination of settings.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let status = StatusCode::from_u16(100 + u16::from(input.byte()) * 3 + u16::from(input.below(135)))
        .expect("between 100 and 999");
    let wall_clock = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(input.byte()) << 24);
    let read = input.byte();
    let mut headers = HeaderMap::new();
    for _ in 0..input.below(8) {
        let name = HeaderName::from_static(input.pick(NAMES));
        if let Ok(value) = HeaderValue::from_bytes(&input.text(VALUES)) {
            headers.append(name, value);
        }
    }
    let hints = Hints::default()
        .retry_after(read & 1 == 0)
        .retry_after_ms(read & 2 == 0)
        .should_retry(read & 4 == 0)
        .rate_limit(read & 8 == 0);

    let asked = Cell::new(0);
    let hinted = hints.read(&headers, || {
        asked.set(asked.get() + 1);
        wall_clock
    });
    assert!(asked.get() <= 1, "the wall clock is read once at most");
    assert_eq!(hinted, hints.read(&headers, || wall_clock), "the hints depend on the head alone");
    assert_eq!(hinted.hint == ServerHint::Stop, hinted.should_retry == Some(false));
    match hinted.hint {
        ServerHint::None | ServerHint::Unreadable | ServerHint::Stop => {}
        ServerHint::After(delay) => {
            let most = longest_number(&headers).max(LONGEST_DATE);
            assert!(delay <= most, "{delay:?} is in none of {headers:?}");
        }
        other => panic!("a head of HTTP cannot ask for {other:?}"),
    }
    let nothing = Hints::none().read(&headers, || panic!("the wall clock is not needed"));
    assert_eq!((nothing.hint, nothing.should_retry), (ServerHint::None, None));

    let verdict = verdict_of_status(status);
    let classification = hinted.classification(verdict, status);
    assert_eq!(classification.hint, hinted.hint);
    match verdict {
        Verdict::Permanent => {
            let made = matches!(classification.verdict, Verdict::Transient(_));
            let allowed = hinted.should_retry == Some(true) && (400..600).contains(&status.as_u16());
            assert_eq!(made, allowed);
            assert!(made || classification.verdict == Verdict::Permanent);
        }
        verdict => assert_eq!(classification.verdict, verdict),
    }
}

/// Returns the longest wait that a number in these headers can express, in days.
fn longest_number(headers: &HeaderMap) -> Duration {
    let numbers = headers.values().flat_map(|value| value.as_bytes().split(|byte| !byte.is_ascii_digit()));
    let number = |digits: &[u8]| {
        digits.iter().fold(0_u64, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
    };
    // A fraction counts as one.
    Duration::from_secs(numbers.map(number).max().unwrap_or(0).saturating_add(1).saturating_mul(86_400))
}
