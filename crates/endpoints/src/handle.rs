//! A handle that reads, changes and observes a set of endpoints.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::uri::Scheme;
use reattempt_control::{EndpointEvent, EndpointView, Place};
use reattempt_core::snapshot::{Inspect, Part};
use reattempt_engine::wall::redacted;
use reattempt_guard::handle::now;

use super::EndpointsError;
use super::base_url::{BaseUrl, BaseUrls};
use super::guard::EndpointGuard;

/// A handle to a client's endpoints. Clones share the set, which is kept alive by its handles, clients and response
/// bodies.
pub struct EndpointsHandle<T> {
    guard: Arc<EndpointGuard<T>>,
}

impl<T> EndpointsHandle<T> {
    pub(super) fn new(guard: &Arc<EndpointGuard<T>>) -> Self {
        Self { guard: Arc::clone(guard) }
    }

    /// Returns a reference that does not keep the set alive.
    #[cfg(feature = "opentelemetry")]
    pub(super) fn downgrade(&self) -> std::sync::Weak<EndpointGuard<T>> {
        Arc::downgrade(&self.guard)
    }

    /// Returns the state of each endpoint.
    pub fn view(&self) -> Vec<EndpointView> {
        self.guard.set.view(now())
    }

    /// Replaces the list of endpoints. `make` creates the services for new names.
    ///
    /// An endpoint in both the old and the new list keeps its state and its connections. A removed endpoint gets no new
    /// attempts, but its attempts in flight continue. `make` runs without a lock; if it updates the same set, that
    /// update comes first. The next discovery result replaces this list. Names appear in logs and metrics, so they must
    /// not contain credentials.
    ///
    /// An endpoint in both lists keeps its place, too. A new one is in the first tier.
    ///
    /// # Errors
    /// Returns an error for an empty list or a duplicate name. In that case, nothing changes.
    pub fn update<N: Into<Arc<str>>>(
        &self,
        names: impl IntoIterator<Item = N>,
        make: impl FnMut(&str) -> T,
    ) -> Result<(), EndpointsError> {
        self.update_placed(names, |_, place| place, make)
    }

    /// Works like [`update`](Self::update), and gives each endpoint the place that `place` returns for its name and its
    /// place so far.
    ///
    /// ```
    /// # use std::convert::Infallible;
    /// # use reattempt::endpoints::{Balanced, EndpointsError};
    /// # fn example<C>(client: &Balanced<C>, client_to: impl Fn(&str) -> C) -> Result<(), EndpointsError>
    /// # where C: Send + Sync + 'static {
    /// # let own_zone = |name: &str| name.starts_with("10.0.");
    /// let names = ["10.0.0.7:8080", "10.1.0.7:8080"];
    /// client.endpoints().update_placed(names, |name, place| place.tier(usize::from(!own_zone(name))), client_to)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the same errors as [`update`](Self::update).
    pub fn update_placed<N: Into<Arc<str>>>(
        &self,
        names: impl IntoIterator<Item = N>,
        place: impl Fn(&str, Place) -> Place,
        mut make: impl FnMut(&str) -> T,
    ) -> Result<(), EndpointsError> {
        let names: Vec<Arc<str>> = names.into_iter().map(Into::into).collect();
        check_names(&names)?;
        let places = self.guard.places();
        let endpoints = names.into_iter().map(|name| (place(&name, places.of(&name)), name));
        let endpoints: Vec<_> = endpoints.collect();
        self.guard.replace(endpoints, |_| false, |name| Some(make(name)));
        Ok(())
    }

