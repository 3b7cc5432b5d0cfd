//! A set's endpoints with their ejections, guarded by the set's lock.
//!
//! An ejection is temporary. Ejected endpoints are taken out of service only if at most half of a set, or of its last
//! tier, are ejected. If more are ejected, all stay in service, and calls prefer those that fail less.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::Random;

use super::endpoint::{Decisive, EjectReason, Member};
use super::events::EndpointEvent;
use super::roster::{ALL, Roster, Tier};
use super::trail::EndpointId;
use super::words::Stamp;

/// The first and the longest duration of an ejection, in milliseconds.
const SHORTEST: u64 = 5_000;
const LONGEST: u64 = 30_000;
/// The time in service after which one of an endpoint's earlier ejections is forgiven, in milliseconds.
const FORGIVEN: u64 = 30_000;
/// An ejection is lengthened by up to a fifth of its time, so that clients do not return at the same time.
const SPREAD: u64 = 5;

/// A random number drawn before the lock was taken, because the generator belongs to the caller.
#[derive(Clone, Copy)]
pub(crate) struct Drawn(pub(crate) u64);

impl Random for Drawn {
    fn next_u64(&mut self) -> u64 {
        self.0
    }
}

/// A set's endpoints, sorted by tier.
pub(crate) struct Ejections<T> {
    pub(crate) records: Vec<NamedEntry<T>>,
    /// The tier that is fully in service because more than half of it is ejected.
    all_in: Option<usize>,
    /// The number of picks of endpoints that have left the set.
    pub(crate) picks_of_gone: u64,
}

/// An endpoint with its ejections. Times are in milliseconds.
pub(crate) struct NamedEntry<T> {
    pub(crate) tier: usize,
    pub(crate) member: Arc<Member<T>>,
    /// The time at which its ejection ends.
    pub(crate) until: Option<u64>,
    reason: EjectReason,
    /// `true` if it is out of service. If more than half are ejected, ejected endpoints stay in service.
    pub(crate) out: bool,
    /// `true` if less than half of its tier was in service during its ejection.
    lost: bool,
    /// The number of ejections that were not forgiven.
    strikes: u32,
    /// The time at which its last ejection ended, or 0 if there was none.
    since: u64,
}

impl<T> NamedEntry<T> {
    pub(crate) fn new(tier: usize, member: Member<T>) -> Self {
        Self {
            tier,
            member: Arc::new(member),
            until: None,
            reason: EjectReason::InARow,
            out: false,
            lost: false,
            strikes: 0,
            since: 0,
        }
    }

    /// Ends the ejection.
    fn let_in(&mut self, at: u64, well: bool) {
        (self.until, self.since, self.lost) = (None, at, false);
        self.member.endpoint().failures.let_in(well);
    }

    /// Begins an ejection.
    fn eject(&mut self, reason: EjectReason, now: u64, mut drawn: Drawn) {
        let forgiven = now.saturating_sub(self.since) / FORGIVEN;
        self.strikes = self.strikes.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX));
        // Three doublings exceed the longest duration.
        let lasts = LONGEST.min(SHORTEST << self.strikes.min(3));
        self.strikes = self.strikes.saturating_add(1);
        let spread = drawn.between(Duration::ZERO, Duration::from_millis(lasts / SPREAD));
        let spread = u64::try_from(spread.as_millis()).unwrap_or(0);
        (self.until, self.reason) = (Some(now.saturating_add(lasts + spread)), reason);
        self.member.endpoint().put_out();
    }
}

impl<T> Ejections<T> {
    pub(crate) const fn new() -> Self {
        Self { records: Vec::new(), all_in: None, picks_of_gone: 0 }
    }

    /// Ends expired ejections.
    pub(crate) fn expire(&mut self, now: u64) {
        for record in &mut self.records {
            if let Some(until) = record.until.filter(|until| *until <= now) {
                // An endpoint that stayed in service may have recovered in the meantime.
                let well = !record.out && record.member.endpoint().failures.is_low(stamp(now));
                record.let_in(until, well);
            }
        }
    }

    /// Returns `true` if this failure ejects its endpoint.
    pub(crate) fn would_eject(&mut self, id: EndpointId, failure: &Decisive, now: u64) -> bool {
        self.expire(now);
        self.record_of(id).is_some_and(|record| record.until.is_none() && record.since <= failure.sent(now))
    }

