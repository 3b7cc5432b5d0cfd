//! Tests of the pause, and of the limits that follow a wait.

use std::task::Waker;
use std::time::Duration;

use reattempt_control::{Limit, Pause, PauseTicket, RateLimit, SendRate};
use reattempt_core::ServerHint;
use reattempt_core::guard::{Admit, Arrival, End, Guard, GuardKind, Health, Reason, Refused, Resume};

use crate::guards::{HOST, NOW, SECOND, admit};

/// Returns the end of an attempt that was refused with a wait.
fn asks(health: Health, wait: Duration) -> End {
    End::judged(health, Duration::ZERO).with_hint(ServerHint::After(wait))
}

fn end(guard: &impl Guard, end: &End, now: Duration) {
    let ticket = admit(guard, now).unwrap();
    guard.end_ticket(ticket, end, now);
}

/// Returns a guard that is paused from `NOW` on.
fn paused(pause: Pause, wait: Duration) -> Pause {
    end(&pause, &asks(Health::Overloaded, wait), NOW);
    pause
}

fn waiting(pause: &Pause, arrival: &Arrival<'_>) -> PauseTicket {
    match pause.admit(arrival) {
        Admit::Waiting(ticket) => ticket,
        other => unreachable!("{other:?}"),
    }
}

fn refusal(pause: &Pause, arrival: &Arrival<'_>) -> Refused {
    match pause.admit(arrival) {
        Admit::Refused(refused) => refused,
        other => unreachable!("{other:?}"),
    }
}

/// Returns the time at which a waiting call is sent, if its layer polls it when it is told to.
fn sent(pause: &Pause, ticket: &mut PauseTicket, mut now: Duration) -> Result<Duration, Refused> {
    loop {
        match pause.resume(ticket, &Arrival::new(HOST, now), Waker::noop()) {
            Resume::Admitted => return Ok(now),
            Resume::Waiting { until } => now = until.unwrap(),
            Resume::Refused(refused) => return Err(refused),
        }
    }
}

#[test]
fn wait_of_a_refusal_pauses() {
    let hints = [ServerHint::After(SECOND * 2), ServerHint::AtLeast(SECOND * 2)];
    for health in [Health::Overloaded, Health::Unavailable] {
        for hint in hints {
            let pause = Pause::new();
            end(&pause, &End::judged(health, Duration::ZERO).with_hint(hint), NOW);
            assert_eq!(pause.time_left_at(HOST, NOW), SECOND * 2, "{health:?} {hint:?}");
            assert_eq!(pause.time_left_at("other", NOW), Duration::ZERO);
        }
    }
    for health in [Health::Served, Health::Failed, Health::Lost, Health::NotConnected, Health::Ignored] {
        let pause = paused(Pause::new(), Duration::ZERO);
        end(&pause, &asks(health, SECOND * 2), NOW);
        assert_eq!(pause.time_left_at(HOST, NOW), Duration::ZERO, "{health:?}");
    }
    for hint in [ServerHint::None, ServerHint::Unreadable, ServerHint::Stop, ServerHint::Exactly(SECOND)] {
        let pause = Pause::new();
        end(&pause, &End::judged(Health::Overloaded, Duration::ZERO).with_hint(hint), NOW);
        assert!(admit(&pause, NOW).is_ok(), "{hint:?}");
    }
}

/// The calls of a pause return over a time as long as it was, in almost equal distances.
// field 24
#[test]
fn calls_return_one_after_another() {
    for (wait, spread) in [(200, 1000), (2000, 2000), (25_000, 10_000)] {
        let (wait, spread) = (Duration::from_millis(wait), Duration::from_millis(spread));
        let pause = paused(Pause::new().queue(1024, SECOND * 60), wait);
        for calls in [30_u32, 100] {
            let tickets = (0..calls).map(|_| waiting(&pause, &Arrival::new(HOST, NOW)));
            let mut times: Vec<_> = tickets.map(|mut ticket| sent(&pause, &mut ticket, NOW).unwrap()).collect();
            times.sort_unstable();
            assert!(times[0] >= NOW + wait && times[calls as usize - 1] <= NOW + wait + spread);
            let most = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
            assert!(most <= spread * 3 / calls, "{most:?} of {spread:?} for {calls}");
        }
        assert_eq!(pause.waiting(HOST), 0);
        assert!(admit(&pause, NOW + wait + spread).is_ok(), "all have returned");
    }
    let pause = paused(Pause::new().spread(Duration::ZERO), SECOND * 2);
    let mut ticket = waiting(&pause, &Arrival::new(HOST, NOW));
    assert_eq!(sent(&pause, &mut ticket, NOW), Ok(NOW + SECOND * 2));
}

