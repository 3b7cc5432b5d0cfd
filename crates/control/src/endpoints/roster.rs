//! The endpoints that are in service, and the pick among them.

use std::sync::Arc;

use reattempt_core::Random;

use super::endpoint::Member;
use super::trail::{EndpointId, TierId, Trail};
use super::words::Stamp;

/// All picks, as a [`Tier::share`].
pub(crate) const ALL: u64 = 1 << 32;

/// The numbers of members that are drawn, and then taken from the list, until one is not silent.
const MORE_DRAWS: usize = 4;
const MOST_STEPS: usize = 16;

/// The number of endpoints of a tier that a call tries before it goes to the next tier (T-1).
const MOST_PER_TIER: usize = 2;

/// The part of a tier that is in service, without or with its reserve. They have the same id.
pub(crate) struct Tier<T> {
    pub(crate) id: TierId,
    /// The members in service. Never empty.
    pub(crate) members: Box<[Arc<Member<T>>]>,
    /// The others.
    pub(crate) out: Box<[EndpointId]>,
    /// The share, in parts of [`ALL`], that this tier takes of the picks that reach it. The last tier takes all.
    pub(crate) share: u64,
    /// The places of the members that picks are drawn from, unless all members have the same weight.
    pub(crate) slots: Option<Box<[u32]>>,
    /// `true` if more than half of the tier is ejected and therefore stays in service.
    pub(crate) all_in: bool,
}

/// The endpoints in service. The roster is replaced when one is ejected or returns, so a pick never sees an ejected
/// endpoint.
pub(crate) struct Roster<T> {
    /// The next time at which an ejection ends, in milliseconds.
    pub(crate) until: u64,
    tiers: Box<[Tier<T>]>,
    length: usize,
    /// `true` if the first tier gets only a part of the picks.
    splits: bool,
    /// `true` if a first attempt is sent to the first tier, whose members all have the same weight.
    is_plain: bool,
    /// `true` if the set has more than one tier, in service or not, and they share no state.
    tiered: bool,
}

/// A picked member.
pub(crate) struct Picked<'a, T> {
    pub(crate) member: &'a Member<T>,
    /// `true` if the call could try yet another endpoint in service.
    pub(crate) elsewhere: bool,
    pub(crate) tier: Option<PickedTier>,
}

/// The tier of a picked endpoint, in a set with more than one tier.
///
/// Tiers share no state, so a request that one tier has processed may be unknown to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PickedTier {
    /// The tier.
    pub id: TierId,
    /// `true` if the call can still try another endpoint of this tier that is in service.
    pub elsewhere: bool,
}

impl<T> Roster<T> {
    pub(crate) fn new(until: u64, tiers: Vec<Tier<T>>, tiered: bool) -> Self {
        let length = tiers.iter().map(|tier| tier.members.len()).sum();
        let splits = matches!(&tiers[..], [first, _, ..] if first.share < ALL);
        let is_plain = !splits && tiers.first().is_some_and(|first| first.slots.is_none());
        Self { until, tiers: tiers.into(), length, splits, is_plain, tiered }
    }

    #[inline]
    pub(crate) fn is_tiered(&self) -> bool {
        self.tiered
    }

