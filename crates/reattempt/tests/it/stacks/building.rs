//! The builder of a plan's layers around the servers of a cluster.

use std::panic::resume_unwind;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use reattempt::endpoints::{BaseUrl, Endpoints, EndpointsHandle, EndpointsLayer, ForeignHosts};
use reattempt::fallback::{Backup, Failed, FallbackLayer};
use reattempt::guard::contract::{SharedGuard, erase};
use reattempt::guard::handle::CircuitBreakerExt;
use reattempt::guard::{
    self, AdaptiveLimit, Aimd, Bulkhead, CircuitBreaker, GuardLayer, Limit, Pace, Pause, RateLimit, SendRate, Throttle,
};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::resume::ResumeLayer;
use reattempt::{Http, PeekBodyLayer, RetryLayer, RetryPolicy};
use reattempt_replay::{ReplayLimits, ReplayMemory};
use reattempt_schedule_fixed::Constant;
use reattempt_schedule_responsive::Responsive;
use reattempt_testing::ms;
use tokio::sync::Semaphore;
use tower::buffer::Buffer;
use tower::limit::ConcurrencyLimit;
use tower::load_shed::LoadShed;
use tower::timeout::Timeout;
use tower::{Layer as _, ServiceExt};
use tower_http::follow_redirect::{FollowRedirectLayer, policy};

use super::cluster::{Cluster, Place, TIER};
use super::erased::{Client, RequestBody, boxed, of_attempts};
use super::intruders::{Nested, PermitCount, Permits, answering, leaves, observer, without_bodies};
use super::plan::{Foreign, Kind, Layer, Plan, Source};

/// The hosts of all requests, redirects and endpoints.
const HOSTS: [&str; 4] = ["one.example", "two.example", "three.example", "four.example"];

/// The built client, and everything that could keep a place or a permit.
pub(crate) struct Stack {
    pub(crate) client: Client,
    /// The semaphore of each `Limit`, with its layer's index and its size.
    pub(crate) limits: Vec<(usize, Arc<Semaphore>, usize)>,
    guards: Vec<Part>,
    peeks: Vec<PeekBodyLayer>,
    permits: Arc<Permits>,
    memory: ReplayMemory,
    cluster: Cluster,
}

impl Stack {
    pub(crate) fn build(plan: &Plan, cluster: &Cluster) -> Self {
        let mut stack = Self {
            client: boxed(cluster.server(Place::Primary)),
            limits: Vec::new(),
            guards: Vec::new(),
            peeks: Vec::new(),
            permits: Permits::new(cluster),
            cluster: cluster.clone(),
            memory: ReplayMemory::new(1 << 20),
        };
        for (index, layer) in plan.layers.iter().enumerate().rev() {
            stack.client = stack.around(plan, cluster, index, layer);
        }
        stack
    }

