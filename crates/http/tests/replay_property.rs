//! Any body, any order of reading, cloning, dropping and cancelling: every reader sees exactly the
//! body or ends with the error that says why not, nobody starves, and what is kept is accounted for.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod replay_support;

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http_body::Body;
use proptest::prelude::*;
use proptest::sample::Index;
use reattempt_http::{ReplayBody, ReplayLimits, ReplayMemory};
use replay_support::*;

#[derive(Debug, Clone)]
enum Action {
    /// Whether it was woken or not.
    Poll(Index),
    Clone(Index),
    Drop(Index),
    CancelOthers(Index),
    Open,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => any::<Index>().prop_map(Action::Poll),
        2 => any::<Index>().prop_map(Action::Clone),
        1 => any::<Index>().prop_map(Action::Drop),
        1 => any::<Index>().prop_map(Action::CancelOthers),
        2 => Just(Action::Open),
    ]
}

fn body() -> impl Strategy<Value = Vec<Step>> {
    let chunk =
        prop_oneof![Just(&b""[..]), Just(&b"a"[..]), Just(&b"bcd"[..]), Just(&[b'e'; 50][..])];
    let step = prop_oneof![
        4 => chunk.prop_map(Step::Data),
        1 => Just(Step::Yield),
        1 => Just(Step::Wait),
    ];
    let end = prop_oneof![
        Just(vec![]),
        Just(vec![Step::Trailers("sum")]),
        Just(vec![Step::Wait, Step::Trailers("sum")]),
        Just(vec![Step::Fail]),
    ];
    (prop::collection::vec(step, 0..12), end).prop_map(|(mut steps, end)| {
        steps.extend(end);
        steps
    })
}

struct Polled<B> {
    reader: Pin<Box<ReplayBody<B>>>,
    /// Whether the body tells how long it is.
    told: bool,
    flag: Arc<Flag>,
    seen: Vec<Seen>,
    waits: bool,
    /// Never polled again, though it may be woken.
    stalled: bool,
}

impl<B> Polled<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    fn new(reader: ReplayBody<B>, told: bool) -> Self {
        let (flag, seen) = (Flag::new(), Vec::new());
        Self { reader: Box::pin(reader), told, flag, seen, waits: false, stalled: false }
    }

    fn done(&self) -> bool {
        self.seen.last() == Some(&Seen::End)
    }

    fn poll(&mut self, expected: &[Seen], steps: &[Step]) {
        self.flag.take();
        let at_end = self.reader.is_end_stream();
        match poll(&mut self.reader, &self.flag.waker()) {
            Poll::Pending => {
                assert!(!at_end);
                self.waits = true;
            }
            Poll::Ready(seen) => {
                self.waits = false;
                assert!(!at_end || seen == Seen::End, "a frame after the end: {seen:?}");
                if !self.done() {
                    self.seen.push(seen);
                }
            }
        }
        self.check(expected, steps);
    }

    /// What was seen is a beginning of the body, and what it says of the rest is true.
    fn check(&self, expected: &[Seen], steps: &[Step]) {
        let refused = matches!(self.seen.as_slice(), [.., Seen::NotKept | Seen::Superseded])
            || matches!(self.seen.as_slice(), [.., Seen::NotKept | Seen::Superseded, Seen::End]);
        if refused {
            let until =
                self.seen.iter().position(|s| matches!(s, Seen::NotKept | Seen::Superseded));
            assert_eq!(self.seen[..until.unwrap()], expected[..until.unwrap()]);
            return;
        }
        assert_eq!(self.seen, expected[..self.seen.len()]);
        let data = |seen: &Seen| if let Seen::Data(data) = seen { data.len() as u64 } else { 0 };
        let read: u64 = self.seen.iter().map(data).sum();
        let hint = self.reader.size_hint();
        assert_eq!(hint.exact(), self.told.then(|| data_len(steps) - read));
        assert!(self.told || (hint.lower(), hint.upper()) == (0, None));
    }
}

/// How the first reader is made.
#[derive(Debug, Clone, Copy)]
enum Made {
    Exact,
    /// Asked ahead, with an exact length or without any.
    Ahead(bool),
}

