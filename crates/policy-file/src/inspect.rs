//! The part of a policy file in a snapshot: its version, and all that is in force through it.

use std::time::Duration;

use reattempt::snapshot::{Inspect, Part};

use crate::PolicyFile;
use crate::in_force::InForce;
use crate::reader::{GuardKind, GuardWord, Policy};
use crate::state::State;

/// Shows the version in force, the problems of a newer content, each policy with its budget and its guards, and each
/// layer's endpoints.
///
/// Fields of the file: `version` counts the contents that have been in force, `hash` is the same in each process with
/// the same content, and `age` is the time since the content came into force. `up_to_date` is `false` if the file has a
/// newer content that cannot be used. A budget that the program supplies, as for `fleet`, is shown if the program adds
/// it to the snapshot.
impl Inspect for PolicyFile {
    fn inspect(&self, now: Duration) -> Part {
        let InForce { path, document, states, followers, version } = self.in_force();
        let error = self.error().map(|error| error.to_string());
        let problems = error.iter().flat_map(|error| error.lines()).map(|line| Part::new("problem", line));
        let policies = document.policies.iter().map(|policy| inspect_policy(policy, states.get(&policy.name), now));
        let layers = (1_u64..).zip(&followers);
        let endpoints = layers.flat_map(|(layer, follower)| {
            follower.endpoints(now).into_iter().map(move |set| set.field("layer", layer))
        });
        Part::new("policy_file", "")
            .field("path", path.display().to_string())
            .field("version", version.number)
            .field("hash", format!("{:016x}", version.hash))
            .field("age", now.saturating_sub(version.since))
            .field("up_to_date", error.is_none())
            .field("never_retry", self.never_retry())
            .field_if("default", document.default.as_deref())
            .field("routes", document.routes.len())
            .parts(problems)
            .parts(policies)
            .parts(endpoints)
    }
}

fn inspect_policy(policy: &Policy, state: Option<&State>, now: Duration) -> Part {
    let part = policy.limits().inspect(Part::new("policy", &*policy.name));
    part.field_if("attempt_timeout", policy.attempt_timeout)
        .field_if("endpoints", policy.endpoints.as_deref())
        .field_if("budget", policy.is_fleet.then_some("fleet"))
        .parts(state.and_then(State::own_budget).map(|budget| budget.inspect(now)))
        .parts(state.into_iter().flat_map(State::guard_words).map(|guard| guard.inspect(now).named(&*guard.name)))
}

impl Inspect for GuardWord {
    fn inspect(&self, now: Duration) -> Part {
        match &self.kind {
            GuardKind::Breaker(guard) => guard.inspect(now),
            GuardKind::RateLimit(guard) => guard.inspect(now),
            GuardKind::Bulkhead(guard) => guard.inspect(now),
            GuardKind::Aimd(guard) => guard.inspect(now),
            GuardKind::Vegas(guard) => guard.inspect(now),
            GuardKind::Gradient2(guard) => guard.inspect(now),
            GuardKind::Throttle(guard) => guard.inspect(now),
            GuardKind::Pause(guard) => guard.inspect(now),
        }
    }
}
