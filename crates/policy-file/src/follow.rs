//! The layers that follow a file. Each rebuilds its policy table when the file changes.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reattempt::endpoints::{BaseUrl, Endpoints, EndpointsHandle, EndpointsLayer};
use reattempt::policies::{PolicyHandle, PolicyStack, PolicyTable, TableBudget, WeakPolicyHandle};
use reattempt::protocol::RequestProtocol;
use reattempt::snapshot::{Inspect, Part};

use crate::budget::{KillSwitch, Switched};
use crate::look_up::{LookUp, Report};
use crate::reader::route_index::RouteIndex;
use crate::reader::{Document, EndpointsSection, Policy};
use crate::state::States;

/// A layer that follows a file.
pub(crate) trait Follow: Send + Sync {
    /// Applies a document.
    fn follow(&self, document: &Document, states: &States, switch: &KillSwitch, owner: Arc<dyn Any + Send + Sync>);

    /// Returns a snapshot's part of each set of endpoints, sorted by name.
    fn endpoints(&self, now: Duration) -> Vec<Part>;

    /// Returns `false` once the layer and its clients have been dropped.
    fn is_used(&self) -> bool;
}

/// The program's callback that changes each policy of a layer. Its first argument is the policy's name.
type Change<P> = Box<dyn Fn(&str, PolicyStack<P>) -> PolicyStack<P> + Send + Sync>;

/// The layers of the sets of endpoints, by section name.
type Layers<P> = HashMap<String, EndpointsLayer<P, <P as RequestProtocol>::Errors>>;

/// A layer's part of the state: its table and its sets of endpoints.
pub(crate) struct Follower<P: RequestProtocol> {
    protocol: P,
    change: Change<P>,
    handle: WeakPolicyHandle<P>,
    report: Report,
    endpoints: Mutex<HashMap<String, Servers<P>>>,
}

/// A set of endpoints, with the section from which it was created.
struct Servers<P: RequestProtocol> {
    section: EndpointsSection,
    layer: EndpointsLayer<P, P::Errors>,
    /// The look-ups of the host name, which end when this value is dropped.
    look_up: Option<LookUp>,
}

