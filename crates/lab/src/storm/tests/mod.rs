//! Storms against what can be worked out by hand: closed forms, bounds, conservation, the seed.

mod budgets;
mod faults;
mod layer;

use std::collections::HashMap;

use super::client::ticks;
use super::server::{Fault, ServerSettings};
use super::simulation::{Ended, Scene, Simulation, Watch};
use super::*;
use reattempt::StopReason;
use reattempt::schedule::{Responsive, Schedule, SharedSchedule};

/// A storm of 1000 calls a second whose server does half as much again, 15 workers of 10 ms, with a
/// queue for 2 s. What is wrong with it is so from 5 to 8 s.
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
        seed: 1,
    }
}

/// A server with time for everything that refuses this share throughout.
fn failing(clients: u32, share: f64) -> Scene {
    let mut scene = scene(clients, Fault::Refuse(share));
    scene.server.workers = u64::MAX;
    scene.server.faulty = 0..u64::MAX;
    scene
}

fn run(scene: &Scene, policy: &Policy) -> Curves {
    Simulation::new(scene, policy, Curves::default()).run()
}

/// All policies of a storm.
fn policies() -> Vec<Policy> {
    Policy::all(1.0).unwrap()
}

/// All policies, for clients of a call a second where that matters.
fn all() -> impl Iterator<Item = Policy> {
    policies().into_iter().chain(Policy::of_budgets(1.0).unwrap())
}

fn policy(name: &str) -> Policy {
    all().find(|policy| policy.name == name).unwrap()
}

fn total(counts: &[u64]) -> u64 {
    counts.iter().sum()
}

/// What happened, as it happened.
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
}

/// Attempts follow each other one by one, each is sent after the delay that was chosen, and a call
/// ends once.
#[test]
fn every_call_ends_once_and_every_attempt_has_an_end() {
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
                        Some(failure) if failure.kind() == reattempt::FailureKind::Timeout => {
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

/// Nothing is told to schedules here, for none of them wants to hear anything.
#[test]
fn no_policy_has_a_schedule_with_state() {
    for policy in all() {
        assert!(policy.schedule.is_stateless(), "{}", policy.name);
    }
}

#[test]
fn a_server_with_nothing_else_to_do_answers_after_two_ways_and_its_work() {
    let mut scene = scene(10, Fault::Stall);
    (scene.rate, scene.server.faulty) = (0.1, 0..0);
    let trace = Simulation::new(&scene, &policy("ours"), Trace::default()).run();
    assert!(trace.begun > 3);
    assert!(trace.ended.iter().all(|end| end.at == end.started + 12 && end.failure.is_none()));
}

/// Without retries the load is that of the calls; with three retries at once, and nothing but
/// failures, it is four times as much.
#[test]
fn no_retry_amplifies_by_one_and_three_retries_by_four() {
    for fault in [Fault::Stall, Fault::Slow(20), Fault::Refuse(1.0)] {
        let curves = run(&scene(1000, fault), &policy("no retry"));
        assert_eq!(total(&curves.attempts), total(&curves.calls));
    }
    let curves = run(&failing(1000, 1.0), &policy("three at once"));
    assert_eq!(total(&curves.attempts), 4 * total(&curves.calls));
    assert_eq!(total(&curves.lost), total(&curves.calls));
}

/// Three attempts of which each fails with probability p are 1 + p + p² attempts, and one call in p³
/// fails.
#[test]
fn chance_failures_without_a_budget_give_the_figures_of_the_book() {
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
fn no_client_retries_more_than_its_budget_allows() {
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
                // A bound that is far away would prove nothing.
                if p == 1.0 {
                    let least = n * capacity;
                    assert!(retries >= 0.9 * least, "{name}, {clients}: {retries} < {least}");
                }
            }
        }
    }
}

/// One bucket in a total outage: ten tokens, and the trickle has yet to give one; a hundred times 5
/// of 500; four failures until half of ten tokens are gone.
#[test]
fn a_busy_client_in_a_total_outage_has_what_its_bucket_holds() {
    let retries = |name| {
        let curves = run(&failing(1, 1.0), &policy(name));
        total(&curves.attempts) - total(&curves.calls)
    };
    assert_eq!(retries("ratio"), 10, "the trickle gives none in 12 s");
    assert_eq!(retries("AWS quota"), 100);
    assert!((1..=4).contains(&retries("gRPC throttle")));
}

