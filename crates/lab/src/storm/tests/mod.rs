//! Storms compared with closed forms, bounds, conservation laws and the seed.

mod budgets;
mod capacity;
mod faults;
mod fleet;
mod layer;

use std::collections::HashMap;

use super::fleet::StoreCounts;
use super::server::{Fault, ServerSettings};
use super::simulation::{Ended, Scene, Simulation, Watch};
use super::tick::ticks;
use super::*;
use reattempt::StopReason;
use reattempt::schedule::{Responsive, Schedule, SharedSchedule};

/// Returns a storm of 1000 calls a second. The capacity is half as much again: 15 workers of 10 ms,
/// with a queue for 2 s. The fault lasts from 5 to 8 s.
fn scene(clients: u32, fault: Fault) -> Scene {
    Scene {
        clients,
        rate: 1000.0 / f64::from(clients),
        duration: 12_000,
        end: 40_000,
        timeout: 1000,
        network: 1,
        server: ServerSettings {
            workers: 15,
            service: 10,
            queue: 3000,
            fault,
            faulty: 5000..8000,
            burst: None,
            refusal_cost: 0.0,
        },
        drop_every: None,
        restart_every: None,
        seed: 1,
    }
}

/// Returns a server with unlimited capacity that refuses this share of all requests.
fn failing(clients: u32, share: f64) -> Scene {
    let mut scene = scene(clients, Fault::Refuse(share));
    scene.server.workers = u64::MAX;
    scene.server.faulty = 0..u64::MAX;
    scene
}

fn run(scene: &Scene, policy: &Policy) -> Curves {
    Simulation::new(scene, policy, Curves::default()).run()
}

/// Returns all policies of a storm.
fn policies() -> Vec<Policy> {
    Policy::all(1.0)
}

/// Returns all policies, for clients of one call a second.
fn all() -> impl Iterator<Item = Policy> {
    policies().into_iter().chain(Policy::of_budgets(1.0))
}

fn policy(name: &str) -> Policy {
    all().find(|policy| policy.name == name).unwrap()
}

fn total(counts: &[u64]) -> u64 {
    counts.iter().sum()
}

/// The events of a simulation, in their order.
#[derive(Default)]
struct Trace {
    begun: u64,
    sent: u64,
    ended: Vec<Ended>,
}

impl Watch for Trace {
    fn begun(&mut self, _: u64) {
        self.begun += 1;
    }

    fn sent(&mut self, _: u64) {
        self.sent += 1;
    }

    fn ended(&mut self, end: &Ended) {
        self.ended.push(*end);
    }

    fn stored(&mut self, _: StoreCounts) {}
}

/// A call's attempts follow each other, each after the chosen delay, and the call ends once.
#[test]
fn call_ends_once_and_its_attempts_end() {
    for fault in [Fault::Stall, Fault::Slow(20), Fault::Refuse(0.7)] {
        for policy in policies() {
            let scene = scene(100, fault);
            let trace = Simulation::new(&scene, &policy, Trace::default()).run();
            assert_eq!(trace.sent, trace.ended.len() as u64, "{}", policy.name);
            let mut calls: HashMap<_, Vec<Ended>> = HashMap::new();
            for end in &trace.ended {
                calls.entry((end.client, end.call)).or_default().push(*end);
            }
            assert_eq!(trace.begun, calls.len() as u64, "{}", policy.name);
            assert!(trace.begun > 10_000, "{}", trace.begun);
            for ends in calls.values() {
                let mut sent = ends[0].started;
                for (number, end) in (1..).zip(ends) {
                    assert_eq!(end.attempt, number);
                    let took = end.at - sent;
                    match end.failure {
                        None => assert!(took >= 12 && took <= scene.timeout, "{ends:?}"),
                        Some(failure) if failure.kind() == reattempt::schedule::FailureKind::Timeout => {
                            assert_eq!(took, scene.timeout, "{ends:?}");
                        }
                        Some(_) => assert_eq!(took, 2, "{ends:?}"),
                    }
                    let last = ends.len() == number as usize;
                    assert_eq!(end.then.is_err(), last, "{ends:?}");
                    assert_eq!(end.then == Err(StopReason::Succeeded), end.failure.is_none());
                    sent = end.at + end.then.map_or(0, ticks);
                }
            }
        }
    }
}

/// The simulation does not notify schedules, because no policy has one with shared state.
#[test]
fn no_policy_has_a_schedule_with_state() {
    for policy in all() {
        assert!(policy.schedule.is_stateless(), "{}", policy.name);
    }
}

