//! Tests of a fleet on a network that loses, delays and reorders messages: the store's grants stay within their bound.

use std::time::Duration;

use proptest::prelude::*;
use reattempt_core::{Budget, PaidRetry, Permit};
use reattempt_fleet::FleetBudget;
use reattempt_fleet::courier::Message;
use reattempt_fleet::rule::{CAPACITY, State, TOKEN, settle};

use crate::support::{ByHand, amounts, ask, poll};
use std::task::Poll;

const CLIENTS: usize = 3;

#[derive(Debug, Clone)]
enum Action {
    /// A client's attempt fails and requests a retry.
    Fail(usize),
    /// A client's call succeeds.
    Succeed(usize),
    /// A message arrives, and its answer returns.
    Deliver(usize),
    /// A message arrives, and its answer is lost or late.
    LoseAnswer(usize),
    /// A message is lost.
    Lose(usize),
    /// A confirmed retry is sent.
    Send(usize),
    /// A retry is dropped before it is sent.
    Drop(usize),
    /// A retry that was sent ends.
    End(usize, bool),
    Wait(u64),
    /// The store loses its data.
    Flush,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let client = 0..CLIENTS;
    let any = 0..64_usize;
    let action = prop_oneof![
        6 => client.clone().prop_map(Action::Fail),
        8 => client.prop_map(Action::Succeed),
        6 => any.clone().prop_map(Action::Deliver),
        1 => any.clone().prop_map(Action::LoseAnswer),
        1 => any.clone().prop_map(Action::Lose),
        4 => any.clone().prop_map(Action::Send),
        1 => any.clone().prop_map(Action::Drop),
        4 => (any, any_bool()).prop_map(|(at, succeeds)| Action::End(at, succeeds)),
        3 => (0..2_000_u64).prop_map(Action::Wait),
        1 => Just(Action::Flush),
    ];
    prop::collection::vec(action, 1..300)
}

fn any_bool() -> impl Strategy<Value = bool> {
    any::<bool>()
}

/// The store, its clients, and the growing bound of F-1 and F-9.
struct Fleet {
    hands: Vec<ByHand>,
    budgets: Vec<FleetBudget>,
    store: Option<State>,
    now: u64,
    pending: Vec<Permit>,
    sent: Vec<PaidRetry>,
    /// The millionths that the store has granted, minus those of dropped permits.
    granted: u128,
    bound: u128,
}

impl Fleet {
    fn new() -> Self {
        let hands: Vec<_> = (0..CLIENTS).map(|_| ByHand::default()).collect();
        let budgets = hands.iter().map(ByHand::budget).collect();
        let bound = u128::from(CAPACITY);
        let (pending, sent) = (Vec::new(), Vec::new());
        Self { hands, budgets, store: None, now: 1_000_000, pending, sent, granted: 0, bound }
    }

    fn settle(&mut self, earned: u64, cost: u64) -> bool {
        let (next, answer) = settle(self.store, self.now, earned, cost, 0);
        self.store = Some(next);
        self.granted += u128::from(if answer { cost } else { 0 });
        answer
    }

    fn message(&self, at: usize) -> Option<Message> {
        let hand = &self.hands[at % CLIENTS];
        hand.take((at / CLIENTS) % hand.len().max(1))
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Fail(client) => self.pending.extend(ask(&self.budgets[client], "a")),
            Action::Succeed(client) => {
                self.bound += u128::from(TOKEN / 5);
                self.budgets[client].on_success("a", 0);
            }
            Action::Deliver(at) => match self.message(at) {
                Some(Message::Question(question)) => {
                    let (earned, cost) = amounts(&question);
                    let answer = self.settle(earned, cost);
                    question.answer(Ok(answer));
                }
                Some(Message::Report(report)) => {
                    if let Some(earned) = report.take() {
                        let answer = self.settle(earned, 0);
                        report.answer(Ok(answer));
                    }
                }
                None => {}
            },
            Action::LoseAnswer(at) => {
                if let Some(Message::Question(question)) = self.message(at) {
                    let (earned, cost) = amounts(&question);
                    self.settle(earned, cost);
                    question.is_late();
                }
            }
            Action::Lose(at) => drop(self.message(at)),
            Action::Send(at) => {
                if self.pending.is_empty() {
                    return;
                }
                let permit = self.pending.swap_remove(at % self.pending.len());
                match poll(&permit) {
                    Poll::Ready(true) => self.sent.push(permit.spend()),
                    Poll::Ready(false) => drop(permit),
                    Poll::Pending => self.pending.push(permit),
                }
            }
            Action::Drop(at) => {
                if !self.pending.is_empty() {
                    // It may return its cost, which another retry then takes.
                    self.bound += u128::from(TOKEN);
                    drop(self.pending.swap_remove(at % self.pending.len()));
                }
            }
            Action::End(at, succeeds) => {
                if self.sent.is_empty() {
                    return;
                }
                let retry = self.sent.swap_remove(at % self.sent.len());
                if succeeds {
                    self.bound += u128::from(3 * TOKEN);
                    retry.succeed();
                }
            }
            Action::Wait(milliseconds) => {
                self.now += milliseconds;
                self.bound += u128::from(milliseconds) * 500;
                self.hands.iter().for_each(|hand| hand.advance(Duration::from_millis(milliseconds)));
            }
            Action::Flush => {
                self.store = None;
                self.bound += u128::from(CAPACITY);
            }
        }
    }
}

proptest! {
    /// The store never grants more than the bound, whatever happens to its messages.
    // F-1, F-7, F-9
    #[test]
    fn fleet_stays_below_its_bound(actions in actions()) {
        let mut fleet = Fleet::new();
        for action in &actions {
            fleet.act(action);
            prop_assert!(fleet.granted <= fleet.bound, "{} of {}", fleet.granted, fleet.bound);
        }
    }
}
