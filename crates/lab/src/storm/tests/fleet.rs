//! The budget that all clients share.

use super::*;
use crate::storm::fleet::{Fleet, StoreSettings};
use reattempt::budget::Budget;
use reattempt::schedule::{Failure, FailureKind};

/// Clients of one call in 100 s, and a server that stalls for ten seconds under two thirds of its capacity.
fn stall(seed: u64) -> Scene {
    let mut scene = scene(5_000, Fault::Stall);
    (scene.rate, scene.duration, scene.end, scene.seed) = (0.01, 60_000, 90_000, seed);
    let service = 66;
    scene.server = ServerSettings { workers: 5, service, queue: 151, faulty: 10_000..20_000, ..scene.server };
    scene
}

fn fleet(settings: &StoreSettings) -> Policy {
    let choice = policy::parse("fleet").unwrap();
    policy::chosen(&[choice], None, 1.0).unwrap().remove(0).with_store(settings)
}

fn lost_and_attempts(scene: &Scene, policy: &Policy) -> (f64, f64) {
    let figures = run(scene, policy).figures(0..10, 20..50);
    (figures.lost, figures.amplification)
}

#[test]
fn written_policy_may_share_its_budget() {
    let choice = policy::parse("standard:budget=fleet").unwrap();
    let policy = policy::chosen(&[choice], None, 1.0).unwrap().remove(0);
    assert_eq!(policy.store(), Some(&StoreSettings::default()));
}

/// The budgets of each client keep the server down; the one that they share does not.
#[test]
fn shared_budget_ends_the_storm() {
    let ours = policies().into_iter().find(|policy| policy.name == "ours").unwrap();
    let none = policies().into_iter().find(|policy| policy.name == "no retry").unwrap();
    for seed in 1..4 {
        let scene = stall(seed);
        let (without, _) = lost_and_attempts(&scene, &none);
        let (own, own_attempts) = lost_and_attempts(&scene, &ours);
        let (shared, attempts) = lost_and_attempts(&scene, &fleet(&StoreSettings::default()));
        assert!(own > 0.5 && own_attempts > 1.5, "{own} {own_attempts}");
        assert!(shared < without + 0.03 && attempts < 1.02, "{shared} {without} {attempts}");
    }
}

/// A store that fails during an outage does not release the retries of the whole fleet. Before, the peak was that of
/// clients with budgets of their own, four times the load.
// FB-1
#[test]
fn store_failing_in_the_outage_is_no_storm() {
    let ours = policies().into_iter().find(|policy| policy.name == "ours").unwrap();
    let none = policies().into_iter().find(|policy| policy.name == "no retry").unwrap();
    for down in [11_000..15_000, 10_000..20_000] {
        let scene = stall(1);
        let peak = |policy: &Policy| run(&scene, policy).attempts.iter().max().copied().unwrap();
        let settings = StoreSettings { down, ..StoreSettings::default() };
        let (without, own, shared) = (peak(&none), peak(&ours), peak(&fleet(&settings)));
        assert!(own > 2 * without && shared < without + without / 5, "{without} {own} {shared}");
    }
}

/// A store that returns without its data grants ten more retries.
// F-9
#[test]
fn lost_data_grants_ten_more() {
    for seed in 1..4 {
        let granted = |loses_data| {
            let settings = StoreSettings { down: 15_000..15_100, loses_data, ..StoreSettings::default() };
            let curves = run(&stall(seed), &fleet(&settings));
            curves.store.unwrap().granted
        };
        let more = granted(true) - granted(false);
        assert!((7..=13).contains(&more), "{more}");
    }
}

/// A hundred clients that have just started call a server that answers nothing. Each has a full bucket of its own. None
/// has had a success, so together they have one retry from the full bucket, and one in each two seconds.
// F-3, FB-2
#[test]
fn fresh_clients_have_one_retry_together() {
    let mut scene = failing(100, 1.0);
    (scene.rate, scene.duration) = (1.0, 1000);
    let ours = policies().into_iter().find(|policy| policy.name == "ours").unwrap();
    let [own, shared] = [&ours, &fleet(&StoreSettings::default())].map(|policy| {
        let curves = run(&scene, policy);
        total(&curves.attempts) - total(&curves.calls)
    });
    assert!(own > 130, "{own}");
    assert!((1..=2).contains(&shared), "{shared}");
}

/// Clients that restart every five seconds forget what their own budgets knew, but not the store.
#[test]
fn restarts_do_not_fill_the_shared_bucket() {
    let ours = policies().into_iter().find(|policy| policy.name == "ours").unwrap();
    let mut scene = stall(1);
    scene.rate = 0.02;
    let attempts = |scene: &Scene, policy| lost_and_attempts(scene, policy).1;
    let lasting = attempts(&scene, &ours);
    scene.restart_every = Some(5_000);
    let (own, shared) = (attempts(&scene, &ours), attempts(&scene, &fleet(&StoreSettings::default())));
    assert!(own > lasting + 0.05, "{own} {lasting}");
    assert!(shared < 1.05, "{shared}");
}

/// A message has a place only while it is on its way.
#[test]
fn places_of_messages_are_used_again() {
    for round_trip in [2, 60] {
        let settings = StoreSettings { round_trip, ..StoreSettings::default() };
        let mut store = Fleet::new(&settings);
        let budget = store.budget_of_client(1);
        for now in 0..10_u64 {
            store.set_now(now * 10_000);
            (0..5).for_each(|_| budget.local().on_success("a", 0));
            let permit = budget.acquire("a", &Failure::new(FailureKind::Server), Duration::ZERO);
            let (_, place, mut event) = store.send((0, 0, 0, 0))[0];
            assert_eq!(place, 0);
            while let (Some((_, next)), _) = store.happens(now * 10_000, place, event) {
                event = next;
            }
            drop(permit);
            // What is returned goes with a report.
            while let Some((_, place, event)) = store.send((0, 0, 0, 0)).pop() {
                store.happens(now * 10_000, place, event);
            }
        }
    }
}