    /// Gives each endpoint the place that `place` returns for its name and its place so far. Endpoints keep their state
    /// and their connections.
    ///
    /// Use it for places that change without the list, such as weights by [`LoadReports`](super::LoadReports). If no
    /// place changes, it is cheap; otherwise, the set is rebuilt. gRFC A58 does so once per second:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use reattempt::endpoints::{Balanced, LoadReports};
    /// # fn example<C: Send + Sync + 'static>(client: &Balanced<C>, reports: LoadReports) {
    /// let endpoints = client.endpoints();
    /// let task = tokio::spawn(async move {
    ///     loop {
    ///         tokio::time::sleep(Duration::from_secs(1)).await;
    ///         endpoints.place_again(|name, place| reports.place(name, place));
    ///     }
    /// });
    /// # }
    /// ```
    ///
    /// The task keeps the set alive, so abort it when the client is no longer used. The next answer of a look-up, and
    /// the next change in a stream, places endpoints by [`placed`](super::Endpoints::placed) again, so set both.
    ///
    /// A subset stays as it is until the next update. If `place` panics, nothing changes.
    pub fn place_again(&self, place: impl Fn(&str, Place) -> Place) {
        self.guard.place_again(place);
    }

    /// Adds an observer of the set's changes. It runs on the task that causes a change, and must not block.
    pub fn observe(&self, observer: impl Fn(&EndpointEvent) + Send + Sync + 'static) {
        self.guard.observe(Arc::new(observer));
    }
}

impl EndpointsHandle<BaseUrl> {
    /// Replaces the endpoints with these base URLs.
    ///
    /// A base URL that stays keeps its place, and a new one is in the first tier, unless
    /// [`placed`](super::Endpoints::placed) is set: that function gets these places, and returns others.
    ///
    /// The base URL that requests contain ([`Endpoints::base`](super::Endpoints::base)) does not change.
    ///
    /// # Errors
    /// Returns the same errors as [`Endpoints::urls`](super::Endpoints::urls). An `http` URL is also an error if the
    /// base URL that requests contain is an `https` one. In case of an error, nothing changes.
    pub fn update_urls(&self, urls: impl BaseUrls) -> Result<(), EndpointsError> {
        let urls = BaseUrl::read_all(urls)?;
        if let Some(clear) = urls.iter().find(|url| self.guard.settings.https_only && url.scheme == Scheme::HTTP) {
            let problem = "is for http, but requests have an https base URL (https for all)";
            return Err(EndpointsError::new(&clear.to_string(), problem));
        }
        let places = self.guard.places();
        replace_urls(&self.guard, urls.into_iter().map(|url| (places.of(&url.name()), url)));
        Ok(())
    }
}

/// Replaces the endpoints with base URLs and their places.
pub(super) fn replace_urls(guard: &EndpointGuard<BaseUrl>, urls: impl Iterator<Item = (Place, BaseUrl)>) {
    let placing = &guard.settings.placing;
    let named: Vec<_> = urls.map(|(place, url)| (placing.of(&url, place), url.name(), url)).collect();
    let endpoints = named.iter().map(|(place, name, _)| (*place, Arc::clone(name)));
    let by_name: HashMap<&str, &BaseUrl> = named.iter().map(|(_, name, url)| (&**name, url)).collect();
    guard.replace(endpoints, |_| false, |name| by_name.get(name).map(|url| (*url).clone()));
}

/// Returns the name of the endpoint with this key, without credentials if the key is a URL. Different keys have
/// different names: instead of what was removed, the name has a hash that differs by process.
pub(super) fn name_of(key: &(impl fmt::Display + ?Sized)) -> Arc<str> {
    static HASHER: OnceLock<RandomState> = OnceLock::new();
    let key = key.to_string();
    let shown = redacted(&key);
    if shown == key {
        return key.into();
    }
    let hash = HASHER.get_or_init(RandomState::new).hash_one(&key);
    format!("{shown} #{hash:016x}").into()
}

/// Returns an error for an empty list or a duplicate name.
pub(super) fn check_names(names: &[Arc<str>]) -> Result<(), EndpointsError> {
    let mut sorted: Vec<_> = names.iter().collect();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(EndpointsError::twice(twice[0]));
    }
    if names.is_empty() { Err(EndpointsError::empty()) } else { Ok(()) }
}

impl<T> Clone for EndpointsHandle<T> {
    fn clone(&self) -> Self {
        Self::new(&self.guard)
    }
}

impl<T> Inspect for EndpointsHandle<T> {
    fn inspect(&self, now: Duration) -> Part {
        self.guard.set.inspect(now)
    }
}

/// The output lists the endpoints with their states.
impl<T> fmt::Debug for EndpointsHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.view()).finish()
    }
}