    /// Picks an endpoint for a call. Returns `None` if the set is empty, or if the call must stay in a tier of which no
    /// endpoint is in service.
    #[inline]
    pub(crate) fn pick<R: Random + ?Sized>(&self, trail: &Trail, now: Stamp, random: &mut R) -> Option<Picked<'_, T>> {
        let is_first = trail.is_new() && self.is_plain;
        let (tier, member) = match self.tiers.first() {
            Some(tier) if is_first => {
                (tier, tier.checked(plain(&tier.members, trail, now, random)?, trail, now, random))
            }
            _ => self.next(trail, now, random)?,
        };
        let (tried, id) = (trail.ids().len() + 1, member.endpoint().named.id);
        if self.tiered {
            return Some(self.tiered(member, tier, trail));
        }
        let elsewhere = self.length > tried || self.tiers.iter().any(|tier| tier.has_another(trail, id));
        Some(Picked { member, elsewhere, tier: None })
    }

    /// Returns the pick of an endpoint in a set with several tiers.
    fn tiered<'a>(&self, member: &'a Member<T>, tier: &Tier<T>, trail: &Trail) -> Picked<'a, T> {
        let id = member.endpoint().named.id;
        let mut own = self.tiers.iter().filter(|other| other.id == tier.id);
        let within = own.any(|tier| tier.has_another(trail, id));
        let is_left = || self.tiers.iter().any(|tier| tier.has_another(trail, id));
        let elsewhere = within || (trail.tier().is_none() && is_left());
        Picked { member, elsewhere, tier: Some(PickedTier { id: tier.id, elsewhere: within }) }
    }

    /// Picks for a call that has tried an endpoint, while tiers share the picks, or in a tier with weights.
    ///
    /// The first tier with an untried endpoint is used, but a call that has tried two of a tier goes to the next one,
    /// because the others may be down as well (T-1). If the call has tried all endpoints, the cheapest of the first
    /// tier is picked.
    #[cold]
    fn next<R: Random + ?Sized>(&self, trail: &Trail, now: Stamp, random: &mut R) -> Option<(&Tier<T>, &Member<T>)> {
        if let Some(id) = trail.tier() {
            let mut own = self.tiers.iter().filter(|tier| tier.id == id).peekable();
            let first = *own.peek()?;
            let drawn = own.find_map(|tier| tier.drawn(trail, now, random).map(|member| (tier, member)));
            return drawn.or_else(|| Some((first, first.cheapest(now)?)));
        }
        let (last, earlier) = self.tiers.split_last()?;
        if self.splits
            && let Some(spilled) = self.spilled(trail, now, random)
        {
            return Some(spilled);
        }
        let fresh = earlier.iter().filter(|tier| tier.tried(trail) < MOST_PER_TIER).chain([last]);
        for tier in fresh.chain(earlier) {
            if let Some(member) = tier.drawn(trail, now, random) {
                return Some((tier, member));
            }
        }
        let first = self.tiers.first()?;
        Some((first, first.cheapest(now)?))
    }

    /// Draws the tier for a pick, and an endpoint in it. Returns `None` for the first tier, and instead of a failing
    /// endpoint.
    fn spilled<R: Random + ?Sized>(&self, trail: &Trail, now: Stamp, random: &mut R) -> Option<(&Tier<T>, &Member<T>)> {
        let mut stops = |tier: &Tier<T>| tier.share == ALL || random.next_u64() >> 32 < tier.share;
        let place = self.tiers.iter().position(&mut stops).unwrap_or(self.tiers.len() - 1);
        if place == 0 {
            return None;
        }
        let tier = self.tiers.get(place)?;
        let picked = tier.drawn(trail, now, random);
        picked.filter(|picked| picked.endpoint().failures.is_low(now)).map(|picked| (tier, picked))
    }
}

impl<T> Tier<T> {
    /// Returns the number of the tier's endpoints that the call has tried, in service or not.
    fn tried(&self, trail: &Trail) -> usize {
        if trail.ids().is_empty() {
            return 0;
        }
        let members = self.members.iter().map(|member| member.endpoint().named.id);
        members.chain(self.out.iter().copied()).filter(|id| trail.contains(*id)).count()
    }

    /// Returns `true` if there is a member that is neither tried nor picked.
    fn has_another(&self, trail: &Trail, picked: EndpointId) -> bool {
        let mut members = self.members.iter().map(|member| member.endpoint().named.id);
        members.any(|id| id != picked && !trail.contains(id))
    }

    fn cheapest(&self, now: Stamp) -> Option<&Member<T>> {
        let members = self.members.iter().map(|member| &**member);
        members.reduce(|best, next| if self.is_cheaper(next, best, now) { next } else { best })
    }

    fn is_cheaper(&self, one: &Member<T>, other: &Member<T>, now: Stamp) -> bool {
        one.is_cheaper(other, self.slots.is_some(), now)
    }

    fn drawn<R: Random + ?Sized>(&self, trail: &Trail, now: Stamp, random: &mut R) -> Option<&Member<T>> {
        let picked = self.pair(trail, now, random)?;
        Some(self.checked(picked, trail, now, random))
    }

    /// Returns the cheaper of two random untried members.
    fn pair<R: Random + ?Sized>(&self, trail: &Trail, now: Stamp, random: &mut R) -> Option<&Member<T>> {
        match &self.slots {
            None => plain(&self.members, trail, now, random),
            Some(slots) => weighted(&self.members, slots, trail, now, random),
        }
    }

    /// Returns the cheaper one of a pair. If it fails often, the other one may be no better, so another pair is drawn.
    /// While most members are failing, this holds for every pick.
    #[inline]
    fn checked<'a, R: Random + ?Sized>(
        &'a self,
        picked: &'a Member<T>,
        trail: &Trail,
        now: Stamp,
        random: &mut R,
    ) -> &'a Member<T> {
        let is_bad = self.all_in || picked.endpoint().failures.is_high(now);
        if is_bad { self.again(picked, trail, now, random) } else { picked }
    }

    #[cold]
    fn again<'a, R: Random + ?Sized>(
        &'a self,
        picked: &'a Member<T>,
        trail: &Trail,
        now: Stamp,
        random: &mut R,
    ) -> &'a Member<T> {
        let second = self.pair(trail, now, random);
        second.filter(|second| self.is_cheaper(second, picked, now)).unwrap_or(picked)
    }
}

