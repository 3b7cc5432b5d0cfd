//! Tests of the guard through its contract alone, with time as an argument.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use reattempt::guard::contract::{Admit, Arrival, End, Guard, GuardKind, Health, PaceTicket, Resume};
use reattempt::guard::{Limit, Pace, Reason, Refused};

use super::support::{ms, pace, secs};

const NOW: Duration = Duration::from_secs(1);
/// The time of the first turn.
const TURN: Duration = Duration::from_millis(1_100);

fn at(now: Duration) -> Arrival<'static> {
    Arrival::new("http://one.example", now)
}

/// Returns a pace after a refusal: one turn per 100 ms, the first of them at [`TURN`].
fn paced(threshold: u32) -> Pace {
    let pace = Pace::new(pace().threshold(threshold));
    let first = admitted(&pace, NOW);
    pace.end_ticket(first, &End::judged(Health::Overloaded, Duration::ZERO), NOW);
    assert_eq!(pace.responsive().take_turn(NOW, 0), Err(TURN));
    pace
}

fn admitted(pace: &Pace, now: Duration) -> PaceTicket {
    match pace.admit(&at(now)) {
        Admit::Admitted(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn waiting(pace: &Pace, now: Duration) -> PaceTicket {
    match pace.admit(&at(now)) {
        Admit::Waiting(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn refused(pace: &Pace, arrival: &Arrival<'_>) -> Refused {
    match pace.admit(arrival) {
        Admit::Refused(refused) => refused,
        other => panic!("{other:?}"),
    }
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn until(due: Duration) -> Resume {
    Resume::Waiting { until: Some(due) }
}

#[test]
fn turn_of_a_call_not_sent_passes_on() {
    let pace = paced(2);
    let first = admitted(&pace, TURN);
    let mut second = waiting(&pace, TURN);
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    assert_eq!(pace.resume(&mut second, &at(TURN), &waker), until(TURN + ms(100)));
    let before = pace.responsive().metrics().invocations;

    assert!(pace.end_ticket(first, &End::Unsent, TURN).is_none());
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(pace.resume(&mut second, &at(TURN), &waker), Resume::Admitted);
    assert_eq!(pace.waiting(), 0);
    assert_eq!(pace.responsive().metrics().invocations, before, "one call was sent, not two");
}

#[test]
fn shorter_interval_wakes_the_first() {
    let pace = paced(1);
    assert_eq!(pace.limit(), Limit::per_second(10));
    let first = admitted(&pace, TURN);
    let mut second = waiting(&pace, TURN);
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    assert_eq!(pace.resume(&mut second, &at(TURN), &waker), until(TURN + ms(100)));
    pace.end_ticket(first, &End::judged(Health::Served, Duration::ZERO), TURN);
    assert_eq!((pace.responsive().interval(), count.0.load(Ordering::SeqCst)), (ms(0), 1));
    assert_eq!(pace.limit(), Limit::INFINITE);
    assert_eq!(pace.resume(&mut second, &at(TURN), &waker), Resume::Admitted);
}

#[test]
fn turn_before_another_is_not_given_back() {
    let pace = paced(2);
    let first = admitted(&pace, TURN);
    let second = admitted(&pace, TURN + ms(100));
    pace.end_ticket(first, &End::Unsent, TURN + ms(100));
    assert_eq!(pace.responsive().turn_due(TURN, 0), TURN + ms(200));
    pace.end_ticket(second, &End::Unsent, TURN + ms(100));
    assert_eq!(pace.responsive().turn_due(TURN, 0), TURN + ms(100));
}

/// The next refusal starts from the time between the turns that were taken.
#[test]
fn turn_given_back_restores_the_gap() {
    let refused_after = |given_back: bool| {
        let pace = paced(9);
        for now in [TURN, TURN + secs(1)] {
            pace.end_ticket(admitted(&pace, now), &End::judged(Health::Served, Duration::ZERO), now);
        }
        let last = admitted(&pace, TURN + secs(2));
        if given_back {
            let unsent = admitted(&pace, TURN + ms(2_100));
            pace.end_ticket(unsent, &End::Unsent, TURN + ms(2_100));
        }
        pace.end_ticket(last, &End::judged(Health::Overloaded, Duration::ZERO), TURN + ms(2_100));
        pace.responsive().interval()
    };
    assert_eq!(refused_after(true), refused_after(false));
    assert!(refused_after(false) > ms(200), "{:?}", refused_after(false));
}

/// Outcomes that the queue does not see shorten the interval.
#[test]
fn first_in_line_notices_other_outcomes() {
    let pace = Pace::new(pace().initial(secs(20)).threshold(1));
    let pace = pace.queue(2, secs(60));
    let other = Pace::new(pace.responsive().clone());
    pace.end_ticket(admitted(&pace, NOW), &End::judged(Health::Overloaded, Duration::ZERO), NOW);
    let mut waits = [waiting(&pace, NOW), waiting(&pace, NOW)];
    let [first, second] = &mut waits;
    let resume = |ticket: &mut _, now| pace.resume(ticket, &at(now), Waker::noop());
    assert_eq!(resume(second, NOW), until(NOW + secs(40)));
    assert_eq!(resume(first, NOW), until(NOW + secs(1)));
    let served = admitted(&other, NOW + secs(20));
    other.end_ticket(served, &End::judged(Health::Served, Duration::ZERO), NOW + secs(20));
    assert_eq!(pace.responsive().interval(), ms(0));
    assert_eq!(resume(first, NOW + secs(21)), Resume::Admitted);
    assert_eq!(resume(second, NOW + secs(21)), Resume::Admitted);
}

#[test]
fn check_agrees_with_admit_without_interval() {
    let pace = paced(1);
    let first = admitted(&pace, TURN);
    let _in_line = waiting(&pace, TURN);
    pace.end_ticket(first, &End::judged(Health::Served, Duration::ZERO), TURN);
    assert_eq!(pace.would_admit(&at(TURN).impatient()), Ok(()));
    assert!(matches!(pace.admit(&at(TURN).impatient()), Admit::Admitted(_)));
}

#[test]
fn waiting_call_that_ends_leaves_the_line() {
    let pace = paced(2);
    let mut waits = [waiting(&pace, NOW), waiting(&pace, NOW)].into_iter();
    assert_eq!(pace.waiting(), 2);
    let (first, mut second) = (waits.next().unwrap(), waits.next().unwrap());
    assert_eq!(pace.resume(&mut second, &at(NOW), Waker::noop()), until(TURN + ms(100)));
    pace.end_ticket(first, &End::Unsent, NOW);
    assert_eq!(pace.waiting(), 1);
    assert_eq!(pace.resume(&mut second, &at(NOW), Waker::noop()), until(TURN));
    pace.end_ticket(second, &End::Unsent, NOW);
    assert_eq!(pace.waiting(), 0);
}

#[test]
fn refusals_name_reason_and_wait() {
    let pace = paced(2);
    let (rate, late) = (Reason::RateExceeded, Reason::WaitTooLong);
    let refusal = |reason, wait| Refused::new(GuardKind::PACE, reason).after(wait);
    let one = pace.clone().queue(1, secs(30));
    let _in_line = waiting(&one, NOW);
    let late_at = |latest| at(NOW).latest(latest);
    for (pace, arrival, expected) in [
        (&pace, at(NOW).impatient(), refusal(rate, ms(100))),
        (&pace.clone().no_queue(), at(NOW), refusal(rate, ms(100))),
        (&pace.clone().queue(9, ms(99)), at(NOW), refusal(late, ms(100))),
        (&pace, late_at(TURN), refusal(late, ms(100))),
        (&one, at(NOW), refusal(Reason::Full, ms(200))),
    ] {
        assert_eq!(refused(pace, &arrival), expected);
        assert_eq!(pace.would_admit(&arrival), Err(expected));
    }
    let _in_time = waiting(&pace.clone().queue(9, ms(100)), NOW);
    assert_eq!(pace.would_admit(&late_at(TURN + Duration::from_nanos(1))), Ok(()));
    assert_eq!(pace.would_admit(&at(TURN).impatient()), Ok(()));
}

#[test]
fn waits_only_records_nothing() {
    let pace = paced(2).waits_only(true);
    let before = (pace.responsive().metrics(), pace.responsive().interval());
    let ends = [End::judged(Health::Overloaded, Duration::ZERO), End::Unsent];
    for (end, now) in ends.into_iter().zip([TURN, TURN + ms(100)]) {
        pace.end_ticket(admitted(&pace, now), &end, now);
        let after = (pace.responsive().metrics(), pace.responsive().interval());
        assert_eq!(after, before);
    }
    assert_eq!(pace.responsive().turn_due(TURN, 0), TURN + ms(100), "the second is given back");
}
