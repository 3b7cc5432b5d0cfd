//! Tests of other libraries' defects, and of bad input.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reattempt_control::{AdaptiveLimit, AdaptiveTicket, LimitRule, LimitWindow};
use reattempt_core::guard::{Admit, Arrival, BodyEnd, End, Guard, GuardKind, Health, Reason, Resume};

use super::{Server, calls, end_call, limit_of};
use crate::guards::{HOST, NOW, SECOND, admit, at, wait};

const SERVED: End = End::judged(Health::Served, Duration::ZERO);

/// A rule that panics.
#[derive(Debug, Clone)]
struct Unwinding;

impl LimitRule for Unwinding {
    fn next_limit(&mut self, _: f64, _: &LimitWindow) -> f64 {
        std::panic::resume_unwind(Box::new("the user's own bug"))
    }
}

/// A rule that always returns the same limit.
#[derive(Debug, Clone)]
struct Always(f64);

impl LimitRule for Always {
    fn next_limit(&mut self, _: f64, _: &LimitWindow) -> f64 {
        self.0
    }
}

/// Uses the whole limit for two seconds, with this outcome.
fn full_use<R: LimitRule>(limit: &AdaptiveLimit<R>, end: &End, now: Duration) {
    for millis in [0, 500, 1001, 2002] {
        let now = now + Duration::from_millis(millis);
        for _ in 0..3 {
            let tickets: Vec<_> = std::iter::from_fn(|| admit(limit, now).ok()).collect();
            tickets.into_iter().for_each(|ticket| end_call(limit, ticket, end, now));
        }
    }
}

/// A server that fails at once does not count as fast, and abandoned calls prove nothing.
// G-15
#[test]
fn fast_failures_raise_no_limit() {
    fn check<R: LimitRule>(limit: &AdaptiveLimit<R>) {
        let fast = Duration::from_millis(1);
        for health in [Health::Failed, Health::Ignored] {
            full_use(limit, &End::judged(health, fast), NOW);
        }
        full_use(limit, &End::Abandoned { after: fast }, NOW + SECOND * 9);
        assert_eq!(limit_of(limit), 20);
        full_use(limit, &SERVED, NOW + SECOND * 99);
        assert!(limit_of(limit) > 20, "successes do");
    }
    check(&AdaptiveLimit::aimd());
    check(&AdaptiveLimit::vegas());
    check(&AdaptiveLimit::gradient2());
}

/// A limit does not grow while less than half of it is in use.
// G-16
#[test]
fn an_idle_clients_limit_stays() {
    fn check<R: LimitRule>(limit: &AdaptiveLimit<R>) {
        let now = Server::new(100, 50).serve(limit, 9, NOW, 120);
        assert_eq!(limit_of(limit), 20);
        Server::new(100, 50).serve(limit, 12, now, 10);
        assert!(limit_of(limit) > 20, "more than half is enough");
    }
    check(&AdaptiveLimit::aimd());
    check(&AdaptiveLimit::vegas());
    check(&AdaptiveLimit::gradient2());
    check(&AdaptiveLimit::new(Always(100.0)));
}

#[test]
fn windows_have_a_least_time_and_number() {
    let limit = AdaptiveLimit::new(Always(10.0));
    calls(&limit, 1000, &SERVED, NOW);
    calls(&limit, 1, &SERVED, at(999));
    assert_eq!(limit_of(&limit), 20, "not a second yet");
    calls(&limit, 1, &SERVED, at(1000));
    assert_eq!(limit_of(&limit), 10);
    let quiet = AdaptiveLimit::new(Always(10.0));
    calls(&quiet, 48, &SERVED, NOW);
    calls(&quiet, 1, &SERVED, at(29_999));
    assert_eq!(limit_of(&quiet), 20, "49 samples");
    calls(&quiet, 1, &SERVED, at(29_999));
    assert_eq!(limit_of(&quiet), 10);
    let single = AdaptiveLimit::new(Always(10.0));
    calls(&single, 1, &SERVED, NOW);
    calls(&single, 1, &SERVED, at(30_000));
    assert_eq!(limit_of(&single), 10, "few samples in a long time");
}

