//! Tests of the bulkhead.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use reattempt_control::{Bulkhead, BulkheadTicket};
use reattempt_core::guard::{Admit, Arrival, BodyEnd, End, Guard, GuardKind, Health, Reason, Resume};

use crate::guards::{HOST, NOW, SECOND, admit, admit_to, at, reason, wait, wait_until, waits_until};

fn judged() -> End {
    End::judged(Health::Served, SECOND)
}

/// Ends a call without a body.
fn end_ticket(bulkhead: &Bulkhead, ticket: BulkheadTicket, now: Duration) {
    assert!(bulkhead.end_ticket(ticket, &End::Abandoned { after: SECOND }, now).is_none());
}

fn in_flight(bulkhead: &Bulkhead) -> u32 {
    bulkhead.usage_at(HOST, NOW).in_flight
}

#[test]
fn one_more_than_the_limit_is_refused() {
    let bulkhead = Bulkhead::default();
    let tickets: Vec<_> = (0..64).map(|_| admit(&bulkhead, NOW).unwrap()).collect();
    let refused = wait_until(&bulkhead, NOW, None).err().unwrap();
    assert_eq!((refused.guard(), refused.reason()), (GuardKind::BULKHEAD, Reason::Full));
    assert_eq!(refused.wait(), None);
    assert_eq!(bulkhead.would_admit(&Arrival::new(HOST, NOW)), Err(refused));
    assert!(bulkhead.would_admit(&Arrival::new("https://other.example", NOW)).is_ok());
    tickets.into_iter().for_each(|ticket| end_ticket(&bulkhead, ticket, NOW));
    assert_eq!(in_flight(&bulkhead), 0);
}

/// A body that is still being read holds its place, and the age of the oldest is known.
// G-10
#[test]
fn the_place_is_held_until_the_body_ends() {
    let bulkhead = Bulkhead::new(3);
    let held = [0, 10].map(|millis| {
        let ticket = admit(&bulkhead, NOW).unwrap();
        bulkhead.end_ticket(ticket, &judged(), at(millis)).unwrap()
    });
    let waiting = admit(&bulkhead, NOW).unwrap();
    assert!(admit(&bulkhead, NOW).is_err());
    let usage = bulkhead.usage_at(HOST, at(1000));
    assert_eq!((usage.limit, usage.in_flight, usage.past_head), (3, 3, 2));
    assert_eq!(usage.oldest_past_head, Some(SECOND));
    let [first, second] = held;
    assert!(bulkhead.end_ticket(first, &End::Over(BodyEnd::Complete), at(1000)).is_none());
    assert_eq!(bulkhead.usage_at(HOST, at(1010)).oldest_past_head, Some(SECOND));
    assert!(bulkhead.end_ticket(second, &End::Over(BodyEnd::Dropped), at(1000)).is_none());
    assert_eq!(bulkhead.usage_at(HOST, NOW).past_head, 0);
    end_ticket(&bulkhead, waiting, NOW);
    assert_eq!(in_flight(&bulkhead), 0);
}

#[test]
fn the_head_frees_it_by_choice() {
    let bulkhead = Bulkhead::new(1).release_at_head(true);
    let ticket = admit(&bulkhead, NOW).unwrap();
    assert!(bulkhead.end_ticket(ticket, &judged(), NOW).is_none());
    assert_eq!(in_flight(&bulkhead), 0);
}

/// Every way in which a call can end frees its place exactly once.
// G-11
#[test]
fn every_end_frees_the_place() {
    let bulkhead = Bulkhead::new(1).queue(1, SECOND);
    for direct in [End::Abandoned { after: SECOND }, End::Unsent] {
        let ticket = admit(&bulkhead, NOW).unwrap();
        assert!(bulkhead.end_ticket(ticket, &direct, NOW).is_none());
    }
    for over in [BodyEnd::Complete, BodyEnd::Broken, BodyEnd::Dropped] {
        let ticket = admit(&bulkhead, NOW).unwrap();
        let ticket = bulkhead.end_ticket(ticket, &judged(), NOW).unwrap();
        assert!(bulkhead.end_ticket(ticket, &End::Over(over), NOW).is_none());
    }
    let ticket = admit(&bulkhead, NOW).unwrap();
    let ticket = bulkhead.renew(ticket, &Arrival::new(HOST, NOW)).unwrap();
    wait(&bulkhead, NOW).cancel(NOW);
    end_ticket(&bulkhead, ticket, NOW);
    assert_eq!((in_flight(&bulkhead), bulkhead.usage_at(HOST, NOW).waiting), (0, 0));
}

