//! A set's endpoints with their ejections, guarded by the set's lock.
//!
//! An ejection is temporary. An endpoint that fails is taken out of service only if at most half of a set, or of its
//! last tier, fail, or the share that the rules say. If more fail, all stay in service, and calls prefer those that
//! fail less. An endpoint that accepts no connection, or has asked for a wait, can serve nothing. It is out whatever
//! the others do, unless all are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::ejection_rules::EjectionRules;
use super::endpoint::{Decisive, EjectReason, IDLE, Member};
use super::events::EndpointEvent;
use super::place::Place;
use super::roster::{ALL, Roster, Tier};
use super::series::{Drawn, Series};
use super::slots::Weights;
use super::trail::{EndpointId, TierId};
use super::words::Stamp;
use crate::millionths::MILLION;
use crate::sync::Ordering;

/// The longest wait that an endpoint may ask for, in milliseconds. It is that of
/// [`Limits::max_server_delay`](reattempt_core::Limits).
const LONGEST_WAIT: u64 = 60_000;

/// The rules that users set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SetRules {
    pub(crate) ejection: EjectionRules,
    /// The share of the calls for the next tier, in millionths (W-3).
    pub(crate) spill: Option<u64>,
    pub(crate) share_state: bool,
}

/// A set's endpoints, sorted by tier, and behind those of a tier its reserve.
pub(crate) struct Ejections<T> {
    /// The set's number in the ids of its tiers.
    set: u32,
    pub(crate) records: Vec<MemberRecord<T>>,
    /// The tier of which failing endpoints are in service, because all or most of it is ejected.
    all_in: Option<usize>,
    /// The number of picks of endpoints that have left the set.
    pub(crate) picks_of_gone: u64,
}

/// An endpoint with its ejections. Times are in milliseconds.
pub(crate) struct MemberRecord<T> {
    pub(crate) place: Place,
    pub(crate) member: Arc<Member<T>>,
    /// The ejections for failures, and the reason of the last one.
    failing: Series,
    reason: EjectReason,
    /// The ejections for refused connections.
    unreachable: Series,
    /// `true` if it returned from such an ejection without a success.
    on_trial: bool,
    /// The time until which it asked its clients to wait.
    asked: Option<u64>,
    /// `true` if it is out of service. If all or most are ejected, ejected endpoints stay in service.
    pub(crate) out: bool,
    /// `true` if less than half of its tier was in service while it was out.
    lost: bool,
}

/// New endpoints by name, or `None` for a name without a service.
pub(crate) type Made<'a, T> = HashMap<&'a Arc<str>, Option<MemberRecord<T>>>;

/// Returns the name of an endpoint.
pub(crate) fn name_of<T>(record: &MemberRecord<T>) -> Arc<str> {
    Arc::clone(&record.member.endpoint().named.name)
}

/// The endpoints of a tier that stay in service although they are ejected.
#[derive(Clone, Copy, Default)]
struct Kept {
    all: bool,
    failing: bool,
    unreachable: bool,
}

impl<T> MemberRecord<T> {
    pub(crate) fn new(place: Place, rules: &EjectionRules, member: Member<T>) -> Self {
        Self {
            place,
            member: Arc::new(member),
            failing: Series::of(rules.lasts.0, rules.lasts.1),
            reason: EjectReason::InARow,
            unreachable: Series::UNREACHABLE,
            on_trial: false,
            asked: None,
            out: false,
            lost: false,
        }
    }

    /// Returns the time at which it returns, and the reason for its ejection.
    pub(crate) fn ejected(&self) -> Option<(u64, EjectReason)> {
        let unreachable = self.unreachable.until.map(|until| (until, EjectReason::NoConnection));
        let asked = self.asked.map(|until| (until, EjectReason::Asked));
        let failing = self.failing.until.map(|until| (until, self.reason));
        let (_, reason) = unreachable.or(asked).or(failing)?;
        let until = [unreachable, asked, failing].into_iter().flatten().map(|(until, _)| until).max();
        until.map(|until| (until, reason))
    }

