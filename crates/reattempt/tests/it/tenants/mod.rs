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

use running::{Ended, Trace, play};
use scene::Scene;

use crate::stacks::number;

/// The length above which a destination's key is replaced by its hash.
const LONGEST_NAME: usize = 255;

// trap 40, trap 52, trap 53, trap 54, trap 55
/// The names, keys, bodies, statuses and hang-ups of one owner change nothing for another.
#[test]
fn owner_is_served_as_it_is_alone() {
    let first = number("REATTEMPT_TENANTS_SEED", 0);
    let scenes = number("REATTEMPT_TENANTS", 240);
    let mut broken: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut planned = 0;
    for seed in first..first.saturating_add(scenes) {
        let scene = Scene::of(seed);
        let (is_planned, judged) = judge(&scene);
        planned += u64::from(is_planned);
        if let Err(case) = judged {
            let kind = format!("{:?} against {:?}, table {:?}", scene.attack, scene.guarding, scene.table);
            broken.entry(kind).or_default().push(format!("seed {seed}, hedged {}: {case}", scene.hedged));
        }
    }
    assert!(planned * 50 >= scenes * 49, "only {planned} of {scenes} scenes are as planned without the hostile owner");
    let lines: Vec<_> =
        broken.iter().map(|(kind, cases)| format!("{kind}: {} scenes, such as {}", cases.len(), cases[0])).collect();
    assert!(
        broken.is_empty(),
        "{}\nonce more: REATTEMPT_TENANTS=1 REATTEMPT_TENANTS_SEED=… \
         cargo test -p reattempt --all-features --test it tenants",
        lines.join("\n")
    );
}

/// Plays a scene with and without the hostile owner. The first value is `true` if the other owner's calls alone end as
/// planned: few draws have so many failures in a row that they open their own breaker.
fn judge(scene: &Scene) -> (bool, Result<(), String>) {
    let (alone, beside) = (play(scene, false), play(scene, true));
    let is_planned = scene.calls.iter().zip(&alone.calls).all(|(call, ended)| {
        let made = ended.attempts.len();
        ended.outcome == "200 OK" && (made == call.acts.len() || (scene.hedged && made > call.acts.len()))
    });
    (is_planned, compare(scene, &alone, &beside))
}

fn compare(scene: &Scene, alone: &Trace, beside: &Trace) -> Result<(), String> {
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
