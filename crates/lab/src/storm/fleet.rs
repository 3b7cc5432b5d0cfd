//! The store of a budget that all clients share, and its messages in virtual time.
//!
//! Input: messages of the clients' budgets, and the events that they become. Output: the answers. Each message takes
//! half of the round trip, one way.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reattempt_fleet::FleetBudget;
use reattempt_fleet::courier::{Amounts, Courier, Message, Report};
use reattempt_fleet::rule::{State, settle};
use serde::Serialize;

use super::tick::{ticks, time};

/// The store of a fleet's budget. Times are in ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoreSettings {
    /// The time from a question to its answer; at least 2.
    pub(super) round_trip: u64,
    /// The longest time for which an outcome is held for its answer.
    pub(super) patience: Duration,
    /// The time in which it refuses connections.
    pub(super) down: Range<u64>,
    /// `true` if its data is lost when it returns.
    pub(super) loses_data: bool,
}

impl Default for StoreSettings {
    fn default() -> Self {
        let patience = Duration::from_millis(50);
        Self { round_trip: 2, patience, down: 0..0, loses_data: false }
    }
}

/// The store, the messages on their way, and those that wait to be sent.
pub(super) struct Fleet {
    settings: StoreSettings,
    outbox: Arc<Mutex<Outbox>>,
    state: Option<State>,
    messages: Vec<Option<OnItsWay>>,
    /// The places in that list without a message.
    free: Vec<u32>,
    /// The events of a question, with their ticks since it was sent.
    course: Vec<(u64, StoreEvent)>,
    counts: StoreCounts,
}

/// The messages that the store received, and its grants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct StoreCounts {
    /// The questions, those that it could not answer included.
    pub(super) questions: u64,
    /// The questions that it granted.
    pub(super) granted: u64,
    /// The reports of earned tokens.
    pub(super) reports: u64,
}

#[derive(Default)]
struct Outbox {
    now: Duration,
    messages: Vec<Message>,
}

/// A message, and the call that waits for its answer.
struct OnItsWay {
    message: Message,
    owner: Owner,
    /// The answer, once the store has given it.
    answer: Option<Result<bool, &'static str>>,
}

/// The place, the client, the number and the attempt of a call.
pub(super) type Owner = (u32, u32, u32, u16);

/// An event of a message, due after some ticks. A message has one event at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StoreEvent {
    /// A report of earned tokens is due.
    #[default]
    ReportDue,
    /// A message reaches the store.
    Arrives,
    /// Its answer reaches the client.
    Answers,
    /// The client no longer holds its outcome for the answer.
    PatienceOver,
}

/// The way of a client's messages.
struct Line {
    outbox: Arc<Mutex<Outbox>>,
    seed: u64,
}

impl Courier for Line {
    fn now(&self) -> Duration {
        lock(&self.outbox).now
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn carry(&self, message: Message) {
        lock(&self.outbox).messages.push(message);
    }
}

fn lock(outbox: &Mutex<Outbox>) -> std::sync::MutexGuard<'_, Outbox> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fleet {
    pub(super) fn new(settings: &StoreSettings) -> Self {
        let (round_trip, patience) = (settings.round_trip, ticks(settings.patience));
        let mut course = vec![(round_trip / 2, StoreEvent::Arrives), (round_trip, StoreEvent::Answers)];
        // An answer at the end of the patience is in time.
        if patience < round_trip {
            course.push((patience, StoreEvent::PatienceOver));
        }
        course.sort_unstable();
        Self {
            settings: settings.clone(),
            outbox: Arc::default(),
            state: None,
            messages: Vec::new(),
            free: Vec::new(),
            course,
            counts: StoreCounts::default(),
        }
    }

    pub(super) fn counts(&self) -> StoreCounts {
        self.counts
    }

    /// Creates the budget of one client.
    pub(super) fn budget_of_client(&self, seed: u64) -> FleetBudget {
        let line = Line { outbox: Arc::clone(&self.outbox), seed };
        FleetBudget::carried_by(line).patience(self.settings.patience)
    }

    pub(super) fn set_now(&self, now: u64) {
        lock(&self.outbox).now = time(now);
    }

    /// Takes the messages that wait to be sent, on behalf of a call. Returns the first event of each, with the ticks
    /// until then.
    pub(super) fn send(&mut self, owner: Owner) -> Vec<(u64, u32, StoreEvent)> {
        let messages = std::mem::take(&mut lock(&self.outbox).messages);
        let mut events = Vec::new();
        for message in messages {
            let (delay, event) = match &message {
                Message::Question(_) => self.course[0],
                Message::Report(report) => (ticks(report.delay()), StoreEvent::ReportDue),
            };
            events.push((delay, self.add(OnItsWay { message, owner, answer: None }), event));
        }
        events
    }

    /// Handles an event of a message. Returns the next one, and the call whose retry may now be confirmed.
    pub(super) fn happens(
        &mut self,
        now: u64,
        number: u32,
        event: StoreEvent,
    ) -> (Option<(u64, StoreEvent)>, Option<Owner>) {
        let is_down = self.settings.down.contains(&now);
        let Some(mut sent) = self.messages.get_mut(number as usize).and_then(Option::take) else { return (None, None) };
        let mut owner = None;
        match (event, &sent.message) {
            (StoreEvent::Arrives, Message::Question(question)) => {
                let amounts = question.amounts();
                self.counts.questions += 1;
                let answer = if is_down { Err("down") } else { Ok(self.settle(now, amounts)) };
                self.counts.granted += u64::from(answer == Ok(true));
                sent.answer = Some(answer);
            }
            (StoreEvent::PatienceOver, Message::Question(question)) => {
                question.is_late();
                owner = Some(sent.owner);
            }
            _ => {
                self.free.push(number);
                let owner = sent.owner;
                match (sent.message, sent.answer) {
                    (Message::Question(question), Some(answer)) => question.answer(answer.map_err(Into::into)),
                    (Message::Report(report), _) => self.report(report, now, is_down),
                    (Message::Question(_), None) => {}
                }
                return (None, Some(owner).filter(|_| event == StoreEvent::Answers));
            }
        }
        self.messages[number as usize] = Some(sent);
        let mut rest = self.course.iter().skip_while(|(_, it)| *it != event);
        let (at, _) = rest.next().copied().unwrap_or_default();
        (rest.next().map(|(next, event)| (next - at, *event)), owner)
    }

    /// Carries a report to the store, if there is still something to report.
    fn report(&mut self, report: Report, now: u64, is_down: bool) {
        let Some(earned) = report.take() else { return };
        self.counts.reports += 1;
        if is_down {
            report.answer(Err("down".into()));
        } else {
            let amounts = Amounts { earned, cost: 0, least: 0 };
            let answer = self.settle(now + self.settings.round_trip / 2, amounts);
            report.answer(Ok(answer));
        }
    }

    fn add(&mut self, sent: OnItsWay) -> u32 {
        if let Some(place) = self.free.pop() {
            self.messages[place as usize] = Some(sent);
            return place;
        }
        self.messages.push(Some(sent));
        u32::try_from(self.messages.len() - 1).unwrap_or(u32::MAX)
    }

    fn settle(&mut self, now: u64, amounts: Amounts) -> bool {
        if self.settings.loses_data && now >= self.settings.down.end {
            (self.state, self.settings.loses_data) = (None, false);
        }
        let (next, answer) = settle(self.state, now, amounts.earned, amounts.cost, amounts.least);
        self.state = Some(next);
        answer
    }
}
