//! The builder of a plan's layers around the servers of a cluster.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use reattempt::budget::{Budget, Permit, PermitIssuer};
use reattempt::endpoints::{BaseUrl, Endpoints, EndpointsHandle, EndpointsLayer};
use reattempt::fallback::{Backup, Failed, FallbackLayer};
use reattempt::guard::contract::{SharedGuard, erase};
use reattempt::guard::handle::CircuitBreakerExt;
use reattempt::guard::{
    self, AdaptiveLimit, Aimd, Bulkhead, CircuitBreaker, GuardLayer, Limit, Pace, Pause, RateLimit, SendRate, Throttle,
};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::resume::ResumeLayer;
use reattempt::schedule::Failure;
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
use super::plan::{Kind, Layer, Plan, Source};

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
}

impl Stack {
    pub(crate) fn build(plan: &Plan, cluster: &Cluster) -> Self {
        let mut stack = Self {
            client: boxed(cluster.server(Place::Primary)),
            limits: Vec::new(),
            guards: Vec::new(),
            peeks: Vec::new(),
            permits: Arc::default(),
            memory: ReplayMemory::new(1 << 20),
        };
        for (index, layer) in plan.layers.iter().enumerate().rev() {
            stack.client = stack.around(plan, cluster, index, layer);
        }
        stack
    }

    fn around(&mut self, plan: &Plan, cluster: &Cluster, index: usize, layer: &Layer) -> Client {
        let client = self.client.clone();
        let seed = plan.seed;
        match layer {
            Layer::Retry { .. } => self.retry(layer, seed, client),
            Layer::Hedge { delay } => {
                let policy = HedgePolicy::http().max_attempts(2).delay(ms(*delay));
                let policy = policy.budget(self.budget()).boxed_errors();
                boxed(HedgeLayer::new(policy).layer(of_attempts(client)))
            }
            Layer::Resume { attempts, delay } => {
                let layer = ResumeLayer::http().max_attempts(*attempts).backoff(Constant::new(ms(*delay)));
                boxed(layer.budget(self.budget()).layer(client))
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
                boxed(FallbackLayer::with(http, Backup::new(backup)).layer(client))
            }
            Layer::Spare => boxed(FallbackLayer::http(spare).layer(client)),
            Layer::Follow { clones: false } => boxed(FollowRedirectLayer::new().layer(client)),
            Layer::Follow { clones: true } => {
                let policy = policy::clone_body_fn(|body: &RequestBody| Some(body.clone()));
                boxed(FollowRedirectLayer::with_policy(policy).layer(client))
            }
            Layer::Guards { kinds, attempt_timeout } => {
                let mut parts = kinds.iter().map(|kind| Part::of(*kind, seed)).collect::<Vec<_>>();
                let guards = parts.iter().filter_map(Part::guard).collect::<Vec<_>>();
                self.guards.append(&mut parts);
                match &guards[..] {
                    [a] => guarded(a.clone(), *attempt_timeout, client),
                    [a, b] => guarded((a.clone(), b.clone()), *attempt_timeout, client),
                    [a, b, c] => {
                        let all = (a.clone(), (b.clone(), c.clone()));
                        guarded(all, *attempt_timeout, client)
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
        let policy = RetryPolicy::with(http(*redirects_below).replay(limits))
            .max_attempts(*attempts)
            .clone_per_call(*clone_per_call)
            .backoff(Constant::new(ms(*delay)))
            .budget(self.budget())
            .seed(seed);
        let policy = match attempt_timeout {
            Some(time) => policy.attempt_timeout(ms(*time)),
            None => policy.boxed_errors(),
        };
        boxed(RetryLayer::new(policy).layer(of_attempts(client)))
    }

    /// Puts several servers above `client`, each of which is a clone of it.
    fn endpoints(&mut self, layer: &Layer, index: usize, seed: u64, client: Client) -> Client {
        let Layer::Endpoints { servers, source, tiers, ejects, attempt_timeout } = *layer else { return client };
        let first = if tiers { servers.div_ceil(2) } else { servers };
        let at = move |client: &Client, number: usize| in_tier(client.clone(), index, usize::from(number >= first));
        let url = |number: usize| format!("http://{}/", HOSTS[number]);
        match source {
            Source::Urls => {
                let urls = Endpoints::urls((0..first).map(url)).unwrap();
                let urls = if first < servers { urls.or_else_urls((first..servers).map(url)).unwrap() } else { urls };
                let layer = EndpointsLayer::with(Http::new(), set(urls, ejects, attempt_timeout));
                self.guards.push(Part::Urls(layer.endpoints()));
                boxed(layer.layer(client.map_request(move |request: Request<RequestBody>| {
                    let host = request.uri().host();
                    match HOSTS[..servers].iter().position(|known| host == Some(known)) {
                        Some(number) => marked(request, index, usize::from(number >= first)),
                        // The request is for another server than those of the set.
                        None => request,
                    }
                })))
            }
            Source::List => {
                let list = Endpoints::list(0..first).unwrap();
                let list = if first < servers { list.or_else(first..servers).unwrap() } else { list };
                let balanced = set(list.connect(move |number| at(&client, number)), ejects, attempt_timeout).http();
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
                let balanced = set(found, ejects, attempt_timeout).http();
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
        match self.permits.0.load(Ordering::SeqCst) {
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

fn set<S>(endpoints: Endpoints<S>, ejects: bool, attempt_timeout: Option<u64>) -> Endpoints<S> {
    let endpoints = if ejects { endpoints } else { endpoints.without_ejections() };
    match attempt_timeout {
        Some(time) => endpoints.attempt_timeout(ms(time)),
        None => endpoints,
    }
}

fn guarded<G: guard::contract::Guard>(guard: G, attempt_timeout: Option<u64>, client: Client) -> Client {
    let layer = GuardLayer::http(guard);
    let layer = match attempt_timeout {
        Some(time) => layer.attempt_timeout(ms(time)),
        None => layer,
    };
    boxed(layer.layer(client))
}

/// The number of permits in use.
#[derive(Default)]
struct Permits(AtomicUsize);

impl PermitIssuer for Permits {
    fn give_back(&self, _: u32) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    fn on_retry_end(&self, _: u32, _: bool) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A budget that grants everything and counts its permits.
#[derive(Clone)]
struct PermitCount(Arc<Permits>);

impl Budget for PermitCount {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        self.0.0.fetch_add(1, Ordering::SeqCst);
        Some(Permit::new(Arc::clone(&self.0), 1))
    }
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
    fn of(kind: Kind, seed: u64) -> Self {
        let rate = || RateLimit::new(Limit::per_second(20), 2);
        let interval = || {
            let interval = Responsive::new().initial(ms(10)).max(ms(1_000));
            interval.randomisation(0.0)
        };
        match kind {
            Kind::Breaker => {
                let breaker = crate::guard::support::timeless().consecutive_failures(2).spread(0).seed(seed);
                Self::Breaker(breaker.open_time(ms(300)).max_open_time(ms(1_000)))
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