/// A later answer that asks for more extends the pause, also for calls that wait. One that asks for less does not
/// shorten it.
#[test]
fn later_answer_extends_the_pause() {
    let pause = Pause::new().spread(Duration::ZERO);
    let flight: Vec<_> = (0..3).map(|_| admit(&pause, NOW).unwrap()).collect();
    let mut tickets = flight.into_iter();
    let mut answer = |wait, now| {
        pause.end_ticket(tickets.next().unwrap(), &asks(Health::Overloaded, wait), now);
    };
    answer(SECOND * 2, NOW);
    let mut ticket = waiting(&pause, &Arrival::new(HOST, NOW));
    answer(SECOND * 5, NOW + SECOND);
    assert_eq!(pause.time_left_at(HOST, NOW + SECOND), SECOND * 5);
    answer(SECOND, NOW + SECOND);
    assert_eq!(sent(&pause, &mut ticket, NOW + SECOND), Ok(NOW + SECOND * 6));
}

#[test]
fn call_that_cannot_wait_is_refused() {
    let pause = paused(Pause::new().spread(Duration::ZERO).queue(2, SECOND * 5), SECOND * 4);
    let arrival = Arrival::new(HOST, NOW);
    let too_early = arrival.latest(NOW + SECOND * 4);
    for arrival in [too_early, arrival.impatient()] {
        let refused = refusal(&pause, &arrival);
        assert_eq!((refused.guard(), refused.reason()), (GuardKind::PAUSE, Reason::Paused));
        assert_eq!(refused.wait(), Some(SECOND * 4));
        assert_eq!(pause.would_admit(&arrival), Err(refused));
        assert_eq!(refused.to_string(), "not sent: the pause is not over (try again in 4s)");
    }
    let ticket = waiting(&pause, &arrival);
    let other = waiting(&pause, &arrival);
    assert_eq!(refusal(&pause, &arrival).reason(), Reason::Full);
    pause.end_ticket(ticket, &End::Unsent, NOW);
    assert_eq!(pause.waiting(HOST), 1, "a dropped call leaves the queue");
    pause.end_ticket(other, &End::Unsent, NOW);
    let pause = paused(Pause::new().no_queue(), SECOND);
    assert_eq!(refusal(&pause, &arrival).reason(), Reason::Paused);
    let pause = paused(Pause::new().longest(SECOND), SECOND * 1_000_000);
    assert_eq!(pause.time_left_at(HOST, NOW), SECOND);
}

/// A pause that grows beyond the patience of a waiting call ends its wait.
#[test]
fn impatient_call_leaves_a_longer_pause() {
    let pause = Pause::new().spread(Duration::ZERO).queue(1, SECOND * 5);
    let flight = [admit(&pause, NOW).unwrap(), admit(&pause, NOW).unwrap()];
    let mut waits = [SECOND, SECOND * 9].into_iter();
    let [first, second] = flight;
    pause.end_ticket(first, &asks(Health::Overloaded, waits.next().unwrap()), NOW);
    let mut ticket = waiting(&pause, &Arrival::new(HOST, NOW));
    pause.end_ticket(second, &asks(Health::Overloaded, waits.next().unwrap()), NOW);
    assert_eq!(sent(&pause, &mut ticket, NOW).unwrap_err().wait(), Some(SECOND * 9));
    assert_eq!(pause.waiting(HOST), 0);
}

#[test]
fn pause_that_never_begins_is_told() {
    assert!(Pause::new().validate().is_empty());
    assert_eq!(Pause::new().longest(Duration::ZERO).validate()[0].field(), "longest");
}

/// A 503 with a wait lowers a send rate and empties a rate limit until the wait is over, as a 429 does. Without a wait,
/// it does neither.
// field 24
#[test]
fn limits_follow_a_wait() {
    for health in [Health::Overloaded, Health::Unavailable] {
        let limit = RateLimit::new(Limit::per_second(20), 20);
        end(&limit, &asks(health, SECOND * 2), NOW);
        let refused = admit(&limit, NOW).unwrap_err();
        assert_eq!(refused.wait(), Some(SECOND * 2 + SECOND / 20), "{health:?}");
        assert!(admit(&limit, NOW + SECOND * 2).is_err());
        assert!(admit(&limit, NOW + SECOND * 2 + SECOND / 20).is_ok());
        assert!(admit(&limit, NOW + SECOND * 2 + SECOND / 20).is_err(), "at its own rate");
        let rate = SendRate::new();
        end(&rate, &asks(health, SECOND * 2), NOW);
        assert!(!rate.limit(HOST).is_infinite(), "{health:?}");
    }
    let unavailable = End::judged(Health::Unavailable, Duration::ZERO);
    let (limit, rate) = (RateLimit::new(Limit::per_second(20), 20), SendRate::new());
    for end_of_call in [unavailable, asks(Health::Failed, SECOND), asks(Health::Served, SECOND)] {
        end(&limit, &end_of_call, NOW);
        end(&rate, &end_of_call, NOW);
        assert!(admit(&limit, NOW).is_ok() && rate.limit(HOST).is_infinite(), "{end_of_call:?}");
    }
}
