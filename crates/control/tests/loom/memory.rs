//! Models of the memory for kept bodies: no limit is exceeded, and no byte is lost.
//!
//! The file is part of `reattempt-replay`.

#[allow(dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../../replay/src/memory.rs"]
mod memory;

use loom::thread;
use memory::ReplayMemory;

/// A destination may hold half of it.
const LIMIT: usize = 8;
const HALF: usize = LIMIT / 2;

/// Takes this many bytes in its own thread; returns the bytes taken.
fn taker(memory: &ReplayMemory, bytes: usize) -> thread::JoinHandle<usize> {
    let memory = memory.clone();
    thread::spawn(move || if memory.take(bytes) { bytes } else { 0 })
}

/// The last bytes go to one of two bodies, and are available again when they are returned.
// trap 32
#[test]
fn last_bytes_go_to_one_body() {
    loom::model(|| {
        let memory = ReplayMemory::new(LIMIT);
        let other = taker(&memory, LIMIT);
        let own = if memory.take(LIMIT) { LIMIT } else { 0 };
        let other = other.join().unwrap();
        assert_eq!((own + other, memory.used()), (LIMIT, LIMIT));
        memory.give_back(LIMIT);
        assert!(memory.take(LIMIT));
    });
}

/// Bytes that are returned beside a take are not lost.
#[test]
fn returned_bytes_are_not_lost() {
    loom::model(|| {
        let memory = ReplayMemory::new(LIMIT);
        assert!(memory.take(3));
        let other = taker(&memory, 4);
        memory.give_back(3);
        assert_eq!(other.join().unwrap(), memory.used());
    });
}

/// A destination's bytes also count in the whole. A refused take leaves nothing in either count.
// trap 40
#[test]
fn destination_and_whole_agree() {
    loom::model(|| {
        let whole = ReplayMemory::new(LIMIT);
        let destination = whole.of_destination("one.example");
        let other = taker(&whole, LIMIT - 1);
        let own = if destination.take(HALF) { HALF } else { 0 };
        let other = other.join().unwrap();
        assert!(own + other > 0, "one of them has room");
        assert_eq!(whole.used(), own + other);
        destination.give_back(own);
        assert_eq!(whole.used(), other);
        whole.give_back(other);
        assert!(destination.take(HALF), "nothing is held any more");
    });
}

/// Two bodies of one destination do not hold more than is free, although the whole has room for both.
// trap 40
#[test]
fn two_bodies_obey_one_threshold() {
    loom::model(|| {
        let whole = ReplayMemory::new(LIMIT);
        let other = taker(&whole.of_destination("one.example"), HALF);
        let own = if whole.of_destination("one.example").take(HALF) { HALF } else { 0 };
        assert_eq!(own + other.join().unwrap(), HALF);
        assert_eq!(whole.used(), HALF);
    });
}

/// Two destinations that take at the same time see each other's bytes.
// trap 40
#[test]
fn two_destinations_share_what_is_free() {
    loom::model(|| {
        let whole = ReplayMemory::new(LIMIT);
        let other = taker(&whole.of_destination("one.example"), HALF);
        let own = if whole.of_destination("two.example").take(HALF) { HALF } else { 0 };
        assert_eq!(own + other.join().unwrap(), HALF, "the second would hold more than is free");
        assert!(whole.of_destination("three.example").take(HALF / 2), "half of the rest");
    });
}
