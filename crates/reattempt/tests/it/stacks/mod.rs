//! Tests of any stack of layers, in any order and with repetitions, around servers with a ledger.
//!
//! Each run is drawn from one seed: one to six layers, some of them in places that [`reattempt::order`] advises
//! against, one to five calls, and what the servers do to them. [`oracle`] has the rules. A failure prints the smallest
//! plan that still fails.
//!
//! | variable | value |
//! |---|---|
//! | `REATTEMPT_STACKS` | the number of runs, 10,000 by default |
//! | `REATTEMPT_STACKS_SEED` | the seed of the first run, 0 by default; each further run uses the next seed |

mod building;
mod cluster;
mod drawing;
pub(crate) mod erased;
mod file;
mod intruders;
mod oracle;
mod plan;
mod running;

use std::collections::BTreeMap;
use std::fmt::Write;

use plan::{Act, Layer, Plan};
use running::{record, run};

/// The number of plans that are minimised per broken rule.
const SHOWN: usize = 10;

pub(crate) fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |number| number.parse().unwrap())
}

// BI-7, trap 28, trap 48, trap 49, trap 50
/// No order of layers carries an unsafe request out twice, joins two files, loses a permit or a place, or leaves a call
/// without an end.
#[test]
fn every_stack_keeps_the_rules() {
    let first = number("REATTEMPT_STACKS_SEED", 0);
    let seeds = first..first.saturating_add(number("REATTEMPT_STACKS", 10_000));
    let mut broken: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for seed in seeds {
        if let Err((rule, _)) = run(&Plan::of(seed)) {
            broken.entry(rule).or_default().push(seed);
        }
    }
    let shown: String = broken.iter().map(|(rule, seeds)| shown(rule, seeds)).collect();
    assert!(broken.is_empty(), "{shown}");
}

/// A seed makes every run of its plan the same.
#[test]
fn seed_reproduces_its_run() {
    for seed in 0..200 {
        let plan = Plan::of(seed);
        assert_eq!(record(&plan), record(&plan), "{plan:?}");
    }
}

/// Returns the rule with the smallest plan that breaks it, and the layers of some others.
fn shown(rule: &str, seeds: &[u64]) -> String {
    let mut plans: Vec<_> = seeds.iter().take(SHOWN).map(|seed| minimised(rule, Plan::of(*seed))).collect();
    plans.sort_by_key(|plan| (plan.layers.len(), plan.calls.len(), plan.acts.len()));
    let mut text = format!("\n{} stacks break the rule: {rule}\n", seeds.len());
    for plan in &plans {
        writeln!(text, "  seed {}: {:?}", plan.seed, plan.layers).unwrap();
    }
    if let Some(plan) = plans.first() {
        let case = run(plan).map_or_else(|(_, case)| case, |()| String::new());
        let Plan { seed, layers, calls, acts, readiness, upsets, own_answers } = plan;
        writeln!(
            text,
            "the smallest: {case}\nlayers, from the outside in: {layers:#?}\ncalls: {calls:#?}\nacts: {acts:#?}\n\
             readiness: {readiness:?}\nupsets: {upsets:?}\nown answers: {own_answers:?}\nonce more: REATTEMPT_STACKS=1 REATTEMPT_STACKS_SEED={seed} \
             cargo test -p reattempt --all-features --test it stacks"
        )
        .unwrap();
    }
    text
}

/// Removes everything that is not needed to break the rule: layers, calls, acts and readiness states.
fn minimised(rule: &str, mut plan: Plan) -> Plan {
    let breaks = |plan: &Plan| run(plan).is_err_and(|(broken, _)| broken == rule);
    loop {
        let smaller = candidates(&plan).find(breaks);
        match smaller {
            Some(smaller) => plan = smaller,
            None => return plan,
        }
    }
}

/// Returns the plans with one element removed.
fn candidates(plan: &Plan) -> impl Iterator<Item = Plan> {
    let with = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan.clone();
        change(&mut plan);
        plan
    };
    let layers = (0..plan.layers.len()).map(move |at| with(&|plan| _ = plan.layers.remove(at)));
    let guards = (0..plan.layers.len()).flat_map(move |at| {
        let kinds = if let Layer::Guards { kinds, .. } = &plan.layers[at] { kinds.len() } else { 0 };
        let less = move |kind| {
            with(&move |plan| {
                if let Layer::Guards { kinds, .. } = &mut plan.layers[at] {
                    kinds.remove(kind);
                }
            })
        };
        (0..kinds).filter(move |_| kinds > 1).map(less)
    });
    let calls = (0..plan.calls.len()).map(move |at| with(&|plan| _ = plan.calls.remove(at)));
    let troubles = (0..plan.calls.len())
        .map(move |at| with(&|plan| (plan.calls[at].deadline, plan.calls[at].dropped_after) = (None, None)));
    let troubles = troubles.filter(|smaller| smaller.calls != plan.calls);
    let rest = [
        with(&|plan| _ = plan.readiness.pop()),
        with(&|plan| _ = plan.acts.pop()),
        with(&|plan| _ = plan.upsets.pop()),
        with(&|plan| _ = plan.own_answers.pop()),
    ];
    let sizes = |plan: &Plan| (plan.readiness.len(), plan.acts.len(), plan.upsets.len(), plan.own_answers.len());
    let rest = rest.into_iter().filter(move |smaller| sizes(smaller) != sizes(plan));
    let calmer = (0..plan.upsets.len()).map(move |at| with(&|plan| plan.upsets[at] = false));
    let calmer = calmer.filter(|smaller| smaller.upsets != plan.upsets);
    let acts = (0..plan.acts.len()).map(move |at| with(&|plan| plan.acts[at] = Act::SERVES));
    let acts = acts.filter(|smaller| smaller.acts != plan.acts);
    layers.chain(guards).chain(calls).chain(troubles).chain(rest).chain(calmer).chain(acts)
}
