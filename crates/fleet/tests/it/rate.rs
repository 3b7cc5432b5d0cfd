//! The rate limit of a fleet: processes with a store under a paused clock.

use std::future::poll_fn;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use reattempt_control::{Limit, RateLimit};
use reattempt_core::guard::{Admit, Arrival, End, Guard, Health, Reason, Refused, Resume};
use reattempt_fleet::rate::{FleetRateEvent, FleetRateLimit, FleetRateTicket, Rate, Taken};
use reattempt_fleet::{MemoryStore, RateStore, Taking};
use tokio::time::{Instant, advance, sleep, sleep_until};

pub(crate) fn rate(per_second: u32, burst: u32) -> Rate {
    Rate::new(NonZeroU32::new(per_second).unwrap(), NonZeroU32::new(burst).unwrap())
}

/// A store that can be down or slow, or grant what it likes.
#[derive(Clone)]
struct Faulty {
    memory: MemoryStore,
    takes: Duration,
    down: Arc<AtomicBool>,
    questions: Arc<AtomicU32>,
    lies: bool,
}

impl Faulty {
    fn new() -> Self {
        let (memory, takes) = (MemoryStore::new(), Duration::from_millis(1));
        Self { memory, takes, down: Arc::default(), questions: Arc::default(), lies: false }
    }
}

impl RateStore for Faulty {
    fn take<'a>(&'a self, key: &'a str, rate: Rate, wanted: u32) -> Taking<'a> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            sleep(self.takes).await;
            match (self.down.load(Ordering::Relaxed), self.lies) {
                (true, _) => Err("the store is down".into()),
                (_, true) => Ok(Taken { granted: u32::MAX, granted_at: 0 }),
                _ => self.memory.take(key, rate, wanted).await,
            }
        })
    }
}

/// More than any test sends or polls, so that a limit without effect fails its test and does not hang it.
const MOST: u32 = 100_000;
const MOST_LOOKS: u32 = 2_000;

/// A process of the fleet, with the clock that a layer would have.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) limit: FleetRateLimit,
    pub(crate) start: Instant,
}

impl Process {
    /// Its local limit is one call in ten seconds, so what it sends is the store's.
    fn new(store: impl RateStore, rate: Rate) -> Self {
        let local = RateLimit::new(Limit::every(Duration::from_secs(10)), 1).no_queue();
        Self { limit: FleetRateLimit::new(store, rate, local), start: Instant::now() }
    }

