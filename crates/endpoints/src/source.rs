//! Sources of endpoints with a separate client for each.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use reattempt_control::Place;
use tower::discover::Discover;

use super::discover::{Discovered, Follow};
use super::guard::EndpointGuard;
use super::handle::{check_names, name_of};
use super::job;
use super::look_up::{Every, KeepUp, LookUp};
use super::place::{Keyed, Placing};
use super::{Endpoints, EndpointsError};
use tower::BoxError;

/// A source of endpoints, with a client for each. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no client for each endpoint",
    note = "call `.connect(|key| …)` first; its result must be `Send + Sync + 'static`, and a key `Display + Send`"
)]
pub trait Source {
    /// The client for an endpoint.
    type Client: Send + Sync + 'static;

    /// Fills the set or starts the task that updates it.
    #[doc(hidden)]
    fn begin(self, guard: &Arc<EndpointGuard<Self::Client>>);
}

/// A list of endpoint keys in tiers, created by [`Endpoints::list`].
#[derive(Debug)]
pub struct List<K> {
    keys: Vec<(usize, K)>,
    placing: Placing<K>,
}

impl<K: Display> Endpoints<List<K>> {
    /// Lists the servers' keys, such as addresses. [`connect`](Self::connect) creates a client for each.
    ///
    /// The text of a key is the endpoint's name in errors, events and reports. If it is a URL, a hash that differs by
    /// process replaces its credentials and its query.
    ///
    /// # Errors
    /// Returns an error for an empty list or a duplicate key.
    pub fn list(keys: impl IntoIterator<Item = K>) -> Result<Self, EndpointsError> {
        let keys: Vec<_> = keys.into_iter().map(|key| (0, key)).collect();
        check_keys(&keys)?;
        Ok(Self::of(List { keys, placing: Placing::default() }))
    }

    /// Adds a tier of servers. An attempt is sent to it if the call has tried every server that is in service in
    /// earlier tiers. If more than half of an earlier tier is out of service, the new tier also gets the calls for
    /// those servers until they return.
    ///
    /// # Errors
    /// Returns an error for an empty list or a duplicate key.
    pub fn or_else(mut self, keys: impl IntoIterator<Item = K>) -> Result<Self, EndpointsError> {
        let listed = &mut self.source.keys;
        let before = listed.len();
        let tier = listed.last().map_or(0, |(tier, _)| tier + 1);
        listed.extend(keys.into_iter().map(|key| (tier, key)));
        if listed.len() == before {
            return Err(EndpointsError::empty());
        }
        check_keys(listed)?;
        Ok(self)
    }
}

fn check_keys<K: Display>(keys: &[(usize, K)]) -> Result<(), EndpointsError> {
    check_names(&keys.iter().map(|(_, key)| name_of(key)).collect::<Vec<_>>())
}

/// A source of keys with the closure that creates a client for each.
#[derive(Debug)]
pub struct Connected<S, F> {
    keys: S,
    connect: F,
}

impl<K> Endpoints<List<K>> {
    /// Sets the closure that creates an endpoint's client. It is called once for each key, when the key is first
    /// listed.
    pub fn connect<F: FnMut(K) -> C, C>(self, connect: F) -> Endpoints<Connected<List<K>, F>> {
        self.connected(connect)
    }
}

impl<L: LookUp> Endpoints<Every<L>> {
    /// Sets the closure that creates an endpoint's client. It is called when a key is first found, and again if a
    /// removed key returns.
    pub fn connect<F, C>(self, connect: F) -> Endpoints<Connected<Every<L>, F>>
    where
        F: FnMut(L::Key) -> C + Send + 'static,
    {
        self.connected(connect)
    }
}

impl<K> Keyed for List<K> {
    type Key = K;

    fn placing(&mut self) -> &mut Placing<K> {
        &mut self.placing
    }
}

impl<S: Keyed, F> Keyed for Connected<S, F> {
    type Key = S::Key;

    fn placing(&mut self) -> &mut Placing<S::Key> {
        self.keys.placing()
    }
}

impl<S> Endpoints<S> {
    fn connected<F>(self, connect: F) -> Endpoints<Connected<S, F>> {
        let Self { source: keys, settings } = self;
        Endpoints { source: Connected { keys, connect }, settings }
    }
}

impl<K: Display, F, C> Source for Connected<List<K>, F>
where
    F: FnMut(K) -> C,
    C: Send + Sync + 'static,
{
    type Client = C;

    fn begin(mut self, guard: &Arc<EndpointGuard<C>>) {
        let List { keys, placing } = self.keys;
        let names = keys.iter().map(|(tier, key)| (placing.of(key, Place::from(*tier)), name_of(key)));
        let names: Vec<_> = names.collect();
        let keys = keys.into_iter().map(|(_, key)| (name_of(&key), key));
        let mut keys: HashMap<_, _> = keys.collect();
        guard.replace(names, |_| false, |name| keys.remove(name).map(&mut self.connect));
    }
}

impl<L, F, C> Source for Connected<Every<L>, F>
where
    L: LookUp,
    F: FnMut(L::Key) -> C + Send + 'static,
    C: Send + Sync + 'static,
{
    type Client = C;

    fn begin(self, guard: &Arc<EndpointGuard<C>>) {
        job::begin(guard, KeepUp::new(self.keys, self.connect));
    }
}

impl<D> Source for Discovered<D>
where
    D: Discover + Send + 'static,
    D::Key: Display + Send,
    D::Service: Clone + Send + Sync + 'static,
    D::Error: Into<BoxError>,
{
    type Client = D::Service;

    fn begin(self, guard: &Arc<EndpointGuard<D::Service>>) {
        job::begin(guard, Follow::new(self));
    }
}
