//! The rate form, and what both forms have beyond gobreaker.

use std::time::Duration;

use reattempt_control::BreakerState::{Closed, ForcedOpen, HalfOpen, Open};
use reattempt_control::CircuitBreaker;
use reattempt_core::ServerHint;
use reattempt_core::guard::Health::{Failed, Overloaded, Served};
use reattempt_core::guard::{Arrival, End, Guard, Reason};

use super::{HOST, NOW, SECOND, admit, call, calls, end, noting};

/// The default with open times that do not vary.
fn exact() -> CircuitBreaker {
    CircuitBreaker::rate().consecutive_failures(5).spread(0)
}

fn opened() -> CircuitBreaker {
    let breaker = exact();
    calls(&breaker, 5, Failed, NOW);
    breaker
}

#[test]
fn half_of_twenty_calls_open_it() {
    let breaker = exact();
    for number in 0..9 {
        calls(&breaker, 1, Served, NOW + SECOND * number);
        calls(&breaker, 1, Failed, NOW + SECOND * number);
    }
    calls(&breaker, 1, Served, NOW + SECOND * 10);
    assert_eq!(breaker.state(HOST, NOW + SECOND * 10), Closed, "19 calls");
    calls(&breaker, 1, Failed, NOW + SECOND * 10);
    assert_eq!(breaker.state(HOST, NOW + SECOND * 10), Open);
}

#[test]
fn less_than_half_never_open_it() {
    let breaker = exact();
    for number in 0..1000 {
        let health = if number % 5 < 2 { Failed } else { Served };
        calls(&breaker, 1, health, NOW + SECOND / 10 * number);
    }
    assert_eq!(breaker.state(HOST, NOW), Closed);
}

#[test]
fn window_is_the_interval() {
    for (breaker, window) in [
        (CircuitBreaker::rate(), SECOND * 60),
        (CircuitBreaker::counting(), Duration::ZERO),
        (CircuitBreaker::counting().interval(SECOND * 5), SECOND * 5),
    ] {
        assert_eq!(breaker.window(), window);
    }
}

#[test]
fn states_are_shown_in_words() {
    let shown = [Closed, HalfOpen, Open, ForcedOpen].map(|state| state.to_string());
    assert_eq!(shown, ["closed", "half-open", "open", "forced open"]);
}

/// One failure of one call is no rate; five in a row are enough.
// G-6
#[test]
fn five_failures_in_a_row_open_it() {
    let breaker = exact();
    calls(&breaker, 4, Failed, NOW);
    assert_eq!(breaker.state(HOST, NOW), Closed);
    calls(&breaker, 1, Failed, NOW);
    assert_eq!(breaker.state(HOST, NOW), Open);
}

// GUARDS G2: 429 counts in the rate but not as a consecutive failure.
#[test]
fn overload_counts_in_the_rate_alone() {
    let breaker = exact();
    calls(&breaker, 19, Overloaded, NOW);
    assert_eq!(breaker.state(HOST, NOW), Closed);
    calls(&breaker, 1, Overloaded, NOW);
    assert_eq!(breaker.state(HOST, NOW), Open);
    calls(&breaker, 1, Overloaded, NOW + SECOND * 30);
    assert_eq!(
        breaker.state(HOST, NOW + SECOND * 30),
        Open,
        "a probe that receives one has failed"
    );
}

#[test]
fn open_time_doubles_up_to_five_minutes() {
    let breaker = opened();
    let mut now = NOW;
    for seconds in [30, 60, 120, 240, 300, 300] {
        let refused = call(&breaker, Served, now).unwrap_err();
        assert_eq!(refused.wait(), Some(SECOND * seconds));
        now += SECOND * seconds;
        calls(&breaker, 1, Failed, now);
    }
    calls(&breaker, 1, Served, now + SECOND * 300);
    now += SECOND * 300;
    calls(&breaker, 5, Failed, now);
    assert_eq!(
        call(&breaker, Served, now).unwrap_err().wait(),
        Some(SECOND * 30),
        "reset on close"
    );
}

#[test]
fn open_time_varies_by_a_tenth() {
    let waits: Vec<Duration> = (0..200)
        .map(|seed| {
            let breaker = CircuitBreaker::rate().consecutive_failures(5).seed(seed);
            calls(&breaker, 5, Failed, NOW);
            call(&breaker, Served, NOW).unwrap_err().wait().unwrap()
        })
        .collect();
    let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
    assert!(*least >= SECOND * 27 && *least < SECOND * 28, "{least:?}");
    assert!(*most <= SECOND * 33 && *most > SECOND * 32, "{most:?}");
}

