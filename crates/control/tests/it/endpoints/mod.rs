//! Tests of the set of endpoints: picks, ejections, updates, and the load on a dead server.

mod ejections;
mod load;
mod model;
mod picks;
mod price;
mod rules;
mod shut;
mod tiers;
mod updates;
mod weights;

use std::time::Duration;

use reattempt_control::{EndpointEvent, EndpointSet, EndpointTicket, EndpointView, Pick, Trail};
use reattempt_core::Random;
use reattempt_core::guard::{End, Health};
use reattempt_testing::{Always, ms};

/// A random number generator (SplitMix64) with a state that can be copied, so that a model draws the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mixed(u64);

impl Random for Mixed {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Mixed {
    fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }
}

type Set = EndpointSet<()>;
type Ticket = EndpointTicket<()>;

/// Returns a set with one tier of endpoints "0", "1" and so on.
fn set_of(length: usize) -> Set {
    let set = Set::new();
    set.update((0..length).map(|number| (0, number.to_string())), |_| (), Duration::ZERO);
    set
}

fn pick(set: &Set, trail: &Trail, now: Duration, random: &mut Mixed) -> Pick<()> {
    set.pick(trail, now, random).unwrap()
}

/// Picks until the set picks the endpoint with this name. All other attempts end unsent.
fn ticket_of(set: &Set, name: &str, now: Duration) -> Ticket {
    let mut random = Mixed(now.subsec_nanos().into());
    let mut others = Vec::new();
    for _ in 0..10_000 {
        let ticket = pick(set, &Trail::new(), now, &mut random).ticket;
        if &**ticket.name() == name {
            return ticket;
        }
        // A call in flight raises the price of this other endpoint.
        others.push(ticket);
    }
    unreachable!("{name} is never picked: {set:?}")
}

fn listed(events: Option<Box<[EndpointEvent]>>) -> Vec<EndpointEvent> {
    events.map(<[_]>::into_vec).unwrap_or_default()
}

fn end_ticket(set: &Set, ticket: Ticket, end: &End, now: Duration) -> Vec<EndpointEvent> {
    listed(set.end_ticket(ticket, end, now, &mut Always(0)).events)
}

/// Sends an attempt to this endpoint and ends it with this outcome.
fn judge(set: &Set, name: &str, health: Health, now: Duration) -> Vec<EndpointEvent> {
    let ticket = ticket_of(set, name, now);
    end_ticket(set, ticket, &End::judged(health, ms(1)), now + ms(1))
}

/// Lets an endpoint fail five times in a row.
fn kill(set: &Set, name: &str, now: Duration) -> Vec<EndpointEvent> {
    (0..5).flat_map(|_| judge(set, name, Health::Failed, now)).collect()
}

fn kill_all(set: &Set, names: &[&str], now: Duration) {
    for name in names {
        kill(set, name, now);
    }
}

fn view(set: &Set, name: &str, now: Duration) -> EndpointView {
    set.view(now).into_iter().find(|view| &*view.name == name).unwrap()
}

/// Returns the names of the ejected endpoints.
fn out(set: &Set, now: Duration) -> Vec<String> {
    let views = set.view(now).into_iter();
    views.filter(|view| view.out.is_some()).map(|view| view.name.to_string()).collect()
}
