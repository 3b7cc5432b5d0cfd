//! Tests of the rate form, and of what both forms have beyond gobreaker.

use std::time::Duration;

use reattempt_control::BreakerState::{Closed, ForcedOpen, HalfOpen, Open};
use reattempt_control::CircuitBreaker;
use reattempt_core::ServerHint;
use reattempt_core::guard::Health::{Failed, Overloaded, Served};
use reattempt_core::guard::{Arrival, End, Guard, Reason};

use super::{HOST, NOW, SECOND, admit, admit_to, call, calls, end_ticket, noting, timeless};

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Returns a breaker that opens after five failures for exactly 10 s.
fn exact() -> CircuitBreaker {
    timeless().consecutive_failures(5).spread(0)
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
    assert_eq!(breaker.state_at(HOST, NOW + SECOND * 10), Closed, "19 calls");
    calls(&breaker, 1, Failed, NOW + SECOND * 10);
    assert_eq!(breaker.state_at(HOST, NOW + SECOND * 10), Open);
}

#[test]
fn less_than_half_never_open_it() {
    let breaker = exact();
    for number in 0..1000 {
        let health = if number % 5 < 2 { Failed } else { Served };
        calls(&breaker, 1, health, NOW + SECOND / 10 * number);
    }
    assert_eq!(breaker.state_at(HOST, NOW), Closed);
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

/// One failure of one call is not a rate, but five in a row suffice.
// G-6
#[test]
fn five_failures_in_a_row_open_it() {
    let breaker = exact();
    calls(&breaker, 4, Failed, NOW);
    assert_eq!(breaker.state_at(HOST, NOW), Closed);
    calls(&breaker, 1, Failed, NOW);
    assert_eq!(breaker.state_at(HOST, NOW), Open);
}

// GUARDS G2: 429 counts in the ratio but not as a consecutive failure.
#[test]
fn overload_counts_in_the_rate_alone() {
    let breaker = exact();
    calls(&breaker, 19, Overloaded, NOW);
    assert_eq!(breaker.state_at(HOST, NOW), Closed);
    calls(&breaker, 1, Overloaded, NOW);
    assert_eq!(breaker.state_at(HOST, NOW), Open);
    calls(&breaker, 1, Overloaded, NOW + SECOND * 10);
    assert_eq!(breaker.state_at(HOST, NOW + SECOND * 10), Open, "a probe that receives one has failed");
}

#[test]
fn open_time_stays_the_same_by_default() {
    let breaker = opened();
    for number in 0..10 {
        let now = NOW + SECOND * 10 * number;
        assert_eq!(call(&breaker, Served, now).unwrap_err().wait(), Some(SECOND * 10));
        calls(&breaker, 1, Failed, now + SECOND * 10);
    }
}

#[test]
fn open_time_doubles_up_to_the_longest() {
    let breaker = exact().max_open_time(SECOND * 30);
    calls(&breaker, 5, Failed, NOW);
    let mut now = NOW;
    for seconds in [10, 20, 30, 30] {
        let refused = call(&breaker, Served, now).unwrap_err();
        assert_eq!(refused.wait(), Some(SECOND * seconds));
        now += SECOND * seconds;
        calls(&breaker, 1, Failed, now);
    }
    for (served, seconds) in [(19, 30), (20, 10)] {
        now += SECOND * 30;
        calls(&breaker, served, Served, now);
        calls(&breaker, 5, Failed, now);
        let wait = call(&breaker, Served, now).unwrap_err().wait();
        assert_eq!(wait, Some(SECOND * seconds), "{served} successes in a row");
    }
}

#[test]
fn open_time_varies_by_a_tenth() {
    let waits: Vec<Duration> = (0..200)
        .map(|seed| {
            let breaker = timeless().consecutive_failures(5).seed(seed);
            calls(&breaker, 5, Failed, NOW);
            call(&breaker, Served, NOW).unwrap_err().wait().unwrap()
        })
        .collect();
    let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
    assert!(*least >= SECOND * 9 && *least < ms(9_333), "{least:?}");
    assert!(*most <= SECOND * 11 && *most > ms(10_667), "{most:?}");
}

#[test]
fn server_delay_lengthens_the_open_time() {
    let counting = CircuitBreaker::counting().ready_to_trip(|counts| counts.requests == 5);
    for (breaker, asked, open) in [
        (exact(), 5, 10),
        (exact(), 20, 20),
        (exact(), 3600, 30),
        (exact().max_open_time(SECOND * 60), 3600, 60),
        (counting, 3600, 60),
    ] {
        calls(&breaker, 4, Failed, NOW);
        let (hint, after) = (ServerHint::After(SECOND * asked), Duration::ZERO);
        let judged = End::judged(Failed, after);
        let End::Judged { health, .. } = judged else { unreachable!() };
        breaker.end_ticket(admit(&breaker, NOW).unwrap(), &End::Judged { health, hint, quota: None, after }, NOW);
        assert_eq!(call(&breaker, Served, NOW).unwrap_err().wait(), Some(SECOND * open));
    }
}

#[test]
fn slow_calls_count_as_failures_if_asked() {
    let breaker = exact().slow_after(SECOND);
    for after in [SECOND, SECOND * 2] {
        for _ in 0..5 {
            breaker.end_ticket(admit(&breaker, NOW).unwrap(), &End::judged(Served, after), NOW);
        }
    }
    assert_eq!(breaker.state_at(HOST, NOW), Open);
    assert_eq!(breaker.counts_at(HOST, Duration::ZERO).total_failures, 0, "cleared by the change");
}

/// Abandoned calls are neutral, because callers hang up for their own reasons, and leave quiet streams after hours.
#[test]
fn abandoned_calls_are_neutral() {
    let abandoned = End::Abandoned { after: SECOND };
    let breaker = exact();
    for _ in 0..100 {
        breaker.end_ticket(admit(&breaker, NOW).unwrap(), &abandoned, NOW);
    }
    assert_eq!(breaker.state_at(HOST, NOW), Closed);
    assert_eq!(breaker.counts_at(HOST, Duration::ZERO).valid_requests(), 0);
}

/// A run of failures continues for a client with 15 calls a minute, whose window never holds 20 calls, and for one with
/// a fixed window.
#[test]
fn run_of_failures_outlives_the_window() {
    let fixed = CircuitBreaker::rate().bucket_period(SECOND * 60);
    for breaker in [CircuitBreaker::rate(), fixed] {
        for number in 0..19 {
            calls(&breaker, 1, Failed, NOW + SECOND * 4 * number);
        }
        // A 429 neither lengthens nor ends the run.
        calls(&breaker, 1, Overloaded, NOW + SECOND * 200);
        assert_eq!(breaker.state_at(HOST, NOW + SECOND * 200), Closed);
        calls(&breaker, 1, Failed, NOW + SECOND * 400);
        assert_eq!(breaker.state_at(HOST, NOW + SECOND * 400), Open);
    }
}

/// A success ends the run, even if the run began in an earlier window.
#[test]
fn run_of_failures_ends_with_a_success() {
    let breaker = CircuitBreaker::rate();
    let late = admit(&breaker, NOW).unwrap();
    for number in 0..19 {
        calls(&breaker, 1, Failed, NOW + SECOND * 4 * number);
    }
    end_ticket(&breaker, late, Served, NOW + SECOND * 80);
    for number in 21..40 {
        calls(&breaker, 1, Failed, NOW + SECOND * 4 * number);
        assert_eq!(breaker.state_at(HOST, NOW), Closed);
    }
    calls(&breaker, 1, Failed, NOW + SECOND * 160);
    assert_eq!(breaker.state_at(HOST, NOW), Open);
}

#[test]
fn two_of_three_are_a_ratio_of_two_thirds() {
    let breaker = timeless().failure_ratio(2.0 / 3.0).min_calls(3);
    calls(&breaker, 1, Served, NOW);
    calls(&breaker, 1, Failed, NOW);
    assert_eq!(breaker.state_at(HOST, NOW), Closed);
    calls(&breaker, 1, Failed, NOW);
    assert_eq!(breaker.state_at(HOST, NOW), Open);
}

/// For every pair of small numbers, exactly that fraction of the calls reaches the ratio, and no smaller one.
#[test]
fn every_small_fraction_is_met_exactly() {
    for all in 1..=40 {
        for failed in 1..=all {
            let ratio = f64::from(failed) / f64::from(all);
            let breaker = timeless().consecutive_failures(0).failure_ratio(ratio);
            let breaker = breaker.min_calls(all);
            calls(&breaker, all - failed, Served, NOW);
            calls(&breaker, failed - 1, Failed, NOW);
            calls(&breaker, 1, Failed, NOW);
            assert_eq!(breaker.state_at(HOST, NOW), Open, "{failed} of {all}");
            let breaker = breaker.shared(true);
            calls(&breaker, all - failed + 1, Served, NOW);
            calls(&breaker, failed - 1, Failed, NOW);
            assert_eq!(breaker.state_at(HOST, NOW), Closed, "{failed} of {all}");
        }
    }
}

/// resilience4j's default counts half of the last hundred calls, however long ago they were.
#[test]
fn last_calls_are_counted_by_number() {
    let breaker = timeless().last_calls(100).min_calls(100);
    let breaker = breaker.consecutive_failures(0);
    calls(&breaker, 1000, Served, NOW);
    calls(&breaker, 49, Failed, NOW + SECOND * 3600);
    let counts = breaker.counts_at(HOST, Duration::ZERO);
    assert_eq!((counts.total_successes, counts.total_failures), (51, 49));
    calls(&breaker, 1, Failed, NOW + SECOND * 7200);
    assert_eq!(breaker.state_at(HOST, NOW + SECOND * 7200), Open);
}

/// A failure counts when it ends, however many calls have ended since it began.
#[test]
fn slow_failures_are_among_the_last_calls() {
    let breaker = timeless().last_calls(20).consecutive_failures(0);
    let slow: Vec<_> = (0..10).map(|_| admit(&breaker, NOW).unwrap()).collect();
    calls(&breaker, 1000, Served, NOW);
    slow.into_iter().for_each(|ticket| end_ticket(&breaker, ticket, Failed, NOW + SECOND * 10));
    assert_eq!(breaker.state_at(HOST, NOW + SECOND * 10), Open);
}

/// A minimum above the window would keep the breaker closed forever. Abandoned calls push no others out of the window.
#[test]
fn last_calls_bound_the_minimum() {
    let breaker = timeless().last_calls(4).consecutive_failures(0);
    calls(&breaker, 2, Failed, NOW);
    for _ in 0..10 {
        let abandoned = End::Abandoned { after: SECOND };
        breaker.end_ticket(admit(&breaker, NOW).unwrap(), &abandoned, NOW);
    }
    calls(&breaker, 1, Served, NOW);
    assert_eq!(breaker.state_at(HOST, NOW), Closed);
    calls(&breaker, 1, Failed, NOW);
    assert_eq!(breaker.state_at(HOST, NOW), Open);
}

#[test]
fn probes_may_be_judged_by_their_ratio() {
    let breaker = exact().probes(4).probe_failure_ratio(0.5);
    let probes = |breaker: &CircuitBreaker, failed, served, now| {
        calls(breaker, failed, Failed, now);
        calls(breaker, served, Served, now);
        breaker.state_at(HOST, now)
    };
    calls(&breaker, 5, Failed, NOW);
    assert_eq!(probes(&breaker, 1, 2, NOW + SECOND * 10), HalfOpen);
    assert_eq!(probes(&breaker, 0, 1, NOW + SECOND * 10), Closed);
    calls(&breaker, 5, Failed, NOW + SECOND * 10);
    assert_eq!(probes(&breaker, 2, 0, NOW + SECOND * 20), Open);
    // At 0 or less, the first failed probe opens it. Above 1, all of them must fail.
    for (ratio, state) in [(-0.1, Open), (f64::NAN, Open), (1.1, HalfOpen)] {
        let breaker = breaker.clone().probe_failure_ratio(ratio);
        calls(&breaker, 5, Failed, NOW);
        assert_eq!(probes(&breaker, 1, 0, NOW + SECOND * 10), state, "{ratio}");
    }
}

// field 31
#[test]
fn settings_that_cannot_work_are_named() {
    let fields =
        |breaker: &CircuitBreaker| -> Vec<String> { breaker.validate().iter().map(ToString::to_string).collect() };
    let breaker = CircuitBreaker::rate().min_calls(100);
    let expected = "`min_calls` is 100 (recommended: at most 20, unless `consecutive_failures` is set too)";
    assert_eq!(fields(&breaker), [expected]);
    assert_eq!(fields(&breaker.clone().consecutive_failures(0)), [""; 0]);
    assert_eq!(fields(&breaker.consecutive_failures(50)), [""; 0]);
    assert_eq!(fields(&CircuitBreaker::rate().last_calls(100)), [""; 0]);
    assert_eq!(fields(&CircuitBreaker::rate().last_calls(5)), [""; 0], "`min_calls` was not set");
    assert_eq!(fields(&CircuitBreaker::rate().min_calls(5).last_calls(5)), [""; 0]);
    for breaker in
        [CircuitBreaker::rate().min_calls(10).last_calls(5), CircuitBreaker::rate().last_calls(5).min_calls(10)]
    {
        assert_eq!(fields(&breaker), ["`min_calls` is 10 (recommended: at most `last_calls`)"]);
    }
    for breaker in [CircuitBreaker::rate(), CircuitBreaker::counting()] {
        let warnings = fields(&breaker.open_time(Duration::ZERO));
        assert_eq!(warnings, ["`open_time` is 0ns (recommended: 10 s to 2 min, usually 30 s)"]);
    }
}

#[test]
fn unsent_calls_were_never_there() {
    let breaker = exact();
    breaker.end_ticket(admit(&breaker, NOW).unwrap(), &End::Unsent, NOW);
    assert_eq!(breaker.counts_at(HOST, Duration::ZERO).requests, 0);
}

/// A dropped probe frees its place at once.
// G-11, trap 11
#[test]
fn a_dropped_probe_frees_its_place() {
    let later = NOW + SECOND * 10;
    for dropped in [End::Unsent, End::Abandoned { after: Duration::ZERO }] {
        let breaker = opened();
        let probe = admit(&breaker, later).unwrap();
        assert_eq!(admit(&breaker, later).unwrap_err().reason(), Reason::TooManyRequests);
        breaker.end_ticket(probe, &dropped, later);
        calls(&breaker, 1, Served, later);
        assert_eq!(breaker.state_at(HOST, later), Closed);
    }
}

#[test]
fn isolated_until_it_is_closed() {
    let (breaker, noted) = noting(exact());
    breaker.isolate_at(HOST, NOW);
    let refused = call(&breaker, Served, NOW + SECOND * 100_000).unwrap_err();
    assert_eq!((refused.reason(), refused.wait()), (Reason::Isolated, None));
    assert_eq!(breaker.state_at("https://b.example", NOW), Closed);
    breaker.close_at(HOST, NOW);
    calls(&breaker, 1, Served, NOW);
    assert_eq!(*noted.lock().unwrap(), [(Closed, ForcedOpen), (ForcedOpen, Closed)]);
}

#[test]
fn closing_ends_the_open_time() {
    let breaker = opened();
    breaker.close_at(HOST, NOW);
    calls(&breaker, 1, Served, NOW);
    assert_eq!(breaker.counts_at(HOST, Duration::ZERO).requests, 1);
}

#[test]
fn check_takes_nothing() {
    let breaker = opened();
    assert!(breaker.would_admit(&Arrival::new("https://b.example", NOW)).is_ok());
    assert_eq!(breaker.would_admit(&Arrival::new(HOST, NOW)).unwrap_err().reason(), Reason::Open);
    let later = Arrival::new(HOST, NOW + SECOND * 10);
    (0..3).for_each(|_| breaker.would_admit(&later).unwrap());
    let probe = admit(&breaker, later.now).unwrap();
    assert_eq!(breaker.would_admit(&later).unwrap_err().reason(), Reason::TooManyRequests);
    end_ticket(&breaker, probe, Served, later.now);
}

/// A call that has waited elsewhere gets a new decision, but the probe keeps its own place.
// G-26
#[test]
fn renewing_decides_again() {
    let breaker = exact();
    let waited = admit(&breaker, NOW).unwrap();
    calls(&breaker, 5, Failed, NOW);
    assert_eq!(breaker.renew(waited, &Arrival::new(HOST, NOW)).unwrap_err().reason(), Reason::Open);
    let later = Arrival::new(HOST, NOW + SECOND * 10);
    let probe = admit(&breaker, later.now).unwrap();
    let probe = breaker.renew(probe, &later).unwrap();
    end_ticket(&breaker, probe, Served, later.now);
    assert_eq!(breaker.state_at(HOST, later.now), Closed);
}

#[test]
fn debug_lists_what_is_not_closed() {
    let breaker = opened().shared(true);
    assert_eq!(breaker.state_at(HOST, NOW), Closed, "a setter returns a new breaker");
    let breaker = opened();
    calls(&breaker, 0, Served, NOW);
    let text = format!("{breaker:?}");
    assert!(text.contains("ratio: 0.5, calls: 20, consecutive: 5"), "{text}");
    assert!(text.contains(r#"not_closed: [("https://a.example", Open)], more: 0"#), "{text}");
    assert_eq!(breaker.state_at(HOST, NOW + SECOND * 10), HalfOpen);
}

/// A success in a sliding window belongs to the bucket of its admission, whenever it ends.
#[test]
fn success_needs_time_only_where_it_counts() {
    let times = |breaker: CircuitBreaker| {
        call(&breaker, Served, NOW).unwrap();
        let ticket = admit(&breaker, NOW).unwrap();
        let times = breaker.times_success(&ticket);
        end_ticket(&breaker, ticket, Served, NOW);
        times
    };
    assert!(!times(timeless()));
    assert!(!times(CircuitBreaker::counting()));
    assert!(times(CircuitBreaker::counting().interval(SECOND)), "the window may have ended");
    assert!(times(timeless().slow_after(SECOND)), "the call may have been slow");
}

/// The next open time begins when the probe ends.
#[test]
fn success_of_a_probe_needs_time() {
    let breaker = timeless().consecutive_failures(1).open_time(SECOND);
    call(&breaker, Failed, NOW).unwrap();
    let probe = admit(&breaker, NOW + 2 * SECOND).unwrap();
    assert!(breaker.times_success(&probe));
}

/// Each opening draws its own time from the seed.
#[test]
fn open_times_follow_the_seed() {
    let waits = |seed| {
        let breaker = timeless().consecutive_failures(1).open_time(SECOND * 30);
        let breaker = breaker.seed(seed);
        [NOW, NOW + SECOND * 60].map(|now| {
            calls(&breaker, 1, Failed, now);
            call(&breaker, Served, now).unwrap_err().wait().unwrap().as_micros()
        })
    };
    assert_eq!([waits(1), waits(u64::MAX)], [[32_110_800, 27_261_900], [31_497_900, 32_081_700]]);
}

/// If the breaker needs no time for a success, and another call takes the counts first, the success still counts once.
#[test]
fn success_that_loses_its_word_counts_once() {
    let breaker = timeless().consecutive_failures(0);
    call(&breaker, Served, NOW).unwrap();
    let (late, failing) = (admit(&breaker, NOW).unwrap(), admit(&breaker, NOW).unwrap());
    assert!(!breaker.times_success(&late));
    end_ticket(&breaker, failing, Failed, NOW + 10 * SECOND);
    // The time of sending, as the layer passes it.
    end_ticket(&breaker, late, Served, NOW);
    let counts = breaker.counts_at(HOST, Duration::ZERO);
    assert_eq!((counts.requests, counts.total_successes, counts.total_failures), (3, 2, 1));
    assert_eq!((counts.consecutive_successes, counts.consecutive_failures), (1, 0));
    // All three were in a bucket that has left the window.
    call(&breaker, Served, NOW + 57 * SECOND).unwrap();
    let counts = breaker.counts_at(HOST, Duration::ZERO);
    assert_eq!((counts.requests, counts.total_successes, counts.total_failures), (1, 1, 0));
}

#[test]
fn failure_ratio_is_kept_to_the_millionth() {
    let breaker = timeless().failure_ratio(0.123_456);
    assert!(format!("{breaker:?}").contains("ratio: 0.123456,"), "{breaker:?}");
}

/// Calls that have left the window are not counted, even if no call has arrived since.
#[test]
fn counts_are_those_of_the_given_time() {
    let breaker = timeless().seed(1);
    calls(&breaker, 3, Failed, NOW);
    let requests = |seconds| breaker.counts_at(HOST, NOW + SECOND * seconds).requests;
    assert_eq!([0, 30, 70].map(requests), [3, 3, 0]);
}

#[test]
fn open_time_left_ends_with_the_probe() {
    let breaker = timeless().consecutive_failures(3).open_time(SECOND * 10).spread(0).seed(1);
    let left = |seconds| breaker.open_time_left_at(HOST, NOW + SECOND * seconds);
    assert_eq!(left(0), None, "closed");
    calls(&breaker, 3, Failed, NOW);
    assert_eq!([0, 4, 9, 10].map(left), [Some(SECOND * 10), Some(SECOND * 6), Some(SECOND), None]);
    breaker.isolate_at(HOST, NOW + SECOND * 10);
    assert_eq!(left(10), None, "a breaker that is forced open sends no probe");
}

#[test]
fn settings_are_clamped_from_above() {
    let open_times = |spread| {
        let breaker = timeless().consecutive_failures(1).spread(spread).seed(1);
        let hosts = (0..20).map(|host| format!("https://{host}.example"));
        let opened = hosts.map(|host| {
            end_ticket(&breaker, admit_to(&breaker, &host, NOW).unwrap(), Failed, NOW);
            breaker.open_time_left_at(&host, NOW).unwrap()
        });
        opened.collect::<Vec<_>>()
    };
    assert_eq!(open_times(99), open_times(50));
    assert_ne!(open_times(50), open_times(49));
    let ratio = |ratio| format!("{:?}", timeless().failure_ratio(ratio));
    assert_eq!([1.5, f64::INFINITY].map(ratio), [ratio(1.0), ratio(1.0)]);
}
