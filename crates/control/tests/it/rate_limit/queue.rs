//! Tests of the guard's queue of waiting calls.

use std::time::Duration;

use reattempt_control::{Limit, RateLimit};
use reattempt_core::guard::{Arrival, End, Guard, GuardKind, Reason, Resume};

use super::ten;
use crate::guards::{HOST, NOW, SECOND, admit, at, reason, wait, wait_until, waits_until};

#[test]
fn calls_wait_in_order() {
    let limit = ten(1);
    admit(&limit, NOW).unwrap();
    let (mut first, mut second) = (wait(&limit, NOW), wait(&limit, NOW));
    assert_eq!(second.poll(NOW), waits_until(at(200)));
    assert_eq!(first.poll(NOW), waits_until(at(100)));
    assert_eq!(second.poll(at(100)), waits_until(at(200)), "the token is the first one's");
    assert_eq!(first.poll(at(100)), Resume::Admitted);
    assert_eq!(second.waker.woken(), 1, "it is the first in the queue now");
    assert_eq!(second.poll(at(200)), Resume::Admitted);
    assert_eq!(limit.waiting(HOST), 0);
}

#[test]
fn a_call_that_is_not_polled_blocks_none() {
    let limit = ten(1);
    admit(&limit, NOW).unwrap();
    let (first, mut second) = (wait(&limit, NOW), wait(&limit, NOW));
    assert_eq!(second.poll(at(200)), Resume::Admitted);
    assert_eq!(reason(admit(&limit, at(200))), Reason::RateExceeded, "its token is kept for it");
    first.admitted(at(200));
}

#[test]
fn newcomers_do_not_overtake() {
    let limit = ten(1);
    admit(&limit, NOW).unwrap();
    let first = wait(&limit, NOW);
    assert!(!limit.allow_at(HOST, at(100)));
    let refused = admit(&limit, at(100)).unwrap_err();
    assert_eq!((refused.guard(), refused.wait()), (GuardKind::RATE_LIMIT, Some(SECOND / 10)));
    first.admitted(at(100));
}

/// A dropped call returns its token in the step that removes it, and the calls behind it move up.
// G-14
#[test]
fn a_dropped_call_returns_its_token() {
    let limit = ten(1);
    admit(&limit, NOW).unwrap();
    let (first, mut second, mut third) = (wait(&limit, NOW), wait(&limit, NOW), wait(&limit, NOW));
    assert_eq!(second.poll(NOW), waits_until(at(200)));
    assert_eq!(third.poll(NOW), waits_until(at(300)));
    first.cancel(NOW);
    assert_eq!(second.waker.woken(), 1);
    assert_eq!(second.poll(NOW), waits_until(at(100)));
    assert_eq!(third.poll(NOW), waits_until(at(200)));
    third.cancel(NOW);
    second.cancel(NOW);
    assert_eq!(limit.tokens_at(HOST, NOW), 0.0);
    assert!(limit.allow_at(HOST, at(100)));
}

#[test]
fn those_before_a_dropped_call_stay() {
    let limit = ten(1);
    admit(&limit, NOW).unwrap();
    let (mut first, second, mut third) = (wait(&limit, NOW), wait(&limit, NOW), wait(&limit, NOW));
    second.cancel(NOW);
    assert_eq!(first.poll(NOW), waits_until(at(100)));
    assert_eq!(third.poll(NOW), waits_until(at(200)));
    assert_eq!(first.poll(at(99)), waits_until(at(100)));
    first.admitted(at(100));
    third.admitted(at(200));
    assert_eq!(limit.tokens_at(HOST, at(200)), 0.0);
}

#[test]
fn an_unsent_call_returns_its_token() {
    let limit = ten(2);
    let ticket = admit(&limit, NOW).unwrap();
    assert!(limit.end_ticket(ticket, &End::Unsent, NOW).is_none());
    assert_eq!(limit.tokens_at(HOST, NOW), 2.0);
    let ticket = admit(&limit, NOW).unwrap();
    assert!(limit.end_ticket(ticket, &End::Abandoned { after: SECOND }, NOW).is_none());
    assert_eq!(limit.tokens_at(HOST, NOW), 1.0, "a call that was sent does not");
    let ticket = admit(&limit, NOW).unwrap();
    let mut waiting = wait(&limit, NOW);
    assert_eq!(waiting.poll(NOW), waits_until(at(100)));
    let renewed = limit.renew(ticket, &Arrival::new(HOST, at(50))).unwrap();
    assert!(limit.end_ticket(renewed, &End::Unsent, at(50)).is_none());
    assert_eq!(waiting.waker.woken(), 1);
    waiting.admitted(at(50));
}