    fn around(&mut self, plan: &Plan, cluster: &Cluster, index: usize, layer: &Layer) -> Client {
        let client = self.client.clone();
        let (seed, observer) = (plan.seed, observer(cluster));
        match layer {
            Layer::Retry { .. } => self.retry(layer, seed, client),
            Layer::Hedge { delay } => {
                let policy = HedgePolicy::http().max_attempts(2).delay(ms(*delay));
                let policy = policy.budget(self.budget()).observe(move |_, _| observer()).boxed_errors();
                boxed(HedgeLayer::new(policy).layer(of_attempts(client)))
            }
            Layer::Resume { attempts, delay } => {
                let layer = ResumeLayer::http().max_attempts(*attempts).backoff(Constant::new(ms(*delay)));
                boxed(layer.budget(self.budget()).observe(move |_, _| observer()).layer(client))
            }
            Layer::Backup { retries, redirects_below } => {
                let mut backup = boxed(cluster.server(Place::Backup));
                if *retries {
                    let layer = Layer::Retry {
                        attempts: 2,
                        delay: 10,
                        attempt_timeout: None,
                        clone_per_call: false,
                        redirects_below: None,
                    };
                    backup = self.retry(&layer, seed, backup);
                }
                let http = http(*redirects_below);
                let layer = FallbackLayer::with(http, Backup::new(backup));
                boxed(layer.observe(move |_, _| observer()).layer(client))
            }
            Layer::Spare => boxed(FallbackLayer::http(spare).layer(client)),
            Layer::Follow { clones: false } => boxed(FollowRedirectLayer::new().layer(client)),
            Layer::Follow { clones: true } => {
                let policy = policy::clone_body_fn(|body: &RequestBody| Some(body.clone()));
                boxed(FollowRedirectLayer::with_policy(policy).layer(client))
            }
            Layer::Guards { kinds, attempt_timeout } => {
                let mut parts = kinds.iter().map(|kind| Part::of(*kind, seed, cluster)).collect::<Vec<_>>();
                let guards = parts.iter().filter_map(Part::guard).collect::<Vec<_>>();
                self.guards.append(&mut parts);
                match &guards[..] {
                    [a] => guarded(a.clone(), *attempt_timeout, observer, client),
                    [a, b] => guarded((a.clone(), b.clone()), *attempt_timeout, observer, client),
                    [a, b, c] => {
                        let all = (a.clone(), (b.clone(), c.clone()));
                        guarded(all, *attempt_timeout, observer, client)
                    }
                    _ => client,
                }
            }
            Layer::Endpoints { .. } => self.endpoints(layer, index, seed, client),
            Layer::Peek { within } => {
                let layer = PeekBodyLayer::new().within(ms(*within));
                self.peeks.push(layer.clone());
                boxed(layer.layer(client))
            }
            Layer::Nested => boxed(Nested::new(cluster, self.budget(), seed, client)),
            Layer::Answers => answering(cluster, client),
            Layer::DropsBodies => without_bodies(client),
            Layer::LoadShed => boxed(LoadShed::new(client)),
            Layer::Limit(size) => {
                let semaphore = Arc::new(Semaphore::new(*size));
                self.limits.push((index, Arc::clone(&semaphore), *size));
                boxed(ConcurrencyLimit::with_semaphore(client, semaphore))
            }
            Layer::Buffer(size) => boxed(Buffer::new(client, *size)),
            Layer::Timeout(time) => boxed(Timeout::new(client, ms(*time))),
        }
    }

    fn retry(&self, layer: &Layer, seed: u64, client: Client) -> Client {
        let Layer::Retry { attempts, delay, attempt_timeout, clone_per_call, redirects_below } = layer else {
            return client;
        };
        let limits = ReplayLimits::default().memory(self.memory.clone());
        let observer = observer(&self.cluster);
        let policy = RetryPolicy::with(http(*redirects_below).replay(limits))
            .max_attempts(*attempts)
            .clone_per_call(*clone_per_call)
            .backoff(Constant::new(ms(*delay)))
            .budget(self.budget())
            .observe(move |_, _| observer())
            .seed(seed);
        let policy = match attempt_timeout {
            Some(time) => policy.attempt_timeout(ms(*time)),
            None => policy.boxed_errors(),
        };
        boxed(RetryLayer::new(policy).layer(of_attempts(client)))
    }

