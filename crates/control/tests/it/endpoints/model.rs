//! Comparison of the set with a simple model, which implements every rule with lists and wide integers. Both must have
//! the same picks, events and views after each of a million random steps.

mod agreement;

use std::collections::BTreeMap;

use reattempt_control::{EjectReason, EndpointId};

use super::*;

const ONE: u128 = 65_536;

#[derive(Debug, Clone, Default)]
struct Known {
    tier: usize,
    weight: u32,
    latency: Option<(u128, u64)>,
    /// A lower bound of an unknown latency, and the calls that were open when it was forgotten.
    at_least: (u128, u64),
    open: u128,
    failing: (u128, u64),
    in_a_row: u32,
    /// The start of the window, and the failures and calls since then.
    window: Option<(u64, u32, u32)>,
    until: Option<u64>,
    reason: Option<EjectReason>,
    marked: bool,
    out: bool,
    lost: bool,
    strikes: u32,
    since: u64,
    /// The ejections for refused connections: the end, the mark, their number, and the end of the last one.
    unreachable: Option<u64>,
    unreachable_marked: bool,
    unreachable_strikes: u32,
    unreachable_since: u64,
    on_trial: bool,
    asked: Option<u64>,
    /// The time at which the last event was seen.
    event: Option<Duration>,
}

#[derive(Default)]
struct Model {
    order: Vec<String>,
    known: BTreeMap<String, Known>,
    majority: BTreeMap<Part, bool>,
    /// The shares of the picks that parts of tiers take, in parts of 2³², unless they take all.
    shares: BTreeMap<Part, u64>,
    /// The share of a tier's calls for the next one, in tenths.
    spill: Option<u64>,
    in_flight: BTreeMap<String, u128>,
    /// The end of the next ejection, as of the last change.
    due: u64,
}

/// All picks.
const ALL: u64 = 1 << 32;

/// A tier, and whether this is its reserve.
type Part = (usize, bool);

/// The times in which latencies and failure rates halve, in milliseconds.
const LATENCY: u64 = 2048;
const RATE: u64 = 4096;

/// Halves a value in this time, with linear interpolation in between.
fn left(value: u128, half_life: u64, since: u64, now: u64) -> u128 {
    let (mut value, mut age) = (value, now.saturating_sub(since));
    while age >= half_life && value > 0 {
        (value, age) = (value / 2, age - half_life);
    }
    value - value * u128::from(age % half_life) / u128::from(2 * half_life)
}

/// Returns the random part of an ejection, up to a fifth of its time.
fn spread(lasts: u64, random: &mut Mixed) -> u64 {
    let most = u128::from(lasts / 5) * 1_000_000 + 1;
    u64::try_from(((u128::from(random.next_u64()) * most) >> 64) / 1_000_000).unwrap()
}

impl Known {
    fn latency(&self, now: u64) -> Option<u128> {
        self.latency.map(|(value, since)| left(value, LATENCY, since, now).max(1))
    }

    /// Returns the lower bound, in units of 4,096 × 256 ns.
    fn at_least(&self, now: u64) -> u128 {
        left(self.at_least.0, LATENCY, self.at_least.1, now)
    }

    /// Records an attempt without an answer.
    fn unanswered(&mut self, sample: u128, now: u64) {
        let bound = (sample / 4096).min(65_535);
        if bound > self.at_least(now) {
            self.at_least = (bound.max(2 * self.at_least.0).min(65_535), now);
        }
    }

    /// Returns `true` if it was well at its last attempt.
    fn was_well(&self) -> bool {
        self.failing.0 < ONE / 4
    }

    fn failing(&self, now: u64) -> u128 {
        left(self.failing.0, RATE, self.failing.1, now)
    }

    fn raise(&mut self, now: u64) {
        let failing = self.failing(now);
        self.failing = (failing + (ONE - failing) / 8, now);
    }

    fn let_in(&mut self, at: u64, well: bool) {
        (self.until, self.since, self.marked) = (None, at, false);
        self.in_a_row = if well { 0 } else { 5 };
    }

