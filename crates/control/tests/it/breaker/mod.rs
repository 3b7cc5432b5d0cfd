//! Tests of the circuit breaker.

mod failing;
mod failures;
mod gobreaker;
mod lost;
mod rate;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use reattempt_control::{BreakerState, BreakerTicket, CircuitBreaker};
use reattempt_core::guard::{Admit, Arrival, End, Guard, Health, Refused};

const HOST: &str = "https://a.example";
const SECOND: Duration = Duration::from_secs(1);
const NOW: Duration = Duration::from_secs(1000);

type Noted = Arc<Mutex<Vec<(BreakerState, BreakerState)>>>;

/// Returns the rate form without a minimum time and a first open time, so that its other rules can be seen at one
/// moment.
fn timeless() -> CircuitBreaker {
    CircuitBreaker::rate().min_failing_time(Duration::ZERO).first_open_time(Duration::ZERO)
}

fn admit_to(breaker: &CircuitBreaker, host: &str, now: Duration) -> Result<BreakerTicket, Refused> {
    match breaker.admit(&Arrival::new(host, now)) {
        Admit::Admitted(ticket) => Ok(ticket),
        Admit::Refused(refused) => Err(refused),
        Admit::Waiting(_) => unreachable!("a breaker never queues"),
    }
}

fn admit(breaker: &CircuitBreaker, now: Duration) -> Result<BreakerTicket, Refused> {
    admit_to(breaker, HOST, now)
}

fn end_ticket(breaker: &CircuitBreaker, ticket: BreakerTicket, health: Health, now: Duration) {
    assert!(breaker.end_ticket(ticket, &End::judged(health, Duration::ZERO), now).is_none());
}

/// Makes a call with this outcome.
fn call(breaker: &CircuitBreaker, health: Health, now: Duration) -> Result<(), Refused> {
    admit(breaker, now).map(|ticket| end_ticket(breaker, ticket, health, now))
}

fn calls(breaker: &CircuitBreaker, number: u32, health: Health, now: Duration) {
    (0..number).for_each(|_| call(breaker, health, now).unwrap());
}

fn noting(breaker: CircuitBreaker) -> (CircuitBreaker, Noted) {
    let noted = Noted::default();
    let notes = Arc::clone(&noted);
    let note = move |change: &reattempt_control::StateChange| {
        notes.lock().unwrap().push((change.from, change.to));
    };
    (breaker.on_state_change(note), noted)
}