    /// Puts several servers above `client`, each of which is a clone of it.
    fn endpoints(&mut self, layer: &Layer, index: usize, seed: u64, client: Client) -> Client {
        let Layer::Endpoints { servers, source, tiers, foreign, prefix, .. } = *layer else { return client };
        let cluster = self.cluster.clone();
        let first = if tiers { servers.div_ceil(2) } else { servers };
        let at = move |client: &Client, number: usize| in_tier(client.clone(), index, usize::from(number >= first));
        let prefix = if prefix { "/api/" } else { "/" };
        let url = |number: usize| format!("http://{}{prefix}", HOSTS[number]);
        match source {
            Source::Urls => {
                let urls = Endpoints::urls((0..first).map(url)).unwrap();
                let urls = if first < servers { urls.or_else_urls((first..servers).map(url)).unwrap() } else { urls };
                let urls = urls.foreign_hosts(match foreign {
                    Foreign::Pass => ForeignHosts::Pass,
                    Foreign::Refuse => ForeignHosts::Refuse,
                    Foreign::Base => ForeignHosts::Base,
                });
                let layer = EndpointsLayer::with(Http::new(), set(urls, layer, &cluster));
                self.guards.push(Part::Urls(layer.endpoints()));
                boxed(layer.layer(client.map_request(move |request: Request<RequestBody>| {
                    let host = request.uri().host();
                    let number = HOSTS[..servers].iter().position(|known| host == Some(known));
                    if foreign != Foreign::Pass && (number.is_none() || leaves(request.uri().path(), prefix)) {
                        cluster.ledger().escaped.push(request.uri().to_string());
                    }
                    match number {
                        Some(number) => marked(request, index, usize::from(number >= first)),
                        // The request is for another server than those of the set.
                        None => request,
                    }
                })))
            }
            Source::List => {
                let list = Endpoints::list(0..first).unwrap();
                let list = if first < servers { list.or_else(first..servers).unwrap() } else { list };
                let balanced = set(list.connect(move |number| at(&client, number)), layer, &cluster).http();
                self.guards.push(Part::Clients(balanced.endpoints()));
                boxed(balanced)
            }
            Source::LookUp => {
                let mut random = SmallRng::seed_from_u64(seed);
                let mut first = true;
                let look_up = move || {
                    let kind = if std::mem::take(&mut first) { 9 } else { random.random_range(0..10) };
                    let from = random.random_range(0..servers);
                    async move {
                        match kind {
                            0 => Err("no registry"),
                            1 => std::future::pending().await,
                            2 => resume_unwind(Box::new("the registry panics")),
                            3 => Ok(Vec::new()),
                            _ => Ok((from..servers).collect()),
                        }
                    }
                };
                let found = Endpoints::look_up(ms(10_000), look_up).connect(move |_| at(&client, 0));
                let balanced = set(found, layer, &cluster).http();
                self.guards.push(Part::Clients(balanced.endpoints()));
                boxed(balanced)
            }
        }
    }

    fn budget(&self) -> PermitCount {
        PermitCount(Arc::clone(&self.permits))
    }

    /// Returns what is still held although no call is in flight.
    pub(crate) fn leaks(&self) -> Vec<String> {
        let mut leaks = self.guards.iter().filter_map(Part::leak).collect::<Vec<_>>();
        match self.permits.out() {
            0 => {}
            out => leaks.push(format!("{out} permits of the budget are out")),
        }
        let held = self.peeks.iter().map(PeekBodyLayer::held).sum::<usize>();
        if held > 0 {
            leaks.push(format!("{held} bytes of responses are held"));
        }
        match self.memory.used() {
            0 => {}
            bytes => leaks.push(format!("{bytes} bytes are kept")),
        }
        leaks
    }
}

/// Returns a client that marks each request with the tier of the layer with this index.
fn in_tier(client: Client, layer: usize, tier: usize) -> Client {
    boxed(client.map_request(move |request| marked(request, layer, tier)))
}

fn marked(mut request: Request<RequestBody>, layer: usize, tier: usize) -> Request<RequestBody> {
    let mark = format!("{layer}:{tier}");
    request.headers_mut().append(TIER, mark.parse().unwrap());
    request
}

fn http(redirects_below: Option<bool>) -> Http {
    match redirects_below {
        Some(follows) => Http::new().redirects_below(follows),
        None => Http::new(),
    }
}

fn spare(_: &Failed) -> Option<Response<Bytes>> {
    Some(Response::new(Bytes::from_static(b"spare")))
}

fn set<S>(endpoints: Endpoints<S>, layer: &Layer, cluster: &Cluster) -> Endpoints<S> {
    let Layer::Endpoints { ejects, attempt_timeout, .. } = *layer else { return endpoints };
    let observer = observer(cluster);
    let endpoints = endpoints.observe(move |_| observer());
    let endpoints = if ejects { endpoints } else { endpoints.without_ejections() };
    match attempt_timeout {
        Some(time) => endpoints.attempt_timeout(ms(time)),
        None => endpoints,
    }
}

fn guarded<G, O>(guard: G, attempt_timeout: Option<u64>, observer: O, client: Client) -> Client
where
    G: guard::contract::Guard,
    O: Fn() + Send + Sync + 'static,
{
    let layer = GuardLayer::http(guard).observe(move |_, _| observer());
    let layer = match attempt_timeout {
        Some(time) => layer.attempt_timeout(ms(time)),
        None => layer,
    };
    boxed(layer.layer(client))
}

