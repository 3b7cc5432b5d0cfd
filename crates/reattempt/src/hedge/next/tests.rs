//! The decision alone: every event in every state, and the rules as tables.

use super::*;

const DELAY: Duration = Duration::from_millis(100);

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn rules(max_attempts: u32) -> Rules {
    Rules { max_attempts, delay: DELAY, latest: None, deadline: None }
}

/// A call that began now, with its rules, and what each event led to.
struct Run {
    rules: Rules,
    began: Instant,
    attempts: Attempts,
}

impl Run {
    fn new(rules: Rules) -> Self {
        let began = Instant::now();
        Self { rules, began, attempts: Attempts::first(&rules, began) }
    }

    /// The event, so many milliseconds after the beginning; when the next attempt goes, or why the
    /// call is over.
    fn at(&mut self, time: u64, event: Event) -> Result<Option<u128>, StopReason> {
        match next(&self.rules, &mut self.attempts, event, self.began + ms(time)) {
            Action::Go(upcoming) => Ok(upcoming.map(|due| (due - self.began).as_millis())),
            Action::Return(reason) => Err(reason),
        }
    }
}

const FAILED: Event = Event::Failed(Pushback::None);
const STOP: Event = Event::Failed(Pushback::Stop(StopReason::ServerSaidStop));

fn pushed(milliseconds: u64) -> Event {
    Event::Failed(Pushback::Exactly(ms(milliseconds)))
}

// HG-1
#[test]
fn hg_1_one_attempt_each_delay_up_to_the_most() {
    let mut run = Run::new(rules(3));
    assert_eq!(run.at(0, Event::Time), Ok(Some(100)));
    assert_eq!(run.at(100, Event::Sent), Ok(Some(200)));
    assert_eq!(run.at(205, Event::Sent), Ok(None), "three have been sent");
    assert_eq!(run.at(900, Event::Answered), Err(StopReason::Succeeded));
}

// HG-2
#[test]
fn hg_2_without_a_delay_the_next_is_always_due() {
    let mut run = Run::new(Rules { delay: Duration::ZERO, ..rules(3) });
    assert_eq!(run.at(0, Event::Time), Ok(Some(0)));
    assert_eq!(run.at(0, Event::Sent), Ok(Some(0)));
    assert_eq!(run.at(0, Event::Sent), Ok(None));
}

// HG-4
#[test]
fn hg_4_a_failure_brings_the_next_forward_and_the_later_ones_follow_it() {
    let mut run = Run::new(rules(4));
    assert_eq!(run.at(30, FAILED), Ok(Some(30)));
    assert_eq!(run.at(31, Event::Sent), Ok(Some(131)));
    assert_eq!(run.at(131, Event::Sent), Ok(Some(231)));
}

// HG-6
#[test]
fn hg_6_after_stop_those_in_flight_go_on_and_their_end_is_the_calls() {
    let mut run = Run::new(rules(4));
    assert_eq!(run.at(100, Event::Sent), Ok(Some(200)));
    assert_eq!(run.at(120, STOP), Ok(None));
    assert_eq!(run.at(130, FAILED), Err(StopReason::ServerSaidStop));
    let mut alone = Run::new(rules(4));
    assert_eq!(alone.at(20, STOP), Err(StopReason::ServerSaidStop));
}

// HG-7
#[test]
fn hg_7_a_pushback_sets_the_time_of_the_next() {
    let mut run = Run::new(rules(4));
    assert_eq!(run.at(10, pushed(700)), Ok(Some(710)), "also where none is in flight");
    assert_eq!(run.at(710, Event::Sent), Ok(Some(810)));
    let mut sooner = Run::new(rules(4));
    assert_eq!(sooner.at(10, pushed(5)), Ok(Some(15)), "it may be sooner than the delay");
}

// HG-7
#[test]
fn hg_7_a_pushback_is_not_shortened_by_a_plain_failure_but_by_a_later_one() {
    let mut run = Run::new(rules(5));
    assert_eq!(run.at(100, Event::Sent), Ok(Some(200)));
    assert_eq!(run.at(200, Event::Sent), Ok(Some(300)));
    assert_eq!(run.at(210, pushed(500)), Ok(Some(710)));
    assert_eq!(run.at(220, FAILED), Ok(Some(710)));
    assert_eq!(run.at(230, pushed(40)), Ok(Some(270)), "the latest pushback counts");
    assert_eq!(run.at(270, Event::Sent), Ok(Some(370)));
    assert_eq!(run.at(280, FAILED), Ok(Some(280)), "what was obeyed holds nothing back any more");
}

