//! A store, its network and two clients under a model checker, which visits every state that they can reach.
//!
//! The store's rule and the course of a question are the library's own functions. A client of the model asks whenever
//! it likes. A real one asks less, because of its local budget and its memory, so its states are among those here.

use reattempt_fleet::course::{Course, End};
use reattempt_fleet::rule::{self, CAPACITY, State as Bucket, TOKEN};
use stateright::{Checker, HasDiscoveries, Model, Property};

const CLIENTS: usize = 2;

/// The rule for a process with a success. Another gets less.
fn settle(state: Option<Bucket>, now: u64, earned: u64, cost: u64) -> (Bucket, bool) {
    rule::settle(state, now, earned, cost, 0)
}

/// The letters lost, letters copied and flushes of a run, together.
const MISHAPS: u8 = 1;

/// The movements of the store's clock in milliseconds, in this order.
const CLOCK: [i64; 2] = [-400, 1_500];

/// The store's bucket at the beginning. A second retry is refused, unless time or an earned token comes first.
const START: Bucket = Bucket { tokens: TOKEN + 200_000, at: 1_000_000 };

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Letter {
    /// The question of a retry.
    Question {
        retry: usize,
        earned: u64,
        is_copy: bool,
    },
    /// The answer to it.
    Answer {
        retry: usize,
        is_grant: bool,
    },
    Report {
        earned: u64,
        is_copy: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Retry {
    client: usize,
    course: Course,
    /// `true` once the client has taken an answer. It takes no second one, because the question ends with the first.
    is_answered: bool,
    is_sent: bool,
    was_late: bool,
    end: Option<End>,
    /// `true` once a grant reached the client, and the tokens that the retry has returned.
    is_granted: bool,
    returned: Vec<u64>,
}

/// The tokens of the whole fleet, and what became of them, in millionths.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Ledger {
    /// The tokens at first, those that the clock has added at most, and those that were earned.
    bound: u64,
    /// The tokens that the store has granted.
    granted: u64,
    /// The tokens in letters that were lost.
    lost: u64,
    /// `true` once the bucket was full: what time adds then is lost.
    was_full: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    bucket: Option<Bucket>,
    now: u64,
    /// The latest time that the store's clock has shown.
    latest: u64,
    moves: usize,
    mishaps: u8,
    /// `true` after a flush or a copy, so that what is lost cannot be counted exactly.
    is_inexact: bool,
    has_succeeded: bool,
    retries: Vec<Retry>,
    /// The tokens of each client that no letter has.
    credit: [u64; CLIENTS],
    /// The letters on their way, sorted: a network keeps no order.
    letters: Vec<Letter>,
    ledger: Ledger,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Action {
    Ask(usize),
    Succeed,
    Report(usize),
    Deliver(Letter),
    Lose(Letter),
    Copy(Letter),
    PatienceOver(usize),
    Send(usize),
    End(usize, End),
    MoveClock,
    Flush,
}

/// The fleet, with the rule of its store.
struct Fleet {
    settle: fn(Option<Bucket>, u64, u64, u64) -> (Bucket, bool),
}

impl World {
    fn post(&mut self, letter: Letter) {
        self.letters.push(letter);
        self.letters.sort();
    }

    fn take(&mut self, letter: &Letter) {
        let place = self.letters.iter().position(|it| it == letter).unwrap();
        self.letters.remove(place);
    }

    /// Settles at the store, and keeps the ledger.
    fn settle(&mut self, fleet: &Fleet, earned: u64, cost: u64) -> bool {
        self.ledger.bound += self.now.saturating_sub(self.latest) * 500;
        self.latest = self.latest.max(self.now);
        let (next, answer) = (fleet.settle)(self.bucket, self.now, earned, cost);
        self.ledger.was_full |= next.tokens + if answer { cost } else { 0 } >= CAPACITY;
        self.bucket = Some(next);
        answer
    }

    /// Credits what a retry returns.
    fn credit(&mut self, retry: usize, due: u64) {
        let Retry { client, returned, .. } = &mut self.retries[retry];
        if due > 0 {
            returned.push(due);
            self.credit[*client] += due;
        }
    }

    fn deliver(&mut self, fleet: &Fleet, letter: &Letter) {
        match *letter {
            Letter::Question { retry, earned, is_copy } => {
                let is_grant = self.settle(fleet, earned, TOKEN);
                self.ledger.granted += if is_grant { TOKEN } else { 0 };
                self.ledger.bound += if is_copy { earned } else { 0 };
                self.post(Letter::Answer { retry, is_grant });
            }
            Letter::Report { earned, is_copy } => {
                self.settle(fleet, earned, 0);
                self.ledger.bound += if is_copy { earned } else { 0 };
            }
            Letter::Answer { retry, is_grant } => {
                let it = &mut self.retries[retry];
                if it.is_answered {
                    self.ledger.lost += if is_grant { TOKEN } else { 0 };
                    return;
                }
                it.is_answered = true;
                let due = if is_grant {
                    it.is_granted = true;
                    it.course.on_grant()
                } else {
                    0
                };
                it.course.confirm(is_grant);
                self.credit(retry, due);
            }
        }
    }

    /// All that the fleet has, has had granted, or is on its way to the store.
    fn total(&self) -> u64 {
        let on_its_way = self.letters.iter().map(|letter| match letter {
            Letter::Question { earned, is_copy: false, .. } | Letter::Report { earned, is_copy: false } => *earned,
            _ => 0,
        });
        let tokens = self.bucket.map_or(CAPACITY, |bucket| bucket.tokens);
        let returned = self.retries.iter().filter(|it| it.end == Some(End::Unsent));
        let returned: u64 = returned.flat_map(|it| &it.returned).sum();
        tokens + self.ledger.granted - returned + self.credit.iter().sum::<u64>() + on_its_way.sum::<u64>()
    }
}

impl Model for Fleet {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            bucket: Some(START),
            now: START.at,
            latest: START.at,
            moves: 0,
            mishaps: 0,
            is_inexact: false,
            has_succeeded: false,
            retries: Vec::new(),
            credit: [0; CLIENTS],
            letters: Vec::new(),
            ledger: Ledger { bound: START.tokens, granted: 0, lost: 0, was_full: false },
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for client in 0..CLIENTS {
            // Each has one retry; the first to ask is the first client.
            if world.retries.len() == client {
                actions.push(Action::Ask(client));
            }
            if world.credit[client] > 0 {
                actions.push(Action::Report(client));
            }
        }
        for letter in &world.letters {
            actions.push(Action::Deliver(letter.clone()));
            if world.mishaps < MISHAPS {
                actions.extend([Action::Lose(letter.clone()), Action::Copy(letter.clone())]);
            }
        }
        for (number, retry) in world.retries.iter().enumerate() {
            match (retry.course.confirmed(), retry.is_sent, retry.end) {
                (None, _, end) => {
                    actions.push(Action::PatienceOver(number));
                    // A call may be dropped at any time.
                    actions.extend(end.is_none().then_some(Action::End(number, End::Unsent)));
                }
                (Some(true), false, None) => {
                    actions.extend([Action::Send(number), Action::End(number, End::Unsent)]);
                }
                (Some(false), false, None) => actions.push(Action::End(number, End::Unsent)),
                (Some(_), true, None) => {
                    actions.extend([Action::End(number, End::Succeeded), Action::End(number, End::Failed)]);
                }
                _ => {}
            }
        }
        actions.extend((world.moves < CLOCK.len()).then_some(Action::MoveClock));
        actions.extend((world.mishaps < MISHAPS).then_some(Action::Flush));
        actions.extend((!world.has_succeeded).then_some(Action::Succeed));
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Ask(client) => {
                let retry = world.retries.len();
                let course = Course::new(TOKEN);
                world.retries.push(Retry {
                    client,
                    course,
                    is_answered: false,
                    is_sent: false,
                    was_late: false,
                    end: None,
                    is_granted: false,
                    returned: Vec::new(),
                });
                let earned = std::mem::take(&mut world.credit[client]);
                world.post(Letter::Question { retry, earned, is_copy: false });
            }
            Action::Succeed => {
                world.has_succeeded = true;
                world.credit[0] += TOKEN / 5;
                world.ledger.bound += TOKEN / 5;
            }
            Action::Report(client) => {
                let earned = std::mem::take(&mut world.credit[client]);
                world.post(Letter::Report { earned, is_copy: false });
            }
            Action::Deliver(letter) => {
                world.take(&letter);
                world.deliver(self, &letter);
            }
            Action::Lose(letter) => {
                world.take(&letter);
                world.mishaps += 1;
                match letter {
                    Letter::Question { earned, is_copy: false, .. } | Letter::Report { earned, is_copy: false } => {
                        world.ledger.lost += earned;
                    }
                    Letter::Answer { is_grant: true, .. } => world.ledger.lost += TOKEN,
                    _ => {}
                }
            }
            Action::Copy(letter) => {
                world.mishaps += 1;
                world.is_inexact = true;
                world.post(match letter {
                    Letter::Question { retry, earned, .. } => Letter::Question { retry, earned, is_copy: true },
                    Letter::Report { earned, .. } => Letter::Report { earned, is_copy: true },
                    answer @ Letter::Answer { .. } => answer,
                });
            }
            Action::PatienceOver(retry) => {
                world.retries[retry].was_late = world.retries[retry].course.confirm(true);
            }
            Action::Send(retry) => world.retries[retry].is_sent = true,
            Action::End(retry, end) => {
                world.retries[retry].end = Some(end);
                if end == End::Succeeded && world.retries[retry].is_sent {
                    world.ledger.bound += 3 * TOKEN;
                }
                let due = world.retries[retry].course.on_end(end);
                world.credit(retry, due);
            }
            Action::MoveClock => {
                world.now = world.now.checked_add_signed(CLOCK[world.moves])?;
                world.moves += 1;
            }
            Action::Flush => {
                world.mishaps += 1;
                world.is_inexact = true;
                world.bucket = None;
                world.ledger.bound += CAPACITY;
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            // Copies of an answer are one answer. A copied question, which only a cluster's client may send, costs once
            // more and adds what it reports.
            Property::always("F-1, F-9: nothing comes from nowhere", |_, world: &World| {
                world.total() <= world.ledger.bound + world.now.saturating_sub(world.latest) * 500
            }),
            Property::always("F-1: retries with a grant stay below the bound", |_, world: &World| {
                let sent = world.retries.iter().filter(|it| it.is_sent && it.is_granted).count() as u64;
                sent * TOKEN <= world.ledger.bound
            }),
            Property::always("F-6: three or the cost, once, for a grant", |_, world: &World| {
                world.retries.iter().all(|it| match (&it.returned[..], it.end) {
                    ([], _) => true,
                    ([TOKEN], Some(End::Unsent)) => it.is_granted && !it.is_sent,
                    ([returned], Some(End::Succeeded)) => it.is_granted && *returned == 3 * TOKEN,
                    _ => false,
                })
            }),
            Property::always("F-6: a grant that arrived is never forgotten", |_, world: &World| {
                let is_due = |it: &Retry| it.is_granted && matches!(it.end, Some(End::Unsent | End::Succeeded));
                world.retries.iter().all(|it| !is_due(it) || !it.returned.is_empty())
            }),
            Property::always("F-7: a loss costs what was in the letter", |_, world: &World| {
                let earns = world.retries.iter().filter(|it| it.end == Some(End::Succeeded));
                let earned: u64 = earns.flat_map(|it| &it.returned).sum();
                let success = if world.has_succeeded { TOKEN / 5 } else { 0 };
                let time = (world.latest - START.at) * 500;
                let is_exact = !world.is_inexact && !world.ledger.was_full;
                !is_exact || world.total() + world.ledger.lost >= START.tokens + time + earned + success
            }),
            Property::sometimes("a retry is refused", |_, world: &World| {
                world.retries.iter().any(|it| it.course.confirmed() == Some(false))
            }),
            Property::sometimes("a late grant earns three", |_, world: &World| {
                world.retries.iter().any(|it| it.was_late && it.returned == [3 * TOKEN])
            }),
        ]
    }
}

/// F-7 and F-9 in every order of messages, losses, copies, ends, movements of the clock and a flush.
// F-1, F-6
#[test]
fn every_order_keeps_the_bound() {
    let checker = Fleet { settle }.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.unique_state_count() > 100_000, "{}", checker.unique_state_count());
}