#[test]
fn idle_server_answers_after_its_work() {
    let mut scene = scene(10, Fault::Stall);
    (scene.rate, scene.server.faulty) = (0.1, 0..0);
    let trace = Simulation::new(&scene, &policy("ours"), Trace::default()).run();
    assert!(trace.begun > 3);
    assert!(trace.ended.iter().all(|end| end.at == end.started + 12 && end.failure.is_none()));
}

/// Without retries the load equals the calls. With three immediate retries and nothing but failures
/// it is four times as much.
#[test]
fn amplification_is_one_plus_retries() {
    for fault in [Fault::Stall, Fault::Slow(20), Fault::Refuse(1.0)] {
        let curves = run(&scene(1000, fault), &policy("no retry"));
        assert_eq!(total(&curves.attempts), total(&curves.calls));
    }
    let curves = run(&failing(1000, 1.0), &policy("three at once"));
    assert_eq!(total(&curves.attempts), 4 * total(&curves.calls));
    assert_eq!(total(&curves.lost), total(&curves.calls));
}

/// Three attempts that each fail with probability p need 1 + p + p² attempts for each call, and p³
/// of the calls fail.
#[test]
fn random_failures_have_the_closed_form() {
    for p in [0.1, 0.3, 0.5, 1.0] {
        let curves = run(&failing(1000, p), &policy("ours, no budget"));
        let load = curves.amplification(0..12);
        assert!((load - (1.0 + p + p * p)).abs() < 0.02, "{p}: {load}");
        let success = curves.success(0..12);
        assert!((success - (1.0 - p.powi(3))).abs() < 0.02, "{p}: {success}");
    }
}

/// For each client, retries ≤ capacity + ratio · successes + trickle · time.
#[test]
fn client_keeps_to_its_budget() {
    let of_time = |per_second: f64| per_second * 15.0;
    for (name, capacity, ratio, trickle) in
        [("ratio", 10.0, 0.1, 0.01), ("ratio for rate", 1.0, 0.1, 0.01), ("rate", 1.0, 0.0, 0.1)]
    {
        for p in [0.1, 0.5, 1.0] {
            for clients in [1, 1000] {
                let curves = run(&failing(clients, p), &policy(name));
                let retries = (total(&curves.attempts) - total(&curves.calls)) as f64;
                let n = f64::from(clients);
                let of_clients = n * (capacity + of_time(trickle));
                let most = of_clients + ratio * total(&curves.goodput) as f64;
                assert!(retries <= most, "{name}, {p}, {clients}: {retries} > {most}");
                // The bound must be close, because a distant bound proves nothing.
                if p == 1.0 {
                    let least = n * capacity;
                    assert!(retries >= 0.9 * least, "{name}, {clients}: {retries} < {least}");
                }
            }
        }
    }
}

/// In a total outage the ratio budget allows ten retries, because the trickle has not yet
/// given a token. The AWS quota allows 500 / 5 = 100. The gRPC throttle allows four, until half of
/// its ten tokens are gone.
#[test]
fn busy_client_in_an_outage_spends_bucket() {
    let retries = |name| {
        let curves = run(&failing(1, 1.0), &policy(name));
        total(&curves.attempts) - total(&curves.calls)
    };
    assert_eq!(retries("ratio"), 10, "the trickle gives none in 12 s");
    assert_eq!(retries("AWS quota"), 100);
    assert!((1..=4).contains(&retries("gRPC throttle")));
}

/// A full queue holds 2 s of work, and the idle third of the server's time processes it. When the
/// wait is shorter than the clients' time limit, calls succeed again.
#[test]
fn queue_drains_without_retries() {
    let mut scene = scene(1000, Fault::Stall);
    (scene.duration, scene.end) = (30_000, 40_000);
    let figures = run(&scene, &policy("no retry")).figures(0..5, 8..20);
    // The wait is 2 s at the start, and 2 − t/3 after t seconds.
    assert_eq!(figures.recovery_seconds, Some(4));
}

/// Retries without a budget keep a queue full for good; budgets let it drain.
#[test]
fn budget_ends_the_storm_after_an_outage() {
    let mut scene = scene(1000, Fault::Stall);
    (scene.duration, scene.end) = (60_000, 70_000);
    let figures = |name| run(&scene, &policy(name)).figures(0..5, 8..50);
    for name in ["three at once", "ours, no budget"] {
        let storm = figures(name);
        assert!(storm.metastable && storm.recovery_seconds.is_none(), "{name}: {storm:?}");
    }
    for name in ["no retry", "ours", "ours, for rate", "gRPC throttle", "AWS quota"] {
        let storm = figures(name);
        assert!(!storm.metastable, "{name}: {storm:?}");
    }
}