/// Returns the cheaper of two random untried members, which have the same weight.
///
/// If a drawn member was already tried, the next one in the list is used, so each draw takes at most sixteen steps.
// A function call would make a pick 10 % slower.
#[inline(always)]
fn plain<'a, T, R: Random + ?Sized>(
    members: &'a [Arc<Member<T>>],
    trail: &Trail,
    now: Stamp,
    random: &mut R,
) -> Option<&'a Member<T>> {
    let (bits, length) = (random.next_u64(), members.len());
    let (place, first) = next_of(members, scaled(bits >> 32, length), |id| trail.contains(id))?;
    // The second draw is among the others.
    let start = place + 1 + scaled(bits & 0xffff_ffff, length - 1);
    let start = if start < length { start } else { start - length };
    let own = first.endpoint().named.id;
    let Some((_, second)) = next_of(members, start, |id| id == own || trail.contains(id)) else { return Some(first) };
    match second.latencies(first, now) {
        Some(latencies) if second.has_lower_price(first, latencies, second.loads(first, false), now) => Some(second),
        Some(_) => Some(first),
        None => Some(measured(members, (first, second), false, trail, now, random)),
    }
}

/// Returns the cheaper of two random untried members, which are drawn by their weights. Both are drawn from all:
/// without the first, the second would mostly be one with a small weight (W-1).
fn weighted<'a, T, R: Random + ?Sized>(
    members: &'a [Arc<Member<T>>],
    slots: &[u32],
    trail: &Trail,
    now: Stamp,
    random: &mut R,
) -> Option<&'a Member<T>> {
    let (bits, length) = (random.next_u64(), slots.len());
    let untried = |start: usize| {
        let (before, after) = slots.split_at_checked(start)?;
        let mut from = after.iter().chain(before).filter_map(|place| members.get(*place as usize));
        from.find(|member| !trail.contains(member.endpoint().named.id))
    };
    let (first, second) = (untried(scaled(bits >> 32, length))?, untried(scaled(bits & 0xffff_ffff, length))?);
    match second.latencies(first, now) {
        Some(latencies) if second.has_lower_price(first, latencies, second.loads(first, true), now) => Some(second),
        Some(_) => Some(first),
        None => Some(measured(members, (first, second), true, trail, now, random)),
    }
}

/// Returns one of a pair with an unknown latency. If both are silent, neither may ever answer. Further members are then
/// drawn, and finally those in the list, until one is not silent (P-7).
#[cold]
fn measured<'a, T, R: Random + ?Sized>(
    members: &'a [Arc<Member<T>>],
    (first, second): (&'a Member<T>, &'a Member<T>),
    weighted: bool,
    trail: &Trail,
    now: Stamp,
    random: &mut R,
) -> &'a Member<T> {
    let picked = if second.is_cheaper(first, weighted, now) { second } else { first };
    if !(first.is_silent(now) && second.is_silent(now)) {
        return picked;
    }
    let is_tried = |id| trail.contains(id);
    let mut drawn = || next_of(members, scaled(random.next_u64() >> 32, members.len()), is_tried);
    let mut last = 0;
    for _ in 0..MORE_DRAWS {
        match drawn() {
            Some((_, other)) if !other.is_silent(now) => return other,
            other => last = other.map_or(0, |(place, _)| place),
        }
    }
    let (before, after) = members.split_at(last);
    let mut others = after.iter().chain(before).take(MOST_STEPS);
    let other = others.find(|other| !other.is_silent(now) && !is_tried(other.endpoint().named.id));
    other.map_or(picked, |other| other)
}

/// Scales 32 random bits to a number below `bound`, or to 0 if `bound` is 0.
#[inline]
fn scaled(bits: u64, bound: usize) -> usize {
    usize::try_from((bits * bound as u64) >> 32).unwrap_or(0)
}

/// Returns the first member from `start` on that is not excluded, with its place.
#[inline]
fn next_of<T>(
    members: &[Arc<Member<T>>],
    start: usize,
    excluded: impl Fn(EndpointId) -> bool,
) -> Option<(usize, &Member<T>)> {
    match members.get(start) {
        Some(member) if !excluded(member.endpoint().named.id) => Some((start, member)),
        _ => next_after(members, start, excluded),
    }
}

#[cold]
fn next_after<T>(
    members: &[Arc<Member<T>>],
    start: usize,
    excluded: impl Fn(EndpointId) -> bool,
) -> Option<(usize, &Member<T>)> {
    let (before, after) = members.split_at_checked(start)?;
    let mut from = (start..).zip(after).chain((0..).zip(before));
    from.find(|(_, member)| !excluded(member.endpoint().named.id)).map(|(place, member)| (place, &**member))
}