#[test]
fn calls_wait_in_order() {
    let bulkhead = Bulkhead::new(1).queue(2, SECOND);
    let ticket = admit(&bulkhead, NOW).unwrap();
    let (mut first, mut second) = (wait(&bulkhead, NOW), wait(&bulkhead, NOW));
    assert_eq!(reason(wait_until(&bulkhead, NOW, None)), Reason::Full, "the queue is bounded");
    assert_eq!(first.poll(NOW), waits_until(at(1000)));
    assert_eq!(second.poll(NOW), waits_until(at(1000)));
    end_ticket(&bulkhead, ticket, NOW);
    assert_eq!((first.waker.woken(), second.waker.woken()), (1, 0));
    assert!(admit(&bulkhead, NOW).is_err(), "no newcomer overtakes");
    assert_eq!(second.poll(at(10)), waits_until(at(1000)));
    let first = first.admitted(at(10));
    end_ticket(&bulkhead, first, at(20));
    let second = second.admitted(at(20));
    assert_eq!(in_flight(&bulkhead), 1);
    end_ticket(&bulkhead, second, at(20));
    assert!(admit(&bulkhead, NOW).is_ok());
}

/// A call that is dropped after it was given a place passes the place on.
// G-11
#[test]
fn a_dropped_call_passes_its_place_on() {
    let bulkhead = Bulkhead::new(1).queue(3, SECOND);
    let ticket = admit(&bulkhead, NOW).unwrap();
    let (first, middle, mut last) = (wait(&bulkhead, NOW), wait(&bulkhead, NOW), wait(&bulkhead, NOW));
    assert_eq!(last.poll(NOW), waits_until(at(1000)));
    middle.cancel(NOW);
    end_ticket(&bulkhead, ticket, NOW);
    first.cancel(NOW);
    assert_eq!(last.waker.woken(), 1);
    end_ticket(&bulkhead, last.admitted(NOW), NOW);
    assert_eq!(in_flight(&bulkhead), 0);
}

#[test]
fn a_wait_has_an_end() {
    let bulkhead = Bulkhead::new(1).queue(9, SECOND);
    let _held = admit(&bulkhead, NOW).unwrap();
    let mut waiting = wait(&bulkhead, NOW);
    let mut in_haste = wait_until(&bulkhead, NOW, Some(at(10))).unwrap();
    assert_eq!(in_haste.poll(NOW), waits_until(at(10)));
    for (call, end) in [(&mut in_haste, at(10)), (&mut waiting, at(1000))] {
        let Resume::Refused(refused) = call.poll(end) else { panic!("it waits on") };
        assert_eq!((refused.reason(), refused.wait()), (Reason::WaitTooLong, None));
    }
    assert_eq!(bulkhead.usage_at(HOST, NOW).waiting, 0);
    assert_eq!(reason(wait_until(&bulkhead, NOW, Some(NOW))), Reason::WaitTooLong);
}

/// New settings keep the places, and waiting calls get additional ones.
// G-19, G-5
#[test]
fn state_survives_replaced_settings() {
    let bulkhead = Bulkhead::new(1).queue(9, SECOND);
    let ticket = admit(&bulkhead, NOW).unwrap();
    let (first, second) = (wait(&bulkhead, NOW), wait(&bulkhead, NOW));
    bulkhead.replace_settings(&Bulkhead::new(2).release_at_head(true));
    let first = first.admitted(NOW);
    assert_eq!(reason(wait_until(&bulkhead, NOW, None)), Reason::Full, "no queue any longer");
    bulkhead.replace_settings(&Bulkhead::new(1));
    end_ticket(&bulkhead, ticket, NOW);
    assert_eq!((in_flight(&bulkhead), bulkhead.usage_at(HOST, NOW).waiting), (1, 1));
    end_ticket(&bulkhead, first, NOW);
    let second = second.admitted(NOW);
    assert!(bulkhead.end_ticket(second, &judged(), NOW).is_some());
}

