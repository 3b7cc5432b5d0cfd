//! Tests of the time for which calls must have failed, and of the open times that follow.

use std::time::Duration;

use reattempt_control::BreakerState::{Closed, HalfOpen, Open};
use reattempt_control::CircuitBreaker;
use reattempt_core::guard::Health::{Failed, Lost, NotConnected, Overloaded, Served, Unavailable};
use reattempt_core::guard::{End, Guard, Health};

use super::{HOST, NOW, SECOND, admit, call, calls};

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Makes calls with this outcome, one per millisecond, and returns the time of the first after which the breaker was
/// not closed.
fn opened(breaker: &CircuitBreaker, health: Health, from: Duration, until: Duration) -> Option<Duration> {
    let times = (0..).map(|number| from + ms(number)).take_while(|now| *now < until);
    times.into_iter().find(|now| {
        let _ = call(breaker, health, *now);
        breaker.state_at(HOST, *now) != Closed
    })
}

/// However many calls fail in 2.5 s, neither rule opens the breaker. Then either rule does.
// C-14, field 04
#[test]
fn failures_of_some_time_open_it() {
    for health in [Failed, NotConnected, Unavailable, Lost] {
        for (breaker, served) in [
            (CircuitBreaker::rate(), 5000),
            (CircuitBreaker::rate().consecutive_failures(0), 0),
            (CircuitBreaker::rate().min_calls(1_000_000), 0),
        ] {
            calls(&breaker, served, Served, NOW);
            let opened = opened(&breaker, health, NOW, NOW + SECOND * 4);
            assert_eq!(opened, Some(NOW + ms(2500)), "{health:?} {breaker:?}");
        }
    }
    let limited = CircuitBreaker::rate();
    assert_eq!(opened(&limited, Overloaded, NOW, NOW + SECOND * 4), Some(NOW + ms(2500)));
}

/// Twenty successes in a row end the time. A late failure after a restart then opens nothing, although most calls in
/// the window have failed.
// C-14, field 04
#[test]
fn twenty_successes_end_the_failing() {
    for (served, state) in [(19, Open), (20, Closed)] {
        let breaker = CircuitBreaker::rate();
        calls(&breaker, 200, NotConnected, NOW);
        calls(&breaker, served, Served, NOW + ms(200));
        calls(&breaker, 1, Failed, NOW + SECOND * 3);
        assert_eq!(breaker.state_at(HOST, NOW + SECOND * 3), state, "{served}");
    }
}

/// A server that fails four calls of five never fails for long without a success. The breaker opens at the first run of
/// failures after the time.
// C-14
#[test]
fn few_successes_do_not_end_the_failing() {
    let breaker = CircuitBreaker::rate();
    calls(&breaker, 10_000, Served, NOW);
    let fails = |number| if number % 5 > 0 { Failed } else { Served };
    (0..2500).for_each(|number| call(&breaker, fails(number), NOW + ms(number)).unwrap());
    assert_eq!(breaker.state_at(HOST, NOW), Closed, "a fifth of the calls in the window have failed");
    let opened = opened(&breaker, Failed, NOW + ms(2500), NOW + SECOND * 4);
    assert_eq!(opened, Some(NOW + ms(2515)), "16 more failures");
}

/// One successful probe does not end the failing. If the server still fails, the breaker opens after twenty calls, for
/// twice as long.
// C-14
#[test]
fn failing_survives_a_lucky_probe() {
    let breaker = CircuitBreaker::rate().spread(0);
    let mut now = opened(&breaker, Failed, NOW, NOW + SECOND * 4).unwrap();
    for (served, open, after) in [(19, 2, 1800), (1, 4, 2000), (20, 1, 2600)] {
        now = breaker.open_time_left_at(HOST, now).unwrap() + now;
        calls(&breaker, served, Served, now);
        let from = now;
        while breaker.state_at(HOST, now) == Closed {
            now += ms(100);
            call(&breaker, Failed, now).unwrap();
        }
        assert_eq!(breaker.open_time_left_at(HOST, now), Some(SECOND * open), "{served}");
        assert_eq!(now - from, ms(after), "{served}");
    }
}

/// Calls that time out have failed for as long as they took. Until a connection is lost, the server may have worked.
// C-14
#[test]
fn timed_out_calls_have_failed_all_along() {
    for (health, state) in [(Unavailable, Open), (Lost, Closed)] {
        let breaker = CircuitBreaker::rate();
        let tickets: Vec<_> = (0..40).map(|_| admit(&breaker, NOW).unwrap()).collect();
        for (ticket, number) in tickets.into_iter().zip(0..) {
            // Calls that were sent one after the other, so that no two lost ones are one event.
            let after = if health == Lost { Duration::ZERO } else { SECOND * 10 };
            breaker.end_ticket(ticket, &End::judged(health, after), NOW + SECOND * 10 + ms(number));
        }
        assert_eq!(breaker.state_at(HOST, NOW + SECOND * 10), state, "{health:?}");
    }
    let breaker = CircuitBreaker::rate();
    let slow = admit(&breaker, NOW).unwrap();
    let late = NOW + SECOND * 10;
    breaker.end_ticket(slow, &End::judged(Lost, SECOND * 10), late);
    assert_eq!(opened(&breaker, NotConnected, late, late + SECOND * 4), Some(late + ms(2500)));
}

/// A breaker that the user closes forgets the failures.
// C-14, G-4
#[test]
fn failing_begins_anew_when_user_closes() {
    let breaker = CircuitBreaker::rate();
    assert_eq!(opened(&breaker, Failed, NOW, NOW + ms(2400)), None);
    breaker.close_at(HOST, NOW + ms(2400));
    let from = NOW + ms(2450);
    assert_eq!(opened(&breaker, Failed, from, from + SECOND * 4), Some(from + ms(2500)));
}

/// A first opening lasts 1 s. Each failed probe doubles the time, up to the open time and no further.
// C-14
#[test]
fn open_time_grows_from_the_first() {
    let open_times = |breaker: CircuitBreaker| {
        let breaker = breaker.min_failing_time(Duration::ZERO).spread(0);
        calls(&breaker, 20, Failed, NOW);
        let mut now = NOW;
        [(); 7].map(|()| {
            let wait = call(&breaker, Served, now).unwrap_err().wait().unwrap();
            now += wait;
            assert_eq!(breaker.state_at(HOST, now), HalfOpen);
            calls(&breaker, 1, Failed, now);
            wait.as_millis()
        })
    };
    let breaker = CircuitBreaker::rate();
    let first = |time| breaker.clone().first_open_time(time);
    assert_eq!(open_times(breaker.clone()), [1000, 2000, 4000, 8000, 10_000, 10_000, 10_000]);
    assert_eq!(open_times(first(SECOND * 3).max_open_time(SECOND * 30))[3..], [24_000, 30_000, 30_000, 30_000]);
    for time in [Duration::ZERO, SECOND * 10, Duration::MAX] {
        assert_eq!(open_times(first(time)), [10_000; 7]);
    }
    assert_eq!(open_times(breaker.open_time(ms(500))), [500; 7]);
}