    /// Returns `true` if it can serve nothing, so that its ejection does not depend on the other endpoints.
    fn is_shut(&self) -> bool {
        self.unreachable.until.is_some() || self.asked.is_some()
    }

    /// Returns `true` if it returned from an ejection for refused connections, and has served nothing since.
    fn is_unproven(&self) -> bool {
        self.on_trial && self.member.endpoint().failures.is_on_trial()
    }

    fn is_out(&self, kept: Kept) -> bool {
        let shut = self.asked.is_some() || (self.unreachable.until.is_some() && !kept.unreachable);
        !kept.all && (shut || (self.failing.until.is_some() && !kept.failing))
    }

    /// Ends the ejection for failures.
    fn let_in(&mut self, at: u64, well: bool) {
        self.failing.end(at);
        self.member.endpoint().failures.let_in(well);
    }

    /// Ends expired ejections.
    fn expire(&mut self, now: u64) {
        let failures = &self.member.endpoint().failures;
        if let Some(until) = self.unreachable.until {
            if self.out {
                // A success in the meantime used a connection that was opened before.
                failures.mark_unreachable();
            }
            if !failures.is_unreachable() {
                // It was in service because all were ejected, and has served a call.
                self.unreachable.end(now);
            } else if until <= now {
                self.unreachable.end(until);
                self.on_trial = true;
                failures.try_again();
            }
        }
        if let Some(until) = self.failing.until.filter(|until| *until <= now) {
            // An endpoint that stayed in service may have recovered in the meantime.
            let well = !self.out && failures.was_low();
            self.let_in(until, well);
        }
        self.asked = self.asked.filter(|until| *until > now);
    }

    /// Returns the effect of a failure. If it prolongs the wait that the endpoint asked for, that is recorded here.
    fn effect_of(&mut self, failure: &Decisive, now: u64) -> Effect {
        let ejects = failure.reason.is_some_and(|reason| {
            let series = self.series(reason);
            series.until.is_none() && series.since <= failure.sent(now)
        });
        match (failure.wait, &mut self.asked) {
            (Some(_), None) => Effect::Ejects,
            (Some(wait), Some(until)) => {
                *until = (*until).max(end_of(wait, now));
                if ejects { Effect::Ejects } else { Effect::None }
            }
            (None, _) if ejects => Effect::Ejects,
            (None, _) => Effect::Marks,
        }
    }

    fn series(&mut self, reason: EjectReason) -> &mut Series {
        match reason {
            EjectReason::NoConnection => &mut self.unreachable,
            _ => &mut self.failing,
        }
    }

    /// Ejects the endpoint. If an attempt was sent before an earlier ejection ended, its failure has no effect.
    fn eject(&mut self, failure: &Decisive, now: u64, drawn: Option<Drawn>) {
        if let Some(reason) = failure.reason {
            let sent = failure.sent(now);
            let series = self.series(reason);
            let is_ejected = series.until.is_some() || drawn.is_some_and(|drawn| series.begin(sent, now, drawn));
            self.on_trial &= !is_ejected;
            // The mark is set again, because another thread, or a success while all were in service, may have cleared
            // it.
            match reason {
                _ if !is_ejected => {}
                EjectReason::NoConnection => self.member.endpoint().failures.mark_unreachable(),
                reason => {
                    self.reason = reason;
                    self.member.endpoint().put_out();
                }
            }
        }
        if let (Some(wait), Some(drawn)) = (failure.wait, drawn)
            && self.asked.is_none()
        {
            let end = end_of(wait, now);
            self.asked = Some(end.saturating_add(drawn.spread(end.saturating_sub(now))));
        }
    }
}

/// The effect of a failure on its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    /// It is ejected already, or the failure is too late.
    Marks,
    Ejects,
}

/// Returns the end of a wait. A fraction of a millisecond counts as a whole one.
fn end_of(wait: Duration, now: u64) -> u64 {
    let wait = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    now.saturating_add(wait.min(LONGEST_WAIT))
}

impl<T> Ejections<T> {
    pub(crate) fn new() -> Self {
        Self { set: TierId::next_set(), records: Vec::new(), all_in: None, picks_of_gone: 0 }
    }