#[test]
fn overload_and_timeouts_are_drops() {
    for health in [Health::Overloaded, Health::Unavailable] {
        let limit = AdaptiveLimit::aimd();
        full_use(&limit, &End::judged(health, Duration::ZERO), NOW);
        assert!(limit_of(&limit) < 20);
    }
}

// A hundred calls of ten seconds that all time out are one event.
#[test]
fn one_outage_lowers_it_once() {
    let limit = AdaptiveLimit::aimd().initial(200);
    let tickets: Vec<_> = std::iter::from_fn(|| admit(&limit, NOW).ok()).collect();
    for (ticket, millis) in tickets.into_iter().zip((0..10_000).step_by(50)) {
        let timeout = End::judged(Health::Unavailable, SECOND * 10);
        end_call(&limit, ticket, &timeout, NOW + SECOND * 10 + Duration::from_millis(millis));
    }
    assert_eq!(limit_of(&limit), 180);
}

/// As with a bulkhead, a body that is still being read holds its place.
// G-10
#[test]
fn the_place_is_held_until_the_body_ends() {
    let limit = AdaptiveLimit::aimd().initial(1);
    let ticket = admit(&limit, NOW).unwrap();
    let ticket = limit.end_ticket(ticket, &SERVED, NOW).unwrap();
    let refused = admit(&limit, NOW).unwrap_err();
    assert_eq!((refused.guard(), refused.reason()), (GuardKind::ADAPTIVE_LIMIT, Reason::Full));
    assert_eq!(limit.usage_at(HOST, at(5)).oldest_past_head, Some(Duration::from_millis(5)));
    assert!(limit.end_ticket(ticket, &End::Over(BodyEnd::Complete), NOW).is_none());
    let at_head = limit.release_at_head(true);
    let ticket = admit(&at_head, NOW).unwrap();
    assert!(at_head.end_ticket(ticket, &SERVED, NOW).is_none());
}

#[test]
fn a_higher_limit_admits_calls_in_line() {
    let limit = AdaptiveLimit::aimd().initial(1).queue(9, SECOND * 9).release_at_head(true);
    calls(&limit, 60, &SERVED, NOW);
    let (one, two) = (admit(&limit, at(1500)).unwrap(), wait(&limit, at(1500)));
    let mut three = wait(&limit, at(1500));
    assert!(matches!(three.poll(at(1500)), Resume::Waiting { .. }));
    assert!(limit.end_ticket(one, &SERVED, at(1500)).is_none());
    assert_eq!(limit_of(&limit), 2);
    assert_eq!(three.waker.woken(), 1);
    end_call(&limit, two.admitted(at(1500)), &SERVED, at(1500));
    end_call(&limit, three.admitted(at(1500)), &SERVED, at(1500));
    assert_eq!(limit.usage_at(HOST, NOW).in_flight, 0);
}

#[test]
fn rules_that_answer_nonsense() {
    for (answer, expected) in
        [(f64::NAN, 20), (f64::INFINITY, 20), (f64::NEG_INFINITY, 20), (-5.0, 1), (0.0, 1), (1e300, 200), (7.9, 7)]
    {
        let limit = AdaptiveLimit::new(Always(answer));
        full_use(&limit, &SERVED, NOW);
        assert_eq!(limit_of(&limit), expected, "{answer}");
    }
}