// SPEC §10: a wait that cannot end before the deadline ends at once.
#[test]
fn deadlines_are_looked_at_before_the_wait() {
    let limit = ten(1);
    admit(&limit, NOW).unwrap();
    let refused = wait_until(&limit, NOW, Some(at(100))).err().unwrap();
    assert_eq!((refused.reason(), refused.wait()), (Reason::WaitTooLong, Some(SECOND / 10)));
    assert_eq!(limit.tokens_at(HOST, NOW), 0.0);
    let mut waiting = wait_until(&limit, NOW, Some(at(101))).unwrap();
    limit.set_limit_at(HOST, Limit::per_second(1), NOW);
    let Resume::Refused(refused) = waiting.poll(NOW) else { panic!("it cannot be in time") };
    assert_eq!((refused.reason(), refused.wait()), (Reason::WaitTooLong, Some(SECOND)));
    assert_eq!((limit.tokens_at(HOST, NOW), limit.waiting(HOST)), (0.0, 0));
}

#[test]
fn the_line_is_bounded() {
    let limit = ten(1).queue(2, SECOND);
    admit(&limit, NOW).unwrap();
    let waiting = [wait(&limit, NOW), wait(&limit, NOW)];
    assert_eq!(reason(wait_until(&limit, NOW, None)), Reason::Full);
    assert!(limit.would_admit(&Arrival::new(HOST, NOW)).is_err());
    assert_eq!(limit.waiting(HOST), 2);
    waiting.into_iter().for_each(|one| one.cancel(NOW));
    assert!(limit.would_admit(&Arrival::new(HOST, NOW)).is_ok(), "it may wait");
    let slow = RateLimit::new(Limit::per_second(1), 1).queue(9, SECOND);
    admit(&slow, NOW).unwrap();
    let first = wait(&slow, NOW);
    assert_eq!(reason(wait_until(&slow, NOW, None)), Reason::WaitTooLong);
    first.admitted(at(1000));
}

#[test]
fn refusing_mode_never_waits() {
    let limit = ten(1).no_queue();
    admit(&limit, NOW).unwrap();
    let refused = wait_until(&limit, at(40), None).err().unwrap();
    assert_eq!(refused.reason(), Reason::RateExceeded);
    assert_eq!(refused.wait(), Some(SECOND * 6 / 100));
    assert_eq!(limit.would_admit(&Arrival::new(HOST, at(40))), Err(refused));
}

#[test]
fn a_faster_rate_moves_the_line() {
    let limit = RateLimit::new(Limit::per_second(1), 1);
    admit(&limit, NOW).unwrap();
    let mut first = wait(&limit, NOW);
    assert_eq!(first.poll(NOW), waits_until(at(1000)));
    limit.set_limit_at(HOST, Limit::per_second(10), at(10));
    assert_eq!(first.waker.woken(), 1);
    assert_eq!(first.poll(at(10)), waits_until(at(109)));
    limit.set_limit_at(HOST, Limit::INFINITE, at(10));
    first.admitted(at(10));
}

/// Tokens that were reserved behind waiting calls are not given to new calls when the waiting calls leave.
// G-13
#[test]
fn tokens_behind_the_line_are_given_once() {
    let limit = ten(1);
    admit(&limit, NOW).unwrap();
    let waiting = [(); 10].map(|()| wait(&limit, NOW));
    let reserved = [(); 10].map(|()| limit.reserve_at(HOST, NOW));
    assert_eq!(reserved[0].delay_at(NOW), SECOND * 11 / 10);
    waiting.into_iter().for_each(|one| one.cancel(NOW));
    assert_eq!(limit.reserve_at(HOST, NOW).delay_at(NOW), SECOND * 21 / 10);
}

