//! One storm in two forms: simulated, and through a thousand real layers under tokio's paused clock. Each retry and
//! guard layer stands before a client of the same server. Each attempt of each call must end at the same time, in the
//! same way, with the same next delay or stop reason.
//!
//! Only the server is the same code in both. The clients, their timers, timeouts, budgets and
//! random streams are the layer's own here. A message takes at least a millisecond, so the order of
//! events within one does not matter.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use reattempt::guard::GuardLayer;
use reattempt::report::{AttemptOutcome, ReportSlot};
use reattempt::{CallOptions, ReplayBody, Report, Retry, RetryPolicy};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::util::BoxService;
use tower::{Layer, Service, ServiceExt};

use super::super::client::Arrivals;
use super::super::server::{Arrival, Server};
use super::super::simulation::server_random;
use super::super::tick::time;
use super::*;
use crate::guards::Guards;

type Body = Empty<Bytes>;

/// A request at the server.
struct Job {
    /// The numbers of client, call and attempt.
    name: (u32, u32, u32),
    answer: oneshot::Sender<(StatusCode, u64)>,
}

/// The messages in flight, by the tick of their arrival.
struct World {
    network: u64,
    started: Instant,
    server: Server<Job>,
    arriving: BTreeMap<u64, Vec<Job>>,
    done: BTreeMap<u64, Vec<Job>>,
    attempts: HashMap<(u32, u32), u32>,
}

impl World {
    fn at(&self, tick: u64) -> Instant {
        self.started + time(tick)
    }

    fn now(&self) -> u64 {
        ticks(self.started.elapsed())
    }

    fn answer(&self, job: Job, status: StatusCode, now: u64) {
        // An error means that the client has abandoned the attempt.
        let _ = job.answer.send((status, now + self.network));
    }

    /// Runs the server's work of a tick.
    fn tick(&mut self, now: u64) {
        for job in self.done.remove(&now).unwrap_or_default() {
            self.server.done();
            self.answer(job, StatusCode::OK, now);
        }
        while let Some((job, work)) = self.server.begin_next(now) {
            self.done.entry(now + work).or_default().push(job);
        }
        let mut arrived = self.arriving.remove(&now).unwrap_or_default();
        arrived.sort_by_key(|job| job.name);
        for job in arrived {
            match self.server.arrive(now, job) {
                Arrival::Begun(job, work) => self.done.entry(now + work).or_default().push(job),
                Arrival::Waits | Arrival::Lost => {}
                Arrival::Refused(job) => self.answer(job, StatusCode::SERVICE_UNAVAILABLE, now),
            }
        }
    }
}

/// The connection of a client to the server.
#[derive(Clone)]
struct Network {
    client: u32,
    world: Arc<Mutex<World>>,
}

impl Service<Request<ReplayBody<Body>>> for Network {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<Body>>) -> Self::Future {
        let mut world = self.world.lock().unwrap();
        let call: u32 = request.headers()["call"].to_str().unwrap().parse().unwrap();
        let attempt = world.attempts.entry((self.client, call)).or_default();
        *attempt += 1;
        let name = (self.client, call, *attempt);
        let (answer, answered) = oneshot::channel();
        let arrives = world.now() + world.network;
        world.arriving.entry(arrives).or_default().push(Job { name, answer });
        let started = world.started;
        Box::pin(async move {
            let (status, arrives) = answered.await.unwrap();
            sleep_until(started + time(arrives)).await;
            Ok(Response::builder().status(status).body(Body::new()).unwrap())
        })
    }
}

/// A call in flight: its number, its start, its future, and the slot of its report.
type Open = (u32, u64, Pin<Box<dyn Future<Output = ()> + Send>>, ReportSlot);