/// The default trickle of a ratio budget is a hundredth of a token a second. A tenth a second is a tenth of the load of
/// clients with one call a second. It is half of the load of clients with one call in five seconds. A server with no
/// more spare capacity would stay down, here and with enough clients anywhere.
#[test]
fn default_trickle_lets_a_server_recover() {
    for (rate, workers, queue) in [(1.0, 11, 2200), (0.2, 3, 600)] {
        let mut scene = scene(1000, Fault::Stall);
        scene.rate = rate;
        (scene.server.workers, scene.server.queue) = (workers, queue);
        (scene.server.faulty, scene.duration, scene.end) = (5000..15_000, 80_000, 90_000);
        let figures = |policy: &str| {
            let written = crate::policy::parse_word(policy).unwrap();
            run(&scene, &Policy::written(&written).unwrap()).figures(0..5, 15..70)
        };
        let default = figures("standard:budget.ratio=0.1");
        assert!(!default.metastable, "{rate}/s: {default:?}");
        assert_eq!(default, figures("standard:budget.min_per_second=0.01"));
        let tenfold = figures("standard:budget.min_per_second=0.1");
        assert!(tenfold.metastable, "{rate}/s: {tenfold:?}");
    }
}

#[test]
fn storm_depends_on_the_seed_alone() {
    let scene = scene(100, Fault::Stall);
    let other = Scene { seed: 2, ..scene.clone() };
    for policy in policies() {
        let curves = run(&scene, &policy);
        assert_eq!(curves, run(&scene, &policy));
        assert_ne!(curves, run(&other, &policy));
    }
}

/// The calls are the same for every policy.
#[test]
fn all_policies_meet_the_same_calls() {
    let scene = scene(100, Fault::Stall);
    let calls = |name| run(&scene, &policy(name)).calls;
    assert_eq!(calls("no retry"), calls("three at once"));
}

#[test]
fn several_storms_come_back_in_their_order() {
    let scene = scene(10, Fault::Stall);
    let storms: Vec<_> = policies().into_iter().map(|policy| (scene.clone(), policy)).collect();
    let together = parallel::run(&storms);
    for ((scene, policy), curves) in storms.iter().zip(together) {
        assert_eq!(curves, run(scene, policy), "{}", policy.name);
    }
}

#[test]
fn recovery_is_judged_by_the_start_of_calls() {
    let mut curves = Curves { calls: vec![100; 10], good: vec![100; 10], ..Curves::default() };
    let recovery = |curves: &Curves| curves.figures(0..1, 3..8).recovery_seconds;
    assert_eq!(recovery(&curves), Some(0));
    (curves.good[1], curves.good[2]) = (0, 0);
    assert_eq!(recovery(&curves), Some(0), "it was before the end of the fault");
    curves.good[5] = 94;
    assert_eq!(recovery(&curves), Some(3));
    curves.good[7] = 94;
    assert_eq!(recovery(&curves), None);
    // If half of the calls were lost before the fault, half are a full recovery.
    curves.good = vec![50; 10];
    assert_eq!(recovery(&curves), Some(0));
    curves.good[4] = 47;
    assert_eq!(recovery(&curves), Some(2));
}

/// One random loss among three calls a second is no storm: the share is computed over a hundred
/// calls.
#[test]
fn few_calls_are_judged_over_longer_times() {
    let mut curves = Curves { calls: vec![3; 200], good: vec![3; 200], ..Curves::default() };
    let recovery = |curves: &Curves| curves.figures(0..10, 10..180).recovery_seconds;
    curves.good[100] = 2;
    assert_eq!(recovery(&curves), Some(0));
    // Each share covers 34 s.
    curves.good[12..15].fill(0);
    assert_eq!(recovery(&curves), Some(34));
    curves.good[170..].fill(0);
    assert_eq!(recovery(&curves), None);
}

/// Schedules with shared state are refused, because the simulation would not notify them.
#[test]
fn a_schedule_with_state_is_refused() {
    let mut policy = crate::policy::parse_word("standard").unwrap();
    assert!(Policy::written(&policy).is_ok());
    policy.profile.schedule = SharedSchedule::new(Responsive::new());
    let error = Policy::written(&policy).unwrap_err();
    assert!(format!("{error:?}").contains("state that calls share"), "{error:?}");
}
