//! Fleets under a shared rate limit whose store pauses, fails or is slow, under a paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use reattempt_control::{Limit, RateLimit};
use reattempt_fleet::rate::{FleetRateLimit, Rate};
use reattempt_fleet::{MemoryStore, RateStore, Taking};
use tokio::time::{Instant, sleep};

use crate::rate::{Process, rate};

/// The limit of the fleet in each scene.
const PER_SECOND: u32 = 100;
const BURST: u32 = 20;

/// The state of a store at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    /// It answers after this many milliseconds.
    Answers(u64),
    /// It refuses connections.
    Down,
    /// It answers everything at this time.
    PausedUntil(Duration),
}

#[derive(Clone)]
struct Scripted {
    memory: MemoryStore,
    start: Instant,
    mode: fn(Duration) -> Mode,
}

impl RateStore for Scripted {
    fn take<'a>(&'a self, key: &'a str, rate: Rate, wanted: u32) -> Taking<'a> {
        Box::pin(async move {
            let now = self.start.elapsed();
            match (self.mode)(now) {
                Mode::Down => return Err("the store is down".into()),
                Mode::PausedUntil(end) => sleep(end.saturating_sub(now)).await,
                Mode::Answers(milliseconds) => sleep(Duration::from_millis(milliseconds) / 2).await,
            }
            let answer = self.memory.take(key, rate, wanted).await;
            if let Mode::Answers(milliseconds) = (self.mode)(now) {
                sleep(Duration::from_millis(milliseconds) / 2).await;
            }
            answer
        })
    }
}

#[derive(Debug)]
struct Figures {
    /// The most calls in any second.
    most: usize,
    sum: usize,
    /// The questions that the store did not answer in 50 ms.
    late: u64,
}

/// Runs processes for 30 s, each of which gets a call at each interval. Their local limits are equal shares.
async fn run(processes: u32, each: u32, queue: usize, mode: fn(Duration) -> Mode) -> Figures {
    let start = Instant::now();
    let store = Scripted { memory: MemoryStore::new(), start, mode };
    let sent = Arc::new(Mutex::new(Vec::new()));
    let fleet: Vec<_> = (0..processes)
        .map(|_| {
            let own = RateLimit::new(
                Limit::every(Duration::from_secs(1) * processes / PER_SECOND),
                (BURST / processes).max(1),
            );
            let limit = FleetRateLimit::new(store.clone(), rate(PER_SECOND, BURST), own);
            Process { limit: limit.queue(queue, Duration::from_secs(30)), start }
        })
        .collect();
    let runs = fleet.iter().enumerate().map(|(number, process)| {
        let (process, sent) = (process.clone(), Arc::clone(&sent));
        tokio::spawn(async move {
            sleep(Duration::from_secs(1) / each / processes * u32::try_from(number).unwrap()).await;
            while start.elapsed() < Duration::from_secs(30) {
                let (process, sent) = (process.clone(), Arc::clone(&sent));
                tokio::spawn(async move {
                    if process.send().await.is_ok() {
                        sent.lock().unwrap().push(start.elapsed());
                    }
                });
                sleep(Duration::from_secs(1) / each).await;
            }
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap();
    }
    let sent = sent.lock().unwrap().clone();
    let in_a_second = |first: usize| sent.partition_point(|at| *at < sent[first] + Duration::from_secs(1)) - first;
    Figures {
        most: (0..sent.len()).map(in_a_second).max().unwrap_or(0),
        sum: sent.len(),
        late: fleet.iter().map(|process| process.limit.stats().late).sum(),
    }
}

fn within(now: Duration, from: u64, to: u64) -> bool {
    (from..to).contains(&u64::try_from(now.as_millis()).unwrap())
}

fn down_for_5_s(now: Duration) -> Mode {
    if within(now, 5_000, 10_000) { Mode::Down } else { Mode::Answers(1) }
}

fn down_for_50_ms(now: Duration) -> Mode {
    if within(now, 5_000, 5_050) { Mode::Down } else { Mode::Answers(1) }
}

fn pause_of_120_ms(now: Duration) -> Mode {
    let end = 5_120;
    if within(now, 5_000, end) { Mode::PausedUntil(Duration::from_millis(end)) } else { Mode::Answers(1) }
}

fn late_each_second(now: Duration) -> Mode {
    Mode::Answers(if now.as_millis() % 1000 < 60 { 100 } else { 1 })
}

/// The name of a scene, its processes, their calls a second and places in the queue, and its store.
type Scene = (&'static str, u32, u32, usize, fn(Duration) -> Mode);

/// No second of a run has more calls than the rate and the burst, its first included. In 30 s they allow 3,020 calls.
/// Before, a pause doubled the rate for 20 s: 181 to 217 calls a second.
// L-1, L-2, L-3, trap 70
#[tokio::test(start_paused = true)]
async fn store_s_hiccups_leave_the_rate() {
    let scenes: [Scene; 11] = [
        ("no fault", 2, 150, 1024, |_| Mode::Answers(1)),
        ("down for 5 s, less demand", 2, 40, 1024, down_for_5_s),
        ("down for 5 s", 2, 150, 1024, down_for_5_s),
        ("down for 50 ms", 2, 150, 1024, down_for_50_ms),
        ("down for 5 s, 50 processes", 50, 4, 1024, down_for_5_s),
        ("a pause of 120 ms", 10, 20, 1024, pause_of_120_ms),
        ("55 ms away", 2, 150, 1024, |_| Mode::Answers(55)),
        ("200 ms away", 2, 150, 1024, |_| Mode::Answers(200)),
        ("down at first", 2, 150, 1024, |now| if within(now, 0, 500) { Mode::Down } else { Mode::Answers(1) }),
        ("a late answer each second", 2, 150, 1024, late_each_second),
        ("down for 5 s, without a queue", 2, 150, 0, down_for_5_s),
    ];
    for (name, processes, each, queue, mode) in scenes {
        let figures = run(processes, each, queue, mode).await;
        println!("{name}: {figures:?}");
        // If answers are often late, tokens and calls that they pay for meet in one second: up to 5 % more.
        let is_often_late = matches!(name, "55 ms away" | "200 ms away" | "a late answer each second");
        assert!(figures.most <= if is_often_late { 130 } else { 121 }, "{name}: {figures:?}");
        let expected = if each == 40 { 2_399..=2_401 } else { 2_850..=3_030 };
        assert!(expected.contains(&figures.sum), "{name}: {figures:?}");
        assert_eq!(
            figures.late > 0,
            matches!(name, "a pause of 120 ms" | "55 ms away" | "200 ms away" | "a late answer each second")
        );
    }
}
