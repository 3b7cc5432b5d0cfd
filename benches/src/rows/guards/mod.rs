//! Guards that admit: each alone, through the contract that the layer uses, and in the layer around a fresh call.
//!
//! Alone, an operation is one admission and its end. The clock is not read: time is an argument of ours, and peers that
//! read it do so at every call. In the layer, the clock is read as in a program.

use std::hint::black_box;
use std::iter;
use std::time::Duration;

use http::{Request, Response};
use reattempt::Deadline;
use reattempt::guard::contract::{Admit, Arrival, BodyEnd, End, Guard, Health};
use reattempt::guard::{AdaptiveLimit, Bulkhead, CircuitBreaker, GuardLayer, Limit, RateLimit, Throttle};
use reattempt::standard::StandardLayer;
use tokio::runtime::{Builder, Runtime};
use tower::Layer;
use tower_service::Service;

use super::once::each_on;
use super::{Row, Work, above, alone};
use crate::contenders::least_guard::LeastGuard;
use crate::contenders::least_guards::{LeastAdaptive, LeastBreaker, LeastBulkhead, LeastLimit, LeastThrottle};
use crate::contenders::ours;
use crate::inner::Answers;
use crate::requests::{Body, fresh};

#[cfg(feature = "peers")]
#[path = "peers.rs"]
mod peers;
#[cfg(feature = "peers")]
#[path = "stacks.rs"]
mod stacks;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "guard-look-up",
        title: "look-up of a destination",
        operations: 8192,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || allows(limit().shared(true))),
            above("ours", "bare", || allows(limit())),
            above("ours-among-64", "bare", allows_by_turns),
        ],
    },
    Row {
        name: "guard-newcomer",
        title: "a new destination in a table of 65,536",
        operations: 4096,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", name_newcomers),
            above("ours", "bare", || newcomers(MOST_DESTINATIONS)),
            above("ours-filling", "bare", || newcomers(MOST_DESTINATIONS / 2)),
        ],
    },
    Row {
        name: "guard-breaker",
        title: "closed breaker, a call and its success",
        operations: 2000,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", bare),
            above("ours", "bare", || served(CircuitBreaker::rate().shared(true))),
            above("ours-counting", "bare", || served(CircuitBreaker::counting().shared(true))),
            above("least", "bare", || served(LeastBreaker::new())),
            #[cfg(feature = "peers")]
            above("recloser", "bare", || peers::by_recloser(peers::recloser())),
            #[cfg(feature = "peers")]
            above("failsafe", "bare", || peers::by_failsafe(peers::failsafe())),
        ],
    },
    Row {
        name: "guard-breaker-open",
        title: "open breaker, a refusal",
        operations: 2000,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", bare),
            above("ours", "bare", || refused(open())),
            above("least", "bare", || refused(opened(LeastBreaker::new(), 20))),
            #[cfg(feature = "peers")]
            above("recloser", "bare", || peers::refused_by_recloser(peers::open_recloser())),
            #[cfg(feature = "peers")]
            above("failsafe", "bare", || peers::refused_by_failsafe(peers::open_failsafe())),
        ],
    },
    Row {
        name: "guard-rate-limit",
        title: "rate limit, a token",
        operations: 2000,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", bare),
            above("ours", "bare", || allows(limit().shared(true))),
            above("ours-guard", "bare", || served(limit().shared(true))),
            above("least", "bare", least_limit),
            #[cfg(feature = "peers")]
            above("governor", "bare", peers::by_governor),
        ],
    },
    Row {
        name: "guard-places",
        title: "a place taken and released",
        operations: 2000,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", bare),
            above("ours", "bare", || served(Bulkhead::default().shared(true).release_at_head(true))),
            above("ours-to-the-end", "bare", || served(Bulkhead::default().shared(true))),
            above("least", "bare", || served(LeastBulkhead::new(64))),
        ],
    },
    Row {
        name: "guard-adaptive",
        title: "adaptive limit, a place and its sample",
        operations: 2000,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", bare),
            above("ours", "bare", || served(AdaptiveLimit::vegas().shared(true).release_at_head(true))),
            above("least", "bare", || served(LeastAdaptive::new())),
        ],
    },
    Row {
        name: "guard-throttle",
        title: "throttle, a call and its success",
        operations: 2000,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", bare),
            above("ours", "bare", || served(Throttle::new().shared(true))),
            above("least", "bare", || served(LeastThrottle::new())),
        ],
    },
    Row {
        name: "guarded-breaker",
        title: "fresh call through a breaker",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || awaited(Answers, fresh)),
            above("ours", "bare", || guarded(CircuitBreaker::rate())),
            above("least", "bare", || least(false)),
            #[cfg(feature = "peers")]
            above("resilience-breaker", "bare", peers::resilience_breaker),
            #[cfg(feature = "peers")]
            above("seatbelt", "bare", peers::seatbelt),
        ],
    },
    Row {
        name: "guarded-limit",
        title: "fresh call through a rate limit",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || awaited(Answers, fresh)),
            above("ours", "bare", || guarded(limit())),
            above("least", "bare", || least(false)),
            #[cfg(feature = "peers")]
            above("tower-limit", "bare", peers::tower_rate),
            #[cfg(feature = "peers")]
            above("resilience-limiter", "bare", peers::resilience_rate),
        ],
    },
    Row {
        name: "guarded-places",
        title: "fresh call through a bulkhead",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || awaited(Answers, fresh)),
            above("ours", "bare", || guarded(Bulkhead::default())),
            above("least", "bare", || least(true)),
            #[cfg(feature = "peers")]
            above("tower-limit", "bare", peers::tower_concurrency),
            #[cfg(feature = "peers")]
            above("resilience-bulkhead", "bare", peers::resilience_bulkhead),
        ],
    },
    Row {
        name: "guarded-adaptive",
        title: "fresh call through an adaptive limit",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || awaited(Answers, fresh)),
            above("ours", "bare", || guarded(AdaptiveLimit::vegas())),
            above("least", "bare", || least(true)),
            #[cfg(feature = "peers")]
            above("tower-acc", "bare", peers::tower_acc),
            #[cfg(feature = "peers")]
            above("resilience-adaptive", "bare", peers::resilience_adaptive),
        ],
    },
    Row {
        name: "standard",
        title: "fresh call through the standard stack",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || awaited(Answers, fresh)),
            above("ours", "bare", || awaited(StandardLayer::http().layer(Answers), fresh)),
            above("ours-retry", "bare", || awaited(ours(Answers), fresh)),
            above("least-extension", "bare", || awaited(Answers, with_deadline)),
            #[cfg(feature = "peers")]
            above("resilience-stack", "bare", stacks::resilience_stack),
            #[cfg(feature = "peers")]
            above("seatbelt-stack", "bare", stacks::seatbelt_stack),
            #[cfg(feature = "peers")]
            above("mixed-stack", "bare", stacks::mixed_stack),
        ],
    },
    #[cfg(feature = "peers")]
    Row {
        name: "two-threads-breaker",
        title: "closed breaker, calls on two threads",
        operations: 2000,
        counted: false,
        timed: true,
        contenders: &[
            alone("ours", || peers::on_two_threads(CircuitBreaker::rate().shared(true), serve)),
            alone("ours-counting", || peers::on_two_threads(CircuitBreaker::counting().shared(true), serve)),
            alone("recloser", || peers::on_two_threads(peers::recloser(), peers::call_recloser)),
            alone("failsafe", || peers::on_two_threads(peers::failsafe(), peers::call_failsafe)),
        ],
    },
];

