//! Tests of two owners in one process, behind one client: whatever the hostile one does, the other's calls end as they
//! would alone.
//!
//! Each scene is played twice with the same seed: with and without the hostile owner. The traces of the other owner
//! must be equal: the outcomes, the number of attempts and their times. Its destination is its own, except in a
//! gateway, where hang-ups and statuses that concern only the request must not open the breaker for both, or put the
//! first tier of its servers out of service.
//!
//! There are two exceptions while every entry of a table is in use. A rate limit set by the user then shares one state
//! among new destinations, so traces are not compared ([`Scene::rate_entries_are_in_use`]). A budget shares one bucket
//! among them, so only first attempts are compared ([`Scene::buckets_are_in_use`]). Guards with one state for all
//! destinations, such as `Pace`, are left out.
//!
//! | variable | value |
//! |---|---|
//! | `REATTEMPT_TENANTS` | the number of scenes, by default 240: each attack with each guard four times |
//! | `REATTEMPT_TENANTS_SEED` | the seed of the first scene, 0 by default; each further scene uses the next seed |

mod client;
mod running;
mod scene;

use std::collections::BTreeMap;

use running::{Ended, play};
use scene::Scene;

use crate::stacks::number;

/// The length above which a destination's key is replaced by its hash.
const LONGEST_NAME: usize = 255;

// trap 40, trap 52, trap 53, trap 54, trap 55
/// The names, keys, bodies, statuses and hang-ups of one owner change nothing for another.
#[test]
fn owner_is_served_as_it_is_alone() {
    let first = number("REATTEMPT_TENANTS_SEED", 0);
    let mut broken: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for seed in first..first.saturating_add(number("REATTEMPT_TENANTS", 240)) {
        let scene = Scene::of(seed);
        if let Err(case) = judge(&scene) {
            let kind = format!("{:?} against {:?}, table {:?}", scene.attack, scene.guarding, scene.table);
            broken.entry(kind).or_default().push(format!("seed {seed}, hedged {}: {case}", scene.hedged));
        }
    }
    let lines: Vec<_> =
        broken.iter().map(|(kind, cases)| format!("{kind}: {} scenes, such as {}", cases.len(), cases[0])).collect();
    assert!(
        broken.is_empty(),
        "{}\nonce more: REATTEMPT_TENANTS=1 REATTEMPT_TENANTS_SEED=… \
         cargo test -p reattempt --all-features --test it tenants",
        lines.join("\n")
    );
}

fn judge(scene: &Scene) -> Result<(), String> {
    let (alone, beside) = (play(scene, false), play(scene, true));
    for (call, ended) in scene.calls.iter().zip(&alone.calls) {
        let made = ended.attempts.len();
        let as_planned = made == call.acts.len() || (scene.hedged && made > call.acts.len());
        assert!(ended.outcome == "200 OK" && as_planned, "alone: {ended:?}, {call:?}, {scene:?}");
    }
    if beside.longest_name > LONGEST_NAME {
        return Err(format!("a key of {} bytes is kept", beside.longest_name));
    }
    let differs = |(alone, beside): &(&Ended, &Ended)| match scene.buckets_are_in_use() {
        true => alone.attempts.first() != beside.attempts.first(),
        false => alone != beside,
    };
    match alone.calls.iter().zip(&beside.calls).find(differs) {
        Some((alone, beside)) if !scene.rate_entries_are_in_use() => {
            Err(format!("alone {alone:?}, beside the other {beside:?}"))
        }
        _ => Ok(()),
    }
}