/// Runs one client, from its first call to the end of its last.
async fn client(number: u32, scene: Scene, policy: Policy, world: Arc<Mutex<World>>) -> Vec<Ended> {
    let mut arrivals = Arrivals::new(scene.seed, number.into(), scene.rate);
    let timeout = time(policy.timeout.unwrap_or(scene.timeout));
    let retries = RetryPolicy::http()
        .backoff(policy.schedule.clone())
        .max_attempts(policy.limits.max_attempts)
        .max_elapsed(policy.limits.max_elapsed)
        .budget(policy.budget_of_client())
        .seed(arrivals.seed);
    let network = Network { client: number, world: world.clone() };
    // Guards see the timeouts of attempts only if these are inside.
    let mut retry = match Guards::new(&policy.guards, arrivals.seed) {
        guards if guards.is_empty() => {
            BoxService::new(Retry::new(retries.attempt_timeout(timeout), network).map_response(drop))
        }
        guards => {
            let guarded = GuardLayer::http(guards).attempt_timeout(timeout).layer(network);
            BoxService::new(Retry::new(retries.boxed_errors(), guarded).map_response(drop))
        }
    };
    let of_clock = Arc::clone(&world);
    let moment = move |tick| of_clock.lock().unwrap().at(tick);
    let (mut calls, mut ended, mut open) = (0, Vec::new(), Vec::<Open>::new());
    let mut next = arrivals.next();
    let mut due: Pin<Box<Sleep>> = Box::pin(sleep_until(moment(next)));
    poll_fn(move |cx| {
        loop {
            // Calls are polled in the order in which they began.
            open.retain_mut(|(call, started, future, slot)| {
                let pending = future.as_mut().poll(cx).is_pending();
                if !pending {
                    let report = slot.take().unwrap();
                    let mut ends = ends(number, *call, *started, &report);
                    // A call that is never retried reads no clock, so its end is set here.
                    ends.last_mut().unwrap().at = world.lock().unwrap().now();
                    ended.append(&mut ends);
                }
                pending
            });
            if next < scene.duration {
                if due.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                let slot = ReportSlot::default();
                let mut request = Request::get("http://server/").header("call", calls);
                let options = CallOptions::new().report_to(&slot);
                request.extensions_mut().unwrap().insert(options);
                assert!(retry.poll_ready(cx).is_ready());
                let call = retry.call(request.body(Body::new()).unwrap());
                let future = Box::pin(async move { drop(call.await) });
                open.push((calls, next, future, slot));
                calls += 1;
                next = arrivals.next();
                due.as_mut().reset(moment(next));
            } else if open.is_empty() {
                return Poll::Ready(std::mem::take(&mut ended));
            } else {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Converts the report of a call to a part of the trace.
fn ends(client: u32, call: u32, started: u64, report: &Report) -> Vec<Ended> {
    let ended = report.attempts().iter().map(|attempt| Ended {
        at: started + ticks(attempt.ended),
        client,
        call,
        attempt: attempt.number,
        started,
        failure: match &attempt.outcome {
            AttemptOutcome::Failed { error: Some(error), .. } if error.contains("not sent: ") => None,
            AttemptOutcome::Failed { failure, .. } => Some(*failure),
            _ => None,
        },
        then: attempt.delay.ok_or(report.stop_reason()),
    });
    ended.collect()
}

async fn through_the_layer(scene: &Scene, policy: &Policy) -> Vec<Ended> {
    let server = Server::new(scene.server.clone(), server_random(scene));
    let started = Instant::now();
    let world = Arc::new(Mutex::new(World {
        network: scene.network,
        started,
        server,
        arriving: BTreeMap::new(),
        done: BTreeMap::new(),
        attempts: HashMap::new(),
    }));
    let of_server = Arc::clone(&world);
    let server = tokio::spawn(async move {
        for tick in 0.. {
            sleep_until(started + time(tick)).await;
            of_server.lock().unwrap().tick(tick);
        }
    });
    let clients: Vec<_> = (0..scene.clients)
        .map(|number| tokio::spawn(client(number, scene.clone(), policy.clone(), world.clone())))
        .collect();
    let mut trace = Vec::new();
    for client in clients {
        trace.extend(client.await.unwrap());
    }
    server.abort();
    trace
}

fn in_order(mut trace: Vec<Ended>) -> Vec<Ended> {
    trace.sort_by_key(|end| (end.at, end.client, end.call, end.attempt));
    trace
}

async fn compare(scene: Scene, name: &str) {
    compare_of(scene, policy(name)).await;
}

async fn compare_of(scene: Scene, policy: Policy) {
    let name = &policy.name;
    let real = in_order(through_the_layer(&scene, &policy).await);
    let simulated = Simulation::new(&scene, &policy, Trace::default()).run();
    let simulated = in_order(simulated.ended);
    if let Some((real, simulated)) = real.iter().zip(&simulated).find(|(a, b)| a != b) {
        panic!("{name}, {:?}:\n     real {real:?}\nsimulated {simulated:?}", scene.server.fault);
    }
    assert_eq!(real.len(), simulated.len(), "{name}");
    assert!(real.len() > 10_000, "{}", real.len());
    // Failures, and refusals of guards.
    let failed = real.iter().filter(|end| end.then != Err(StopReason::Succeeded)).count();
    assert!(failed > 1000, "{failed}");
}

#[tokio::test(start_paused = true)]
async fn stall_through_layers_is_as_simulated() {
    for policy in policies() {
        compare(scene(1000, Fault::Stall), &policy.name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn slow_server_in_layers_is_as_simulated() {
    for name in ["ours", "AWS quota"] {
        compare(scene(1000, Fault::Slow(20)), name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_through_layers_are_as_simulated() {
    for name in ["ours", "ratio for rate", "rate", "gRPC throttle"] {
        compare(scene(1000, Fault::Refuse(0.6)), name).await;
    }
}

/// Many parallel calls of one client share a bucket, as in the simulation.
#[tokio::test(start_paused = true)]
async fn busy_clients_are_as_simulated() {
    for name in ["ours", "gRPC throttle", "AWS quota"] {
        compare(scene(20, Fault::Stall), name).await;
    }
}

/// Guards around every attempt, inside the retries, behave as in the simulation.
#[tokio::test(start_paused = true)]
async fn guarded_clients_are_as_simulated() {
    for (fault, word) in [
        (Fault::Stall, "ours+breaker:open_time=1s"),
        (Fault::Stall, "unlimited+counting:open_time=2s+bulkhead:limit=20"),
        (Fault::Slow(20), "unlimited+vegas"),
        (Fault::Slow(20), "unlimited+gradient2"),
    ] {
        let scene = scene(20, fault);
        let policies = policy::chosen(&[policy::parse(word).unwrap()], None, scene.rate).unwrap();
        let [policy] = &policies[..] else { panic!() };
        let refused = run(&scene, policy).refused.iter().sum::<u64>();
        assert!(refused > 50, "{word}: {refused}");
        compare_of(scene, policy.clone()).await;
    }
}

/// Short attempt timeouts, and calls that end at their time limit, behave as in the simulation.
#[tokio::test(start_paused = true)]
async fn time_limits_are_as_simulated() {
    let word = "standard:max_attempts=9,max_elapsed=1500ms,attempt_timeout=300ms,budget=none";
    let policy = crate::policy::parse_word(word).unwrap();
    compare_of(scene(20, Fault::Stall), Policy::written(&policy).unwrap()).await;
}
