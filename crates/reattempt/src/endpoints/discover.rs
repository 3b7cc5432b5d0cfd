//! tower's `Discover` as the source of a set.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use reattempt_control::EndpointEvent;
use tokio::time::sleep;
use tower::discover::{Change, Discover};

use super::Endpoints;
use super::discovery::{caught, text};
use super::guard::{EndpointGuard, EndsWait};
use crate::call::errors::BoxError;

/// The wait after an error, so that a source that always fails does not cause a busy loop.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// A source of endpoints that follows a `Discover`.
#[derive(Debug)]
pub struct Discovered<D>(pub(super) D);

impl<D: Discover> Endpoints<Discovered<D>> {
    /// Follows a `tower::discover::Discover`, such as a stream of changes or a `ServiceList`.
    ///
    /// A key that is inserted again is a new endpoint with the new service. After an error the endpoints stay, and the
    /// source is polled again after 1 s. If the source ends or panics, the endpoints stay. The last endpoint stays
    /// until there is another one.
    pub fn discover(discover: D) -> Self {
        Self::of(Discovered(discover))
    }
}

type Found<D> = Option<Result<Change<<D as Discover>::Key, <D as Discover>::Service>, BoxError>>;

/// Follows the source until it ends or the set is dropped.
pub(super) async fn follow<D>(guard: Weak<EndpointGuard<D::Service>>, discover: D)
where
    D: Discover,
    D::Key: Display,
    D::Service: Clone + Send + Sync + 'static,
    D::Error: Into<BoxError>,
{
    let _ends = EndsWait(guard.clone());
    let mut discover = pin!(discover);
    let mut names = BTreeSet::<Arc<str>>::new();
    // A subset, or an update through a handle, may remove a service from the set and add it again later.
    let (mut services, mut inserted, mut changed) = (HashMap::new(), BTreeSet::new(), false);
    loop {
        let changes = poll_fn(|cx| match changes(discover.as_mut(), cx) {
            changes if changes.is_empty() => Poll::Pending,
            changes => Poll::Ready(changes),
        });
        let changes = changes.await;
        let Some(guard) = guard.upgrade() else { return };
        let (mut is_over, mut has_failed) = (false, false);
        for change in changes {
            match change {
                None => is_over = true,
                Some(Err(error)) => {
                    has_failed = true;
                    let (error, retry) = (text(&error), Some(AFTER_ERROR));
                    let _panicked = caught(|| guard.notify(&EndpointEvent::ResolveFailed { error, retry }));
                }
                Some(Ok(Change::Insert(key, service))) => {
                    let name = Arc::from(key.to_string());
                    changed = true;
                    names.insert(Arc::clone(&name));
                    inserted.insert(Arc::clone(&name));
                    services.insert(name, service);
                }
                Some(Ok(Change::Remove(key))) => {
                    let name = key.to_string();
                    changed = true;
                    names.remove(&*name);
                    inserted.remove(&*name);
                    services.remove(&*name);
                }
            }
        }
        if changed && !names.is_empty() {
            let endpoints = names.iter().map(|name| (0, Arc::clone(name)));
            guard.replace(endpoints, |name| inserted.contains(name), |name| services.get(name).cloned());
            inserted.clear();
            changed = false;
            let _panicked = caught(|| guard.notify(&EndpointEvent::Resolved { endpoints: names.len() }));
        }
        drop(guard);
        if is_over {
            return;
        }
        if has_failed {
            sleep(AFTER_ERROR).await;
        }
    }
}

/// Takes the changes that are available. `None` means the end.
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
