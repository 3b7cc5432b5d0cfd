//! Tests of dynamic thresholds: a destination holds at most as much as is still free.

use std::borrow::Cow;

use crate::support::*;
use http_body::SizeHint;
use proptest::prelude::*;
use reattempt_replay::{ReplayCharge, ReplayLimits, ReplayMemory};

/// Returns a memory of this many bytes, and its limits.
fn memory_of(bytes: usize) -> (ReplayMemory, ReplayLimits) {
    let memory = ReplayMemory::new(bytes);
    let limits = ReplayLimits::default().memory(memory.clone()).by_destination();
    (memory, limits)
}

/// The charges that each destination holds.
struct Holders<'a> {
    limits: &'a ReplayLimits,
    chunk: usize,
    held: Vec<Vec<ReplayCharge>>,
}

impl<'a> Holders<'a> {
    fn new(limits: &'a ReplayLimits, chunk: usize, destinations: usize) -> Self {
        let held = std::iter::repeat_with(Vec::new).take(destinations).collect();
        Self { limits, chunk, held }
    }

    /// Charges one more chunk to this destination, if the rule allows it.
    fn take(&mut self, destination: usize) -> bool {
        let charge = charge(self.limits, destination, self.chunk);
        let granted = charge.is_some();
        self.held[destination].extend(charge);
        granted
    }

    /// All destinations take in turn until none may take more.
    fn take_in_turn(&mut self) {
        while (0..self.held.len()).filter(|one| self.take(*one)).count() > 0 {}
    }

    fn take_one_after_another(&mut self) {
        for destination in 0..self.held.len() {
            while self.take(destination) {}
        }
    }
}

fn charge(limits: &ReplayLimits, destination: usize, bytes: usize) -> Option<ReplayCharge> {
    let length = SizeHint::with_exact(bytes.try_into().unwrap());
    limits.for_call(&length, || Cow::from(destination.to_string())).charge(bytes)
}

// trap 40
#[test]
fn one_hog_holds_five_eighths() {
    for (limit, chunk) in [(8_000, 100), (64 << 20, 64 * 1024), (64 << 20, 300_000)] {
        let (memory, limits) = memory_of(limit);
        let mut hog = Holders::new(&limits, chunk, 1);
        hog.take_in_turn();
        let (most, used) = (limit / 8 * 5, memory.used());
        assert!(used <= most && most < used + 2 * chunk, "{used} of {most}");
        drop(hog);
        assert_eq!(memory.used(), 0);
    }
}

/// The first quarter is not counted. So each of N destinations that take in turn has 3/(4(N+1)), and as much stays
/// free.
// trap 40
#[test]
fn hogs_in_turn_leave_an_equal_share() {
    let (limit, chunk) = (1 << 18, 64);
    for hogs in 1..=40 {
        let (memory, limits) = memory_of(limit);
        let mut holders = Holders::new(&limits, chunk, hogs);
        holders.take_in_turn();
        let (free, share) = (limit - memory.used(), 3 * limit / (4 * (hogs + 1)));
        assert!(free.abs_diff(share) <= 2 * chunk, "{hogs} leave {free}, not {share}");
    }
}

/// Each hog that takes after another leaves half of the free memory. As bodies are freed, the early hogs shrink to an
/// equal share.
// trap 40
#[test]
fn shares_of_late_hogs_grow_with_turnover() {
    let (limit, chunk, hogs) = (1 << 16, 64, 4);
    let (memory, limits) = memory_of(limit);
    let mut holders = Holders::new(&limits, chunk, hogs);
    holders.take_one_after_another();
    let free = limit - memory.used();
    assert!(free.abs_diff((3 * limit / 4) >> hogs) <= 2 * chunk, "{free}");
    for round in 0..limit / 8 {
        // One body ends, and its owner is the first to request its memory.
        assert!(holders.held[round % hogs].pop().is_some());
        holders.take(round % hogs);
        holders.take_in_turn();
    }
    let (free, share) = (limit - memory.used(), 3 * limit / (4 * (hogs + 1)));
    assert!(free.abs_diff(share) <= 2 * chunk, "{free} of {share}");
}

/// However many destinations hold their maximum, a new one can keep its body.
// trap 40
#[test]
fn newcomer_is_never_shut_out() {
    let (_memory, limits) = memory_of(64 << 20);
    let body = 64 * 1024;
    let mut hogs = Holders::new(&limits, body, 1_000);
    hogs.take_one_after_another();
    hogs.take_in_turn();
    assert!((0..1_000).all(|hog| !hogs.take(hog)));
    assert!(charge(&limits, 1_000, body / 2).is_some());

    let of_newcomer = limits.for_call(&SizeHint::default(), || "newcomer".into());
    let mut first = streamed(&[Step::Data(b"x"), Step::Data(b"y")], &of_newcomer);
    let kept = clone(&first);
    read_all(&mut first);
    assert!(kept.is_replayable());
}