#[test]
fn zero_and_endless_limits() {
    let none = Bulkhead::new(0).queue(9, SECOND);
    assert_eq!(reason(wait_until(&none, NOW, None)), Reason::Full, "nothing would end the wait");
    let endless = Bulkhead::new(u32::MAX).queue(usize::MAX, Duration::MAX);
    let tickets: Vec<_> = (0..1000).map(|_| admit(&endless, NOW).unwrap()).collect();
    assert_eq!(in_flight(&endless), 1000);
    tickets.into_iter().for_each(|ticket| end_ticket(&endless, ticket, Duration::ZERO));
    let patient = Bulkhead::new(1).queue(1, Duration::MAX);
    let _held = admit(&patient, NOW).unwrap();
    assert_eq!(wait(&patient, NOW).poll(at(1_000_000)), waits_until(Duration::MAX));
    for most in [0, 1] {
        let bulkhead = Bulkhead::new(1).max_destinations(most);
        let _held = ["a", "b", "b"].map(|host| admit_to(&bulkhead, host, NOW).unwrap());
        assert!(admit_to(&bulkhead, "a", NOW).is_none(), "{most}: one has a place");
    }
}

/// Clones share places, but destinations do not; beyond the bound they share one set.
// G-9, G-20
#[test]
fn destinations_stay_within_the_bound() {
    let bulkhead = Bulkhead::new(1).max_destinations(8);
    let held = admit(&bulkhead.clone(), NOW).unwrap();
    for number in 0..50_000_u32 {
        let now = NOW + Duration::from_micros(u64::from(number));
        let host = format!("host-{number}");
        match bulkhead.admit(&Arrival::new(&host, now)) {
            Admit::Admitted(ticket) => end_ticket(&bulkhead, ticket, now),
            other => panic!("{other:?}"),
        }
    }
    let text = format!("{bulkhead:?}");
    assert!(text.contains("destinations: 8") && text.contains(HOST), "{text}");
    assert!(admit(&bulkhead, NOW).is_err());
    end_ticket(&bulkhead, held, NOW);
    assert!(admit(&bulkhead.shared(true), NOW).is_ok());
}

/// No place is lost if many threads pass places on.
// G-11
#[test]
fn no_place_is_lost_under_contention() {
    let bulkhead = Bulkhead::new(3).queue(8, SECOND * 1000);
    let start = Barrier::new(32);
    thread::scope(|scope| {
        for number in 0..32 {
            let (bulkhead, start) = (&bulkhead, &start);
            scope.spawn(move || {
                start.wait();
                for step in 0..500 {
                    use Admit::{Admitted, Refused, Waiting};
                    assert!(in_flight(bulkhead) <= 3);
                    match bulkhead.admit(&Arrival::new(HOST, NOW)) {
                        Admitted(ticket) => end_ticket(bulkhead, ticket, NOW),
                        Waiting(ticket) if (step + number) % 3 == 0 => end_ticket(bulkhead, ticket, NOW),
                        Waiting(mut ticket) => {
                            let waker = std::task::Waker::noop();
                            let arrival = Arrival::new(HOST, NOW);
                            while bulkhead.resume(&mut ticket, &arrival, waker) != Resume::Admitted {
                                thread::yield_now();
                            }
                            end_ticket(bulkhead, ticket, NOW);
                        }
                        Refused(_) => {}
                    }
                }
            });
        }
    });
    let usage = bulkhead.usage_at(HOST, NOW);
    assert_eq!((usage.in_flight, usage.waiting), (0, 0));
}

