//! Tests of random sequences on one rate limit: guarded calls, waits for tokens, and reservations.
//!
//! The test's own bucket checks what is sent. It has no queue, debt or reservations: time fills it, and each token that
//! is sent must be in it. A reservation keeps its time if the rate or the burst changes, so one that was made before
//! such a change is not counted.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use reattempt::Verdict;
use reattempt::guard::handle::RateLimitExt;
use reattempt::guard::handle::{Reservation, wait_for_tokens};
use reattempt::guard::{self, GuardLayer, Limit, RateLimit};
use reattempt_core::Random;
use reattempt_testing::Seeded;
use reattempt_testing_layers::calls::ms;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tower::{Layer, Service};

const HOST: &str = "";
const SEQUENCES: u64 = 50_000;
const RATES: [u32; 6] = [4, 8, 20, 50, 100, 3];
const BURSTS: [u32; 5] = [1, 1, 2, 5, 10];

/// Timers count in whole milliseconds, so a send may be late by one token at the highest rate.
const LATE: f64 = 0.1 + 1e-3;

/// The bucket that checks what is sent.
struct Bucket {
    level: f64,
    rate: f64,
    burst: f64,
    at: Instant,
    /// The number of changes to the rate and the burst.
    changes: u32,
    is_wrong: bool,
}

impl Bucket {
    fn advance(&mut self) {
        let elapsed = self.at.elapsed().as_secs_f64();
        self.level = (self.level + elapsed * self.rate).min(self.burst);
        self.at = Instant::now();
    }

    /// Takes the tokens of something that is sent now.
    fn send(&mut self, tokens: u32) {
        self.advance();
        self.level -= f64::from(tokens);
        self.is_wrong |= self.level < -LATE;
    }

    /// Takes the tokens of a reservation that was made after this many changes.
    fn send_reserved(&mut self, tokens: u32, changes: u32) {
        if changes == self.changes {
            self.send(tokens);
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Self)) {
        self.advance();
        change(self);
        self.changes += 1;
        self.level = self.level.min(self.burst);
    }
}

type Shared = Arc<Mutex<Bucket>>;

/// A server that checks each call. The clones of a stuck server are never ready, so a call that waited is not sent.
struct Server {
    bucket: Shared,
    is_stuck: bool,
    is_ready: bool,
}

impl Clone for Server {
    fn clone(&self) -> Self {
        Self { bucket: Arc::clone(&self.bucket), is_ready: !self.is_stuck, ..*self }
    }
}

impl Service<()> for Server {
    type Response = ();
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<(), Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.is_ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn call(&mut self, (): ()) -> Self::Future {
        let bucket = Arc::clone(&self.bucket);
        Box::pin(async move {
            bucket.lock().unwrap().send(1);
            Ok(())
        })
    }
}

/// A reservation that is used at its time.
struct Reserved {
    reservation: Reservation,
    tokens: u32,
    until: Instant,
    usage: JoinHandle<()>,
}

