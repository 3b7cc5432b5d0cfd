//! Tests of the hedging decision: every event in every state, and the rules as tables.

use reattempt_testing::ms;

use super::*;

const DELAY: Duration = Duration::from_millis(100);

fn terms(max_attempts: u32) -> HedgeTerms {
    let limits = Limits { max_attempts, max_elapsed: None, ..Limits::default() };
    HedgeTerms::new(limits, DELAY)
}

/// A random source that always draws the longest delay.
struct Longest;

impl Random for Longest {
    fn next_u64(&mut self) -> u64 {
        u64::MAX
    }
}

/// A call with its terms.
struct Run {
    terms: HedgeTerms,
    call: HedgeCall,
}

impl Run {
    fn new(terms: HedgeTerms) -> Self {
        Self { terms, call: HedgeCall::new(&terms) }
    }

    /// Applies the event at `time`, in milliseconds from the start. Returns the time of the next attempt, or the stop
    /// reason.
    fn at(&mut self, time: u64, event: HedgeEvent) -> Result<Option<u128>, StopReason> {
        match self.call.next(&self.terms, event, ms(time), &mut Longest) {
            HedgeDecision::Continue { next } => Ok(next.map(|due| due.as_millis())),
            HedgeDecision::Return(reason) => Err(reason),
        }
    }
}

const FAILED: HedgeEvent = HedgeEvent::Failed(ServerHint::None);
const STOP: HedgeEvent = HedgeEvent::Failed(ServerHint::Stop);

fn pushed(milliseconds: u64) -> HedgeEvent {
    HedgeEvent::Failed(ServerHint::Exactly(ms(milliseconds)))
}

// HG-1
#[test]
fn hg_1_one_attempt_each_delay_up_to_most() {
    let mut run = Run::new(terms(3));
    assert_eq!(run.at(0, HedgeEvent::TimePassed), Ok(Some(100)));
    assert_eq!(run.at(100, HedgeEvent::Sent), Ok(Some(200)));
    assert_eq!(run.at(205, HedgeEvent::Sent), Ok(None), "three have been sent");
    assert_eq!(run.at(900, HedgeEvent::Succeeded), Err(StopReason::Succeeded));
}

/// A delay that cannot be read does not bring the next attempt forward.
// trap 67
#[test]
fn unreadable_hint_keeps_the_plan() {
    let mut run = Run::new(terms(3));
    assert_eq!(run.at(30, HedgeEvent::Failed(ServerHint::Unreadable)), Ok(Some(100)));
    assert_eq!(run.at(100, HedgeEvent::Sent), Ok(Some(200)));
}

// HG-2
#[test]
fn hg_2_without_delay_next_is_always_due() {
    let mut run = Run::new(HedgeTerms { delay: Duration::ZERO, ..terms(3) });
    assert_eq!(run.at(0, HedgeEvent::TimePassed), Ok(Some(0)));
    assert_eq!(run.at(0, HedgeEvent::Sent), Ok(Some(0)));
    assert_eq!(run.at(0, HedgeEvent::Sent), Ok(None));
}

// HG-4
#[test]
fn failure_brings_next_and_later_forward() {
    let mut run = Run::new(terms(4));
    assert_eq!(run.at(30, FAILED), Ok(Some(30)));
    assert_eq!(run.at(31, HedgeEvent::Sent), Ok(Some(131)));
    assert_eq!(run.at(131, HedgeEvent::Sent), Ok(Some(231)));
}

// HG-6
#[test]
fn stop_leaves_those_in_flight_to_decide() {
    let mut run = Run::new(terms(4));
    assert_eq!(run.at(100, HedgeEvent::Sent), Ok(Some(200)));
    assert_eq!(run.at(120, STOP), Ok(None));
    assert_eq!(run.at(130, FAILED), Err(StopReason::ServerSaidStop));
    let mut alone = Run::new(terms(4));
    assert_eq!(alone.at(20, STOP), Err(StopReason::ServerSaidStop));
}

// HG-7
#[test]
fn hg_7_pushback_sets_time_of_next() {
    let mut run = Run::new(terms(4));
    assert_eq!(run.at(10, pushed(700)), Ok(Some(710)), "also where none is in flight");
    assert_eq!(run.at(710, HedgeEvent::Sent), Ok(Some(810)));
    let mut sooner = Run::new(terms(4));
    assert_eq!(sooner.at(10, pushed(5)), Ok(Some(15)), "it may be sooner than the delay");
}