/// Each fault of the rule is found by the model.
#[test]
fn model_finds_a_broken_rule() {
    type Rule = fn(Option<Bucket>, u64, u64, u64) -> (Bucket, bool);
    let broken: [(&str, &str, Rule); 5] = [
        ("a retry takes nothing", "F-1, F-9", |state, now, earned, cost| {
            let (_, answer) = settle(state, now, earned, cost);
            (settle(state, now, earned, 0).0, answer)
        }),
        ("a lost bucket has eleven", "F-1, F-9", |state, now, earned, cost| {
            settle(state.or(Some(Bucket { tokens: CAPACITY + TOKEN, at: now })), now, earned, cost)
        }),
        ("time after a step back counts twice", "F-1, F-9", |state, now, earned, cost| {
            let (next, answer) = settle(state, now, earned, cost);
            (Bucket { at: now, ..next }, answer)
        }),
        ("what is earned counts twice", "F-1, F-9", |state, now, earned, cost| settle(state, now, 2 * earned, cost)),
        ("a refusal takes what there is", "F-7", |state, now, earned, cost| {
            let (next, answer) = settle(state, now, earned, cost);
            (if answer { next } else { Bucket { tokens: 0, ..next } }, answer)
        }),
    ];
    for (fault, rule, settle) in broken {
        let checker = Fleet { settle }.checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
        let checker = checker.spawn_bfs().join();
        let found = checker.discoveries();
        assert!(found.keys().any(|name| name.starts_with(rule)), "{fault}: {:?}", found.keys());
    }
}
