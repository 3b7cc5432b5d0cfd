//! The budget that all clients share.

use super::*;
use crate::storm::fleet::StoreSettings;

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

/// F-2: without its store each client has the budget of its own.
#[test]
fn store_that_is_down_leaves_own_budgets() {
    let ours = policies().into_iter().find(|policy| policy.name == "ours").unwrap();
    let down = StoreSettings { down: 0..u64::MAX, ..StoreSettings::default() };
    let (own, _) = lost_and_attempts(&stall(1), &ours);
    let (alone, _) = lost_and_attempts(&stall(1), &fleet(&down));
    assert!((own - alone).abs() < 0.05, "{own} {alone}");
}

#[test]
fn answers_after_the_patience_are_of_no_use() {
    let far = StoreSettings { round_trip: 200, ..StoreSettings::default() };
    let (lost, _) = lost_and_attempts(&stall(1), &fleet(&far));
    assert!(lost > 0.5, "{lost}");
}

/// F-9
#[test]
fn lost_data_costs_ten_retries() {
    let lossy = StoreSettings { down: 14_000..16_000, loses_data: true, ..StoreSettings::default() };
    let (lost, attempts) = lost_and_attempts(&stall(1), &fleet(&lossy));
    let (usual, _) = lost_and_attempts(&stall(1), &fleet(&StoreSettings::default()));
    assert!(lost < usual + 0.1 && attempts < 1.1, "{lost} {usual} {attempts}");
}