/// A rule may use the limit that it belongs to.
// G-5
#[test]
fn a_rule_may_use_the_limit() {
    #[derive(Clone)]
    struct Asking(Arc<OnceLock<AdaptiveLimit<Self>>>);
    impl LimitRule for Asking {
        fn next_limit(&mut self, _: f64, _: &LimitWindow) -> f64 {
            let limit = self.0.get().unwrap();
            calls(limit, 1, &SERVED, NOW + SECOND * 60);
            limit.replace_settings(limit);
            f64::from(limit_of(limit)) - 1.0
        }
    }
    let slot = Arc::default();
    let limit = AdaptiveLimit::new(Asking(Arc::clone(&slot)));
    assert!(slot.set(limit.clone()).is_ok());
    calls(&limit, 60, &SERVED, NOW);
    calls(&limit, 1, &SERVED, at(1000));
    assert_eq!(limit_of(&limit), 19, "the limit of the later window, inside the rule, stays");
}

/// The panic reaches the caller, and its call's place is freed.
// G-11
#[test]
fn a_rule_that_unwinds_frees_the_place() {
    for at_head in [true, false] {
        let limit = AdaptiveLimit::new(Unwinding);
        let limit = if at_head { limit.release_at_head(true) } else { limit };
        calls(&limit, 60, &SERVED, NOW);
        let ticket = admit(&limit, at(1000)).unwrap();
        let ending = std::panic::AssertUnwindSafe(|| limit.end_ticket(ticket, &SERVED, at(1000)));
        assert!(std::panic::catch_unwind(ending).is_err());
        let usage = limit.usage_at(HOST, at(1000));
        assert_eq!((usage.limit, usage.in_flight, usage.past_head), (20, 0, 0));
        calls(&limit, 10, &SERVED, at(1500));
    }
}

/// A rule runs for the next call and not while the thread unwinds, because a second panic would abort the process.
// G-11, trap 72
#[test]
fn a_rule_is_not_called_while_unwinding() {
    struct Ending<'a>(&'a AdaptiveLimit<Unwinding>, Option<AdaptiveTicket<Unwinding>>);
    impl Drop for Ending<'_> {
        fn drop(&mut self) {
            end_call(self.0, self.1.take().unwrap(), &SERVED, at(1000));
        }
    }
    let limit = AdaptiveLimit::new(Unwinding);
    calls(&limit, 60, &SERVED, NOW);
    let ending = Ending(&limit, Some(admit(&limit, at(1000)).unwrap()));
    let unwinding = std::panic::AssertUnwindSafe(move || {
        let _ending = ending;
        std::panic::panic_any("the caller's own bug");
    });
    assert!(std::panic::catch_unwind(unwinding).is_err());
    assert_eq!(limit.usage_at(HOST, at(1000)).in_flight, 0);
    let ending = std::panic::AssertUnwindSafe(|| calls(&limit, 1, &SERVED, at(1000)));
    assert!(std::panic::catch_unwind(ending).is_err(), "the next call closes the window");
}

/// A clock that goes back or stands still does not close a window.
// G-12
#[test]
fn time_that_goes_back_or_stands_still() {
    let limit = AdaptiveLimit::aimd();
    let overloaded = End::judged(Health::Overloaded, Duration::ZERO);
    calls(&limit, 1000, &overloaded, NOW);
    calls(&limit, 1000, &overloaded, Duration::ZERO);
    assert_eq!(limit_of(&limit), 20);
    calls(&limit, 1, &overloaded, at(1000));
    assert_eq!(limit_of(&limit), 18);
    calls(&limit, 1000, &overloaded, at(500));
    assert_eq!(limit_of(&limit), 18);
    calls(&limit, 1, &SERVED, Duration::MAX);
    assert_eq!(limit_of(&limit), 18, "calls before the window are no samples");
    calls(&AdaptiveLimit::aimd(), 100, &SERVED, Duration::ZERO);
}

