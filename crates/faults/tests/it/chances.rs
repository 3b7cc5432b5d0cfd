//! Tests of random faults.

use reattempt_faults::{Chances, Faults, Per, Script, ServiceFault};

use crate::support::{BUSY, ms, request, retry};

fn half(seed: u64, per: Per) -> Script<ServiceFault> {
    Script::default().chances(Chances::new(seed, per).fault(500, BUSY))
}

/// Returns one value per request, `true` if it failed, for a thousand requests: 20 calls in turn, a millisecond apart.
async fn failures(script: Script<ServiceFault>, calls: impl Iterator<Item = usize>) -> Vec<bool> {
    let faults = Faults::new(script);
    let mut server = faults.service();
    let mut failed = Vec::new();
    for call in calls {
        let get = request("GET", &format!("/{call}"), "");
        failed.push(retry(&mut server, 1, &get).await.unwrap().status() == 503);
        tokio::time::sleep(ms(1)).await;
    }
    failed
}

#[tokio::test(start_paused = true)]
async fn same_seed_gives_same_faults() {
    for per in [Per::Arrival, Per::Call, Per::Period(ms(10))] {
        let rounds = || (0..1000).map(|number| number % 20);
        let one = failures(half(1, per), rounds()).await;
        assert_eq!(one, failures(half(1, per), rounds()).await);
        assert_ne!(one, failures(half(2, per), rounds()).await);
        let hits = one.iter().filter(|failed| **failed).count();
        assert!((350..650).contains(&hits), "{per:?}: {hits}");
    }
}

#[tokio::test(start_paused = true)]
async fn order_of_calls_has_no_effect_per_call() {
    let forth = failures(half(1, Per::Call), 0..20).await;
    let mut back = failures(half(1, Per::Call), (0..20).rev()).await;
    back.reverse();
    assert_eq!(forth, back);
    assert!(forth.contains(&true) && forth.contains(&false), "of the first arrivals");
}

#[tokio::test(start_paused = true)]
async fn period_has_one_fault() {
    let failed = failures(half(3, Per::Period(ms(10))), 0..200).await;
    assert!(failed.chunks(10).all(|period| period.iter().all(|it| *it == period[0])));
    assert!(failed.contains(&true) && failed.contains(&false));
}

#[tokio::test(start_paused = true)]
async fn shares_of_a_thousand_are_kept() {
    let script = |share| {
        let chances = Chances::new(5, Per::Arrival).fault(share, BUSY);
        Script::from([ServiceFault::NoFault]).chances(chances)
    };
    assert_eq!(failures(script(0), 0..100).await, [false; 100]);
    let all = failures(script(1000), 0..100).await;
    assert_eq!((all[0], &all[1..]), (false, &[true; 99][..]));
}