    /// Replaces the endpoints with the wanted ones, by tier and name. A known endpoint stays, unless it is among the
    /// `replaced`. Returns the endpoints that have left.
    pub(crate) fn replace(
        &mut self,
        wanted: &[(Place, Arc<str>)],
        replaced: &HashSet<&Arc<str>>,
        made: &mut Made<'_, T>,
    ) -> Vec<MemberRecord<T>> {
        let mut old: HashMap<_, _> = self.records.drain(..).map(|record| (name_of(&record), record)).collect();
        self.records.extend(wanted.iter().filter_map(|(place, name)| {
            let mut new = || made.get_mut(name).and_then(Option::take);
            let first = if replaced.contains(name) { new() } else { old.remove(name) };
            let mut record = first.or_else(new).or_else(|| old.remove(name))?;
            record.place = *place;
            Some(record)
        }));
        let picks = old.values().map(|record| record.member.endpoint().picks.load(Ordering::Relaxed));
        self.picks_of_gone += picks.sum::<u64>();
        old.into_values().collect()
    }

    /// Ends expired ejections.
    pub(crate) fn expire(&mut self, now: u64) {
        self.records.iter_mut().for_each(|record| record.expire(now));
    }

    /// Returns the effect of this failure on its endpoint.
    pub(crate) fn effect_of(&mut self, id: EndpointId, failure: &Decisive, now: u64) -> Effect {
        self.expire(now);
        self.record_of(id).map_or(Effect::None, |record| record.effect_of(failure, now))
    }

    fn record_of(&mut self, id: EndpointId) -> Option<&mut MemberRecord<T>> {
        self.records.iter_mut().find(|record| record.member.endpoint().named.id == id)
    }

    /// Ejects an endpoint, unless it is already ejected or has left the set.
    pub(crate) fn eject(&mut self, id: EndpointId, failure: &Decisive, now: u64, drawn: Option<Drawn>) {
        if let Some(record) = self.record_of(id) {
            record.eject(failure, now, drawn);
        }
    }

    /// Decides which endpoints are out of service, and returns the others.
    pub(crate) fn update_roster(&mut self, now: u64, rules: SetRules, events: &mut Vec<EndpointEvent>) -> Roster<T> {
        let last = self.records.last().map(|record| record.place.tier);
        let was_all_in = self.all_in.take();
        let mut tiers = Vec::new();
        for tier in self.records.chunk_by_mut(|one, next| one.place.tier == next.place.tier) {
            let Some(number) = tier.first().map(|record| record.place.tier) else { continue };
            let is_last = Some(number) == last;
            let id = TierId::new(self.set, u32::try_from(number).unwrap_or(u32::MAX));
            let split = tier.partition_point(|record| record.place.weight > 0);
            // A tier of reserves only is a tier like any other.
            let (main, reserve) = tier.split_at_mut(if split > 0 { split } else { tier.len() });
            let has_reserve = reserve.iter().any(|record| !record.is_out(Kept::default()));
            let kept = if is_last { kept(main, has_reserve, rules.ejection.at_most) } else { Kept::default() };
            let all_in = kept.all || kept.failing || kept.unreachable;
            if all_in {
                self.all_in = Some(number);
            }
            update_part(main, (was_all_in == Some(number), all_in), kept, now, events);
            update_part(reserve, (false, false), Kept::default(), now, events);
            let healthy = healthy_share(main, rules);
            let spill = rules.spill.filter(|_| !is_last).map_or(0, |spill| ALL * spill / MILLION);
            // The reserve gets the calls of what is out of service, but not those that spill over in any case.
            let of_reserve = if healthy < ALL { healthy_share(reserve, rules) } else { 0 };
            tiers.extend(part_in_service(main, id, healthy.min(ALL - spill), all_in));
            tiers.extend(part_in_service(reserve, id, of_reserve, false));
        }
        let times = |record: &MemberRecord<T>| [record.failing.until, record.unreachable.until, record.asked];
        let until = self.records.iter().flat_map(times).flatten().min().unwrap_or(u64::MAX);
        let tiered = !rules.share_state && self.records.first().map(|record| record.place.tier) != last;
        Roster::new(until, tiers, tiered)
    }
}

