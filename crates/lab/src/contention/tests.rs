//! The figures compared with closed forms, and their dependence on the seed.

use super::*;

fn contention(clients: &[u32], deviation: Duration) -> Contention {
    Contention {
        clients: clients.to_vec(),
        runs: 5,
        base: Duration::from_millis(5),
        cap: Duration::from_secs(2),
        delay: Duration::from_millis(10),
        deviation,
    }
}

fn points(case: &Contention, seed: u64) -> Vec<(&'static str, Vec<Point>)> {
    let courses = case.courses(seed).unwrap();
    courses.into_iter().map(|course| (course.schedule, course.points)).collect()
}

/// Without spread in the network, clients without jitter stay in step. In each round one of them
/// writes, and all others try again together.
#[test]
fn in_step_one_client_writes_in_each_round() {
    let courses = points(&contention(&[1, 2, 7, 30], Duration::ZERO), 1);
    for (name, course) in &courses[..2] {
        for point in course {
            let n = f64::from(point.clients);
            assert_eq!(point.calls, n * (n + 1.0) / 2.0, "{name} {n}");
            // Each round takes four message delays of 10 ms. Between two rounds is the delay of the
            // exponential schedule: 5 ms · 2ᵏ, at most 2 s.
            let waits = (0..point.clients - 1)
                .map(|k| if *name == "none" { 0.0 } else { (0.005 * 2f64.powi(k as i32)).min(2.0) });
            let expected = n * 0.040 + waits.sum::<f64>();
            assert!((point.seconds - expected).abs() < 1e-9, "{name} {n}: {point:?} {expected}");
        }
    }
}

/// A single client writes at its first try, with every schedule.
#[test]
fn single_client_never_retries() {
    for (name, course) in points(&contention(&[1], Duration::from_millis(2)), 3) {
        assert_eq!(course[0].calls, 1.0, "{name}");
        assert!((course[0].seconds - 0.040).abs() < 0.010, "{name} {:?}", course[0]);
    }
}

/// Longer delays save few calls, and jitter saves most of them.
#[test]
fn jitter_saves_calls() {
    let courses = points(&contention(&[100], Duration::from_millis(2)), 1);
    let calls: Vec<_> = courses.iter().map(|(_, course)| course[0].calls).collect();
    let [none, exponential, equal, full, decorrelated] = calls[..] else { panic!("{calls:?}") };
    assert!(none <= 5050.0, "in each round at least one client writes: {none}");
    assert!(none > exponential, "{calls:?}");
    for jittered in [equal, full, decorrelated] {
        assert!(jittered < 0.6 * exponential, "{calls:?}");
    }
}

#[test]
fn figures_depend_on_the_seed_alone() {
    let case = contention(&[20], Duration::from_millis(2));
    assert_eq!(points(&case, 1), points(&case, 1));
    assert_ne!(points(&case, 1)[3], points(&case, 2)[3]);
}