/// A reservation keeps its time, and the calls on both sides of it move up.
#[test]
fn calls_move_up_past_a_reservation() {
    let limit = ten(1);
    admit(&limit, NOW).unwrap();
    let first = wait(&limit, NOW);
    let reserved = limit.reserve_at(HOST, NOW);
    let mut second = wait(&limit, NOW);
    assert_eq!(second.poll(NOW), waits_until(at(300)));
    first.cancel(NOW);
    assert_eq!(second.waker.woken(), 1);
    assert_eq!(second.poll(NOW), waits_until(at(100)));
    assert_eq!(reserved.delay_at(NOW), SECOND * 2 / 10);
    assert_eq!(limit.reserve_at(HOST, NOW).delay_at(NOW), SECOND * 3 / 10, "its place is free");
}

/// If a reservation between waiting calls is cancelled, those behind it move up, and those in front of it stay.
#[test]
fn calls_move_up_when_one_is_cancelled() {
    let limit = ten(3);
    assert!(limit.allow_n_at(HOST, 3, NOW));
    let mut first = wait(&limit, NOW);
    let mut reserved = limit.reserve_n_at(HOST, 3, NOW);
    let mut second = wait(&limit, NOW);
    let last = limit.reserve_at(HOST, NOW);
    assert_eq!(second.poll(NOW), waits_until(at(500)));
    reserved.cancel_at(NOW);
    assert_eq!(first.poll(NOW), waits_until(at(100)));
    assert_eq!(second.poll(NOW), waits_until(at(300)), "the last one has built upon one token");
    assert_eq!((last.delay_at(NOW), limit.tokens_at(HOST, NOW)), (SECOND * 6 / 10, -4.0));
}

/// If the bucket was full after the call was admitted, the call's token would have been lost, so it is not returned.
// G-13
#[test]
fn unsent_call_returns_what_had_room() {
    let limit = ten(1);
    let unsent = admit(&limit, NOW).unwrap();
    admit(&limit, at(100)).unwrap();
    assert!(limit.end_ticket(unsent, &End::Unsent, at(100)).is_none());
    assert_eq!(limit.tokens_at(HOST, at(100)), 0.0);
    let unsent = admit(&limit, at(200)).unwrap();
    assert!(limit.end_ticket(unsent, &End::Unsent, at(240)).is_none());
    assert_eq!(limit.tokens_at(HOST, at(240)), 1.0, "the burst");
    let unsent = admit(&limit, at(240)).unwrap();
    let reserved = limit.reserve_at(HOST, at(240));
    assert!(limit.end_ticket(unsent, &End::Unsent, at(260)).is_none());
    assert_eq!(limit.tokens_at(HOST, at(260)), -0.8, "a reservation has built upon it");
    assert_eq!(reserved.delay_at(at(240)), SECOND / 10);
}

/// An unsent call may find that the burst is smaller than at its admission.
#[test]
fn unsent_call_finds_a_smaller_burst() {
    let limit = ten(10);
    let unsent = admit(&limit, NOW).unwrap();
    assert!(limit.allow_n_at(HOST, 9, NOW));
    limit.set_burst_at(HOST, 1, NOW);
    assert!(limit.allow_at(HOST, at(100)));
    assert!(limit.end_ticket(unsent, &End::Unsent, at(100)).is_none());
    assert_eq!(limit.tokens_at(HOST, at(100)), 0.0);
}

/// A call that leaves when its token is available returns the token.
#[test]
fn call_that_leaves_when_due_returns_it() {
    let limit = ten(1);
    admit(&limit, NOW).unwrap();
    let (first, mut second) = (wait(&limit, NOW), wait(&limit, NOW));
    first.cancel(at(100));
    assert_eq!(second.poll(at(100)), Resume::Admitted);
    assert_eq!(limit.tokens_at(HOST, at(100)), 0.0);
    let third = wait(&limit, at(100));
    third.cancel(at(240));
    assert_eq!(limit.tokens_at(HOST, at(240)), 1.0, "the burst");
}

#[test]
fn long_line_is_left_from_any_place() {
    let limit = ten(1).queue(60_000, Duration::MAX);
    admit(&limit, NOW).unwrap();
    let waiting: Vec<_> = (0..60_000).map(|_| wait(&limit, NOW)).collect();
    waiting.into_iter().for_each(|one| one.cancel(NOW));
    assert_eq!((limit.tokens_at(HOST, NOW), limit.waiting(HOST)), (0.0, 0));
}