// HG-7
#[test]
fn pushback_is_shortened_by_later_one_only() {
    let mut run = Run::new(terms(5));
    assert_eq!(run.at(100, HedgeEvent::Sent), Ok(Some(200)));
    assert_eq!(run.at(200, HedgeEvent::Sent), Ok(Some(300)));
    assert_eq!(run.at(210, pushed(500)), Ok(Some(710)));
    assert_eq!(run.at(220, FAILED), Ok(Some(710)));
    assert_eq!(run.at(230, pushed(40)), Ok(Some(270)), "the latest pushback counts");
    assert_eq!(run.at(270, HedgeEvent::Sent), Ok(Some(370)));
    assert_eq!(run.at(280, FAILED), Ok(Some(280)), "what was obeyed holds nothing back any more");
}

fn at_least(wait: u64) -> HedgeEvent {
    HedgeEvent::Failed(ServerHint::AtLeast(ms(wait)))
}

// trap 18
#[test]
fn at_least_is_not_shortened_but_cut_at_end() {
    let mut run = Run::new(terms(5));
    assert_eq!(run.at(100, HedgeEvent::Sent), Ok(Some(200)));
    assert_eq!(run.at(110, at_least(500)), Ok(Some(660)));
    assert_eq!(run.at(200, at_least(10)), Ok(Some(660)), "what the other asked for");
    let mut limited = Run::new(terms(5));
    limited.terms.limits.max_elapsed = Some(ms(300));
    assert_eq!(limited.at(10, at_least(280)), Ok(Some(299)));
    let mut beyond = Run::new(terms(5));
    beyond.terms.limits.max_elapsed = Some(ms(300));
    assert_eq!(beyond.at(10, at_least(290)), Err(StopReason::ElapsedExhausted));
}

// HG-8
#[test]
fn hg_8_once_refused_no_other_is_sent() {
    let mut run = Run::new(terms(5));
    assert_eq!(run.at(100, HedgeEvent::Stopped(StopReason::BudgetExhausted)), Ok(None));
    assert_eq!(run.at(150, HedgeEvent::TimePassed), Ok(None));
    assert_eq!(run.at(200, FAILED), Err(StopReason::BudgetExhausted));
}

// trap 36
#[test]
fn errored_with_others_in_flight_goes_on() {
    let mut run = Run::new(terms(4));
    assert_eq!(run.at(100, HedgeEvent::Sent), Ok(Some(200)));
    assert_eq!(run.at(120, HedgeEvent::Errored), Ok(Some(200)), "the next is not brought forward");
    assert_eq!(run.at(130, HedgeEvent::Errored), Err(StopReason::Permanent));
    let mut alone = Run::new(terms(4));
    assert_eq!(alone.at(20, HedgeEvent::Errored), Err(StopReason::Permanent));
}

// trap 36
#[test]
fn refused_is_not_sent_and_no_other_follows() {
    let mut run = Run::new(terms(4));
    assert_eq!(run.at(100, HedgeEvent::Sent), Ok(Some(200)));
    assert_eq!(run.at(100, HedgeEvent::Refused), Ok(None));
    assert_eq!((run.call.sent, run.call.in_flight), (1, 1));
    assert_eq!(run.at(300, FAILED), Err(StopReason::NotReady));
    let mut alone = Run::new(terms(4));
    assert_eq!(alone.at(20, HedgeEvent::Refused), Err(StopReason::NotReady));
    assert_eq!(alone.call.sent, 1, "the first attempt counts");
}

// HG-9
#[test]
fn hg_9_when_all_have_failed_the_call_has() {
    let mut run = Run::new(terms(2));
    assert_eq!(run.at(100, HedgeEvent::Sent), Ok(None));
    assert_eq!(run.at(110, FAILED), Ok(None));
    assert_eq!(run.at(120, pushed(5)), Err(StopReason::AttemptsExhausted));
}

// HG-11
#[test]
fn none_is_due_at_or_after_deadline() {
    let mut run = Run::new(terms(5));
    run.terms.deadline = Some(ms(250));
    assert_eq!(run.at(100, HedgeEvent::Sent), Ok(Some(200)));
    assert_eq!(run.at(150, HedgeEvent::Sent), Ok(None), "the next would come at 250");
    assert_eq!(run.at(160, FAILED), Ok(Some(160)));
    assert_eq!(run.at(170, pushed(80)), Ok(None), "at 250 again");
    assert_eq!(run.at(180, FAILED), Err(StopReason::DeadlineExceeded));
}

