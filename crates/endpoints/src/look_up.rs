//! Endpoints from periodic look-ups: DNS or a closure.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Display;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU16;
use std::sync::{Arc, Weak};
use std::time::Duration;

use reattempt_control::{EndpointEvent, Place};
use reattempt_engine::wall::clock::{Instant, sleep_until};
use reattempt_guard::handle::now;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::discovery::{Caught, caught, text};
use super::guard::EndpointGuard;
use super::handle::name_of;
use super::job::Job;
use super::place::{Keyed, Placing};
use super::{Endpoints, EndpointsError};
use tower::BoxError;

/// The maximum time of one look-up.
const LONGEST_LOOK_UP: Duration = Duration::from_secs(10);
/// The delays after consecutive failed look-ups, in seconds.
const AFTER_FAILURES: [u64; 6] = [1, 2, 4, 8, 16, 30];
/// The longest time that a look-up may set until the next one, so that a wrong answer is corrected some day.
const LONGEST_TTL: Duration = Duration::from_secs(3600);
/// The lower bound of the interval that the user or a look-up sets.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// The minimum time between a look-up and one that an ejection requests.
const SHORTEST: Duration = Duration::from_secs(5);

/// A source of keys that is read periodically. This trait is sealed.
pub trait LookUp: Send + 'static {
    /// The key of an endpoint, such as its address.
    type Key: Display + Send;

    /// Returns the keys of all endpoints, and the time until the next look-up, if it is not the interval.
    #[doc(hidden)]
    fn look_up(&mut self) -> impl Future<Output = Answer<Self::Key>> + Send;
}

type Answer<K> = Result<(Vec<K>, Option<Duration>), BoxError>;

/// A source of keys, and the time between two look-ups.
#[derive(Debug)]
pub struct Every<L: LookUp> {
    source: L,
    every: Duration,
    placing: Placing<L::Key>,
    keep_absent: Duration,
}

impl<L: LookUp> Every<L> {
    fn new(source: L, every: Duration) -> Self {
        Self { source, every, placing: Placing::default(), keep_absent: Duration::ZERO }
    }
}

impl<L: LookUp> Keyed for Every<L> {
    type Key = L::Key;

    fn placing(&mut self) -> &mut Placing<L::Key> {
        &mut self.placing
    }
}

/// The addresses of a host name.
#[derive(Debug)]
pub struct Dns {
    host: Box<str>,
    port: u16,
    /// A look-up that exceeded its time limit. It blocks a thread, so the next one starts only after it ends.
    pending: Option<JoinHandle<io::Result<Vec<SocketAddr>>>>,
}

impl Endpoints<Every<Dns>> {
    /// Looks up the addresses of `host:port` with the system's resolver, once per interval `every` (at least 1 s).
    /// Write IPv6 addresses in brackets.
    ///
    /// The system's resolver does not report how long a result is valid. To use another resolver, call
    /// [`look_up`](Endpoints::look_up) instead.
    ///
    /// # Errors
    /// Returns an error if the host or the port is missing.
    pub fn dns(name: &str, every: Duration) -> Result<Self, EndpointsError> {
        let problem = "has no host and port (`host:port`)";
        let parts = name.rsplit_once(':').filter(|(host, _)| is_host(host));
        let parts = parts.and_then(|(host, port)| Some((host, port.parse::<NonZeroU16>().ok()?.get())));
        let (host, port) = parts.ok_or_else(|| EndpointsError::new(name, problem))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').into();
        Ok(Self::of(Every::new(Dns { host, port, pending: None }, every)))
    }
}

fn is_host(host: &str) -> bool {
    let bracketed = host.starts_with('[') && host.ends_with(']');
    !host.is_empty() && !host.contains(['/', '@']) && (bracketed || !host.contains(':'))
}

impl LookUp for Dns {
    type Key = SocketAddr;

    async fn look_up(&mut self) -> Answer<SocketAddr> {
        let (host, port) = (self.host.clone(), self.port);
        let look_up = move || Ok((&*host, port).to_socket_addrs()?.collect());
        let pending = self.pending.get_or_insert_with(|| spawn_blocking(look_up)).await;
        self.pending = None;
        Ok((pending??, None))
    }
}

/// A source that calls a closure.
#[derive(Debug)]
pub struct ByClosure<F>(F);

