//! Comparison of the set with a simple model, which implements every rule with lists and wide integers. Both must have
//! the same picks, events and views after each of a million random steps.

use std::collections::BTreeMap;

use reattempt_control::{EjectReason, EndpointId};

use super::*;

const ONE: u128 = 65_536;

#[derive(Debug, Clone, Default)]
struct Known {
    tier: usize,
    latency: Option<(u128, u64)>,
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
}

#[derive(Default)]
struct Model {
    order: Vec<String>,
    known: BTreeMap<String, Known>,
    majority: BTreeMap<usize, bool>,
    /// The tiers that take a part of the picks: the endpoints in service, and all.
    parts: BTreeMap<usize, (usize, usize)>,
    in_flight: BTreeMap<String, u128>,
}

/// Halves a value every 8,192 ms, with linear interpolation in between.
fn left(value: u128, since: u64, now: u64) -> u128 {
    let (mut value, mut age) = (value, now.saturating_sub(since));
    while age >= 8192 && value > 0 {
        (value, age) = (value / 2, age - 8192);
    }
    value - value * u128::from(age % 8192) / 16_384
}

impl Known {
    fn latency(&self, now: u64) -> Option<u128> {
        self.latency.map(|(value, since)| left(value, since, now).max(1))
    }

    fn failing(&self, now: u64) -> u128 {
        left(self.failing.0, self.failing.1, now)
    }

    fn raise(&mut self, now: u64) {
        let failing = self.failing(now);
        self.failing = (failing + (ONE - failing) / 8, now);
    }

    fn let_in(&mut self, at: u64, well: bool) {
        (self.until, self.since, self.marked, self.lost) = (None, at, false, false);
        self.in_a_row = if well { 0 } else { 5 };
    }
}

impl Model {
    /// Returns the number of each tier with endpoints in service, and their names, in order.
    fn tiers(&self) -> Vec<(usize, Vec<&String>)> {
        let mut tiers = BTreeMap::<usize, Vec<_>>::new();
        for name in &self.order {
            let known = &self.known[name];
            let tier = tiers.entry(known.tier).or_default();
            if !known.out {
                tier.push(name);
            }
        }
        tiers.into_iter().filter(|(_, names)| !names.is_empty()).collect()
    }

    fn is_cheaper(&self, one: &str, other: &str, now: u64) -> bool {
        let [(mine, my_calls), (theirs, their_calls)] =
            [one, other].map(|name| (self.known[name].latency(now), self.in_flight.get(name).copied().unwrap_or(0)));
        let (mine, theirs) = match (mine, theirs) {
            (None, None) => (1, 1),
            (None, Some(theirs)) if my_calls == 0 => (theirs, theirs),
            (None, Some(_)) => return false,
            (Some(mine), None) if their_calls == 0 => (mine, mine),
            (Some(_), None) => return true,
            (Some(mine), Some(theirs)) => (mine, theirs),
        };
        let price = |name: &str, latency: u128, calls: u128| {
            // The price is in units of 1 / 1,024; 32 / 65,536 = 1 / 2,048.
            latency * (calls + 1) * (1024 + self.known[name].failing(now) / 2)
        };
        price(one, mine, my_calls) < price(other, theirs, their_calls)
    }

    /// Returns `true` if the first tier in service shares the picks with a later one.
    fn splits(&self) -> bool {
        let tiers = self.tiers();
        tiers.len() > 1 && self.parts.contains_key(&tiers[0].0)
    }