fn made() -> impl Strategy<Value = Made> {
    prop_oneof![Just(Made::Exact), Just(Made::Ahead(true)), Just(Made::Ahead(false))]
}

fn run(
    steps: &[Step],
    made: Made,
    actions: &[Action],
    stalled: u8,
    limits: &ReplayLimits,
    roomy: bool,
) -> Result<(), TestCaseError> {
    let (script, control) = Script::new(steps);
    match made {
        Made::Exact => {
            let first = Polled::new(ReplayBody::new(script.exact(), limits), true);
            act(first, &control, steps, actions, stalled, roomy)
        }
        Made::Ahead(told) => {
            let script = Box::pin(if told { script.exact() } else { script });
            let first = Polled::new(ReplayBody::read_ahead(script, limits), told);
            act(first, &control, steps, actions, stalled, roomy)
        }
    }
}

fn act<B>(
    first: Polled<B>,
    control: &Control,
    steps: &[Step],
    actions: &[Action],
    stalled: u8,
    roomy: bool,
) -> Result<(), TestCaseError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let expected = expected(steps);
    let mut readers = vec![first];
    let mut cancelled = false;
    for action in actions {
        if readers.is_empty() {
            break;
        }
        match action {
            Action::Poll(index) => {
                let count = readers.len();
                readers[index.index(count)].poll(&expected, steps);
            }
            Action::Clone(index) => {
                let from = index.get(&readers);
                let copy = from.reader.try_clone();
                prop_assert_eq!(copy.is_some(), from.reader.is_replayable());
                let told = from.told;
                readers.extend(copy.map(|copy| Polled::new(copy, told)));
            }
            Action::Drop(index) => {
                let count = readers.len();
                readers.swap_remove(index.index(count));
            }
            Action::CancelOthers(index) => {
                index.get(&readers).reader.cancel_others();
                cancelled = true;
            }
            Action::Open => {
                control.open();
            }
        }
    }
    for (index, reader) in readers.iter_mut().enumerate().skip(1) {
        reader.stalled = index < 8 && stalled >> index & 1 == 1;
    }
    finish(&mut readers, control, &expected, steps);
    for reader in readers.iter().filter(|reader| !reader.stalled) {
        let whole = reader.seen == expected;
        prop_assert!(whole || cancelled || !roomy, "{:?}", reader.seen);
    }
    Ok(())
}

/// Polls only those that were woken or do not wait, and lets the body go on when nobody can.
fn finish<B>(readers: &mut [Polled<B>], control: &Control, expected: &[Seen], steps: &[Step])
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut opened = 0;
    loop {
        let mut progress = false;
        for reader in readers.iter_mut().filter(|reader| !reader.stalled && !reader.done()) {
            if !reader.waits || reader.flag.take() > 0 {
                reader.poll(expected, steps);
                progress = true;
            }
        }
        if readers.iter().all(|reader| reader.stalled || reader.done()) {
            return;
        }
        if !progress {
            control.open();
            opened += 1;
            assert!(opened < 100, "a reader is asleep for ever");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_reader_sees_the_body(
        steps in body(),
        made in made(),
        actions in prop::collection::vec(action(), 0..60),
        stalled in any::<u8>(),
    ) {
        let memory = ReplayMemory::new(100_000);
        run(&steps, made, &actions, stalled, &ReplayLimits::default().memory(memory.clone()), true)?;
        prop_assert_eq!(memory.used(), 0);
    }

    #[test]
    fn a_body_over_the_limits_ends_readers_by_the_right_error_only(
        steps in body(),
        made in made(),
        actions in prop::collection::vec(action(), 0..60),
        stalled in any::<u8>(),
        per_call in 32usize..200,
        memory in 32usize..200,
    ) {
        let memory = ReplayMemory::new(memory);
        let limits = ReplayLimits::default().per_call(per_call).memory(memory.clone());
        run(&steps, made, &actions, stalled, &limits, false)?;
        prop_assert_eq!(memory.used(), 0);
    }
}
