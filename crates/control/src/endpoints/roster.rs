//! The endpoints in service at one time, and the pick among them.

use std::sync::Arc;

use reattempt_core::Random;

use super::endpoint::Member;
use super::trail::{EndpointId, Trail};
use super::words::Stamp;

/// The members of one tier that are in service.
pub(crate) type Tier<T> = Box<[Arc<Member<T>>]>;

/// The endpoints in service. The roster is replaced when one is ejected or returns, so a pick never sees an ejected
/// endpoint.
pub(crate) struct Roster<T> {
    /// The next time at which an ejection ends, in milliseconds.
    pub(crate) until: u64,
    /// The members in service, by tier. No tier is empty.
    tiers: Box<[Tier<T>]>,
    length: usize,
    /// `true` if more than half of the last tier is ejected and therefore stays in service.
    all_in: bool,
    /// `true` if the set has more than one tier, whether or not all of them are in service.
    pub(crate) tiered: bool,
}

impl<T> Roster<T> {
    pub(crate) fn new(until: u64, tiers: Vec<Tier<T>>, all_in: bool, tiered: bool) -> Self {
        let length = tiers.iter().map(|tier| tier.len()).sum();
        Self { until, tiers: tiers.into(), length, all_in, tiered }
    }

    /// Picks an endpoint for a call, in the first tier with one that the call has not tried. If it has tried all of
    /// them, picks the cheapest of the first tier.
    ///
    /// Also returns `true` if yet another endpoint that the call has not tried is in service.
    #[inline]
    pub(crate) fn pick<R: Random + ?Sized>(
        &self,
        trail: &Trail,
        now: Stamp,
        random: &mut R,
    ) -> Option<(&Member<T>, bool)> {
        let first = self.tiers.first()?;
        let picked = match drawn(first, trail, now, random) {
            Some(picked) if self.all_in => self.again(picked, trail, now, random),
            Some(picked) => picked,
            None => self.beyond(trail, now, random)?,
        };
        let tried = trail.ids().len() + 1;
        Some((picked, self.length > tried || self.has_another(trail, picked.endpoint().named.id)))
    }

    /// Draws another pair, because both of the first may be among the failing majority.
    #[cold]
    fn again<'a, R: Random + ?Sized>(
        &'a self,
        picked: &'a Member<T>,
        trail: &Trail,
        now: Stamp,
        random: &mut R,
    ) -> &'a Member<T> {
        let second = self.tiers.first().and_then(|tier| drawn(tier, trail, now, random));
        second.filter(|second| second.is_cheaper(picked, now)).unwrap_or(picked)
    }

    /// Picks for a call that has tried the whole first tier, which then is at most as long as a trail.
    #[cold]
    fn beyond<R: Random + ?Sized>(&self, trail: &Trail, now: Stamp, random: &mut R) -> Option<&Member<T>> {
        let (first, later) = self.tiers.split_first()?;
        let mut later = later.iter();
        later.find_map(|tier| drawn(tier, trail, now, random)).or_else(|| {
            let members = first.iter().map(|member| &**member);
            members.reduce(|best, next| if next.is_cheaper(best, now) { next } else { best })
        })
    }

    /// Returns `true` if there is an endpoint that is neither tried nor picked.
    fn has_another(&self, trail: &Trail, picked: EndpointId) -> bool {
        let mut members = self.tiers.iter().flatten().map(|member| member.endpoint().named.id);
        members.any(|id| id != picked && !trail.contains(id))
    }
}

/// Returns the cheaper of two random members that were not tried.
///
/// If a drawn member was tried, the next one in the list is taken, so each draw takes at most eight steps.
#[inline]
fn drawn<'a, T, R: Random + ?Sized>(
    members: &'a [Arc<Member<T>>],
    trail: &Trail,
    now: Stamp,
    random: &mut R,
) -> Option<&'a Member<T>> {
    let bits = random.next_u64();
    let first = next_of(members, bits >> 32, |id| trail.contains(id))?;
    let own = first.endpoint().named.id;
    let second = next_of(members, bits & 0xffff_ffff, |id| id == own || trail.contains(id));
    Some(second.filter(|second| second.is_cheaper(first, now)).unwrap_or(first))
}

/// Returns the first member that is not excluded, starting at a place that `bits` selects.
#[inline]
fn next_of<T>(members: &[Arc<Member<T>>], bits: u64, excluded: impl Fn(EndpointId) -> bool) -> Option<&Member<T>> {
    let start = usize::try_from((bits * members.len() as u64) >> 32).unwrap_or(0);
    match members.get(start) {
        Some(member) if !excluded(member.endpoint().named.id) => Some(member),
        _ => next_after(members, start, excluded),
    }
}

#[cold]
fn next_after<T>(
    members: &[Arc<Member<T>>],
    start: usize,
    excluded: impl Fn(EndpointId) -> bool,
) -> Option<&Member<T>> {
    let (before, after) = members.split_at_checked(start)?;
    let mut from = after.iter().chain(before);
    from.find(|member| !excluded(member.endpoint().named.id)).map(|member| &**member)
}
