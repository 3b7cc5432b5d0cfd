//! Endpoints from a tower `Discover`.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use reattempt_control::{EndpointEvent, Place};
use tokio::task::yield_now;
use tokio::time::sleep;
use tower::discover::{Change, Discover};

use super::Endpoints;
use super::discovery::{caught, text};
use super::guard::EndpointGuard;
use super::handle::name_of;
use super::job::Job;
use super::place::{Keyed, Placing};
use tower::BoxError;

/// The wait after an error, so that a source that always fails does not cause a busy loop.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// A source of endpoints that applies the changes from a `Discover`.
#[derive(Debug)]
pub struct Discovered<D: Discover> {
    discover: D,
    placing: Placing<D::Key>,
    may_be_empty: bool,
}

impl<D: Discover> Keyed for Discovered<D> {
    type Key = D::Key;

    fn placing(&mut self) -> &mut Placing<D::Key> {
        &mut self.placing
    }
}

impl<D: Discover> Endpoints<Discovered<D>> {
    /// Applies the changes from a `tower::discover::Discover`, such as a stream of changes or a `ServiceList`.
    ///
    /// A key that is inserted again becomes a new endpoint with the new service. After an error, the set does not
    /// change, and the source is polled again after 1 s. If the source ends or panics, the set no longer changes. The
    /// last endpoint is removed only when another one is added, unless [`allow_empty`](Self::allow_empty) is set.
    pub fn discover(discover: D) -> Self {
        Self::of(Discovered { discover, placing: Placing::default(), may_be_empty: false })
    }

    /// Removes the last endpoint, too. Calls are then refused with [`Reason::Empty`](reattempt_guard::Reason::Empty),
    /// until another one is added.
    ///
    /// Set it for a source that knows that a service has no servers, such as a scheduler that gives their addresses to
    /// others. By default, the last endpoints stay, because most sources lose them by an error of their own.
    pub fn allow_empty(mut self) -> Self {
        self.source.may_be_empty = true;
        self
    }
}

type Found<D> = Option<Result<Change<<D as Discover>::Key, <D as Discover>::Service>, BoxError>>;

/// The job that applies changes from a source.
pub(super) struct Follow<D: Discover> {
    discover: Pin<Box<D>>,
    names: BTreeSet<Arc<str>>,
    /// All discovered services. A subset, or an update through a handle, may remove a service from the set and add it
    /// again later.
    services: HashMap<Arc<str>, (D::Key, D::Service)>,
    inserted: BTreeSet<Arc<str>>,
    placing: Placing<D::Key>,
    may_be_empty: bool,
    changed: bool,
    /// `true` if the last update failed, and is tried again.
    failed: bool,
}

impl<D: Discover> Follow<D> {
    pub(super) fn new(source: Discovered<D>) -> Self {
        let Discovered { discover, placing, may_be_empty } = source;
        let (names, services, inserted) = (BTreeSet::new(), HashMap::new(), BTreeSet::new());
        let (discover, changed, failed) = (Box::pin(discover), false, false);
        Self { discover, names, services, inserted, placing, may_be_empty, changed, failed }
    }
}

impl<D> Job for Follow<D>
where
    D: Discover + Send + 'static,
    D::Key: Display + Send,
    D::Service: Clone + Send + Sync + 'static,
    D::Error: Into<BoxError>,
{
    type Client = D::Service;

    async fn run(&mut self, guard: &Weak<EndpointGuard<D::Service>>) {
        loop {
            let found = poll_fn(|cx| match changes(self.discover.as_mut(), cx) {
                changes if changes.is_empty() && !self.failed => Poll::Pending,
                changes => Poll::Ready(changes),
            });
            let found = found.await;
            let Some(guard) = guard.upgrade() else { return };
            let (mut is_over, mut errors) = (matches!(found.last(), Some(None)), Vec::new());
            // Formatting a key and cloning a service run user code.
            let applied = caught(|| {
                for change in found.into_iter().flatten() {
                    match change {
                        Ok(change) => self.take(change),
                        Err(error) => errors.push(error),
                    }
                }
                self.update(&guard)
            });
            self.failed = matches!(applied, Ok(Err(_)));
            is_over |= applied.is_err();
            errors.extend(applied.and_then(|updated| updated).err());
            let retry = (!is_over).then_some(AFTER_ERROR);
            for error in &errors {
                let error = text(error);
                let _panicked = caught(|| guard.notify(&EndpointEvent::ResolveFailed { error, retry }));
            }
            drop(guard);
            if is_over {
                return;
            }
            match errors.is_empty() {
                // A source that always has changes must not stop the other tasks of its thread.
                true => yield_now().await,
                false => sleep(AFTER_ERROR).await,
            }
        }
    }
}

impl<D> Follow<D>
where
    D: Discover,
    D::Key: Display,
    D::Service: Clone + Send + Sync + 'static,
{
    fn take(&mut self, change: Change<D::Key, D::Service>) {
        self.changed = true;
        match change {
            Change::Insert(key, service) => {
                let name = name_of(&key);
                self.names.insert(Arc::clone(&name));
                self.inserted.insert(Arc::clone(&name));
                self.services.insert(name, (key, service));
            }
            Change::Remove(key) => {
                let name = name_of(&key);
                self.names.remove(&*name);
                self.inserted.remove(&*name);
                self.services.remove(&*name);
            }
        }
    }

    /// Applies the changes to the set, unless it must not become empty. Returns the panic of the function that places
    /// endpoints, and then changes nothing.
    fn update(&mut self, guard: &EndpointGuard<D::Service>) -> Result<(), BoxError> {
        if !self.changed || (self.names.is_empty() && !self.may_be_empty) {
            return Ok(());
        }
        let service = |name: &str| self.services.get(name);
        let place = |name| service(name).map_or(Place::new(), |(key, _)| self.placing.of(key, Place::new()));
        let placed = || self.names.iter().map(|name| (place(name), Arc::clone(name))).collect();
        let endpoints: Vec<_> = caught(placed)?;
        let made = |name: &str| service(name).map(|(_, service)| service.clone());
        guard.replace(endpoints, |name| self.inserted.contains(name), made);
        self.inserted.clear();
        self.changed = false;
        let _panicked = caught(|| guard.notify(&EndpointEvent::Resolved { endpoints: self.names.len() }));
        Ok(())
    }
}

/// Takes the available changes. `None` marks the end.
fn changes<D>(mut discover: Pin<&mut D>, cx: &mut std::task::Context<'_>) -> Vec<Found<D>>
where
    D: Discover,
    D::Error: Into<BoxError>,
{
    /// The maximum number of changes taken at once.
    const MOST: usize = 4096;
    let mut changes = Vec::new();
    while changes.len() < MOST {
        match caught(|| discover.as_mut().poll_discover(cx)) {
            Ok(Poll::Pending) => break,
            Ok(Poll::Ready(Some(change))) => {
                let change = change.map_err(Into::into);
                let failed = change.is_err();
                changes.push(Some(change));
                if failed {
                    break;
                }
            }
            Ok(Poll::Ready(None)) => {
                changes.push(None);
                break;
            }
            // The source must not be polled again.
            Err(panicked) => {
                changes.extend([Some(Err(panicked)), None]);
                break;
            }
        }
    }
    changes
}