    fn expire(&mut self, now: u64) {
        if let Some(until) = self.unreachable {
            self.unreachable_marked |= self.out;
            if !self.unreachable_marked {
                (self.unreachable, self.unreachable_since) = (None, now);
            } else if until <= now {
                (self.unreachable, self.unreachable_since) = (None, until);
                (self.on_trial, self.unreachable_marked, self.in_a_row) = (true, false, 5);
            }
        }
        if let Some(until) = self.until.filter(|until| *until <= now) {
            let well = !self.out && self.was_well();
            self.let_in(until, well);
        }
        self.asked = self.asked.filter(|until| *until > now);
    }

    /// Ejects the endpoint for the next time of its series, and returns the end.
    fn lasts(strikes: &mut u32, since: u64, times: &[u64], now: u64, random: &mut Mixed) -> u64 {
        *strikes = strikes.saturating_sub(u32::try_from((now - since) / 30_000).unwrap());
        let lasts = times[(*strikes as usize).min(times.len() - 1)];
        *strikes += 1;
        now + lasts + spread(lasts, random)
    }

    /// Returns the end of the longest ejection, and the reason of the strongest.
    fn ejected(&self) -> Option<(u64, EjectReason)> {
        let until = [self.unreachable, self.asked, self.until].into_iter().flatten().max()?;
        let reason = match (self.unreachable, self.asked) {
            (Some(_), _) => EjectReason::NoConnection,
            (None, Some(_)) => EjectReason::Asked,
            (None, None) => self.reason.unwrap(),
        };
        Some((until, reason))
    }

    fn part(&self) -> Part {
        (self.tier, self.weight == 0)
    }

    fn is_shut(&self) -> bool {
        self.unreachable.is_some() || self.asked.is_some()
    }
}

impl Model {
    /// Returns the parts of tiers with endpoints in service, and their names, in order.
    fn parts(&self) -> Vec<(Part, Vec<&String>)> {
        let mut parts = BTreeMap::<Part, Vec<_>>::new();
        for name in self.order.iter().filter(|name| !self.known[*name].out) {
            parts.entry(self.known[name].part()).or_default().push(name);
        }
        parts.into_iter().collect()
    }

    /// Returns the slots of each endpoint of a part, and the load of a call at it, or `None` if all weights are equal.
    fn weights(&self, names: &[&String]) -> Option<(Vec<usize>, Vec<u128>)> {
        let weights: Vec<_> = names.iter().map(|name| u128::from(self.known[*name].weight)).collect();
        let (largest, least) = (*weights.iter().max()?, *weights.iter().min()?);
        if largest == least {
            return None;
        }
        let common = (1..=largest).rev().find(|divisor| weights.iter().all(|weight| weight % divisor == 0))?;
        let rounds = (largest / common).min(64);
        let weights: Vec<_> = weights.into_iter().map(|weight| weight.max(largest.div_ceil(rounds))).collect();
        let slots_until = |weight: u128, round: u128| (round * weight + largest / 2) / largest;
        let mut slots = Vec::new();
        for round in 0..rounds {
            for (place, weight) in weights.iter().enumerate() {
                if slots_until(*weight, round + 1) > slots_until(*weight, round) {
                    slots.push(place);
                }
            }
        }
        Some((slots, weights.iter().map(|weight| 8 * largest / weight).collect()))
    }

    fn calls(&self, name: &str) -> u128 {
        self.in_flight.get(name).copied().unwrap_or(0)
    }

    fn is_measured(&self, name: &str) -> bool {
        self.calls(name) > self.known[name].open
    }

    fn is_silent(&self, name: &str, now: u64) -> bool {
        let known = &self.known[name];
        known.latency.is_none() && (self.is_measured(name) || known.at_least(now) > 0)
    }