    /// Returns the picked name, and whether another untried endpoint is in service.
    fn pick<'a>(&'a self, tried: &[String], now: u64, random: &mut Mixed) -> Option<(String, bool)> {
        let tiers = self.tiers();
        let first = tiers.first()?;
        let draws = |(number, tier): &(usize, Vec<&String>), random: &mut Mixed| {
            let mut drawn = || {
                let (bits, length) = (random.next_u64(), tier.len() as u64);
                let below = |bits: u64, bound: u64| (u128::from(bits) * u128::from(bound)) >> 32;
                let from = |start: u128| {
                    let start = usize::try_from(start).unwrap();
                    (start..start + tier.len()).map(|place| (place as u128, tier[place % tier.len()].clone()))
                };
                let (place, one) = from(below(bits >> 32, length)).find(|(_, name)| !tried.contains(name))?;
                let others = from(place + 1 + below(bits & 0xffff_ffff, length - 1));
                let mut others = others.map(|(_, name)| name);
                let other = others.find(|name| !tried.contains(name) && *name != one);
                Some(other.filter(|other| self.is_cheaper(other, &one, now)).unwrap_or(one))
            };
            let one = drawn()?;
            // Of a failing majority that is in service, a second pair is drawn.
            match self.majority[number] {
                true => drawn().filter(|other| self.is_cheaper(other, &one, now)).or(Some(one)),
                false => Some(one),
            }
        };
        let mut picked = None;
        if self.splits() {
            let last = tiers.len() - 1;
            let stops = |(number, _): &&(usize, _)| {
                let Some((in_service, all)) = self.parts.get(number) else { return true };
                (random.next_u64() >> 32) < (*in_service as u64 * (1 << 32)) / *all as u64
            };
            let number = tiers.iter().find(stops).map_or(tiers[last].0, |tier| tier.0);
            if number != first.0 {
                let tier = tiers.iter().find(|tier| tier.0 == number)?;
                picked = draws(tier, random).filter(|name| self.known[name].failing(now) < ONE / 4);
            }
        }
        let picked = picked.or_else(|| tiers.iter().find_map(|tier| draws(tier, random)));
        let picked = picked.unwrap_or_else(|| {
            let cheaper =
                |best: &'a String, next: &'a String| if self.is_cheaper(next, best, now) { next } else { best };
            first.1.iter().copied().reduce(cheaper).unwrap().clone()
        });
        let left = tiers.iter().flat_map(|tier| &tier.1).any(|name| **name != picked && !tried.contains(name));
        Some((picked, left))
    }

    fn end_ticket(
        &mut self,
        name: &str,
        outcome: Outcome,
        after: Duration,
        now: u64,
        random: &mut Mixed,
    ) -> Vec<EndpointEvent> {
        let sample = (after.as_nanos() / 256).clamp(1, u32::MAX.into());
        let Some(known) = self.known.get_mut(name) else { return vec![] };
        let latency = known.latency;
        let failed = match outcome {
            Outcome::Unsent => return vec![],
            Outcome::Abandoned => {
                if latency.is_some_and(|(value, since)| sample > left(value, since, now)) {
                    known.latency = Some((sample, now));
                }
                return vec![];
            }
            Outcome::Served => {
                let above = latency.map_or(0, |(value, since)| left(value.saturating_sub(sample), since, now));
                known.latency = Some((sample + above, now));
                if known.failing.0 > 0 || known.in_a_row > 0 || known.marked {
                    let failing = known.failing(now);
                    known.failing = (failing - failing.div_ceil(8), now);
                    known.in_a_row = 0;
                }
                known.window = known
                    .window
                    .filter(|window| now - window.0 < 10_000)
                    .map(|(since, failures, calls)| (since, failures, calls + 1));
                return vec![];
            }
            Outcome::Overloaded => false,
            Outcome::Failed => true,
        };
        known.latency = latency.map(|(value, _)| (value.max(sample), now));
        known.raise(now);
        if !failed {
            return vec![];
        }
        known.in_a_row += 1;
        let open = known.window.filter(|window| now - window.0 < 10_000);
        let (since, failures, calls) = open.unwrap_or((now, 0, 0));
        known.window = Some((since, failures + 1, calls + 1));
        let rate = calls + 1 >= 20 && 2 * (failures + 1) > calls;
        let reason = match (known.in_a_row >= 5 && !known.marked, rate) {
            (true, _) => EjectReason::InARow,
            (false, true) => EjectReason::FailureRate,
            (false, false) => return vec![],
        };
        self.expire(now);
        let known = self.known.get_mut(name).unwrap();
        let sent = now.saturating_sub(u64::try_from(after.as_millis()).unwrap());
        if known.until.is_some() {
            known.marked = true;
            known.window = None;
        } else if sent >= known.since {
            let forgiven = u32::try_from((now - known.since) / 30_000).unwrap();
            known.strikes = known.strikes.saturating_sub(forgiven);
            let lasts = [5_000, 10_000, 20_000, 30_000][known.strikes.min(3) as usize];
            known.strikes += 1;
            let most = u128::from(lasts) / 5 * 1_000_000 + 1;
            let spread = (u128::from(random.next_u64()) * most) >> 64;
            known.until = Some(now + lasts + u64::try_from(spread / 1_000_000).unwrap());
            (known.reason, known.marked, known.window) = (Some(reason), true, None);
        }
        self.update_roster(now)
    }

    fn expire(&mut self, now: u64) {
        for known in self.known.values_mut() {
            if let Some(until) = known.until.filter(|until| *until <= now) {
                let well = !known.out && known.failing(now) < ONE / 4;
                known.let_in(until, well);
            }
        }
    }

    fn update_roster(&mut self, now: u64) -> Vec<EndpointEvent> {
        let (mut events, old) = (vec![], self.majority.clone());
        let last = self.known.values().map(|known| known.tier).max();
        let tiers: Vec<_> = self.known.values().map(|known| known.tier).collect();
        self.majority.clear();
        self.parts.clear();
        for tier in std::collections::BTreeSet::from_iter(tiers) {
            let of = |known: &&Known| known.tier == tier;
            let length = self.known.values().filter(of).count();
            let ejected = self.known.values().filter(of).filter(|known| known.until.is_some());
            let majority = Some(tier) == last && ejected.count() > length / 2;
            let was = old.get(&tier).copied().unwrap_or(false);
            match (was, majority) {
                (false, true) => events.push(EndpointEvent::MajorityFailing { tier }),
                (true, false) => events.push(EndpointEvent::MajorityWell { tier }),
                _ => {}
            }
            self.majority.insert(tier, majority);
            for name in &self.order {
                let Some(known) = self.known.get_mut(name).filter(|known| known.tier == tier) else {
                    continue;
                };
                if was && !majority && known.until.is_some() && known.failing(now) < ONE / 4 {
                    known.let_in(now, true);
                }
                let was_out = std::mem::replace(&mut known.out, known.until.is_some() && !majority);
                let name = || name.as_str().into();
                if known.out && !was_out {
                    events.push(EndpointEvent::Ejected {
                        name: name(),
                        reason: known.reason.unwrap(),
                        lasts: Duration::from_millis(known.until.unwrap() - now),
                    });
                } else if was_out && !known.out {
                    events.push(EndpointEvent::Returned { name: name() });
                }
            }
            let of_tier = |known: &Known| known.tier == tier;
            let out = self.known.values_mut().filter(|known| of_tier(known) && known.out);
            let mut out: Vec<_> = out.collect();
            let in_service = length - out.len();
            if 2 * in_service < length {
                out.iter_mut().for_each(|known| known.lost = true);
            }
            match out.iter().any(|known| known.lost) {
                true => self.parts.insert(tier, (in_service, length)),
                false => self.parts.remove(&tier),
            };
        }
        events
    }

    /// Returns the events of a pick: ejections may have ended since the last step.
    fn before_pick(&mut self, now: u64) -> Vec<EndpointEvent> {
        let due = self.known.values().any(|known| known.until.is_some_and(|until| until <= now));
        if !due {
            return vec![];
        }
        self.expire(now);
        self.update_roster(now)
    }

    fn update(&mut self, names: &[(usize, String)], now: u64) -> Vec<EndpointEvent> {
        self.expire(now);
        self.order = names.iter().map(|(_, name)| name.clone()).collect();
        self.known.retain(|name, _| self.order.contains(name));
        self.in_flight.retain(|name, _| self.order.contains(name));
        for (tier, name) in names {
            self.known.entry(name.clone()).or_default().tier = *tier;
        }
        self.order.sort_by_key(|name| self.known[name].tier);
        self.update_roster(now)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Served,
    Failed,
    Overloaded,
    Abandoned,
    Unsent,
}