fn at_least(wait: u64, spread: u64) -> Event {
    Event::Failed(Pushback::AtLeast { wait: ms(wait), spread: ms(spread) })
}

// trap 18
#[test]
fn at_least_is_shortened_by_none_and_cut_at_the_end() {
    let mut run = Run::new(rules(5));
    assert_eq!(run.at(100, Event::Sent), Ok(Some(200)));
    assert_eq!(run.at(110, at_least(500, 50)), Ok(Some(660)));
    assert_eq!(run.at(200, at_least(10, 1)), Ok(Some(660)), "what the other asked for");
    let mut limited = Run::new(rules(5));
    limited.rules.latest = Some(limited.began + ms(300));
    assert_eq!(limited.at(10, at_least(280, 28)), Ok(Some(299)));
    let mut beyond = Run::new(rules(5));
    beyond.rules.latest = Some(beyond.began + ms(300));
    assert_eq!(beyond.at(10, at_least(290, 0)), Err(StopReason::ElapsedExhausted));
}

// HG-8
#[test]
fn hg_8_once_refused_no_other_is_sent() {
    let mut run = Run::new(rules(5));
    assert_eq!(run.at(100, Event::Stopped(StopReason::BudgetExhausted)), Ok(None));
    assert_eq!(run.at(150, Event::Time), Ok(None));
    assert_eq!(run.at(200, FAILED), Err(StopReason::BudgetExhausted));
}

// trap 36
#[test]
fn errored_with_others_in_flight_goes_on() {
    let mut run = Run::new(rules(4));
    assert_eq!(run.at(100, Event::Sent), Ok(Some(200)));
    assert_eq!(run.at(120, Event::Errored), Ok(Some(200)), "the next is not brought forward");
    assert_eq!(run.at(130, Event::Errored), Err(StopReason::Permanent));
    let mut alone = Run::new(rules(4));
    assert_eq!(alone.at(20, Event::Errored), Err(StopReason::Permanent));
}

// trap 36
#[test]
fn refused_is_not_sent_and_no_other_follows() {
    let mut run = Run::new(rules(4));
    assert_eq!(run.at(100, Event::Sent), Ok(Some(200)));
    assert_eq!(run.at(100, Event::Refused), Ok(None));
    assert_eq!((run.attempts.sent, run.attempts.in_flight), (1, 1));
    assert_eq!(run.at(300, FAILED), Err(StopReason::NotReady));
    let mut alone = Run::new(rules(4));
    assert_eq!(alone.at(20, Event::Refused), Err(StopReason::NotReady));
    assert_eq!(alone.attempts.sent, 1, "the first attempt counts");
}

// HG-9
#[test]
fn hg_9_when_all_have_failed_the_call_has() {
    let mut run = Run::new(rules(2));
    assert_eq!(run.at(100, Event::Sent), Ok(None));
    assert_eq!(run.at(110, FAILED), Ok(None));
    assert_eq!(run.at(120, pushed(5)), Err(StopReason::AttemptsExhausted));
}

// HG-11
#[test]
fn hg_11_none_is_due_at_the_deadline_or_after_it() {
    let mut run = Run::new(rules(5));
    run.rules.deadline = Some(run.began + ms(250));
    assert_eq!(run.at(100, Event::Sent), Ok(Some(200)));
    assert_eq!(run.at(150, Event::Sent), Ok(None), "the next would come at 250");
    assert_eq!(run.at(160, FAILED), Ok(Some(160)));
    assert_eq!(run.at(170, pushed(80)), Ok(None), "at 250 again");
    assert_eq!(run.at(180, FAILED), Err(StopReason::DeadlineExceeded));
}

#[test]
fn one_that_waits_to_be_sent_is_given_up_in_time() {
    let mut run = Run::new(Rules { ..rules(5) });
    run.rules.latest = Some(run.began + ms(300));
    assert_eq!(run.at(50, FAILED), Ok(Some(50)));
    assert_eq!(run.at(299, Event::Time), Ok(Some(50)), "due, and not sent yet");
    assert_eq!(run.at(300, Event::Time), Err(StopReason::ElapsedExhausted));
}