    fn arrival(&self) -> Arrival<'static> {
        Arrival::new("a", self.start.elapsed())
    }

    /// Sends a call as a layer does.
    pub(crate) async fn send(&self) -> Result<FleetRateTicket, Refused> {
        let mut ticket = match self.limit.admit(&self.arrival()) {
            Admit::Admitted(ticket) => return Ok(ticket),
            Admit::Refused(refused) => return Err(refused),
            Admit::Waiting(ticket) => ticket,
        };
        let (mut timer, mut looks) = (Box::pin(sleep(Duration::ZERO)), 0);
        poll_fn(|cx| {
            loop {
                looks += 1;
                assert!(looks < MOST_LOOKS, "a call looks for a token without end");
                match self.limit.resume(&mut ticket, &self.arrival(), cx.waker()) {
                    Resume::Admitted => return Poll::Ready(Ok(())),
                    Resume::Refused(refused) => return Poll::Ready(Err(refused)),
                    Resume::Waiting { until } => {
                        timer.as_mut().reset(self.start + until.unwrap());
                        if Pin::new(&mut timer).as_mut().poll(cx).is_pending() {
                            return Poll::Pending;
                        }
                    }
                }
            }
        })
        .await
        .map(|()| ticket)
    }

    /// Sends one call after another until then. Returns the number of those sent.
    async fn send_all(&self, seconds: u64) -> u32 {
        let (end, mut sent) = (self.start + Duration::from_secs(seconds), 0);
        loop {
            tokio::select! {
                biased;
                () = sleep_until(end) => return sent,
                call = self.send() => {
                    if call.is_err() {
                        sleep(Duration::from_millis(10)).await;
                    }
                    sent += u32::from(call.is_ok());
                    assert!(sent < MOST, "calls are sent without end");
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Sends a call after each interval. Returns the questions for each call.
    async fn messages(&self, interval: Duration) -> f64 {
        let mut calls = 0_u32;
        while self.start.elapsed() < Duration::from_secs(20) {
            sleep(interval).await;
            self.send().await.unwrap();
            calls += 1;
        }
        self.limit.stats().asked as f64 / f64::from(calls)
    }
}

/// Ten processes want more than there is. Together they use the rate, and no more.
#[tokio::test(start_paused = true)]
async fn fleet_uses_the_rate_and_no_more() {
    let store = Faulty::new();
    let runs: Vec<_> = (0..10)
        .map(|_| {
            let process = Process::new(store.clone(), rate(200, 50));
            tokio::spawn(async move { process.send_all(30).await })
        })
        .collect();
    let mut sent = 0;
    for run in runs {
        sent += run.await.unwrap();
    }
    let most = 50 + 200 * 30;
    assert!((most * 95 / 100..=most).contains(&sent), "{sent} of {most}");
}

#[tokio::test(start_paused = true)]
async fn two_busy_processes_have_equal_shares() {
    let store = Faulty::new();
    let [one, other] = [(); 2].map(|()| Process::new(store.clone(), rate(100, 20)));
    let (one, other) = tokio::join!(one.send_all(60), other.send_all(60));
    let share = f64::from(one) / f64::from(one + other);
    assert!((0.4..0.6).contains(&share), "{one} and {other}");
    assert!(one + other > 60 * 100 * 9 / 10, "{one} and {other}");
}

/// A busy process leaves what a quiet one needs: the quiet one is not starved.
#[tokio::test(start_paused = true)]
async fn quiet_process_beside_a_busy_one_goes_on() {
    let store = Faulty::new();
    let [busy, quiet] = [(); 2].map(|()| Process::new(store.clone(), rate(100, 20)));
    let calls = async {
        for _ in 0..20 {
            sleep(Duration::from_secs(1)).await;
            let start = Instant::now();
            quiet.send().await.unwrap();
            assert!(start.elapsed() < Duration::from_secs(1));
        }
    };
    tokio::join!(busy.send_all(21), calls);
}

/// Without its store a process has its local limit, and it asks again within two seconds of the store's return.
// L-1, L-3, L-4
#[tokio::test(start_paused = true)]
async fn outage_of_store_leaves_the_local_limit() {
    let store = Faulty::new();
    store.down.store(true, Ordering::Relaxed);
    let process = Process::new(store.clone(), rate(100, 20));
    assert_eq!(process.send_all(5).await, 1, "the local limit has one token");
    // After 0.1 s, 0.2 s, … 1 s (L-4).
    assert_eq!(store.questions.load(Ordering::Relaxed), 8);
    store.down.store(false, Ordering::Relaxed);
    advance(Duration::from_secs(2)).await;
    process.send().await.unwrap();
    assert_eq!(process.limit.stats().granted, 2, "one of them pays for the call that the local limit admitted");
}

/// A store that never answers holds a call for 50 ms.
#[tokio::test(start_paused = true)]
async fn silent_store_holds_a_call_for_50_ms() {
    let process = Process::new(Faulty { takes: Duration::from_secs(60), ..Faulty::new() }, rate(100, 20));
    let start = Instant::now();
    process.send().await.unwrap();
    let held = start.elapsed();
    assert!((50..=52).contains(&held.as_millis()), "{held:?}");
    assert_eq!(process.limit.stats().alone, 1);
}

/// A store that answers, but grants nothing for ever, or whose clock stands still: the local limit starts after 10 s. A
/// store that grants tokens to others does not start it.
// L-6
#[tokio::test(start_paused = true)]
async fn grants_for_nobody_leave_the_local_limit() {
    struct Empty {
        grants_others: bool,
        start: Instant,
    }
    impl RateStore for Empty {
        fn take<'a>(&'a self, _: &'a str, _: Rate, _: u32) -> Taking<'a> {
            let granted_at = if self.grants_others { self.start.elapsed().as_secs() / 5 } else { 7 };
            Box::pin(async move { Ok(Taken { granted: 0, granted_at }) })
        }
    }
    for grants_others in [false, true] {
        let start = Instant::now();
        let local = RateLimit::new(Limit::per_second(10), 1);
        let limit = FleetRateLimit::new(Empty { grants_others, start }, rate(100, 20), local);
        let events = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&events);
        let limit = limit.on_event(move |name, event| log.lock().unwrap().push(format!("{name} {event:?}")));
        let process = Process { limit, start };
        let run = tokio::spawn(async move { process.send_all(20).await });
        sleep(Duration::from_secs(9)).await;
        assert_eq!(*events.lock().unwrap(), [""; 0], "no token is missed yet");
        let sent = run.await.unwrap();
        let expected = if grants_others { 0..=0 } else { 98..=101 };
        assert!(expected.contains(&sent), "{sent}");
        let expected: &[&str] = if grants_others { &[] } else { &["a GrantsNobody"] };
        assert_eq!(*events.lock().unwrap(), expected);
    }
}

/// The observer is notified when the process is alone, and when it no longer is. If it panics, calls go on.
// L-5
#[tokio::test(start_paused = true)]
async fn event_says_when_a_process_is_alone() {
    let store = Faulty::new();
    let events = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&events);
    let process = Process::new(store.clone(), rate(100, 20));
    let limit = process.limit.clone().on_event(move |name, event| {
        log.lock().unwrap().push(format!("{name} {event:?}"));
        std::panic::resume_unwind(Box::new("an observer's fault"));
    });
    let process = Process { limit, ..process };
    let run = process.clone();
    tokio::spawn(async move { run.send_all(8).await });
    sleep(Duration::from_secs(2)).await;
    assert_eq!(*events.lock().unwrap(), [""; 0]);
    store.down.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(4)).await;
    assert_eq!(*events.lock().unwrap(), ["a Failed { error: Some(\"the store is down\") }"]);
    store.down.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(events.lock().unwrap()[1..], ["a Shared"]);
    let stats = process.limit.stats();
    assert!((6..=7).contains(&stats.failed) && stats.late == 0, "{stats:?}");
}

