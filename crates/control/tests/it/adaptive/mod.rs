//! Tests of the adaptive limit.

mod failures;
mod rules;

use std::time::Duration;

use reattempt_control::{AdaptiveLimit, LimitRule};
use reattempt_core::guard::{End, Guard, Health};

use crate::guards::{HOST, NOW, admit};

fn limit_of<R: LimitRule>(limit: &AdaptiveLimit<R>) -> u32 {
    limit.usage_at(HOST, NOW).limit
}

/// A server with a fixed number of places, in which each call takes a fixed time.
struct Server {
    places: f64,
    time: Duration,
    /// Calls beyond this number are dropped.
    most: usize,
}

impl Server {
    const fn new(places: u32, millis: u64) -> Self {
        Self { places: places as f64, time: Duration::from_millis(millis), most: usize::MAX }
    }

    /// Sends up to `load` concurrent calls for this many seconds. Returns the time at the end.
    fn serve<R: LimitRule>(&self, limit: &AdaptiveLimit<R>, load: usize, mut now: Duration, seconds: u64) -> Duration {
        let end = now + Duration::from_secs(seconds);
        while now < end {
            let tickets: Vec<_> = (0..load).map_while(|_| admit(limit, now).ok()).collect();
            // Calls beyond the server's places queue in the server.
            let queued = (tickets.len().min(self.most) as f64 / self.places).max(1.0);
            let latency = self.time.mul_f64(queued);
            now += latency;
            for (number, ticket) in tickets.into_iter().enumerate() {
                let health = if number < self.most { Health::Served } else { Health::Overloaded };
                end_call(limit, ticket, &End::judged(health, latency), now);
            }
        }
        now
    }
}

fn end_call<G: Guard>(guard: &G, ticket: G::Ticket, end: &End, now: Duration) {
    if let Some(ticket) = guard.end_ticket(ticket, end, now) {
        let over = End::Over(reattempt_core::guard::BodyEnd::Complete);
        assert!(guard.end_ticket(ticket, &over, now).is_none());
    }
}

/// Sends `number` calls one after the other, with this outcome and latency.
fn calls<R: LimitRule>(limit: &AdaptiveLimit<R>, number: u32, end: &End, now: Duration) {
    for _ in 0..number {
        end_call(limit, admit(limit, now).unwrap(), end, now);
    }
}