// BUF-8
#[test]
fn buf_8_an_attempt_without_its_body_is_no_outcome_and_no_other_follows() {
    let mut run = Run::new(rules(5));
    assert_eq!(run.at(100, Event::Sent), Ok(Some(200)));
    assert_eq!(run.at(120, Event::Lost), Ok(None));
    assert_eq!(run.at(130, Event::Answered), Err(StopReason::Succeeded));
}

#[test]
fn a_pushback_of_centuries_is_as_good_as_none() {
    let mut run = Run::new(rules(5));
    let forever = Event::Failed(Pushback::Exactly(Duration::MAX));
    assert!(run.at(1, forever).is_ok_and(|due| due.is_some()), "no overflow");
    run.rules.latest = Some(run.began + ms(30_000));
    run.attempts.in_flight = 1;
    assert_eq!(run.at(1, forever), Err(StopReason::ElapsedExhausted));
}

/// Every sequence of up to seven events, under several rules: what must hold whatever happens.
#[test]
fn whatever_happens() {
    let events = [
        FAILED,
        pushed(250),
        at_least(250, 25),
        STOP,
        Event::Errored,
        Event::Refused,
        Event::Lost,
        Event::Sent,
        Event::Stopped(StopReason::BudgetExhausted),
        Event::Time,
    ];
    let mut walked = 0;
    for max_attempts in [1, 2, 3, 5] {
        for delay in [Duration::ZERO, DELAY] {
            for latest in [None, Some(180)] {
                let mut run = Run::new(Rules { delay, ..rules(max_attempts) });
                run.rules.latest = latest.map(|latest| run.began + ms(latest));
                walked += walk(&run, &events, 0, 7);
            }
        }
    }
    assert!(walked > 10_000, "{walked}");
}

fn walk(run: &Run, events: &[Event], time: u64, left: u32) -> u32 {
    if left == 0 {
        return 1;
    }
    let mut walked = 0;
    for event in events {
        let before = run.attempts;
        let mut after = Run { rules: run.rules, began: run.began, attempts: before };
        let upcoming = match after.at(time, Event::Time) {
            Ok(upcoming) => upcoming,
            Err(reason) => {
                assert_eq!((reason, before.in_flight), (StopReason::ElapsedExhausted, 0));
                return 1;
            }
        };
        let ends =
            matches!(event, Event::Failed(_) | Event::Errored | Event::Refused | Event::Lost);
        let sends = *event == Event::Sent;
        // The driver sends what is due and nothing else, and only attempts in flight can end.
        if (ends && before.in_flight == 0) || (sends && upcoming.is_none()) {
            continue;
        }
        let outcome = after.at(time, *event);
        let now = after.attempts;
        assert!(now.in_flight <= now.sent, "{now:?}");
        assert!(now.sent <= run.rules.max_attempts, "never more than allowed: {now:?}");
        let not_sent = *event == Event::Refused && before.sent > 1;
        assert_eq!(now.sent + u32::from(not_sent), before.sent + u32::from(sends), "{event:?}");
        match outcome {
            Err(_) => {
                assert_eq!(now.in_flight, 0, "those in flight go on after {event:?}: {before:?}");
                walked += 1;
            }
            Ok(None) => {
                assert!(now.in_flight > 0, "nobody is waited for after {event:?}: {before:?}");
                walked += walk(&after, events, time + 50, left - 1);
            }
            Ok(Some(due)) => {
                assert!(before.frozen.is_none(), "frozen for good");
                if sends {
                    assert_eq!(due, u128::from(time) + run.rules.delay.as_millis());
                }
                if *event == FAILED && before.held_until.is_none() {
                    assert_eq!(due, u128::from(time), "brought forward");
                }
                let held = before.held_until.map(|until| (until - run.began).as_millis());
                if let (Some(held), true) = (held, *event == FAILED) {
                    assert!(due >= held, "what the server asked for is not shortened");
                }
                walked += walk(&after, events, time + 50, left - 1);
            }
        }
    }
    walked
}