/// The learned limit survives new settings.
// G-19
#[test]
fn state_survives_replaced_settings() {
    let limit = AdaptiveLimit::aimd();
    full_use(&limit, &SERVED, NOW);
    assert_eq!(limit_of(&limit), 22);
    let settings = AdaptiveLimit::aimd().initial(7).queue(1, SECOND).bounds(1, 10);
    limit.replace_settings(&settings);
    assert_eq!(limit_of(&limit), 22);
    assert_eq!(limit.usage_at("newcomer", NOW).limit, 7);
    full_use(&limit, &SERVED, NOW + SECOND * 60);
    assert_eq!(limit_of(&limit), 10, "the new bounds");
    let _held: Vec<_> = std::iter::from_fn(|| admit(&limit, NOW).ok()).collect();
    wait(&limit, NOW);
    let clone = limit.clone();
    assert_eq!(limit_of(&clone), 10);
}

#[test]
fn bounds_outside_their_range() {
    assert_eq!(limit_of(&AdaptiveLimit::aimd().bounds(0, 0)), 1);
    assert_eq!(limit_of(&AdaptiveLimit::aimd().bounds(11, 10)), 11);
    let wide = AdaptiveLimit::vegas().bounds(1, u32::MAX).initial(u32::MAX);
    assert_eq!(limit_of(&wide), u32::MAX);
    assert_eq!(limit_of(&AdaptiveLimit::aimd().initial(0)), 1);
    assert_eq!(limit_of(&AdaptiveLimit::aimd().bounds(30, 40)), 30);
}

/// Destinations beyond the bound use no memory, and a learned limit stays while its destination is used.
// G-20, trap 52
#[test]
fn destinations_stay_within_the_bound() {
    let limit = AdaptiveLimit::aimd().max_destinations(4);
    full_use(&limit, &SERVED, NOW);
    for number in 0..20_000_u32 {
        let host = format!("host-{number}");
        let arrival = Arrival::new(&host, NOW + SECOND * 3 + Duration::from_micros(number.into()));
        match limit.admit(&arrival) {
            Admit::Admitted(ticket) => {
                end_call(&limit, ticket, &SERVED, arrival.now);
            }
            other => panic!("{other:?}"),
        }
        if number % 2 == 0 {
            limit.end_ticket(admit(&limit, arrival.now).unwrap(), &End::Unsent, arrival.now);
        }
    }
    assert!(format!("{limit:?}").contains("destinations: 4"));
    assert_eq!(limit_of(&limit), 22);
    for host in ["a", "b", "c", "d", "e"] {
        let Admit::Admitted(ticket) = limit.admit(&Arrival::new(host, at(4000))) else {
            panic!("{host} is refused");
        };
        end_call(&limit, ticket, &SERVED, at(4000));
    }
    assert_eq!(limit_of(&limit), 20, "it has left");
}

/// A rule that records the latency of each window.
#[derive(Debug, Clone, Default)]
struct Notes(Arc<OnceLock<Option<Duration>>>);

impl LimitRule for Notes {
    fn next_limit(&mut self, limit: f64, window: &LimitWindow) -> f64 {
        let _ = self.0.set(window.latency);
        limit
    }
}

#[test]
fn window_has_the_90th_percentile() {
    let notes = Notes::default();
    let limit = AdaptiveLimit::new(notes.clone()).bounds(100, 100);
    for millis in 1..=100 {
        let end = End::judged(Health::Served, Duration::from_millis(millis));
        let ticket = admit(&limit, NOW).unwrap();
        end_call(&limit, ticket, &end, at(100 + 12 * millis));
    }
    assert_eq!(notes.0.get(), Some(&Some(Duration::from_millis(77))));
}

/// A limit without a sample may be evicted at any time.
// G-20
#[test]
fn limit_without_a_sample_leaves() {
    let limit = AdaptiveLimit::aimd().max_destinations(1);
    for (host, now) in [("a", SECOND), ("b", 2 * SECOND), ("c", 3 * SECOND)] {
        let Admit::Admitted(ticket) = limit.admit(&Arrival::new(host, now)) else {
            panic!("{host} is refused");
        };
        assert_eq!(limit.usage_at("other", now).in_flight, 0, "{host} has a limit of its own");
        limit.end_ticket(ticket, &End::Unsent, now);
    }
}