    /// Compares two endpoints of a part of a tier, which lists these names.
    fn is_cheaper(&self, names: &[&String], one: &str, other: &str, now: u64) -> bool {
        let [mine, theirs] = [one, other].map(|name| self.known[name].latency(now));
        let [my_bound, their_bound] = [one, other].map(|name| self.known[name].at_least(now) * 4096);
        let both = mine.is_some() == theirs.is_some();
        let (mine, theirs) = match (mine, theirs) {
            (None, None) => (my_bound.max(1), their_bound.max(1)),
            (None, Some(_)) if self.is_measured(one) => return false,
            (Some(_), None) if self.is_measured(other) => return true,
            (None, Some(theirs)) => (my_bound.max(theirs), theirs),
            (Some(mine), None) => (mine, their_bound.max(mine)),
            (Some(mine), Some(theirs)) => (mine, theirs),
        };
        let [low, high] = [mine.min(theirs), mine.max(theirs)];
        let (mine, theirs) = match (both, high - low > low / 2) {
            (false, _) => (mine, theirs),
            (true, true) => (mine.min(8 * low), theirs.min(8 * low)),
            (true, false) => (1, 1),
        };
        let price = |name: &str, latency: u128| {
            // The price is in units of 1 / 1,024; 32 / 65,536 = 1 / 2,048.
            let load = match self.weights(names) {
                Some((_, ratios)) => {
                    let place = names.iter().position(|other| *other == name).unwrap();
                    (self.calls(name) * ratios[place] + 8).min(1 << 17)
                }
                None => self.calls(name) + 1,
            };
            latency * load * (1024 + self.known[name].failing(now) / 2)
        };
        price(one, mine) < price(other, theirs)
    }

    /// Returns one of a pair of this tier, or another one if neither has answered so far.
    fn better<'a>(
        &self,
        (one, other): (&'a String, &'a String),
        (tier, tried): (&[&'a String], &[String]),
        now: u64,
        random: &mut Mixed,
    ) -> &'a String {
        let picked = if self.is_cheaper(tier, other, one, now) { other } else { one };
        if !(self.is_silent(one, now) && self.is_silent(other, now)) {
            return picked;
        }
        let from =
            |start: usize| (start..start + tier.len()).map(|place| (place % tier.len(), tier[place % tier.len()]));
        let mut last = 0;
        for _ in 0..4 {
            let start = (u128::from(random.next_u64() >> 32) * tier.len() as u128) >> 32;
            let mut untried = from(usize::try_from(start).unwrap()).filter(|(_, name)| !tried.contains(name));
            let (place, name) = untried.next().unwrap();
            if !self.is_silent(name, now) {
                return name;
            }
            last = place;
        }
        let mut answering = from(last).take(16).map(|(_, name)| name);
        answering.find(|name| !self.is_silent(name, now) && !tried.contains(name)).map_or(picked, |name| name)
    }

    /// Returns `true` if the first tier in service shares the picks with a later one.
    fn splits(&self) -> bool {
        let parts = self.parts();
        parts.len() > 1 && self.shares.contains_key(&parts[0].0)
    }

