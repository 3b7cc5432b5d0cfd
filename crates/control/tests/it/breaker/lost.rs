//! Tests of failures that show less than one failure each: lost connections, and faults of this machine.

use std::time::Duration;

use reattempt_control::BreakerState::{Closed, Open};
use reattempt_control::{BreakerTicket, CircuitBreaker, Counts};
use reattempt_core::guard::Health::{Failed, Ignored, Local, Lost, NotConnected, Served};
use reattempt_core::guard::{End, Guard, Health};

use super::{HOST, NOW, SECOND, admit, call, calls, timeless};

const TICK: Duration = Duration::from_millis(1);

/// Ends a call that was sent at `sent`.
fn end_sent_at(breaker: &CircuitBreaker, ticket: BreakerTicket, health: Health, sent: Duration, now: Duration) {
    assert!(breaker.end_ticket(ticket, &End::judged(health, now - sent), now).is_none());
}

fn in_flight(breaker: &CircuitBreaker, number: usize) -> Vec<BreakerTicket> {
    (0..number).map(|_| admit(breaker, NOW).unwrap()).collect()
}

/// Returns failures, excluded calls, and consecutive failures.
fn numbers(breaker: &CircuitBreaker, now: Duration) -> [u32; 3] {
    let Counts { total_failures, total_exclusions, consecutive_failures, .. } = breaker.counts_at(HOST, now);
    [total_failures, total_exclusions, consecutive_failures]
}

/// All calls on a connection that breaks are one failure in either form, however long it takes until all have failed.
// C-6, field 03
#[test]
fn calls_of_one_connection_are_one_failure() {
    for breaker in [timeless().min_calls(2).consecutive_failures(2), CircuitBreaker::counting()] {
        let tickets = in_flight(&breaker, 50);
        for (number, ticket) in (0..).zip(tickets) {
            end_sent_at(&breaker, ticket, Lost, NOW, NOW + SECOND / 10 * number);
        }
        assert_eq!(numbers(&breaker, NOW + SECOND * 5), [1, 49, 1]);
        assert_eq!(breaker.state_at(HOST, NOW + SECOND * 5), Closed);
    }
}

/// A call that was sent when the first failure was seen belongs to its event. One that was sent later begins the next.
// C-6
#[test]
fn later_sent_loss_is_the_next_event() {
    for (sent, failures) in [(SECOND - TICK, 1), (SECOND, 1), (SECOND + TICK, 2)] {
        let breaker = timeless();
        let tickets = in_flight(&breaker, 2);
        for (ticket, (sent, ended)) in tickets.into_iter().zip([(NOW, SECOND), (NOW + sent, SECOND * 2)]) {
            end_sent_at(&breaker, ticket, Lost, sent, NOW + ended);
        }
        assert_eq!(numbers(&breaker, NOW + SECOND * 2)[0], failures, "{sent:?}");
    }
}

/// A server that hangs up on each call opens the breaker, because each is sent after the one before it was lost.
// C-6
#[test]
fn server_that_hangs_up_opens_it() {
    let breaker = timeless();
    for number in 1..=20 {
        assert_eq!(breaker.state_at(HOST, NOW), Closed);
        let sent = NOW + TICK * 2 * number;
        end_sent_at(&breaker, admit(&breaker, sent).unwrap(), Lost, sent, sent + TICK);
    }
    assert_eq!(breaker.state_at(HOST, NOW + SECOND), Open);
}

/// A success ends the run of failures, but not the event.
// C-6
#[test]
fn success_does_not_end_an_event() {
    let breaker = timeless();
    let mut tickets = in_flight(&breaker, 3);
    for (health, after) in [(Lost, 1), (Served, 2), (Lost, 3)] {
        end_sent_at(&breaker, tickets.pop().unwrap(), health, NOW, NOW + TICK * after);
    }
    assert_eq!(numbers(&breaker, NOW + SECOND), [1, 1, 0]);
}

/// An event is over when the breaker is closed: its calls are discarded, and the next loss counts.
// C-6, G-4
#[test]
fn event_ends_with_its_state() {
    let breaker = timeless();
    let mut tickets = in_flight(&breaker, 2);
    end_sent_at(&breaker, tickets.pop().unwrap(), Lost, NOW, NOW + SECOND);
    breaker.close_at(HOST, NOW + SECOND);
    end_sent_at(&breaker, tickets.pop().unwrap(), Lost, NOW, NOW + SECOND);
    assert_eq!(numbers(&breaker, NOW + SECOND), [0, 0, 0]);
    let ticket = admit(&breaker, NOW + SECOND).unwrap();
    end_sent_at(&breaker, ticket, Lost, NOW + SECOND, NOW + SECOND);
    assert_eq!(numbers(&breaker, NOW + SECOND), [1, 0, 1]);
}

/// Every lost probe counts, although the second was sent before the first was lost.
// C-6
#[test]
fn lost_probes_always_count() {
    let breaker = timeless().consecutive_failures(5).probes(2).probe_failure_ratio(1.0).spread(0);
    calls(&breaker, 5, Failed, NOW);
    let later = NOW + SECOND * 10;
    let probes = [admit(&breaker, later).unwrap(), admit(&breaker, later).unwrap()];
    probes.into_iter().for_each(|probe| end_sent_at(&breaker, probe, Lost, later, later + SECOND));
    assert_eq!(breaker.state_at(HOST, later + SECOND), Open);
}

/// Each connection that the server does not accept is a failure, even of calls that were sent together.
// C-7
#[test]
fn refused_connections_count_each() {
    let breaker = timeless();
    for ticket in in_flight(&breaker, 20) {
        assert_eq!(breaker.state_at(HOST, NOW), Closed);
        end_sent_at(&breaker, ticket, NotConnected, NOW, NOW + TICK);
    }
    assert_eq!(breaker.state_at(HOST, NOW + TICK), Open);
}

/// A machine without a free port, and callers whose bodies fail, show nothing about the server.
// C-7, field 07
#[test]
fn own_faults_count_for_nothing() {
    for health in [Local, Ignored] {
        for breaker in [timeless(), CircuitBreaker::counting()] {
            calls(&breaker, 100, health, NOW);
            assert_eq!(numbers(&breaker, NOW), [0, 100, 0], "{health:?}");
        }
    }
}

/// Predicates see lost connections, and replace the default for them and for faults of this machine.
// C-6, C-7
#[test]
fn predicates_see_lost_and_local() {
    let breaker = timeless().is_successful(|health| health == Lost).is_excluded(|health| health == Served);
    for health in [Lost, Local, Served] {
        call(&breaker, health, NOW).unwrap();
    }
    let counts = breaker.counts_at(HOST, NOW);
    assert_eq!((counts.total_successes, counts.total_failures, counts.total_exclusions), (1, 1, 1));
}
