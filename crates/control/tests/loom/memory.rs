//! The memory of kept bodies under the model checker: no limit is passed, and no byte is lost.
//!
//! The file is a part of `reattempt-replay`.

#[allow(dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../../replay/src/memory.rs"]
mod memory;

use loom::thread;
use memory::ReplayMemory;

/// A share may take a quarter of it.
const LIMIT: usize = 8;
const QUARTER: usize = LIMIT / 4;

/// Takes so many bytes in a thread of its own; gives the bytes taken.
fn taker(memory: &ReplayMemory, bytes: usize) -> thread::JoinHandle<usize> {
    let memory = memory.clone();
    thread::spawn(move || if memory.take(bytes) { bytes } else { 0 })
}

/// The last bytes go to one of two bodies, and are there again when they are given back.
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

/// Bytes that are given back beside a take are not lost.
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

/// A share counts for the whole too. A take that only one of both grants leaves nothing in the other.
// trap 40
#[test]
fn share_and_whole_agree() {
    loom::model(|| {
        let whole = ReplayMemory::new(LIMIT);
        let share = whole.share("one.example");
        let other = taker(&whole, LIMIT - 1);
        let own = if share.take(QUARTER) { QUARTER } else { 0 };
        let other = other.join().unwrap();
        assert!(own + other > 0, "one of them has room");
        assert_eq!((share.used(), whole.used()), (own, own + other));
    });
}

/// Two bodies of one destination do not pass its share, though the whole has room for both.
// trap 40
#[test]
fn two_bodies_do_not_pass_their_share() {
    loom::model(|| {
        let whole = ReplayMemory::new(LIMIT);
        let share = whole.share("one.example");
        let other = taker(&share, QUARTER);
        let own = if whole.share("one.example").take(QUARTER) { QUARTER } else { 0 };
        assert_eq!(own + other.join().unwrap(), QUARTER);
        assert_eq!((share.used(), whole.used()), (QUARTER, QUARTER));
    });
}