/// While a process owes more than its own burst, it awaits late answers and is not alone, so no event says that it is.
// L-3, L-5
#[tokio::test(start_paused = true)]
async fn process_that_owes_too_much_is_not_alone() {
    let store = Faulty { takes: Duration::from_millis(60), ..Faulty::new() };
    let late = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&late);
    let local = RateLimit::new(Limit::per_second(1000), 1).no_queue();
    let limit = FleetRateLimit::new(store, rate(10, 1), local).on_event(move |_, event| {
        count.fetch_add(u32::from(matches!(event, FleetRateEvent::Late)), Ordering::Relaxed);
    });
    let process = Process { limit, start: Instant::now() };
    process.send_all(10).await;
    let (late, answers) = (late.load(Ordering::Relaxed), process.limit.stats().late);
    assert!(late > 0 && u64::from(late) < answers / 2, "{late} of {answers}");
}

/// A question may end while its thread unwinds. The observer is not notified then: a second panic would abort.
#[test]
fn unwinding_call_notifies_no_observer() {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    struct Calls(Process);
    impl Drop for Calls {
        fn drop(&mut self) {
            // Without a runtime, the question fails at once.
            drop(self.0.limit.admit(&self.0.arrival()));
        }
    }
    let process = Process::new(MemoryStore::new(), rate(100, 20));
    let limit = process.limit.clone().on_event(|_, _| resume_unwind(Box::new("an observer's fault")));
    let process = Process { limit, ..process };
    let calls = Calls(process.clone());
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _calls = calls;
        resume_unwind(Box::new("a service's fault"));
    }));
    unwound.unwrap_err();
    assert_eq!(process.limit.stats().failed, 1);
}

/// A store that grants more than was wanted is not believed.
#[tokio::test(start_paused = true)]
async fn lying_store_grants_what_was_wanted() {
    let process = Process::new(Faulty { lies: true, ..Faulty::new() }, rate(80, 20));
    process.send().await.unwrap();
    assert!(matches!(process.limit.admit(&process.arrival()), Admit::Waiting(_)), "one token was wanted");
}

/// Unspent tokens expire a second after their question, so a process that was busy holds none later.
#[tokio::test(start_paused = true)]
async fn unspent_tokens_expire() {
    let process = Process::new(Faulty::new(), rate(1000, 1000));
    process.messages(Duration::from_millis(10)).await;
    let impatient = || process.limit.admit(&process.arrival().impatient());
    assert!(matches!(impatient(), Admit::Admitted(_)));
    advance(Duration::from_millis(1001)).await;
    assert!(matches!(impatient(), Admit::Refused(refused) if refused.reason() == Reason::RateExceeded));
}