/// Returns the part of a tier that is in service, if any is.
fn part_in_service<T>(records: &[MemberRecord<T>], id: TierId, share: u64, all_in: bool) -> Option<Tier<T>> {
    let in_service = || records.iter().filter(|record| !record.out);
    let members: Box<[_]> = in_service().map(|record| Arc::clone(&record.member)).collect();
    let weights = Weights::of(in_service().map(|record| record.place.weight));
    if let Some(weights) = &weights {
        members.iter().zip(weights.ratios(IDLE)).for_each(|(member, ratio)| member.set_call(ratio));
    }
    let out = records.iter().filter(|record| record.out).map(|record| record.member.endpoint().named.id).collect();
    let slots = weights.map(|weights| weights.slots());
    (!members.is_empty()).then_some(Tier { id, members, out, share, slots, all_in })
}

/// Returns the ejected endpoints of the last tier that stay in service.
///
/// Failing ones stay if they are all or more than this share, in millionths, of those that can serve at all. If none
/// can, all stay, unless an endpoint of the reserve is in service. If the others have all returned without a success so
/// far, unreachable ones stay too: each may be the first to accept a connection again, and the first one to return
/// would otherwise get the calls of all.
fn kept<T>(tier: &[MemberRecord<T>], has_reserve: bool, at_most: u64) -> Kept {
    let open = || tier.iter().filter(|record| !record.is_shut());
    let (length, failing) = (open().count(), open().filter(|record| record.failing.until.is_some()).count());
    Kept {
        all: length == 0 && !has_reserve,
        failing: failing > 0 && (failing == length || failing as u64 * MILLION > at_most * length as u64),
        unreachable: length > 0 && open().all(MemberRecord::is_unproven),
    }
}

/// Returns the share of picks that a part of a tier gets because of its health. After an outage of most of it, this is
/// the part of it that is in service. If calls spill over, it is at most 1.4 times that (W-3).
fn healthy_share<T>(records: &mut [MemberRecord<T>], rules: SetRules) -> u64 {
    let length = records.len() as u64;
    let mut out: Vec<_> = records.iter_mut().filter(|record| record.out).collect();
    let in_service = length - out.len() as u64;
    if in_service < length.div_ceil(2) {
        out.iter_mut().for_each(|record| record.lost = true);
    }
    match (out.iter().any(|record| record.lost), rules.spill) {
        (true, _) => ALL * in_service / length,
        (false, Some(_)) if length > 0 => (ALL * 14 * in_service / (10 * length)).min(ALL),
        _ => ALL,
    }
}

/// Updates a part of a tier, of which ejected endpoints may be in service, or may have been until now.
fn update_part<T>(
    tier: &mut [MemberRecord<T>],
    (was_all_in, all_in): (bool, bool),
    kept: Kept,
    now: u64,
    events: &mut Vec<EndpointEvent>,
) {
    let number = tier.first().map_or(0, |record| record.place.tier);
    if was_all_in != all_in {
        events.push(match all_in {
            true => EndpointEvent::MajorityFailing { tier: number },
            false => EndpointEvent::MajorityWell { tier: number },
        });
    }
    for record in tier {
        // Endpoints that have recovered while all were in service stay in service.
        let well = || record.member.endpoint().failures.was_low();
        if was_all_in && !all_in && record.failing.until.is_some() && well() {
            record.let_in(now, true);
        }
        let is_out = record.is_out(kept);
        let was_out = std::mem::replace(&mut record.out, is_out);
        record.lost &= record.out;
        let name = || Arc::clone(&record.member.endpoint().named.name);
        match (was_out, record.out, record.ejected()) {
            (false, true, Some((until, reason))) => events.push(EndpointEvent::Ejected {
                name: name(),
                reason,
                lasts: Duration::from_millis(until.saturating_sub(now)),
            }),
            (true, false, ejected) => {
                if ejected.is_none() {
                    record.member.forget(stamp(now));
                }
                events.push(EndpointEvent::Returned { name: name() });
            }
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