#[test]
fn waiting_attempt_is_given_up_in_time() {
    let mut run = Run::new(terms(5));
    run.terms.limits.max_elapsed = Some(ms(300));
    assert_eq!(run.at(50, FAILED), Ok(Some(50)));
    assert_eq!(run.at(299, HedgeEvent::TimePassed), Ok(Some(50)), "due, and not sent yet");
    assert_eq!(run.at(300, HedgeEvent::TimePassed), Err(StopReason::ElapsedExhausted));
}

// BUF-8
#[test]
fn attempt_without_body_is_no_outcome() {
    let mut run = Run::new(terms(5));
    assert_eq!(run.at(100, HedgeEvent::Sent), Ok(Some(200)));
    assert_eq!(run.at(120, HedgeEvent::BodyLost), Ok(None));
    assert_eq!(run.at(130, HedgeEvent::Succeeded), Err(StopReason::Succeeded));
}

#[test]
fn pushback_of_centuries_is_as_good_as_none() {
    let mut run = Run::new(terms(5));
    let forever = HedgeEvent::Failed(ServerHint::Exactly(Duration::MAX));
    assert!(run.at(1, forever).is_ok_and(|due| due.is_some()), "no overflow");
    run.terms.limits.max_elapsed = Some(ms(30_000));
    run.call.in_flight = 1;
    assert_eq!(run.at(1, forever), Err(StopReason::ElapsedExhausted));
}

/// The invariants hold for every sequence of up to seven events, under several settings.
#[test]
fn whatever_happens() {
    let events = [
        FAILED,
        pushed(250),
        at_least(250),
        STOP,
        HedgeEvent::Errored,
        HedgeEvent::Refused,
        HedgeEvent::BodyLost,
        HedgeEvent::Sent,
        HedgeEvent::Stopped(StopReason::BudgetExhausted),
        HedgeEvent::TimePassed,
    ];
    let mut walked = 0;
    for max_attempts in [1, 2, 3, 5] {
        for delay in [Duration::ZERO, DELAY] {
            for latest in [None, Some(180)] {
                let mut run = Run::new(HedgeTerms { delay, ..terms(max_attempts) });
                run.terms.limits.max_elapsed = latest.map(ms);
                walked += walk(&run, &events, 0, 7);
            }
        }
    }
    assert!(walked > 10_000, "{walked}");
}

fn walk(run: &Run, events: &[HedgeEvent], time: u64, left: u32) -> u32 {
    if left == 0 {
        return 1;
    }
    let mut walked = 0;
    for event in events {
        let before = run.call;
        let mut after = Run { terms: run.terms, call: before };
        let upcoming = match after.at(time, HedgeEvent::TimePassed) {
            Ok(upcoming) => upcoming,
            Err(reason) => {
                assert_eq!((reason, before.in_flight), (StopReason::ElapsedExhausted, 0));
                return 1;
            }
        };
        let ends =
            matches!(event, HedgeEvent::Failed(_) | HedgeEvent::Errored | HedgeEvent::Refused | HedgeEvent::BodyLost);
        let sends = *event == HedgeEvent::Sent;
        // The driver sends an attempt only when it is due, and only attempts in flight can end.
        if (ends && before.in_flight == 0) || (sends && upcoming.is_none()) {
            continue;
        }
        let outcome = after.at(time, *event);
        let now = after.call;
        assert!(now.in_flight <= now.sent, "{now:?}");
        assert!(now.sent <= run.terms.limits.max_attempts, "never more than allowed: {now:?}");
        let not_sent = *event == HedgeEvent::Refused && before.sent > 1;
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
                    assert_eq!(due, u128::from(time) + run.terms.delay.as_millis());
                }
                if *event == FAILED && before.held_until.is_none() {
                    assert_eq!(due, u128::from(time), "brought forward");
                }
                let held = before.held_until.map(|until| until.as_millis());
                if let (Some(held), true) = (held, *event == FAILED) {
                    assert!(due >= held, "what the server asked for is not shortened");
                }
                walked += walk(&after, events, time + 50, left - 1);
            }
        }
    }
    walked
}