/// An empty answer is remembered for 0.1 s, ± 25 %, however many calls wait.
#[tokio::test(start_paused = true)]
async fn empty_answers_are_remembered() {
    let store = Faulty::new();
    let process = Process::new(store.clone(), rate(1, 1));
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let process = process.clone();
            tokio::spawn(async move { process.send().await })
        })
        .collect();
    sleep(Duration::from_secs(10)).await;
    let questions = store.questions.load(Ordering::Relaxed);
    assert!((70..=135).contains(&questions), "{questions}");
    let sent = calls.iter().filter(|call| call.is_finished()).count();
    assert!((10..=11).contains(&sent), "{sent}");
}

/// A call that is dropped in the queue passes its turn on. A token that was not used returns.
#[tokio::test(start_paused = true)]
async fn dropped_calls_leave_nothing_behind() {
    let process = Process::new(Faulty::new(), rate(1, 1));
    let ticket = process.send().await.unwrap();
    let waiting = |arrival| match process.limit.admit(&arrival) {
        Admit::Waiting(ticket) => ticket,
        other => panic!("{other:?}"),
    };
    let first = waiting(process.arrival());
    let next = process.clone();
    let next = tokio::spawn(async move { next.send().await });
    sleep(Duration::from_millis(10)).await;
    assert!(!next.is_finished());
    process.limit.end_ticket(ticket, &End::Unsent, process.start.elapsed());
    sleep(Duration::from_millis(10)).await;
    assert!(!next.is_finished(), "it is the turn of the first");
    process.limit.end_ticket(first, &End::Unsent, process.start.elapsed());
    sleep(Duration::from_millis(10)).await;
    assert!(next.is_finished());
}