#[test]
fn server_delay_lengthens_the_open_time() {
    for (asked, open) in [(10, 30), (90, 90), (3600, 300)] {
        let breaker = exact();
        calls(&breaker, 4, Failed, NOW);
        let (hint, after) = (ServerHint::After(SECOND * asked), Duration::ZERO);
        let judged = End::judged(Failed, after);
        let End::Judged { health, .. } = judged else { unreachable!() };
        breaker.end(
            admit(&breaker, NOW).unwrap(),
            &End::Judged { health, hint, quota: None, after },
            NOW,
        );
        assert_eq!(call(&breaker, Served, NOW).unwrap_err().wait(), Some(SECOND * open));
    }
}

#[test]
fn slow_calls_count_as_failures_if_asked() {
    let breaker = exact().slow_after(SECOND);
    for after in [SECOND, SECOND * 2] {
        for _ in 0..5 {
            breaker.end(admit(&breaker, NOW).unwrap(), &End::judged(Served, after), NOW);
        }
    }
    assert_eq!(breaker.state(HOST, NOW), Open);
    assert_eq!(breaker.counts(HOST).total_failures, 0, "cleared by the change");
}

// GUARDS G2: a window in which every call was abandoned is a window of failures.
#[test]
fn only_abandoned_calls_open_it() {
    let abandoned = End::Abandoned { after: SECOND };
    for (served, state) in [(0, Open), (1, Closed)] {
        let breaker = exact();
        calls(&breaker, served, Served, NOW);
        for _ in 0..20 {
            breaker.end(admit(&breaker, NOW).unwrap(), &abandoned, NOW);
        }
        assert_eq!(breaker.state(HOST, NOW), state);
    }
}

#[test]
fn unsent_calls_were_never_there() {
    let breaker = exact();
    breaker.end(admit(&breaker, NOW).unwrap(), &End::Unsent, NOW);
    assert_eq!(breaker.counts(HOST).requests, 0);
}

/// A probe that is dropped frees its place at once.
// G-11, trap 11
#[test]
fn a_dropped_probe_frees_its_place() {
    let later = NOW + SECOND * 30;
    for dropped in [End::Unsent, End::Abandoned { after: Duration::ZERO }] {
        let breaker = opened();
        let probe = admit(&breaker, later).unwrap();
        assert_eq!(admit(&breaker, later).unwrap_err().reason(), Reason::TooManyRequests);
        breaker.end(probe, &dropped, later);
        calls(&breaker, 1, Served, later);
        assert_eq!(breaker.state(HOST, later), Closed);
    }
}

#[test]
fn isolated_until_it_is_closed() {
    let (breaker, noted) = noting(exact());
    breaker.isolate(HOST, NOW);
    let refused = call(&breaker, Served, NOW + SECOND * 100_000).unwrap_err();
    assert_eq!((refused.reason(), refused.wait()), (Reason::Isolated, None));
    assert_eq!(breaker.state("https://b.example", NOW), Closed);
    breaker.close(HOST, NOW);
    calls(&breaker, 1, Served, NOW);
    assert_eq!(*noted.lock().unwrap(), [(Closed, ForcedOpen), (ForcedOpen, Closed)]);
}

#[test]
fn closing_ends_the_open_time() {
    let breaker = opened();
    breaker.close(HOST, NOW);
    calls(&breaker, 1, Served, NOW);
    assert_eq!(breaker.counts(HOST).requests, 1);
}

#[test]
fn check_takes_nothing() {
    let breaker = opened();
    assert!(breaker.check(&Arrival::new("https://b.example", NOW)).is_ok());
    assert_eq!(breaker.check(&Arrival::new(HOST, NOW)).unwrap_err().reason(), Reason::Open);
    let later = Arrival::new(HOST, NOW + SECOND * 30);
    (0..3).for_each(|_| breaker.check(&later).unwrap());
    let probe = admit(&breaker, later.now).unwrap();
    assert_eq!(breaker.check(&later).unwrap_err().reason(), Reason::TooManyRequests);
    end(&breaker, probe, Served, later.now);
}