    /// Returns two random untried endpoints of a part, or one, if it is the only one.
    fn pair<'a>(&self, names: &[&'a String], tried: &[String], random: &mut Mixed) -> Option<(&'a String, &'a String)> {
        let bits = random.next_u64();
        let below = |bits: u64, bound: usize| usize::try_from((u128::from(bits) * bound as u128) >> 32).unwrap();
        let (first_bits, second_bits) = (bits >> 32, bits & 0xffff_ffff);
        if let Some((slots, _)) = self.weights(names) {
            let untried = |start: usize| {
                let mut from = (start..start + slots.len()).map(|slot| names[slots[slot % slots.len()]]);
                from.find(|name| !tried.contains(name))
            };
            return Some((untried(below(first_bits, slots.len()))?, untried(below(second_bits, slots.len()))?));
        }
        let from = |start: usize| (start..start + names.len()).map(|place| (place, names[place % names.len()]));
        let (place, one) = from(below(first_bits, names.len())).find(|(_, name)| !tried.contains(name))?;
        let mut others = from(place + 1 + below(second_bits, names.len() - 1)).map(|(_, name)| name);
        Some((one, others.find(|name| !tried.contains(name) && **name != *one).unwrap_or(one)))
    }

    /// Returns an untried endpoint of a part.
    fn drawn<'a>(
        &self,
        (part, names): &(Part, Vec<&'a String>),
        tried: &[String],
        now: u64,
        random: &mut Mixed,
    ) -> Option<&'a String> {
        let mut drawn = || {
            let (one, other) = self.pair(names, tried, random)?;
            let is_alone = one == other && self.weights(names).is_none();
            Some(if is_alone { one } else { self.better((one, other), (names, tried), now, random) })
        };
        let one = drawn()?;
        // Of a failing majority that is in service, and instead of an endpoint that often fails, a second pair is
        // drawn.
        let is_bad = self.majority.get(part) == Some(&true) || self.known[one].failing(now) >= ONE / 4;
        match is_bad {
            true => drawn().filter(|other| self.is_cheaper(names, other, one, now)).or(Some(one)),
            false => Some(one),
        }
    }

    /// Returns the picked name, and whether another untried endpoint is in service.
    fn pick(&self, tried: &[String], now: u64, random: &mut Mixed) -> Option<(String, bool)> {
        let parts = self.parts();
        let first = parts.first()?;
        let mut picked = None;
        if self.splits() {
            let stops =
                |(part, _): &&(Part, _)| self.shares.get(part).is_none_or(|share| random.next_u64() >> 32 < *share);
            let part = parts.iter().find(stops).or(parts.last())?;
            if part.0 != first.0 {
                picked = self.drawn(part, tried, now, random).filter(|name| self.known[*name].failing(now) < ONE / 4);
            }
        }
        // Of each part but the last, a call tries two before the next part, and then the others.
        let tried_in = |part: Part| {
            let known = self.known.iter();
            known.filter(|(name, known)| known.part() == part && tried.contains(name)).count()
        };
        let (last, earlier) = parts.split_last().unwrap();
        let fresh = earlier.iter().filter(|(part, _)| tried_in(*part) < 2).chain([last]);
        let picked = picked.or_else(|| fresh.chain(earlier).find_map(|part| self.drawn(part, tried, now, random)));
        let picked = picked.unwrap_or_else(|| {
            let cheaper = |best: &'_ String, next: &'_ String| self.is_cheaper(&first.1, next, best, now);
            first.1.iter().copied().reduce(|best, next| if cheaper(best, next) { next } else { best }).unwrap()
        });
        let left = parts.iter().flat_map(|part| &part.1).any(|name| *name != picked && !tried.contains(name));
        Some((picked.clone(), left))
    }

    fn end_ticket(
        &mut self,
        name: &str,
        outcome: Outcome,
        after: Duration,
        exact: Duration,
        random: &mut Mixed,
    ) -> Vec<EndpointEvent> {
        let now = u64::try_from(exact.as_millis()).unwrap();
        let sample = (after.as_nanos() / 256).clamp(1, (1 << 31) - 1);
        let Some(known) = self.known.get_mut(name) else { return vec![] };
        let latency = known.latency;
        let (weight, wait) = match outcome {
            Outcome::Unsent => return vec![],
            Outcome::Abandoned => {
                match latency {
                    Some((value, since)) => {
                        let sample = sample.min(2 * value);
                        if sample > left(value, LATENCY, since, now) {
                            known.latency = Some((sample, now));
                        }
                    }
                    None => known.unanswered(sample, now),
                }
                return vec![];
            }
            Outcome::Served => {
                let (value, since) = latency.unwrap_or((sample, now));
                let sample = sample.min(2 * value);
                known.latency = Some((sample + left(value.saturating_sub(sample), LATENCY, since, now), now));
                (known.at_least, known.open) = ((0, 0), 0);
                if known.failing.0 > 0 || known.in_a_row > 0 || known.marked || known.unreachable_marked {
                    let failing = known.failing(now);
                    known.failing = (failing - failing.div_ceil(8), now);
                    (known.in_a_row, known.unreachable_marked) = (0, false);
                }
                known.window = known
                    .window
                    .filter(|window| now - window.0 < 10_000)
                    .map(|(since, failures, calls)| (since, failures, calls + 1));
                return vec![];
            }
            Outcome::Lost => {
                if known.event.is_some_and(|seen| exact - after <= seen) {
                    return vec![];
                }
                known.event = Some(exact);
                (2, None)
            }
            Outcome::Overloaded | Outcome::NotConnected => (0, None),
            Outcome::Failed => (1, None),
            Outcome::Asked(wait) => (1, Some(wait)),
        };
        match latency {
            Some((value, _)) => known.latency = Some((value.max(sample.min(2 * value)), now)),
            None => known.unanswered(sample, now),
        }
        known.raise(now);
        let sent = now.saturating_sub(u64::try_from(after.as_millis()).unwrap());
        if outcome == Outcome::NotConnected && !known.unreachable_marked {
            self.expire(now);
            let known = self.known.get_mut(name).unwrap();
            if known.unreachable.is_none() && sent >= known.unreachable_since {
                let times = [1_000, 2_000, 4_000, 8_000, 10_000];
                let (strikes, since) = (&mut known.unreachable_strikes, known.unreachable_since);
                known.unreachable = Some(Known::lasts(strikes, since, &times, now, random));
            }
            if known.unreachable.is_some() {
                (known.unreachable_marked, known.on_trial) = (true, false);
            }
            return self.update_roster(now);
        }
        if weight == 0 {
            return vec![];
        }
        known.in_a_row += weight;
        let open = known.window.filter(|window| now - window.0 < 10_000);
        let (since, failures, calls) = open.unwrap_or((now, 0, 0));
        known.window = Some((since, failures + 1, calls + 1));
        let rate = calls + 1 >= 20 && 2 * (failures + 1) > calls;
        let reason = match (known.in_a_row >= 5 && !known.marked, rate) {
            (true, _) => Some(EjectReason::InARow),
            (false, true) => Some(EjectReason::FailureRate),
            (false, false) => None,
        };
        if reason.is_none() && wait.is_none() {
            return vec![];
        }
        self.expire(now);
        let known = self.known.get_mut(name).unwrap();
        let ejects = reason.is_some() && known.until.is_none() && sent >= known.since;
        if let (Some(wait), Some(until)) = (wait, &mut known.asked) {
            *until = (*until).max(now + wait);
            if !ejects {
                return vec![];
            }
        }
        let asks = wait.is_some() && known.asked.is_none();
        // Both ejections use one random number.
        let mut drawn = *random;
        if ejects || asks {
            random.next_u64();
        }
        if let Some(reason) = reason {
            if ejects {
                let times = [5_000, 10_000];
                known.until = Some(Known::lasts(&mut known.strikes, known.since, &times, now, &mut { drawn }));
            }
            if known.until.is_some() {
                (known.reason, known.marked, known.window, known.on_trial) = (Some(reason), true, None, false);
            }
        }
        if let Some(wait) = wait.filter(|_| asks) {
            known.asked = Some(now + wait + spread(wait, &mut drawn));
        }
        self.update_roster(now)
    }

    fn expire(&mut self, now: u64) {
        self.known.values_mut().for_each(|known| known.expire(now));
    }

    fn update_roster(&mut self, now: u64) -> Vec<EndpointEvent> {
        let (mut events, old) = (vec![], self.majority.clone());
        let ends = |known: &Known| [known.until, known.unreachable, known.asked];
        let due = |model: &Self| model.known.values().flat_map(ends).flatten().min().unwrap_or(u64::MAX);
        let last = self.known.values().map(|known| known.tier).max();
        let tiers: Vec<_> = self.known.values().map(|known| known.tier).collect();
        self.majority.clear();
        self.shares.clear();
        for tier in std::collections::BTreeSet::from_iter(tiers) {
            // A tier of reserves only is a tier like any other.
            let is_reserve = !self.known.values().any(|known| known.part() == (tier, false));
            let main = (tier, is_reserve);
            let of = |known: &&Known| known.part() == main;
            let open: Vec<_> = self.known.values().filter(of).filter(|known| !known.is_shut()).collect();
            let failing = open.iter().filter(|known| known.until.is_some()).count();
            let is_last = Some(tier) == last;
            let is_well = |known: &Known| known.part() == (tier, true) && known.ejected().is_none();
            let has_reserve = !is_reserve && self.known.values().any(is_well);
            let all = is_last && open.is_empty() && !has_reserve;
            let most_fail = is_last && failing > open.len() / 2;
            let unproven = |known: &&Known| known.on_trial && !known.marked && known.in_a_row >= 5;
            let tries = is_last && !open.is_empty() && open.iter().all(unproven);
            let majority = all || most_fail || tries;
            let was = old.iter().any(|((number, _), majority)| *number == tier && *majority);
            match (was, majority) {
                (false, true) => events.push(EndpointEvent::MajorityFailing { tier }),
                (true, false) => events.push(EndpointEvent::MajorityWell { tier }),
                _ => {}
            }
            self.majority.insert(main, majority);
            for name in &self.order {
                let Some(known) = self.known.get_mut(name).filter(|known| known.tier == tier) else {
                    continue;
                };
                let (was, all, most_fail, tries) = match known.part() == main {
                    true => (was, all, most_fail, tries),
                    false => (false, false, false, false),
                };
                if was && !majority && known.until.is_some() && known.was_well() {
                    known.let_in(now, true);
                }
                let shut = known.asked.is_some() || (known.unreachable.is_some() && !tries);
                let is_out = !all && (shut || (known.until.is_some() && !most_fail));
                let was_out = std::mem::replace(&mut known.out, is_out);
                known.lost &= is_out;
                let shown = || name.as_str().into();
                if known.out && !was_out {
                    events.push(EndpointEvent::Ejected {
                        name: shown(),
                        reason: known.ejected().unwrap().1,
                        lasts: Duration::from_millis(known.ejected().unwrap().0 - now),
                    });
                } else if was_out && !known.out {
                    if known.ejected().is_none() {
                        (known.latency, known.at_least, known.failing) = (None, (0, 0), (0, 0));
                        known.open = self.in_flight.get(name).copied().unwrap_or(0);
                    }
                    events.push(EndpointEvent::Returned { name: shown() });
                }
            }
            let share = self.share(main);
            if !is_reserve && self.known.values().any(|known| known.part() == (tier, true)) {
                // The reserve gets the calls of what is out of service.
                let of_reserve = if share < ALL { self.share((tier, true)) } else { 0 };
                self.shares.insert((tier, true), of_reserve);
            }
            let spill = self.spill.filter(|_| !is_last).map_or(0, |tenths| ALL * tenths / 10);
            self.shares.insert(main, share.min(ALL - spill));
        }
        self.shares.retain(|_, share| *share < ALL);
        self.due = due(self);
        events
    }

    /// Returns the share of the picks that a part of a tier takes because of its health.
    fn share(&mut self, part: Part) -> u64 {
        let mut known: Vec<_> = self.known.values_mut().filter(|known| known.part() == part).collect();
        let (length, in_service) = (known.len() as u64, known.iter().filter(|known| !known.out).count() as u64);
        if 2 * in_service < length {
            known.iter_mut().for_each(|known| known.lost = known.out);
        }
        match known.iter().any(|known| known.lost) {
            true => ALL * in_service / length,
            false if self.spill.is_some() => ALL.min(ALL * 14 * in_service / (10 * length)),
            false => ALL,
        }
    }

    /// Returns the events of a pick: ejections may have ended since the last step.
    fn before_pick(&mut self, now: u64) -> Vec<EndpointEvent> {
        if self.due > now {
            return vec![];
        }
        self.expire(now);
        self.update_roster(now)
    }

    fn update(&mut self, names: &[(usize, u32, String)], now: u64) -> Vec<EndpointEvent> {
        self.expire(now);
        self.order = names.iter().map(|(_, _, name)| name.clone()).collect();
        self.known.retain(|name, _| self.order.contains(name));
        self.in_flight.retain(|name, _| self.order.contains(name));
        for (tier, weight, name) in names {
            let known = self.known.entry(name.clone()).or_default();
            (known.tier, known.weight) = (*tier, *weight);
        }
        self.order.sort_by_key(|name| self.known[name].part());
        self.update_roster(now)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Served,
    Failed,
    Lost,
    NotConnected,
    /// A 503 that asks for a wait, in milliseconds.
    Asked(u64),
    Overloaded,
    Abandoned,
    Unsent,
}