    fn record_of(&mut self, id: EndpointId) -> Option<&mut NamedEntry<T>> {
        self.records.iter_mut().find(|record| record.member.endpoint().named.id == id)
    }

    /// Ejects an endpoint, unless it is already ejected or has left the set. If an attempt was sent before an ejection,
    /// its failure has no effect after that ejection.
    pub(crate) fn eject(&mut self, id: EndpointId, failure: &Decisive, now: u64, drawn: Option<Drawn>) {
        match (self.record_of(id), drawn) {
            // The mark is set again, because another thread, or a success while more than half were ejected, may have
            // cleared it.
            (Some(record), _) if record.until.is_some() => record.member.endpoint().put_out(),
            (Some(record), Some(drawn)) if record.since <= failure.sent(now) => {
                record.eject(failure.reason, now, drawn)
            }
            _ => {}
        }
    }

    /// Decides which endpoints are out of service, and returns the others.
    pub(crate) fn update_roster(&mut self, now: u64, events: &mut Vec<EndpointEvent>) -> Roster<T> {
        let last = self.records.last().map(|record| record.tier);
        let was_all_in = self.all_in.take();
        let mut tiers = Vec::new();
        for tier in self.records.chunk_by_mut(|one, next| one.tier == next.tier) {
            let Some(number) = tier.first().map(|record| record.tier) else { continue };
            let most = if Some(number) == last { tier.len() / 2 } else { tier.len() };
            let all_in = tier.iter().filter(|record| record.until.is_some()).count() > most;
            if all_in {
                self.all_in = Some(number);
            }
            update_tier(tier, (was_all_in == Some(number), all_in), now, events);
            let in_service = tier.iter().filter(|record| !record.out);
            let members: Box<[_]> = in_service.map(|record| Arc::clone(&record.member)).collect();
            let share = share(tier, members.len());
            if !members.is_empty() {
                tiers.push(Tier { members, share, all_in });
            }
        }
        let until = self.records.iter().filter_map(|record| record.until).min().unwrap_or(u64::MAX);
        let tiered = self.records.first().map(|record| record.tier) != last;
        Roster::new(until, tiers, tiered)
    }
}

/// Returns the share of picks that a tier gets. After an outage of most of the tier, this is the part of it that is in
/// service.
fn share<T>(tier: &mut [NamedEntry<T>], in_service: usize) -> u64 {
    let length = tier.len();
    let mut out = tier.iter_mut().filter(|record| record.out);
    if in_service < length.div_ceil(2) {
        out.for_each(|record| record.lost = true);
    } else if !out.any(|record| record.lost) {
        return ALL;
    }
    ALL * in_service as u64 / length as u64
}

/// Updates a tier that is, or was, fully in service because more than half of it is ejected.
fn update_tier<T>(
    tier: &mut [NamedEntry<T>],
    (was_all_in, all_in): (bool, bool),
    now: u64,
    events: &mut Vec<EndpointEvent>,
) {
    let number = tier.first().map_or(0, |record| record.tier);
    if was_all_in != all_in {
        events.push(match all_in {
            true => EndpointEvent::MajorityFailing { tier: number },
            false => EndpointEvent::MajorityWell { tier: number },
        });
    }
    for record in tier {
        // Endpoints that have recovered while all were in service stay in service.
        let well = || record.member.endpoint().failures.is_low(stamp(now));
        if was_all_in && !all_in && record.until.is_some() && well() {
            record.let_in(now, true);
        }
        let was_out = std::mem::replace(&mut record.out, record.until.is_some() && !all_in);
        let name = || Arc::clone(&record.member.endpoint().named.name);
        match (was_out, record.out, record.until) {
            (false, true, Some(until)) => events.push(EndpointEvent::Ejected {
                name: name(),
                reason: record.reason,
                lasts: Duration::from_millis(until.saturating_sub(now)),
            }),
            (true, false, _) => events.push(EndpointEvent::Returned { name: name() }),
            _ => {}
        }
    }
}

/// Converts a time to the stamp stored in an endpoint's words.
#[allow(clippy::cast_possible_truncation, reason = "it is modulo 2³² by design")]
#[inline]
pub(crate) const fn stamp(now: u64) -> Stamp {
    now as Stamp
}