impl<F, Look, Keys, E> Endpoints<Every<ByClosure<F>>>
where
    F: FnMut() -> Look + Send + 'static,
    Look: Future<Output = Result<Keys, E>> + Send,
    Keys: IntoIterator,
    Keys::Item: Display + Send,
    E: Into<BoxError>,
{
    /// Calls the closure, which returns the keys of all endpoints, once per interval `every` (at least 1 s). Use it for
    /// a registry, SRV records, or a resolver that respects DNS TTLs.
    ///
    /// If the closure fails, panics, takes more than 10 s or returns no keys, the set does not change. The closure is
    /// called again after 1 s. This delay doubles with each further failure, up to 30 s.
    ///
    /// The text of a key is the endpoint's name in errors, events and reports. If it is a URL, a hash that differs by
    /// process replaces its credentials and its query.
    pub fn look_up(every: Duration, look_up: F) -> Self {
        Self::of(Every::new(ByClosure(look_up), every))
    }
}

impl<F, Look, Keys, E> LookUp for ByClosure<F>
where
    F: FnMut() -> Look + Send + 'static,
    Look: Future<Output = Result<Keys, E>> + Send,
    Keys: IntoIterator,
    Keys::Item: Display + Send,
    E: Into<BoxError>,
{
    type Key = Keys::Item;

    async fn look_up(&mut self) -> Answer<Keys::Item> {
        let keys = (self.0)().await.map_err(Into::into)?;
        Ok((keys.into_iter().collect(), None))
    }
}

/// A source that calls a closure, which returns the time until the next call as well.
#[derive(Debug)]
pub struct ByTtl<F>(F);

impl<F, Look, Keys, E> Endpoints<Every<ByTtl<F>>>
where
    F: FnMut() -> Look + Send + 'static,
    Look: Future<Output = Result<(Keys, Duration), E>> + Send,
    Keys: IntoIterator,
    Keys::Item: Display + Send,
    E: Into<BoxError>,
{
    /// Works like [`look_up`](Endpoints::look_up), with a closure that also returns the time until the next look-up,
    /// such as the lowest TTL of the DNS records in an answer.
    ///
    /// Times below 1 s count as 1 s, and times above an hour as an hour. An ejection asks for a look-up before that.
    ///
    /// ```
    /// use std::net::SocketAddr;
    /// use std::time::Duration;
    /// use reattempt::endpoints::Endpoints;
    ///
    /// async fn addresses() -> std::io::Result<(Vec<SocketAddr>, Duration)> {
    ///     Ok((vec![SocketAddr::from(([10, 0, 0, 7], 8080))], Duration::from_secs(30))) // from a resolver
    /// }
    ///
    /// let endpoints = Endpoints::look_up_ttl(addresses).keep_absent(Duration::from_secs(60));
    /// ```
    pub fn look_up_ttl(look_up: F) -> Self {
        Self::of(Every::new(ByTtl(look_up), SHORTEST_INTERVAL))
    }
}

impl<F, Look, Keys, E> LookUp for ByTtl<F>
where
    F: FnMut() -> Look + Send + 'static,
    Look: Future<Output = Result<(Keys, Duration), E>> + Send,
    Keys: IntoIterator,
    Keys::Item: Display + Send,
    E: Into<BoxError>,
{
    type Key = Keys::Item;

    async fn look_up(&mut self) -> Answer<Keys::Item> {
        let (keys, ttl) = (self.0)().await.map_err(Into::into)?;
        Ok((keys.into_iter().collect(), Some(ttl.min(LONGEST_TTL))))
    }
}

impl<L: LookUp> Endpoints<Every<L>> {
    /// Keeps an endpoint that is absent from the answer of a look-up for this time after the last answer with it.
    /// Default: 0, so it gets no more calls, and its client is dropped after the last one.
    ///
    /// An absent endpoint is a reserve ([weight 0](reattempt_control::Place::weight)) of its tier. It gets no calls
    /// while half of the endpoints in the answer are in service, except from calls that have tried two of them. If
    /// they accept no connection, it gets all calls. An endpoint that is out of service is not kept, and neither is
    /// one whose tier has no endpoint in the answer.
    ///
    /// Set it to a minute or so for a name whose answers may be wrong for a while, or have only a part of the
    /// addresses: an address that comes back within this time has its connections. The default is 0, because servers
    /// that end leave the answer too, and a call should not find out that they are gone.
    pub fn keep_absent(mut self, time: Duration) -> Self {
        self.source.keep_absent = time;
        self
    }
}

/// The job that reads a source periodically.
pub(super) struct KeepUp<L: LookUp, F> {
    look_ups: Every<L>,
    connect: F,
    known: Vec<Arc<str>>,
    /// The time of the last answer with each name, if absent endpoints are kept.
    seen: HashMap<Arc<str>, Instant>,
    failures: usize,
}

impl<L: LookUp, F> KeepUp<L, F> {
    pub(super) fn new(look_ups: Every<L>, connect: F) -> Self {
        Self { look_ups, connect, known: Vec::new(), seen: HashMap::new(), failures: 0 }
    }
}