struct Open {
    ticket: Ticket,
    name: String,
    sent: Duration,
}

fn agree(set: &Set, model: &Model, now: Duration) {
    let at = u64::try_from(now.as_millis()).unwrap();
    let views = set.view(now);
    assert_eq!(views.len(), model.order.len());
    for (view, name) in views.iter().zip(&model.order) {
        let known = &model.known[name];
        let latency = known.latency(at).map(|units| u64::try_from(units * 256).unwrap());
        let out = known.until.filter(|until| known.out && *until > at).map(|until| until - at);
        assert_eq!((&*view.name, view.tier), (name.as_str(), known.tier));
        assert_eq!(view.in_flight as u128, model.in_flight.get(name).copied().unwrap_or(0));
        assert_eq!(view.latency, latency.map(Duration::from_nanos), "{name}");
        assert_eq!(view.failing * 65_536.0, known.failing(at) as f64, "{name}");
        assert_eq!(view.out, out.map(Duration::from_millis), "{name}");
    }
}

fn run(seed: u64, steps: u64) -> BTreeMap<&'static str, u64> {
    let (mut choice, mut random, set) = (Mixed(seed), Mixed(!seed), Set::new());
    let (mut model, mut now) = (Model::default(), Duration::from_secs(1));
    let mut seen = BTreeMap::new();
    let mut open = Vec::<Open>::new();
    let mut calls = vec![(Trail::new(), Vec::<(EndpointId, String)>::new()); 4];
    for step in 0..steps {
        now += match choice.below(100) {
            0 => Duration::from_millis(choice.below(4_000)),
            1 if choice.below(20) == 0 => Duration::from_secs(choice.below(60)),
            _ => Duration::from_micros(choice.below(10_000)),
        };
        let at = u64::try_from(now.as_millis()).unwrap();
        // About a fifth of the endpoints always fail; at times, most of them do.
        let bad = if (at / 20_000).is_multiple_of(3) { 4 } else { 1 };
        if step.is_multiple_of(2000) {
            let length = 1 + choice.below(12);
            let tiers = 1 + choice.below(3);
            let name = |_| (choice.below(tiers), choice.below(16));
            let drawn: BTreeMap<_, _> = (0..length).map(name).map(|(tier, name)| (name, tier)).collect();
            let names: Vec<_> =
                drawn.into_iter().map(|(name, tier)| (usize::try_from(tier).unwrap(), name.to_string())).collect();
            let events = listed(set.update(names.clone(), |_| (), now));
            assert_eq!(events, model.update(&names, at));
            // Attempts on removed endpoints no longer count. If a name comes back, it is a new endpoint.
            open.retain(|open| model.known.contains_key(&open.name));
        }
        if open.len() < 30 && choice.below(2) == 0 {
            let call = usize::try_from(choice.below(4)).unwrap();
            let (trail, tried) = &mut calls[call];
            let current: Vec<_> = set.view(now).iter().map(|view| view.id).collect();
            let names: Vec<_> = tried
                .iter()
                .rev()
                .take(Trail::LENGTH)
                .filter(|(id, _)| current.contains(id))
                .map(|(_, name)| name.clone())
                .collect();
            let events = model.before_pick(at);
            let mut drawn = random;
            let expected = model.pick(&names, at, &mut drawn).unwrap();
            let picked = set.pick(trail, now, &mut random).unwrap();
            let name = picked.ticket.name().to_string();
            assert_eq!((&name, picked.elsewhere), (&expected.0, expected.1), "step {step}");
            for event in &events {
                *seen.entry(kind(event)).or_default() += 1;
            }
            assert_eq!((random, listed(picked.events)), (drawn, events));
            trail.push(picked.ticket.id());
            tried.push((picked.ticket.id(), name.clone()));
            if choice.below(3) == 0 {
                calls[call] = (Trail::new(), vec![]);
            }
            *model.in_flight.entry(name.clone()).or_default() += 1;
            *seen.entry("picks").or_default() += 1;
            *seen.entry("shared").or_default() += u64::from(model.splits());
            *seen.entry("elsewhere").or_default() += u64::from(picked.elsewhere);
            open.push(Open { ticket: picked.ticket, name, sent: now });
        } else if !open.is_empty() {
            let which = usize::try_from(choice.below(open.len() as u64)).unwrap();
            let Open { ticket, name, sent } = open.swap_remove(which);
            let number: u64 = name.parse().unwrap();
            let outcome = match choice.below(20) {
                0 => Outcome::Abandoned,
                1 => Outcome::Unsent,
                2 => Outcome::Overloaded,
                3 => Outcome::Failed,
                _ if number % 5 < bad => Outcome::Failed,
                number if name.len() == 2 && number < 14 => Outcome::Failed,
                _ => Outcome::Served,
            };
            let after = now - sent;
            let over = match outcome {
                Outcome::Served => End::judged(Health::Served, after),
                Outcome::Failed => End::judged(Health::Failed, after),
                Outcome::Overloaded => End::judged(Health::Overloaded, after),
                Outcome::Abandoned => End::Abandoned { after },
                Outcome::Unsent => End::Unsent,
            };
            let mut drawn = random;
            let expected = model.end_ticket(&name, outcome, after, at, &mut drawn);
            *model.in_flight.get_mut(&name).unwrap() -= 1;
            let events = listed(set.end_ticket(ticket, &over, now, &mut random).events);
            for event in &events {
                *seen.entry(kind(event)).or_default() += 1;
            }
            assert_eq!((random, events), (drawn, expected), "step {step}");
        }
        if step.is_multiple_of(16) {
            agree(&set, &model, now);
        }
    }
    seen
}

fn kind(event: &EndpointEvent) -> &'static str {
    match event {
        EndpointEvent::Ejected { reason: EjectReason::InARow, .. } => "in a row",
        EndpointEvent::Ejected { .. } => "by rate",
        EndpointEvent::Returned { .. } => "returned",
        EndpointEvent::MajorityFailing { .. } => "majority",
        _ => "minority",
    }
}

/// The set and the model have the same picks, events and views after each of many random steps, for 1 to 12 endpoints
/// in 1 to 3 tiers.
// E-1, E-4, E-10, E-11, E-14, E-20
#[test]
fn set_agrees_with_plain_model() {
    let mut seen = BTreeMap::<_, u64>::new();
    for seed in 0..10 {
        for (kind, count) in run(seed, 100_000) {
            *seen.entry(kind).or_default() += count;
        }
    }
    for kind in ["picks", "elsewhere", "shared", "in a row", "by rate", "returned", "majority", "minority"] {
        assert!(seen.get(kind).is_some_and(|count| *count >= 5), "{kind}: {seen:?}");
    }
}