/// A full queue is worth 2 s of work, and the third of the server's time that the calls leave free
/// works it off; when it is worth less than the client's patience, calls succeed again.
#[test]
fn without_retries_a_queue_is_worked_off_in_the_time_that_is_left_over() {
    let mut scene = scene(1000, Fault::Stall);
    (scene.duration, scene.end) = (30_000, 40_000);
    let figures = run(&scene, &policy("no retry")).figures(0..5, 8..20);
    // It is full: a wait of 2 s, and after t seconds of 2 − t/3.
    assert_eq!(figures.recovery_seconds, Some(4));
}

/// The lesson: what keeps a queue full keeps it useless, and budgets end it.
#[test]
fn retries_without_a_budget_outlive_the_outage_and_with_one_they_do_not() {
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

/// Why the default trickle of a ratio budget is a hundredth of a token a second. A tenth is a tenth of the load of
/// clients of one call a second, and half of that of clients of one in five seconds; a server that
/// has as much to spare stays down under it, here and whenever there are enough clients.
#[test]
fn many_clients_do_not_keep_a_server_down_by_the_default_trickle() {
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
fn the_same_seed_gives_the_same_storm_and_another_gives_another() {
    let scene = scene(100, Fault::Stall);
    let other = Scene { seed: 2, ..scene.clone() };
    for policy in policies() {
        let curves = run(&scene, &policy);
        assert_eq!(curves, run(&scene, &policy));
        assert_ne!(curves, run(&other, &policy));
    }
}

/// Whatever the policy, the calls are the same.
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
    let together = several::run(&storms);
    for ((scene, policy), curves) in storms.iter().zip(together) {
        assert_eq!(curves, run(scene, policy), "{}", policy.name);
    }
}

#[test]
fn recovery_is_asked_of_the_calls_by_the_second_in_which_they_began() {
    let mut curves = Curves { calls: vec![100; 10], good: vec![100; 10], ..Curves::default() };
    let recovery = |curves: &Curves| curves.figures(0..1, 3..8).recovery_seconds;
    assert_eq!(recovery(&curves), Some(0));
    (curves.good[1], curves.good[2]) = (0, 0);
    assert_eq!(recovery(&curves), Some(0), "it was before the end of the fault");
    curves.good[5] = 94;
    assert_eq!(recovery(&curves), Some(3));
    curves.good[7] = 94;
    assert_eq!(recovery(&curves), None);
    // If every second call was lost before, that half of them succeed is as well as it ever was.
    curves.good = vec![50; 10];
    assert_eq!(recovery(&curves), Some(0));
    curves.good[4] = 47;
    assert_eq!(recovery(&curves), Some(2));
}

/// Of three calls a second, one that is lost by chance is no storm: a share is told of a hundred.
#[test]
fn few_calls_are_looked_at_for_longer() {
    let mut curves = Curves { calls: vec![3; 200], good: vec![3; 200], ..Curves::default() };
    let recovery = |curves: &Curves| curves.figures(0..10, 10..180).recovery_seconds;
    curves.good[100] = 2;
    assert_eq!(recovery(&curves), Some(0));
    // Each look is at 34 s.
    curves.good[12..15].fill(0);
    assert_eq!(recovery(&curves), Some(34));
    curves.good[170..].fill(0);
    assert_eq!(recovery(&curves), None);
}

/// What a schedule would have to be told of is refused, not followed wrongly.
#[test]
fn a_schedule_with_state_is_refused() {
    let mut policy = crate::policy::parse_word("standard").unwrap();
    assert!(Policy::written(&policy).is_ok());
    policy.profile.schedule = SharedSchedule::new(Responsive::new());
    let error = Policy::written(&policy).unwrap_err();
    assert!(format!("{error:?}").contains("state that calls share"), "{error:?}");
}