const DESTINATION: &str = "shop.example";
const NOW: Duration = Duration::from_secs(100);
/// The destinations of a table, and the tables that a look-up is averaged over.
const NAMES: usize = 64;
const TABLES: usize = 128;
/// The largest table.
const MOST_DESTINATIONS: usize = 65_536;

/// Creates a limit that no measurement reaches.
fn limit() -> RateLimit {
    RateLimit::new(Limit::per_second(1_000_000), 1_000_000)
}

fn open() -> CircuitBreaker {
    let breaker = CircuitBreaker::rate().consecutive_failures(5).min_failing_time(Duration::ZERO).shared(true);
    breaker.isolate_at(DESTINATION, NOW);
    breaker.close_at(DESTINATION, NOW);
    opened(breaker, 5)
}

/// Opens a breaker by that many failures.
fn opened<G: Guard>(breaker: G, failures: u32) -> G {
    for _ in 0..failures {
        let Admit::Admitted(ticket) = breaker.admit(&Arrival::new(DESTINATION, NOW)) else {
            panic!("it is closed");
        };
        breaker.end_ticket(ticket, &End::judged(Health::Failed, Duration::ZERO), NOW);
    }
    breaker
}

fn repeat(operation: impl Fn() + 'static) -> Work {
    Box::new(move |operations| (0..operations).for_each(|_| operation()))
}