/// A guard, or a set of servers, whose state the test reads.
enum Part {
    Breaker(CircuitBreaker),
    Rate(RateLimit),
    Places(Bulkhead),
    Adaptive(AdaptiveLimit<Aimd>),
    Throttle(Throttle),
    Send(SendRate),
    Pace(Pace),
    Pause(Pause),
    Urls(EndpointsHandle<BaseUrl>),
    Clients(EndpointsHandle<Client>),
}

impl Part {
    fn of(kind: Kind, seed: u64, cluster: &Cluster) -> Self {
        let rate = || RateLimit::new(Limit::per_second(20), 2);
        let interval = || {
            let interval = Responsive::new().initial(ms(10)).max(ms(1_000));
            interval.randomisation(0.0)
        };
        match kind {
            Kind::Breaker => {
                let breaker = crate::guard::support::timeless().consecutive_failures(2).spread(0).seed(seed);
                let (breaker, observer) = (breaker.open_time(ms(300)).max_open_time(ms(1_000)), observer(cluster));
                Self::Breaker(breaker.on_state_change(move |_| observer()))
            }
            Kind::Rate => Self::Rate(rate()),
            Kind::RateNoQueue => Self::Rate(rate().no_queue()),
            Kind::Bulkhead => Self::Places(Bulkhead::new(1)),
            Kind::BulkheadQueue => Self::Places(Bulkhead::new(1).queue(2, ms(200))),
            Kind::Adaptive => Self::Adaptive(AdaptiveLimit::aimd().queue(2, ms(100))),
            Kind::Throttle => Self::Throttle(Throttle::new().inactive_below(2, 0).seed(seed)),
            Kind::SendRate => Self::Send(SendRate::new()),
            Kind::Pace => Self::Pace(Pace::new(interval()).seed(seed)),
            Kind::PaceNoQueue => Self::Pace(Pace::new(interval()).no_queue().seed(seed)),
            Kind::Pause => Self::Pause(Pause::new().queue(2, ms(3_000))),
            Kind::PauseNoQueue => Self::Pause(Pause::new().spread(ms(100)).no_queue()),
        }
    }

    /// Returns the guard; `None` for a set of servers.
    fn guard(&self) -> Option<SharedGuard> {
        Some(match self {
            Self::Breaker(guard) => erase(guard.clone()),
            Self::Rate(guard) => erase(guard.clone()),
            Self::Places(guard) => erase(guard.clone()),
            Self::Adaptive(guard) => erase(guard.clone()),
            Self::Throttle(guard) => erase(guard.clone()),
            Self::Send(guard) => erase(guard.clone()),
            Self::Pace(guard) => erase(guard.clone()),
            Self::Pause(guard) => erase(guard.clone()),
            Self::Urls(_) | Self::Clients(_) => return None,
        })
    }

    /// Returns what the guard still counts of calls that have ended.
    fn leak(&self) -> Option<String> {
        let view = match self {
            Self::Urls(handle) => handle.view(),
            Self::Clients(handle) => handle.view(),
            _ => Vec::new(),
        };
        if view.iter().any(|view| view.in_flight > 0) {
            return Some(format!("endpoints: {view:?}"));
        }
        let used = |usage: guard::handle::Usage| (usage.in_flight, usage.waiting) != (0, 0);
        let now = guard::handle::now();
        HOSTS.iter().find_map(|host| match self {
            Self::Breaker(breaker) => {
                let counts = breaker.counts(host);
                let ended = counts.total_successes + counts.total_failures + counts.total_exclusions;
                (counts.requests != ended).then(|| format!("breaker, {host}: {counts:?}"))
            }
            Self::Rate(rate) => (rate.waiting(host) > 0).then(|| format!("rate limit, {host}")),
            Self::Places(places) => used(places.usage_at(host, now)).then(|| format!("bulkhead, {host}")),
            Self::Adaptive(limit) => used(limit.usage_at(host, now)).then(|| format!("adaptive limit, {host}")),
            Self::Throttle(_) => None,
            Self::Send(rate) => (rate.waiting(host) > 0).then(|| format!("send rate, {host}")),
            Self::Pace(pace) => (pace.waiting() > 0).then(|| "pace".into()),
            Self::Pause(pause) => (pause.waiting(host) > 0).then(|| format!("pause, {host}")),
            Self::Urls(_) | Self::Clients(_) => None,
        })
    }
}