/// An in-memory body follows the rule: it is kept if as much memory stays free.
// trap 40
#[test]
fn body_in_memory_takes_half_at_most() {
    for (length, granted) in [(500, true), (501, false), (1_000, false), (usize::MAX, false)] {
        let (memory, limits) = memory_of(1_000);
        assert_eq!(charge(&limits, 0, length).is_some(), granted, "{length}");
        assert_eq!(memory.used(), 0);
    }
}

/// A body of unknown length may exceed the quarter if a body of the longest kept length would.
#[test]
fn destination_is_asked_for_near_quarter() {
    let (memory, limits) = memory_of(4_000);
    let limits = limits.per_call(300);
    let asks = |length: &SizeHint| {
        let mut asked = false;
        let _limits = limits.for_call(length, || {
            asked = true;
            "one".into()
        });
        asked
    };
    let (unknown, exact) = (SizeHint::new(), SizeHint::with_exact);
    let _held = limits.charge(700).unwrap();
    assert_eq!((asks(&unknown), asks(&exact(300)), asks(&exact(301))), (false, false, true));
    let _more = limits.charge(1).unwrap();
    assert_eq!((asks(&unknown), asks(&exact(299)), asks(&exact(300))), (true, false, true));
    let _rest = limits.charge(299).unwrap();
    assert_eq!((asks(&unknown), asks(&exact(1))), (true, true));
    assert!(limits.charge(1).is_none(), "the first quarter is full");
    assert_eq!(memory.used(), 1_000);
}

/// Long names are distinct destinations, and only their hashes are stored.
// trap 40
#[test]
fn long_names_are_destinations_of_their_own() {
    let (_memory, limits) = memory_of(400);
    let _begun = limits.charge(100).unwrap();
    let of = |name: String| limits.for_call(&SizeHint::new(), || name.into());
    let long = "x".repeat(300_000);
    let (one, two) = (of(long.clone() + "1"), of(long.clone() + "2"));
    let _held = one.charge(100).unwrap();
    assert!(of(long + "1").charge(100).is_none());
    assert!(two.charge(100).is_some());
}

#[derive(Debug, Clone)]
enum Act {
    /// A call to this destination begins, with a body of this length if it is known.
    Begin {
        destination: usize,
        length: Option<usize>,
    },
    Charge {
        call: usize,
        bytes: usize,
    },
    Free {
        charge: usize,
    },
}

fn act() -> impl Strategy<Value = Act> {
    let begin = (0..4_usize, prop::option::of(0..600_usize));
    prop_oneof![
        begin.prop_map(|(destination, length)| Act::Begin { destination, length }),
        (0..64_usize, 0..400_usize).prop_map(|(call, bytes)| Act::Charge { call, bytes }),
        (0..64_usize).prop_map(|charge| Act::Free { charge }),
    ]
}

const LIMIT: usize = 2_000;
const PER_CALL: usize = 200;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    /// Each charge is granted if and only if the rule allows it, and all bytes come back.
    // trap 40
    #[test]
    fn charges_follow_the_rule(acts in prop::collection::vec(act(), 0..200)) {
        let (memory, limits) = memory_of(LIMIT);
        let limits = limits.per_call(PER_CALL);
        let mut calls = Vec::new();
        let mut charges: Vec<(Option<usize>, usize, ReplayCharge)> = Vec::new();
        for act in acts {
            let used = memory.used();
            match act {
                Act::Begin { destination, length } => {
                    let most = length.map_or(PER_CALL, |length| length.max(32));
                    let hint = length.map_or_else(SizeHint::new, |length| {
                        SizeHint::with_exact(length.try_into().unwrap())
                    });
                    let mut counted = None;
                    let limits = limits.for_call(&hint, || {
                        counted = Some(destination);
                        destination.to_string().into()
                    });
                    let limits = limits.into_owned();
                    prop_assert_eq!(counted.is_some(), used + most > LIMIT / 4);
                    calls.push((counted, limits));
                }
                Act::Charge { call, bytes } if !calls.is_empty() => {
                    let (counted, limits) = &calls[call % calls.len()];
                    let own = charges.iter().filter(|(of, ..)| of == counted);
                    let own: usize = own.map(|(_, bytes, _)| bytes).sum();
                    let fits = match counted {
                        Some(_) => own + bytes + used + bytes <= LIMIT,
                        None => used + bytes <= LIMIT / 4,
                    };
                    let charge = limits.charge(bytes);
                    prop_assert_eq!(charge.is_some(), fits || bytes == 0);
                    charges.extend(charge.map(|charge| (*counted, bytes, charge)));
                }
                Act::Charge { .. } => {}
                Act::Free { charge } if !charges.is_empty() => {
                    charges.swap_remove(charge % charges.len());
                }
                Act::Free { .. } => {}
            }
            let sum: usize = charges.iter().map(|(_, bytes, _)| bytes).sum();
            prop_assert_eq!(memory.used(), sum);
        }
        drop(charges);
        prop_assert_eq!(memory.used(), 0);
        let whole = limits.for_call(&SizeHint::new(), || "any".into());
        prop_assert!(whole.charge(LIMIT / 4).is_some());
    }
}