fn bare() -> Work {
    repeat(|| {
        black_box(DESTINATION);
    })
}

fn allows(limit: RateLimit) -> Work {
    repeat(move || assert!(limit.allow_at(black_box(DESTINATION), NOW)))
}

fn least_limit() -> Work {
    let limit = LeastLimit::new(1_000_000, 1_000_000);
    repeat(move || assert!(limit.allow(black_box(NOW))))
}

/// Takes tokens of 64 destinations by turns, of one table after the other. The seed of a table is random, and with it
/// the slots that a look-up compares. So the count is the mean over many tables.
fn allows_by_turns() -> Work {
    let names: Vec<String> = (0..NAMES).map(|number| format!("host-{number}.example")).collect();
    let limits: Vec<RateLimit> = iter::repeat_with(limit).take(TABLES).collect();
    for limit in &limits {
        for name in &names {
            limit.allow_at(name, NOW);
        }
    }
    let mut turn = 0;
    Box::new(move |operations| {
        for _ in 0..operations {
            let (limit, name) = (&limits[turn / NAMES % TABLES], &names[turn % NAMES]);
            assert!(limit.allow_at(black_box(name), NOW));
            turn += 1;
        }
    })
}

/// Takes tokens of new destinations, after those of the `known` ones. In a full table, each evicts another.
fn newcomers(known: usize) -> Work {
    let limit = limit().max_destinations(MOST_DESTINATIONS);
    let mut names = (0..).map(name);
    let mut take = move || assert!(limit.allow_at(&names.next().unwrap(), NOW));
    (0..known).for_each(|_| take());
    Box::new(move |operations| (0..operations).for_each(|_| take()))
}

fn name_newcomers() -> Work {
    let mut names = (0..).map(name);
    Box::new(move |operations| (0..operations).for_each(|_| drop(black_box(names.next()))))
}

fn name(number: u64) -> String {
    format!("host-{number:06}.example")
}

fn refused(guard: impl Guard) -> Work {
    repeat(move || {
        let Admit::Refused(refused) = guard.admit(&Arrival::new(black_box(DESTINATION), NOW)) else {
            panic!("it is open");
        };
        black_box(refused);
    })
}

/// Admits a call that is served.
#[inline]
fn serve<G: Guard>(guard: &G) {
    let Admit::Admitted(ticket) = guard.admit(&Arrival::new(black_box(DESTINATION), NOW)) else {
        panic!("nothing limits it");
    };
    let served = End::judged(Health::Served, Duration::from_millis(1));
    if let Some(held) = guard.end_ticket(ticket, &served, NOW) {
        guard.end_ticket(held, &End::Over(BodyEnd::Complete), NOW);
    }
}

fn served(guard: impl Guard) -> Work {
    repeat(move || serve(&guard))
}

/// Awaits calls on a runtime whose clock runs: a paused one is a lock, which each reading takes.
pub(super) fn awaited<S, B>(service: S, make: impl FnMut() -> Request<Body> + 'static) -> Work
where
    S: Service<Request<Body>, Response = Response<B>> + 'static,
    S::Error: std::fmt::Debug,
{
    each_on(running(), service, make)
}

/// Returns a fresh request with a deadline in its extensions.
fn with_deadline() -> Request<Body> {
    let mut request = fresh();
    request.extensions_mut().insert(Deadline::after(Duration::from_secs(30)));
    request
}

pub(super) fn running() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn guarded(guard: impl Guard) -> Work {
    awaited(GuardLayer::http(guard).layer(Answers), fresh)
}

/// Calls through the least layer, which frees its place at the head or at the end of the body.
fn least(to_the_end: bool) -> Work {
    awaited(LeastGuard::new(Answers, 64, to_the_end), fresh)
}

/// Checks that every contender's calls succeed, and that the open breakers and the full least layer refuse.
#[cfg(feature = "peers")]
pub(super) fn check() {
    for contender in ROWS.iter().flat_map(|row| row.contenders) {
        (contender.prepare)()(10);
    }
    peers::check_least();
    peers::check_least_guards();
    stacks::check();
}