impl<L, F, C> Job for KeepUp<L, F>
where
    L: LookUp,
    F: FnMut(L::Key) -> C + Send + 'static,
    C: Send + Sync + 'static,
{
    type Client = C;

    async fn run(&mut self, guard: &Weak<EndpointGuard<C>>) {
        let Some(wanted) = guard.upgrade().map(|guard| Arc::clone(&guard.discovery.wanted)) else {
            return;
        };
        loop {
            let asked = timeout(LONGEST_LOOK_UP, Caught::new(self.look_ups.source.look_up())).await;
            let answer = match asked {
                Ok(Ok(answer)) => answer,
                Ok(Err(panicked)) => Err(panicked),
                Err(_) => Err("the look-up took more than 10 s".into()),
            };
            let began = Instant::now();
            let Some(guard) = guard.upgrade() else { return };
            let pause = self.take(&guard, answer);
            drop(guard);
            if timeout(pause, wanted.notified()).await.is_ok() {
                sleep_until(began.later(pause.min(SHORTEST))).await;
            }
        }
    }
}

impl<L: LookUp, F> KeepUp<L, F> {
    /// Handles the result of a look-up. Returns the time until the next one.
    fn take<C>(&mut self, guard: &EndpointGuard<C>, answer: Answer<L::Key>) -> Duration
    where
        F: FnMut(L::Key) -> C,
        C: Send + Sync + 'static,
    {
        let found = answer.and_then(|(keys, next)| match keys.is_empty() {
            true => Err("the answer is empty".into()),
            false => self.update(guard, keys).map(|()| next),
        });
        match found {
            Ok(next) => {
                self.failures = 0;
                next.unwrap_or(self.look_ups.every).max(SHORTEST_INTERVAL)
            }
            Err(error) => {
                let seconds = AFTER_FAILURES.get(self.failures).copied().unwrap_or(30);
                self.failures += 1;
                let retry = Duration::from_secs(seconds);
                let error = text(&error);
                let event = EndpointEvent::ResolveFailed { error, retry: Some(retry) };
                let _panicked = caught(|| guard.notify(&event));
                retry
            }
        }
    }

    /// Replaces the endpoints with ones for these keys, and with those that are kept although they are absent.
    fn update<C>(&mut self, guard: &EndpointGuard<C>, keys: Vec<L::Key>) -> Result<(), BoxError>
    where
        F: FnMut(L::Key) -> C,
        C: Send + Sync + 'static,
    {
        let named = caught(|| keys.into_iter().map(|key| (name_of(&key), key)).collect());
        let mut named: BTreeMap<Arc<str>, L::Key> = named?;
        let placing = &self.look_ups.placing;
        let placed = |(name, key): (&Arc<str>, &L::Key)| (placing.of(key, Place::new()), Arc::clone(name));
        let mut endpoints: Vec<_> = caught(|| named.iter().map(placed).collect())?;
        let absent = self.absent(guard, &endpoints);
        endpoints.extend(absent);
        let names: Vec<_> = named.keys().cloned().collect();
        // The set is updated even if the keys are unchanged, because their places may differ, and because a handle may
        // have replaced the endpoints.
        caught(|| guard.replace(endpoints, |_| false, |name| named.remove(name).map(&mut self.connect)))?;
        if names != self.known {
            let _panicked = caught(|| guard.notify(&EndpointEvent::Resolved { endpoints: names.len() }));
            self.known = names;
        }
        Ok(())
    }

    /// Returns the endpoints that are kept although they are not in the answer, as reserves of their tiers.
    fn absent<C>(&mut self, guard: &EndpointGuard<C>, found: &[(Place, Arc<str>)]) -> Vec<(Place, Arc<str>)> {
        let keep = self.look_ups.keep_absent;
        if keep.is_zero() {
            return Vec::new();
        }
        let answered = Instant::now();
        self.seen.extend(found.iter().map(|(_, name)| (Arc::clone(name), answered)));
        self.seen.retain(|_, seen| seen.elapsed() <= keep);
        let present: HashSet<_> = found.iter().map(|(_, name)| name).collect();
        let tiers: HashSet<_> = found.iter().map(|(place, _)| place.get_tier()).collect();
        let views = guard.set.view(now()).into_iter();
        let absent = views.filter(|view| {
            let is_kept = view.out.is_none() && self.seen.contains_key(&view.name) && tiers.contains(&view.tier);
            is_kept && !present.contains(&view.name)
        });
        absent.map(|view| (Place::from(&view).weight(0), view.name)).collect()
    }
}
