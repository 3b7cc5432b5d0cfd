//! The store of a budget that all clients share, and its messages in virtual time.
//!
//! Input: messages of the clients' budgets, and the events that they become. Output: the answers. Each message takes
//! half of the round trip, one way.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reattempt_fleet::FleetBudget;
use reattempt_fleet::courier::{Courier, Message};
use reattempt_fleet::rule::{State, settle};

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

/// An event of a message, due after some ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StoreEvent {
    /// A report of earned tokens is due.
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
        Self { settings: settings.clone(), outbox: Arc::default(), state: None, messages: Vec::new() }
    }

    /// Creates the budget of one client.
    pub(super) fn budget_of_client(&self, seed: u64) -> FleetBudget {
        let line = Line { outbox: Arc::clone(&self.outbox), seed };
        FleetBudget::carried_by(line).patience(self.settings.patience)
    }

    pub(super) fn set_now(&self, now: u64) {
        lock(&self.outbox).now = time(now);
    }

    /// Takes the messages that wait to be sent, on behalf of a call. Returns their events, with the ticks until then.
    pub(super) fn send(&mut self, owner: Owner) -> Vec<(u64, u32, StoreEvent)> {
        let messages = std::mem::take(&mut lock(&self.outbox).messages);
        let mut events = Vec::new();
        for message in messages {
            let (is_report, delay) = match &message {
                Message::Question(_) => (false, self.half()),
                Message::Report(report) => (true, ticks(report.delay())),
            };
            let patience = ticks(self.settings.patience);
            let number = self.add(OnItsWay { message, owner, answer: None });
            if is_report {
                events.push((delay, number, StoreEvent::ReportDue));
            } else {
                events.push((delay, number, StoreEvent::Arrives));
                events.push((patience, number, StoreEvent::PatienceOver));
            }
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
        let half = self.half();
        let is_down = self.settings.down.contains(&now);
        let Some(sent) = self.messages.get_mut(number as usize) else { return (None, None) };
        // The answer has come before.
        let Some(mut message) = sent.take() else { return (None, None) };
        let owner = Some(message.owner);
        match (event, &message.message) {
            (StoreEvent::ReportDue, Message::Report(report)) => {
                // Its answer changes nothing.
                if let Some(earned) = report.take().filter(|_| !is_down) {
                    self.settle(now + half, earned, 0);
                }
                (None, None)
            }
            (StoreEvent::Arrives, Message::Question(question)) => {
                let (earned, cost) = question.amounts();
                let answer = if is_down { Err("down") } else { Ok(self.settle(now, earned, cost)) };
                message.answer = Some(answer);
                self.messages[number as usize] = Some(message);
                (Some((self.settings.round_trip - half, StoreEvent::Answers)), None)
            }
            (StoreEvent::PatienceOver, Message::Question(question)) => {
                question.is_late();
                self.messages[number as usize] = Some(message);
                (None, owner)
            }
            (StoreEvent::Answers, _) => {
                if let (Message::Question(question), Some(answer)) = (message.message, message.answer) {
                    question.answer(answer.map_err(Into::into));
                }
                (None, owner)
            }
            _ => (None, None),
        }
    }

    fn half(&self) -> u64 {
        self.settings.round_trip / 2
    }

    fn add(&mut self, sent: OnItsWay) -> u32 {
        self.messages.push(Some(sent));
        u32::try_from(self.messages.len() - 1).unwrap_or(u32::MAX)
    }

    fn settle(&mut self, now: u64, earned: u64, cost: u64) -> bool {
        let lost = self.settings.loses_data && now >= self.settings.down.end;
        if lost {
            (self.state, self.settings.loses_data) = (None, false);
        }
        let (next, answer) = settle(self.state, now, earned, cost);
        self.state = Some(next);
        answer
    }
}