/// A call that waited elsewhere decides again; the probe keeps its own place.
// G-26
#[test]
fn renewing_decides_again() {
    let breaker = exact();
    let waited = admit(&breaker, NOW).unwrap();
    calls(&breaker, 5, Failed, NOW);
    assert_eq!(breaker.renew(waited, &Arrival::new(HOST, NOW)).unwrap_err().reason(), Reason::Open);
    let later = Arrival::new(HOST, NOW + SECOND * 30);
    let probe = admit(&breaker, later.now).unwrap();
    let probe = breaker.renew(probe, &later).unwrap();
    end(&breaker, probe, Served, later.now);
    assert_eq!(breaker.state(HOST, later.now), Closed);
}

#[test]
fn debug_lists_what_is_not_closed() {
    let breaker = opened().shared();
    assert_eq!(breaker.state(HOST, NOW), Closed, "a setter returns a new breaker");
    let breaker = opened();
    calls(&breaker, 0, Served, NOW);
    let text = format!("{breaker:?}");
    assert!(text.contains("ratio: 0.5, calls: 20, consecutive: 5"), "{text}");
    assert!(text.contains(r#"not_closed: [("https://a.example", Open)], more: 0"#), "{text}");
    assert_eq!(breaker.state(HOST, NOW + SECOND * 30), HalfOpen);
}

/// A success in a rolling window belongs to the bucket of its admission, at whatever time it ends.
#[test]
fn success_needs_time_only_where_it_counts() {
    let times = |breaker: CircuitBreaker| {
        call(&breaker, Served, NOW).unwrap();
        let ticket = admit(&breaker, NOW).unwrap();
        let times = breaker.times_success(&ticket);
        end(&breaker, ticket, Served, NOW);
        times
    };
    assert!(!times(CircuitBreaker::rate()));
    assert!(!times(CircuitBreaker::counting()));
    assert!(times(CircuitBreaker::counting().interval(SECOND)), "the window may have ended");
    assert!(times(CircuitBreaker::rate().slow_after(SECOND)), "the call may have been slow");
}

/// The probe's lease may have ended.
#[test]
fn success_of_a_probe_needs_time() {
    let breaker = CircuitBreaker::rate().consecutive_failures(1).timeout(SECOND);
    call(&breaker, Failed, NOW).unwrap();
    let probe = admit(&breaker, NOW + 2 * SECOND).unwrap();
    assert!(breaker.times_success(&probe));
}

/// Each opening draws a time of its own from the seed.
#[test]
fn open_times_follow_the_seed() {
    let waits = |seed| {
        let breaker = CircuitBreaker::rate().consecutive_failures(1).max_timeout(SECOND * 30);
        let breaker = breaker.seed(seed);
        [NOW, NOW + SECOND * 60].map(|now| {
            calls(&breaker, 1, Failed, now);
            call(&breaker, Served, now).unwrap_err().wait().unwrap().as_micros()
        })
    };
    assert_eq!([waits(1), waits(u64::MAX)], [[32_110_800, 27_261_900], [31_497_900, 32_081_700]]);
}

/// Its time is not read if the breaker says so, and then another call takes the counts before it is recorded.
#[test]
fn success_that_loses_its_word_counts_once() {
    let breaker = CircuitBreaker::rate().consecutive_failures(0);
    call(&breaker, Served, NOW).unwrap();
    let (late, failing) = (admit(&breaker, NOW).unwrap(), admit(&breaker, NOW).unwrap());
    assert!(!breaker.times_success(&late));
    end(&breaker, failing, Failed, NOW + 10 * SECOND);
    // The moment of the sending, as the layer passes it.
    end(&breaker, late, Served, NOW);
    let counts = breaker.counts(HOST);
    assert_eq!((counts.requests, counts.total_successes, counts.total_failures), (3, 2, 1));
    assert_eq!((counts.consecutive_successes, counts.consecutive_failures), (1, 0));
    // All three were in the bucket that has left the window.
    call(&breaker, Served, NOW + 57 * SECOND).unwrap();
    let counts = breaker.counts(HOST);
    assert_eq!((counts.requests, counts.total_successes, counts.total_failures), (1, 1, 0));
}

#[test]
fn failure_ratio_is_kept_to_the_millionth() {
    let breaker = CircuitBreaker::rate().failure_ratio(0.123_456).unwrap();
    assert!(format!("{breaker:?}").contains("ratio: 0.123456,"), "{breaker:?}");
}
