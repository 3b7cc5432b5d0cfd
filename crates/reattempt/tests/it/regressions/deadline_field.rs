//! Tests of the `grpc-timeout` header: deadlines written and read.

use std::time::Duration;

use http::HeaderMap;
use reattempt::Deadline;
use tokio::time::advance;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// The furthest that a deadline can be away.
const THIRTY_YEARS: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

fn written(deadline: Deadline) -> HeaderMap {
    let mut headers = HeaderMap::new();
    deadline.write_to(&mut headers);
    headers
}

fn text(headers: &HeaderMap) -> &str {
    headers["grpc-timeout"].to_str().unwrap()
}

/// The protocol allows eight digits. What they can represent exactly is restored exactly.
#[tokio::test(start_paused = true)]
async fn finest_fitting_unit_is_written() {
    let rows = [
        (Duration::from_nanos(1), "1n"),
        (Duration::from_micros(900), "900000n"),
        (Duration::from_nanos(99_999_999), "99999999n"),
        (Duration::from_millis(100), "100000u"),
        (Duration::from_millis(500), "500000u"),
        (Duration::from_micros(99_999_999), "99999999u"),
        (Duration::from_secs(100), "100000m"),
        (Duration::from_millis(99_999_999), "99999999m"),
        (HOUR * 278 / 10, "100080S"),
        (3 * DAY, "259200S"),
        (Duration::from_secs(99_999_999), "99999999S"),
        (Duration::from_secs(100_000_020), "1666667M"),
        (THIRTY_YEARS, "15768000M"),
    ];
    for (left, expected) in rows {
        let headers = written(Deadline::after(left));
        assert_eq!(text(&headers), expected, "{left:?}");
        assert_eq!(Deadline::from_headers(&headers).unwrap().remaining(), left, "{expected}");
    }
}

/// The time is rounded down, so that no server gets more time than there is.
#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_rounded_down() {
    let rows = [
        (Duration::from_nanos(100_000_999), "100000u"),
        (Duration::from_nanos(100_000_999_999), "100000m"),
        (Duration::from_millis(100_000_999), "100000S"),
        (Duration::from_secs(100_000_019), "1666666M"),
        (Duration::MAX, "15768000M"),
    ];
    for (left, expected) in rows {
        assert_eq!(text(&written(Deadline::after(left))), expected, "{left:?}");
    }
}

/// A server may interpret zero as no limit, or as a malformed header.
#[tokio::test(start_paused = true)]
async fn passed_deadline_is_the_shortest_time() {
    let deadline = Deadline::after(Duration::from_millis(5));
    assert_eq!(text(&written(Deadline::after(Duration::ZERO))), "1n");
    advance(Duration::from_millis(5)).await;
    assert_eq!(text(&written(deadline)), "1n");
    advance(DAY).await;
    assert_eq!(text(&written(deadline)), "1n");
}

#[tokio::test(start_paused = true)]
async fn it_is_written_in_place_of_what_is_there() {
    let mut headers = HeaderMap::new();
    headers.append("grpc-timeout", "7S".parse().unwrap());
    headers.append("grpc-timeout", "8S".parse().unwrap());
    Deadline::after(Duration::from_millis(1)).write_to(&mut headers);
    assert_eq!(headers.get_all("grpc-timeout").iter().collect::<Vec<_>>(), ["1000000n"]);
}

#[tokio::test(start_paused = true)]
async fn longest_field_is_thirty_years() {
    let mut headers = HeaderMap::new();
    headers.insert("grpc-timeout", "99999999H".parse().unwrap());
    assert_eq!(Deadline::from_headers(&headers).unwrap().remaining(), THIRTY_YEARS);
}