struct Scene {
    random: Seeded,
    limit: RateLimit,
    bucket: Shared,
    burst: u32,
    tasks: Vec<JoinHandle<()>>,
    /// Calls that were admitted and are never polled.
    idle: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    reserved: Vec<Reserved>,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let mut random = Seeded::new(seed);
        let (rate, burst) = (pick(&mut random, &RATES), pick(&mut random, &BURSTS));
        let limit = RateLimit::new(per_second(rate), burst).shared(true);
        let (level, rate, at) = (f64::from(burst), f64::from(rate), Instant::now());
        let bucket = Bucket { level, rate, burst: level, at, changes: 0, is_wrong: false };
        let bucket = Arc::new(Mutex::new(bucket));
        let (tasks, idle, reserved) = (Vec::new(), Vec::new(), Vec::new());
        Self { random, limit, bucket, burst, tasks, idle, reserved }
    }

    fn tokens(&self) -> f64 {
        self.limit.tokens(HOST)
    }

    /// Creates a call. The decision is made at once, and the call is sent when the future is polled.
    fn call(&self, is_stuck: bool) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let server = Server { bucket: Arc::clone(&self.bucket), is_stuck, is_ready: true };
        let success = |_: Result<&(), &(dyn Error + 'static)>| Verdict::Success;
        let layer = GuardLayer::classified(success, self.limit.clone());
        let call = layer.layer(server).call(());
        Box::pin(async { drop(call.await) })
    }

    fn draw(&mut self, below: u64) -> u64 {
        draw(&mut self.random, below)
    }

    fn amount(&mut self) -> u32 {
        let most = u64::from(self.burst);
        u32::try_from(1 + self.draw(most)).unwrap()
    }

    async fn step(&mut self) {
        match self.draw(16) {
            0..4 => self.tasks.push(tokio::spawn(self.call(false))),
            4 => self.tasks.push(tokio::spawn(self.call(true))),
            5 => self.admit(),
            6 => self.wait(),
            7..9 => self.reserve(),
            9 => self.reserve_and_cancel(),
            10 => self.wait_and_leave(),
            11 => self.cancel(),
            12 | 13 => self.drop_one(),
            14 => self.allow(),
            _ => self.change(),
        }
        if self.draw(2) == 0 {
            let pause = self.draw(400);
            sleep(ms(pause)).await;
        } else {
            tokio::task::yield_now().await;
        }
        assert!(self.tokens() <= f64::from(self.limit.burst(HOST)), "more than the burst");
    }

    /// Admits a call that is not polled. A waiting call is polled, because a call in the queue would be late otherwise.
    fn admit(&mut self) {
        let waiting = self.limit.waiting(HOST);
        let call = self.call(false);
        if self.limit.waiting(HOST) > waiting {
            self.tasks.push(tokio::spawn(call));
        } else {
            self.idle.push(call);
        }
    }

    fn allow(&mut self) {
        let tokens = self.amount();
        if self.limit.allow_n_at(HOST, tokens, guard::handle::now()) {
            self.bucket.lock().unwrap().send(tokens);
        }
    }

    fn wait(&mut self) {
        let (tokens, longest) = (self.amount(), ms(self.draw(4000)));
        let (limit, bucket) = (self.limit.clone(), Arc::clone(&self.bucket));
        self.tasks.push(tokio::spawn(async move {
            let changes = bucket.lock().unwrap().changes;
            if wait_for_tokens(&limit, HOST, tokens, longest).await.is_ok() {
                bucket.lock().unwrap().send_reserved(tokens, changes);
            }
        }));
    }

    fn reserve(&mut self) {
        let tokens = self.amount();
        let reservation = self.limit.reserve_n_at(HOST, tokens, guard::handle::now());
        if !reservation.ok() {
            return;
        }
        let delay = reservation.delay_at(guard::handle::now());
        let (bucket, until) = (Arc::clone(&self.bucket), Instant::now() + delay);
        let changes = bucket.lock().unwrap().changes;
        let usage = tokio::spawn(async move {
            sleep(delay).await;
            bucket.lock().unwrap().send_reserved(tokens, changes);
        });
        self.reserved.push(Reserved { reservation, tokens, until, usage });
    }

    /// Cancels a reservation. Later pending ones have borrowed its tokens.
    fn cancel(&mut self) {
        let Some(number) = self.any(self.reserved.len()) else { return };
        let mut cancelled = self.reserved.remove(number);
        if cancelled.usage.is_finished() {
            return;
        }
        let later = self.reserved[number..].iter().filter(|one| one.until > Instant::now());
        let built_upon: u32 = later.map(|one| one.tokens).sum();
        let before = self.tokens();
        cancelled.usage.abort();
        cancelled.reservation.cancel_at(guard::handle::now());
        let returned = self.tokens() - before;
        let most = cancelled.tokens.saturating_sub(built_upon);
        assert!((-1e-9..=f64::from(most) + 1e-9).contains(&returned), "{returned} of {most}");
    }

    fn reserve_and_cancel(&mut self) {
        let (tokens, before) = (self.amount(), self.tokens());
        let mut reservation = self.limit.reserve_n_at(HOST, tokens, guard::handle::now());
        reservation.cancel_at(guard::handle::now());
        assert_eq!(self.tokens(), before, "nothing is built upon it");
    }

    fn wait_and_leave(&mut self) {
        let (before, waiting) = (self.tokens(), self.limit.waiting(HOST));
        let call = self.call(false);
        let waited = self.limit.waiting(HOST) > waiting;
        drop(call);
        assert_eq!(self.limit.waiting(HOST), waiting);
        assert!(!waited || self.tokens() == before, "nothing is built upon it");
    }

    fn drop_one(&mut self) {
        if let Some(number) = self.any(self.tasks.len()) {
            self.tasks.swap_remove(number).abort();
        }
        if let Some(number) = self.any(self.idle.len()) {
            drop(self.idle.swap_remove(number));
        }
    }

    fn change(&mut self) {
        let value = match self.draw(3) {
            0 => pick(&mut self.random, &RATES),
            1 => pick(&mut self.random, &BURSTS),
            _ => return,
        };
        let now = guard::handle::now();
        let mut bucket = self.bucket.lock().unwrap();
        if RATES.contains(&value) && !BURSTS.contains(&value) {
            self.limit.set_limit_at(HOST, per_second(value), now);
            bucket.change(|bucket| bucket.rate = f64::from(value));
        } else {
            self.limit.set_burst_at(HOST, value, now);
            bucket.change(|bucket| bucket.burst = f64::from(value));
        }
    }

    fn any(&mut self, len: usize) -> Option<usize> {
        let below = u64::try_from(len).unwrap();
        (len > 0).then(|| usize::try_from(self.draw(below)).unwrap())
    }

    /// Ends everything, and checks that time fills the bucket again.
    async fn end_scene(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.reserved.iter().for_each(|one| one.usage.abort());
        drop(self.idle);
        sleep(Duration::from_secs(1000)).await;
        assert_eq!(self.limit.waiting(HOST), 0);
        let burst = f64::from(self.limit.burst(HOST));
        assert_eq!(self.limit.tokens(HOST), burst);
        assert!(!self.bucket.lock().unwrap().is_wrong, "more was sent than the limit allows");
    }
}

fn per_second(rate: u32) -> Limit {
    Limit::per_second(rate)
}

fn draw(random: &mut Seeded, below: u64) -> u64 {
    random.next_u64() % below
}

fn pick(random: &mut Seeded, from: &[u32]) -> u32 {
    let len = u64::try_from(from.len()).unwrap();
    from[usize::try_from(draw(random, len)).unwrap()]
}

/// In any window, what is sent is at most the burst plus the rate's tokens. A cancelled reservation returns only what
/// later ones have not borrowed, and the bucket never holds more than its burst.
// G-12, G-13, G-14
#[tokio::test(start_paused = true)]
async fn token_sequences_never_exceed_the_limit() {
    let mut wrong = Vec::new();
    for seed in 0..SEQUENCES {
        let sequence = tokio::spawn(async move {
            let mut scene = Scene::new(seed);
            for _ in 0..12 {
                scene.step().await;
            }
            scene.end_scene().await;
        });
        if sequence.await.is_err() {
            wrong.push(seed);
        }
    }
    assert_eq!(wrong.len(), 0, "of {SEQUENCES}; the first: {:?}", wrong.first());
}