impl<P> Follower<P>
where
    P: RequestProtocol + Clone + Send + Sync + 'static,
    P::Errors: 'static,
{
    /// Creates a layer's table and the follower that replaces it.
    pub(crate) fn begin(
        protocol: P,
        change: Change<P>,
        document: &Document,
        (states, switch): (&States, &KillSwitch),
        (owner, report): (Arc<dyn Any + Send + Sync>, Report),
    ) -> (PolicyHandle<P>, Self) {
        let mut endpoints = HashMap::new();
        keep_servers(&protocol, document, &mut endpoints, &report);
        let table = table(&protocol, &change, document, (states, switch), &layers(&endpoints)).owned_by(owner);
        let handle = PolicyHandle::new(table);
        let (weak, endpoints) = (handle.downgrade(), Mutex::new(endpoints));
        let follower = Self { protocol, change, handle: weak, report, endpoints };
        (handle, follower)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Servers<P>>> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P> Follow for Follower<P>
where
    P: RequestProtocol + Clone + Send + Sync + 'static,
    P::Errors: 'static,
{
    fn follow(&self, document: &Document, states: &States, switch: &KillSwitch, owner: Arc<dyn Any + Send + Sync>) {
        let Some(handle) = self.handle.upgrade() else { return };
        // Released before the program's callback runs, which may read the handle.
        let endpoints = {
            let mut endpoints = self.lock();
            keep_servers(&self.protocol, document, &mut endpoints, &self.report);
            layers(&endpoints)
        };
        let table = table(&self.protocol, &self.change, document, (states, switch), &endpoints);
        handle.replace(table.owned_by(owner));
    }

    fn endpoints(&self, now: Duration) -> Vec<Part> {
        let mut sets: Vec<_> = layers(&self.lock()).into_iter().collect();
        sets.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        sets.into_iter().map(|(name, layer)| layer.endpoints().inspect(now).named(name)).collect()
    }

    fn is_used(&self) -> bool {
        self.handle.upgrade().is_some()
    }
}

/// Returns the table for a document: the default policy, then each route with its policy.
fn table<P: RequestProtocol + Clone>(
    protocol: &P,
    change: &Change<P>,
    document: &Document,
    (states, switch): (&States, &KillSwitch),
    endpoints: &Layers<P>,
) -> PolicyTable<P> {
    let stack = |name: Option<&str>| {
        let policy = document.policies.iter().find(|policy| name == Some(&policy.name));
        let stack = change(name.unwrap_or_default(), stack(protocol, policy, states, endpoints));
        // Applied last, so that the switch also affects a budget that the program has set.
        stack.retries(|retries| {
            let budget = Arc::clone(retries.budget_ref());
            let retries = retries.budget(Arc::new(Switched { budget, switch: switch.clone() }) as TableBudget);
            if switch.is_on() { retries.never_retry() } else { retries }
        })
    };
    let mut table = PolicyTable::new(stack(document.default.as_deref()));
    // The number of each policy in the table, and that of each route's policy.
    let (mut numbers, mut of_routes) = (HashMap::new(), Vec::new());
    for route in &document.routes {
        let next = numbers.len() + 1;
        let number = *numbers.entry(&*route.policy).or_insert(next);
        if number == next {
            table = table.or(stack(Some(&route.policy)), |_| false);
        }
        of_routes.push(number);
    }
    let routes = RouteIndex::new(&document.routes);
    table.choose_by(move |request| routes.find(request).and_then(|route| of_routes.get(route).copied()).unwrap_or(0))
}

fn layers<P: RequestProtocol + Clone>(endpoints: &HashMap<String, Servers<P>>) -> Layers<P> {
    endpoints.iter().map(|(name, servers)| (name.clone(), servers.layer.clone())).collect()
}

/// Keeps the sets for sections that still exist, and creates sets for new sections.
fn keep_servers<P: RequestProtocol + Clone>(
    protocol: &P,
    document: &Document,
    endpoints: &mut HashMap<String, Servers<P>>,
    report: &Report,
) {
    let mut former = std::mem::take(endpoints);
    for section in &document.endpoints {
        let kept = former.remove(&section.name).filter(|kept| kept.continues(section));
        let servers =
            kept.map(|kept| kept.changed(section, report)).or_else(|| Servers::new(protocol, section, report));
        if let Some(servers) = servers {
            endpoints.insert(section.name.clone(), servers);
        }
    }
}

impl<P: RequestProtocol + Clone> Servers<P> {
    /// Creates a set. Returns `None` for a section that the reader has not checked.
    fn new(protocol: &P, section: &EndpointsSection, report: &Report) -> Option<Self> {
        let endpoints = Endpoints::urls(&section.urls).and_then(|urls| urls.base(&section.base)).ok()?;
        let layer = EndpointsLayer::with(protocol.clone(), endpoints);
        let look_up = look_up(section, layer.endpoints(), report);
        Some(Self { section: section.clone(), layer, look_up })
    }

    /// Returns `true` if the set can be kept for this section: it has the same base, and the same host name or a server
    /// in common. Otherwise, calls in flight keep the old set, so that they are not retried on unrelated servers.
    fn continues(&self, section: &EndpointsSection) -> bool {
        let is_same = match (&self.section.dns, &section.dns) {
            (Some((former, _)), Some((name, _))) => former == name,
            (None, None) => section.urls.iter().any(|url| self.section.urls.contains(url)),
            _ => false,
        };
        is_same && self.section.base == section.base
    }

    /// Returns the set with the servers in this section. Servers that were in the set before keep their state.
    fn changed(self, section: &EndpointsSection, report: &Report) -> Self {
        if self.section == *section {
            return self;
        }
        // The old look-ups end first, so that their answers never replace new ones.
        drop(self.look_up);
        let look_up = look_up(section, self.layer.endpoints(), report);
        if section.dns.is_none() {
            // The reader has checked the URLs.
            let _ = self.layer.endpoints().update_urls(&section.urls);
        }
        Self { section: section.clone(), layer: self.layer, look_up }
    }
}

/// Starts the look-ups of a section with a host name.
fn look_up(section: &EndpointsSection, servers: EndpointsHandle<BaseUrl>, report: &Report) -> Option<LookUp> {
    let (name, every) = section.dns.clone()?;
    Some(LookUp::start(name, every, servers, Arc::clone(report)))
}

/// Returns a policy with the state of its section.
fn stack<P: RequestProtocol + Clone>(
    protocol: &P,
    policy: Option<&Policy>,
    states: &States,
    endpoints: &Layers<P>,
) -> PolicyStack<P> {
    let mut protocol = protocol.clone();
    if let Some(policy) = policy {
        protocol.set_profile_classifier(policy.profile.classifier);
        if let Some(repeatable) = policy.repeatable {
            protocol.set_repeatable(repeatable);
        }
        protocol.change_hints(&|hints| policy.hints(hints));
        policy.on_status.iter().for_each(|(status, verdict)| protocol.change_status(*status, *verdict));
        policy.on_code.iter().for_each(|(code, verdict)| protocol.change_code(code, *verdict));
    }
    let mut stack = PolicyStack::new(protocol);
    let Some(state) = states.get(policy.map(|policy| &*policy.name).unwrap_or_default()) else { return stack };
    stack = stack.retries(|retries| retries.budget(Arc::clone(&state.budget)));
    let Some(policy) = policy else { return stack };
    let limits = policy.limits();
    stack = stack.retries(|retries| {
        retries
            .backoff(policy.profile.schedule.clone())
            .max_attempts(limits.max_attempts)
            .max_elapsed(limits.max_elapsed)
            .max_server_delay(limits.max_server_delay)
    });
    stack = stack.guarded_by(state.guards());
    if let Some(timeout) = policy.attempt_timeout {
        stack = stack.guards(|guards| guards.attempt_timeout(timeout));
    }
    match policy.endpoints.as_ref().and_then(|name| endpoints.get(name)) {
        Some(layer) => stack.endpoints(layer.clone()),
        None => stack,
    }
}