/// A waiting call that is never polled loses its turn, and blocks no other. Its place in the queue ends with its wait.
#[tokio::test(start_paused = true)]
async fn unpolled_calls_block_no_other() {
    let process = Process::new(Faulty::new(), rate(10, 10));
    let taken = process.limit.admit(&process.arrival());
    let unpolled: Vec<_> = (0..3).map(|_| process.limit.admit(&process.arrival())).collect();
    assert!(unpolled.iter().all(|admit| matches!(admit, Admit::Waiting(_))));
    let others = (0..20).map(|_| {
        let other = process.clone();
        tokio::spawn(async move { other.send().await.map(drop) })
    });
    let others: Vec<_> = others.collect();
    sleep(Duration::from_secs(3)).await;
    let sent = others.iter().filter(|other| other.is_finished()).count();
    assert_eq!(sent, 20, "ten tokens and ten more a second, of which four are kept for the calls that are not polled");
    drop((taken, unpolled));

    // At a low rate, the tokens for the calls that are not polled would expire before there are enough of them.
    let slow = Process::new(Faulty::new(), rate(1, 1));
    slow.send().await.unwrap();
    let unpolled: Vec<_> = (0..3).map(|_| slow.limit.admit(&slow.arrival())).collect();
    let start = Instant::now();
    for _ in 0..3 {
        slow.send().await.unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    drop(unpolled);

    let full = process.limit.clone().queue(1, Duration::from_secs(1));
    let process = Process { limit: full, ..process };
    process.send().await.unwrap();
    let _unpolled = process.limit.admit(&process.arrival());
    sleep(Duration::from_millis(999)).await;
    assert_eq!(process.send().await.unwrap_err().reason(), Reason::Full);
    sleep(Duration::from_millis(1)).await;
    process.send().await.unwrap();
}

/// A call that waits for another guard, or for its service, afterwards keeps its token, although other calls wait.
#[tokio::test(start_paused = true)]
async fn token_is_kept_while_another_guard_waits() {
    let process = Process::new(Faulty::new(), rate(1, 1));
    let ticket = process.send().await.unwrap();
    let waiting = process.limit.admit(&process.arrival());
    assert!(matches!(waiting, Admit::Waiting(_)));
    sleep(Duration::from_secs(2)).await;
    process.limit.renew(ticket, &process.arrival()).unwrap();

    let faulty = Faulty::new();
    faulty.down.store(true, Ordering::Relaxed);
    let process = Process::new(faulty, rate(1, 1));
    let alone = process.send().await.unwrap();
    process.limit.renew(alone, &process.arrival()).unwrap();
}

/// A question whose runtime is not running is not waited for: the next call asks again after a second.
#[tokio::test(start_paused = true)]
async fn question_of_an_idle_runtime_is_given_up() {
    let process = Process::new(Faulty::new(), rate(100, 100));
    let idle = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let entered = idle.enter();
    let asked = process.limit.admit(&process.arrival());
    drop(entered);
    assert!(matches!(asked, Admit::Waiting(_)));
    drop(asked);
    let start = Instant::now();
    process.send().await.unwrap();
    assert!(start.elapsed() < Duration::from_millis(1100), "{:?}", start.elapsed());
    idle.shutdown_background();
}

/// A call that moves to the local limit waits no longer in total than a call of the fleet does.
// L-1, L-2
#[tokio::test(start_paused = true)]
async fn move_to_the_local_limit_extends_no_wait() {
    let faulty = Faulty::new();
    let local = RateLimit::new(Limit::every(Duration::from_secs(40)), 1).queue(9, Duration::from_secs(60));
    let limit = FleetRateLimit::new(faulty.clone(), rate(1, 1), local).queue(9, Duration::from_secs(10));
    let process = Process { limit, start: Instant::now() };
    process.send().await.unwrap();
    faulty.down.store(true, Ordering::Relaxed);
    // The local limit begins empty, because the store has granted a token.
    let start = Instant::now();
    assert_eq!(process.send().await.unwrap_err().reason(), Reason::WaitTooLong);
    assert!(start.elapsed() <= Duration::from_secs(10), "{:?}", start.elapsed());
}

/// A call that was not sent is no use of the rate, so nothing is fetched ahead for calls like it.
#[tokio::test(start_paused = true)]
async fn unsent_calls_fetch_nothing_ahead() {
    let process = Process::new(Faulty::new(), rate(1000, 1000));
    for _ in 0..200 {
        let ticket = process.send().await.unwrap();
        process.limit.end_ticket(ticket, &End::Unsent, process.start.elapsed());
        sleep(Duration::from_millis(10)).await;
    }
    let granted = process.limit.stats().granted;
    assert!((2..=4).contains(&granted), "a token lives for a second: {granted}");
}

/// Calls that wait fetch their tokens at once, but never more in a question than an eighth of a second brings.
#[tokio::test(start_paused = true)]
async fn crowd_fetches_an_eighth_of_a_second() {
    let process = Process::new(Faulty::new(), rate(80, 1000));
    let waiting: Vec<_> = (0..1000).map(|_| process.limit.admit(&process.arrival())).collect();
    let mut granted = Vec::new();
    for _ in 0..4 {
        sleep(Duration::from_millis(2)).await;
        // A look of the first call asks for the next tokens.
        let _later = process.limit.admit(&process.arrival());
        granted.push(process.limit.stats().granted);
    }
    assert_eq!(granted, [1, 12, 23, 34]);
    drop(waiting);
}

/// Destinations that hold tokens, or wait for an answer, keep their places. Their tokens expire after a second.
#[tokio::test(start_paused = true)]
async fn idle_destinations_make_room() {
    let process = Process::new(Faulty::new(), rate(1000, 1000));
    let visit = |name: &str| {
        let now = process.start.elapsed();
        if let Admit::Waiting(ticket) | Admit::Admitted(ticket) = process.limit.admit(&Arrival::new(name, now)) {
            process.limit.end_ticket(ticket, &End::Unsent, now);
        }
    };
    (0..1024).for_each(|number| visit(&format!("host-{number}")));
    sleep(Duration::from_millis(10)).await;
    visit("too soon");
    assert_eq!(process.limit.stats().alone, 1);
    sleep(Duration::from_secs(2)).await;
    visit("later");
    assert_eq!(process.limit.stats().alone, 1);
}

/// A call that is polled before those ahead of it leaves their tokens to them.
#[tokio::test(start_paused = true)]
async fn tokens_of_calls_ahead_are_kept() {
    let process = Process::new(Faulty::new(), rate(1, 1));
    process.send().await.unwrap();
    let [mut first, mut second] = [(); 2].map(|()| match process.limit.admit(&process.arrival()) {
        Admit::Waiting(ticket) => ticket,
        other => panic!("{other:?}"),
    });
    sleep(Duration::from_millis(1100)).await;
    let look = |ticket: &mut FleetRateTicket| process.limit.resume(ticket, &process.arrival(), Waker::noop());
    assert!(matches!(look(&mut first), Resume::Waiting { .. }), "it asks for two tokens");
    sleep(Duration::from_millis(2)).await;
    assert_eq!(process.limit.stats().granted, 2, "the first call's, and one more");
    assert!(matches!(look(&mut second), Resume::Waiting { .. }));
    assert!(matches!(look(&mut first), Resume::Admitted));
}

/// A call that was sent keeps its token, and without a queue a call is refused for the rate.
#[tokio::test(start_paused = true)]
async fn sent_call_keeps_its_token() {
    let process = Process::new(Faulty::new(), rate(1, 1));
    let ticket = process.send().await.unwrap();
    process.limit.end_ticket(ticket, &End::judged(Health::Served, Duration::ZERO), process.start.elapsed());
    let impatient = process.limit.admit(&process.arrival().impatient());
    assert!(matches!(impatient, Admit::Refused(refused) if refused.reason() == Reason::RateExceeded));
    let process = Process { limit: process.limit.queue(0, Duration::from_secs(1)), ..process };
    assert_eq!(process.send().await.unwrap_err().reason(), Reason::RateExceeded);
}

/// A call that a waker has woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A call that goes before another wakes the one behind it, which asks the store if the first call is not polled.
#[tokio::test(start_paused = true)]
async fn call_before_its_turn_wakes_the_next() {
    let process = Process::new(Faulty::new(), rate(16, 2));
    for _ in 0..2 {
        process.send().await.unwrap();
    }
    let [_unpolled, mut second, mut third] = [(); 3].map(|()| match process.limit.admit(&process.arrival()) {
        Admit::Waiting(ticket) => ticket,
        other => panic!("{other:?}"),
    });
    sleep(Duration::from_millis(500)).await;
    let granted = process.limit.stats().granted;
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let look = |ticket: &mut FleetRateTicket| process.limit.resume(ticket, &process.arrival(), &waker);
    assert!(matches!(look(&mut third), Resume::Waiting { .. }), "it asks for three tokens");
    sleep(Duration::from_millis(2)).await;
    assert_eq!(process.limit.stats().granted, granted + 2);
    assert!(matches!(look(&mut third), Resume::Waiting { .. }));
    woken.0.store(false, Ordering::Relaxed);
    assert!(matches!(look(&mut second), Resume::Admitted));
    assert!(woken.0.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn call_past_its_deadline_is_refused() {
    let process = Process::new(Faulty::new(), rate(1, 1));
    process.send().await.unwrap();
    let arrival = process.arrival().latest(process.start.elapsed());
    let Admit::Waiting(mut ticket) = process.limit.admit(&arrival) else { panic!("it may wait") };
    let resume = process.limit.resume(&mut ticket, &arrival, std::task::Waker::noop());
    assert!(matches!(resume, Resume::Refused(refused) if refused.reason() == Reason::WaitTooLong));
}

#[test]
fn process_without_runtime_is_alone() {
    let process = Process::new(MemoryStore::new(), rate(100, 20));
    let Admit::Waiting(mut ticket) = process.limit.admit(&process.arrival()) else { panic!("it asks first") };
    let resume = process.limit.resume(&mut ticket, &process.arrival(), std::task::Waker::noop());
    assert_eq!(resume, Resume::Admitted);
    assert_eq!(process.limit.stats().alone, 1);
}

/// The rate from which a process gains: below 10 calls a second each call asks, at 20 a third of them, at 1000 one in a
/// hundred.
#[tokio::test(start_paused = true)]
async fn messages_of_a_call_fall_with_the_rate() {
    for (per_second, least, most) in
        [(1, 1.0, 1.0), (5, 1.0, 1.0), (20, 0.2, 0.5), (100, 0.05, 0.12), (1000, 0.005, 0.02)]
    {
        let process = Process::new(Faulty::new(), rate(5000, 1000));
        let messages = process.messages(Duration::from_secs(1) / per_second).await;
        println!("{per_second} calls a second: {messages:.3} messages for each");
        assert!((least..=most).contains(&messages), "{per_second}: {messages}");
    }
}

#[test]
fn small_bursts_are_warned_of() {
    let local = RateLimit::new(Limit::per_second(10), 20);
    let warnings = |rate| FleetRateLimit::new(MemoryStore::new(), rate, local.clone()).validate().len();
    assert_eq!((warnings(rate(800, 1600)), warnings(rate(800, 100))), (0, 1));
}