/// A place given to a call that is not polled is passed on when that call's wait ends: to a new call, or to the next
/// one in the queue.
// G-11
#[test]
fn place_not_taken_up_is_passed_on() {
    let bulkhead = Bulkhead::new(1).queue(9, SECOND);
    let held = admit(&bulkhead, NOW).unwrap();
    let mut idle = wait_until(&bulkhead, NOW, Some(at(800))).unwrap();
    let mut second = wait(&bulkhead, at(500));
    end_ticket(&bulkhead, held, at(600));
    assert_eq!(second.poll(at(600)), waits_until(at(800)), "it asks again then");
    assert!(admit(&bulkhead, at(799)).is_err());
    let second = second.admitted(at(800));
    assert!(matches!(idle.poll(at(800)), Resume::Refused(_)));
    assert_eq!(in_flight(&bulkhead), 1);
    let (idle, late) = (wait(&bulkhead, at(800)), wait(&bulkhead, at(801)));
    end_ticket(&bulkhead, second, at(802));
    let newcomer = wait(&bulkhead, at(1800));
    assert_eq!(late.waker.woken(), 0, "it was never polled");
    end_ticket(&bulkhead, late.admitted(at(1800)), at(1800));
    idle.cancel(at(1800));
    end_ticket(&bulkhead, newcomer.admitted(at(1800)), at(1800));
    assert_eq!(in_flight(&bulkhead), 0);
}

/// A place is also passed on if the next call in the queue was polled before the place was given, and no other call
/// arrives.
// G-11
#[test]
fn place_goes_on_to_one_polled_before() {
    let bulkhead = Bulkhead::new(1).queue(9, SECOND);
    let held = admit(&bulkhead, NOW).unwrap();
    let idle = wait_until(&bulkhead, NOW, Some(at(800))).unwrap();
    let mut second = wait(&bulkhead, at(500));
    assert_eq!(second.poll(at(500)), waits_until(at(1500)));
    let mut third = wait(&bulkhead, at(500));
    assert_eq!(third.poll(at(500)), waits_until(at(1500)));
    end_ticket(&bulkhead, held, at(600));
    assert_eq!(second.waker.woken(), 1, "it must ask again when the first gives up");
    assert_eq!(second.poll(at(600)), waits_until(at(800)));
    assert_eq!(second.poll(at(700)), waits_until(at(800)));
    assert_eq!(second.waker.woken(), 1, "once for each place");
    second.cancel(at(700));
    assert_eq!(third.waker.woken(), 1, "it is the next");
    end_ticket(&bulkhead, third.admitted(at(800)), at(800));
    idle.cancel(at(800));
    assert_eq!(in_flight(&bulkhead), 0);
}

/// A call whose wait has ended is given no place, even if it was never polled.
#[test]
fn place_is_not_given_past_patience() {
    let bulkhead = Bulkhead::new(1).queue(9, SECOND);
    let held = admit(&bulkhead, NOW).unwrap();
    let (mut idle, second) = (wait(&bulkhead, NOW), wait(&bulkhead, at(500)));
    end_ticket(&bulkhead, held, at(1000));
    end_ticket(&bulkhead, second.admitted(at(1000)), at(1000));
    assert!(matches!(idle.poll(at(1000)), Resume::Refused(_)));
    assert_eq!(in_flight(&bulkhead), 0);
}

#[test]
fn long_line_is_left_from_any_place() {
    let bulkhead = Bulkhead::new(1).queue(60_000, Duration::MAX);
    let held = admit(&bulkhead, NOW).unwrap();
    let mut waiting: Vec<_> = (0..60_000).map(|_| Some(wait(&bulkhead, NOW))).collect();
    // From the middle of the queue.
    for number in 0..60_000 {
        waiting[(30_000 + number) % 60_000].take().unwrap().cancel(NOW);
    }
    assert_eq!(bulkhead.usage_at(HOST, NOW).waiting, 0);
    end_ticket(&bulkhead, held, NOW);
}
