//! A course of a replayable body, decoded from plain bytes, and the model to which it is compared.
//!
//! Each byte is a choice: first the kind of the body and its limits, then its frames, then the steps of its readers.
//! Every sequence of bytes is a course.

use std::sync::Arc;
use std::task::Poll;

use http_body::Body;
use reattempt_replay::{ReplayBody, ReplayLimits, ReplayMemory};

use super::*;

/// Longer than the frames that are copied.
const LONG: usize = 300_000;

/// No part equals another one nearby.
#[allow(clippy::cast_possible_truncation, reason = "both remainders are below 256")]
static PATTERN: [u8; LONG + 256] = {
    let mut pattern = [0; LONG + 256];
    let mut at = 0;
    while at < pattern.len() {
        pattern[at] = (at % 251) as u8 ^ (at / 251 % 7) as u8;
        at += 1;
    }
    pattern
};

/// Checks the course that these bytes encode. Panics if a reader sees anything but the body or is not woken, or if
/// memory is charged that nothing holds.
pub(crate) fn check(bytes: &[u8]) {
    let mut bytes = bytes.iter().copied();
    let (made, cap) = (bytes.next().unwrap_or(0), bytes.next().unwrap_or(0));
    let (per_call, bound) = match cap % 8 {
        0..=3 => (usize::MAX, usize::MAX),
        4 => (32 + usize::from(cap), 1 << 20),
        5 => (1 << 20, 32 + usize::from(cap)),
        6 => (16 * usize::from(cap), 24 * usize::from(cap)),
        _ => (400_000, 700_000),
    };
    let memory = ReplayMemory::new(bound);
    let limits = ReplayLimits::default().per_call(per_call).memory(memory.clone());
    let stalled = bytes.next().unwrap_or(0);
    let steps = steps(&mut bytes);
    let (script, control) = Script::new(&steps);
    let script = script.tells_end(made & 8 == 0);
    let told = made & 4 == 0;
    let script = if told { script.exact() } else { script };
    let body = match made % 4 {
        0 => ReplayBody::in_memory(script, &limits),
        1 => ReplayBody::read_ahead(script, &limits),
        _ => ReplayBody::new(script, &limits),
    };
    if made % 4 != 0 {
        assert_eq!(control.polls.load(Ordering::SeqCst), 0, "it is polled before a reader is");
    }
    let course = Course { expected: joined(&expected(&steps)), length: told.then(|| data_len(&steps)), control };
    course.run(Polled::new(body), bytes, stalled, per_call.min(bound) == usize::MAX, &memory);
    assert_eq!(memory.used(), 0, "nothing is held any more");
}

/// The frames of the body, up to a byte that ends them.
#[allow(clippy::while_let_on_iterator, reason = "the caller reads what the loop leaves")]
fn steps(bytes: &mut impl Iterator<Item = u8>) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Some(byte) = bytes.next() {
        let length = match byte % 16 {
            0 => 0,
            1..=3 => 1,
            4 => 2,
            5 => 31,
            6 => 33,
            7 => 100,
            8 => 3000,
            9 => usize::from(byte) * 7,
            10 if byte & 0xf0 == 0x30 => LONG,
            10 => 17,
            11 => {
                steps.push(Step::Yield);
                continue;
            }
            12 => {
                steps.push(Step::Wait);
                continue;
            }
            13 if byte & 0x10 == 0 => {
                steps.push(Step::Trailers("sum"));
                continue;
            }
            13 => {
                steps.push(Step::Fail);
                continue;
            }
            _ => break,
        };
        let from = steps.len() * 13 % 256;
        steps.push(Step::Data(&PATTERN[from..from + length]));
    }
    steps
}

/// The known part of the body.
struct Course {
    /// Everything that a reader sees, with the data in one piece.
    expected: Vec<Seen>,
    /// The announced length.
    length: Option<u64>,
    control: Arc<Control>,
}

struct Polled {
    reader: Reader,
    flag: Arc<Flag>,
    seen: Vec<Seen>,
    waits: bool,
    /// `true` if the reader is never polled again, although it may be woken.
    stalled: bool,
}

