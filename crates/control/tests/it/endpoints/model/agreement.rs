//! The comparison: random steps, which the set and the model take side by side.

use reattempt_control::Place;
use reattempt_core::ServerHint;

use super::*;

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
        let ejected = known.ejected().filter(|(until, _)| known.out && *until > at);
        let out = ejected.map(|(until, _)| until - at);
        assert_eq!((&*view.name, view.tier, view.weight), (name.as_str(), known.tier, known.weight));
        assert_eq!(view.in_flight as u128, model.in_flight.get(name).copied().unwrap_or(0));
        assert_eq!(view.latency, latency.map(Duration::from_nanos), "{name}");
        assert_eq!(view.failing * 65_536.0, known.failing(at) as f64, "{name}");
        assert_eq!(view.out, out.map(Duration::from_millis), "{name}");
        assert_eq!(view.reason, ejected.map(|(_, reason)| reason), "{name}");
    }
}

fn run(seed: u64, steps: u64) -> BTreeMap<&'static str, u64> {
    let (mut choice, mut random, mut set) = (Mixed(seed), Mixed(!seed), Set::new());
    let (mut model, mut now) = (Model::default(), Duration::from_secs(1));
    if seed.is_multiple_of(3) {
        let tenths = u32::try_from(seed).unwrap() / 3;
        (set, model.spill) = (set.spill(f64::from(tenths) / 10.0), Some(tenths.into()));
    }
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
            let has_weights = choice.below(2) == 0;
            let names: Vec<_> = drawn
                .into_iter()
                .map(|(name, tier)| {
                    let weight =
                        if has_weights { [0, 1, 2, 5, 300][usize::try_from(choice.below(5)).unwrap()] } else { 1 };
                    (usize::try_from(tier).unwrap(), weight, name.to_string())
                })
                .collect();
            let placed = names.iter().map(|(tier, weight, name)| (Place::new().tier(*tier).weight(*weight), &**name));
            let events = listed(set.update(placed, |_| (), now));
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
                4 if choice.below(20) == 0 => Outcome::Asked(choice.below(20_000) + 1),
                5 => Outcome::Lost,
                _ if number % 5 < bad && number.is_multiple_of(2) => Outcome::NotConnected,
                _ if number % 5 < bad => Outcome::Failed,
                number if name.len() == 2 && number < 14 => Outcome::Failed,
                _ => Outcome::Served,
            };
            let after = now - sent;
            let over = match outcome {
                Outcome::Served => End::judged(Health::Served, after),
                Outcome::Failed => End::judged(Health::Failed, after),
                Outcome::Lost => End::judged(Health::Lost, after),
                Outcome::NotConnected => End::judged(Health::NotConnected, after),
                Outcome::Asked(wait) => {
                    let hint = ServerHint::After(Duration::from_millis(wait));
                    End::Judged { health: Health::Unavailable, hint, quota: None, after }
                }
                Outcome::Overloaded => End::judged(Health::Overloaded, after),
                Outcome::Abandoned => End::Abandoned { after },
                Outcome::Unsent => End::Unsent,
            };
            let mut drawn = random;
            let expected = model.end_ticket(&name, outcome, after, now, &mut drawn);
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
        EndpointEvent::Ejected { reason: EjectReason::NoConnection, .. } => "no connection",
        EndpointEvent::Ejected { reason: EjectReason::Asked, .. } => "asked",
        EndpointEvent::Ejected { .. } => "by rate",
        EndpointEvent::Returned { .. } => "returned",
        EndpointEvent::MajorityFailing { .. } => "majority",
        _ => "minority",
    }
}

/// The set and the model have the same picks, events and views after each of many random steps, for 1 to 12 endpoints
/// in 1 to 3 tiers, with and without weights, reserves and a spill.
// W-1, W-2, W-3, E-1, E-4, E-10, E-11, E-14, E-20
#[test]
fn set_agrees_with_plain_model() {
    let mut seen = BTreeMap::<_, u64>::new();
    for seed in 0..10 {
        for (kind, count) in run(seed, 100_000) {
            *seen.entry(kind).or_default() += count;
        }
    }
    let ejections = ["in a row", "by rate", "no connection", "asked"];
    for kind in ["picks", "elsewhere", "shared", "returned", "majority", "minority"].into_iter().chain(ejections) {
        assert!(seen.get(kind).is_some_and(|count| *count >= 5), "{kind}: {seen:?}");
    }
}