impl Polled {
    fn new(reader: ReplayBody<Script>) -> Self {
        let (flag, seen) = (Flag::new(), Vec::new());
        Self { reader: Box::pin(reader), flag, seen, waits: false, stalled: false }
    }

    fn done(&self) -> bool {
        self.seen.last() == Some(&Seen::End)
    }

    fn refused(&self) -> Option<usize> {
        self.seen.iter().position(|seen| matches!(seen, Seen::NotKept | Seen::Superseded))
    }
}

impl Course {
    fn run(&self, first: Polled, actions: impl Iterator<Item = u8>, stalled: u8, roomy: bool, memory: &ReplayMemory) {
        let mut readers = vec![first];
        let mut cancelled = false;
        for action in actions {
            if readers.is_empty() {
                break;
            }
            let index = usize::from(action / 8) % readers.len();
            match action % 8 {
                0..=3 => self.poll(&mut readers[index]),
                4 => {
                    let from = &readers[index].reader;
                    let copy = from.try_clone();
                    assert_eq!(copy.is_some(), from.is_replayable());
                    readers.extend(copy.map(Polled::new));
                }
                5 => drop(readers.swap_remove(index)),
                6 => {
                    readers[index].reader.cancel_others();
                    cancelled = true;
                }
                _ => drop(self.control.open()),
            }
            assert!(memory.used() <= memory.limit());
        }
        for (index, reader) in readers.iter_mut().enumerate().skip(1) {
            reader.stalled = index < 8 && stalled >> index & 1 == 1;
        }
        self.finish(&mut readers);
        for reader in readers.iter().filter(|reader| !reader.stalled) {
            let whole = joined(&reader.seen) == self.expected;
            assert!(whole || cancelled || !roomy, "{:?}", reader.seen);
            assert!(whole || reader.refused().is_some(), "{:?}", reader.seen);
        }
    }

    fn poll(&self, polled: &mut Polled) {
        polled.flag.take();
        let at_end = polled.reader.is_end_stream();
        match poll(&mut polled.reader, &polled.flag.waker()) {
            Poll::Pending => {
                assert!(!at_end);
                polled.waits = true;
            }
            Poll::Ready(seen) => {
                polled.waits = false;
                assert!(!at_end || seen == Seen::End, "a frame after the end: {seen:?}");
                if !polled.done() {
                    polled.seen.push(seen);
                }
            }
        }
        self.judge(polled);
    }

    /// Checks that the frames seen are a beginning of the body, and that the rest has the reported length.
    fn judge(&self, polled: &Polled) {
        let read = &polled.seen[..polled.refused().unwrap_or(polled.seen.len())];
        let whole = &self.expected;
        let read = joined(read);
        for (at, seen) in read.iter().enumerate() {
            match (seen, &whole[at]) {
                (Seen::Data(part), Seen::Data(all)) if at + 1 == read.len() => {
                    assert!(all.starts_with(part), "other data");
                }
                (seen, expected) => assert!(seen == expected, "another frame at {at}"),
            }
        }
        if polled.refused().is_some() {
            return;
        }
        let data = |seen: &Seen| if let Seen::Data(data) = seen { data.len() as u64 } else { 0 };
        let read: u64 = read.iter().map(data).sum();
        let hint = polled.reader.size_hint();
        assert_eq!(hint.exact(), self.length.map(|length| length - read));
        assert!(self.length.is_some() || (hint.lower(), hint.upper()) == (0, None));
    }

    /// Polls only readers that were woken or do not wait, and lets the body continue when none can proceed.
    fn finish(&self, readers: &mut [Polled]) {
        let mut opened = 0;
        loop {
            let mut progress = false;
            for reader in readers.iter_mut().filter(|reader| !reader.stalled && !reader.done()) {
                if !reader.waits || reader.flag.take() > 0 {
                    self.poll(reader);
                    progress = true;
                }
            }
            if readers.iter().all(|reader| reader.stalled || reader.done()) {
                return;
            }
            if !progress {
                self.control.open();
                opened += 1;
                assert!(opened < 300, "a reader is asleep for ever");
            }
        }
    }
}
