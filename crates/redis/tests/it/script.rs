//! The script computes the same function as `settle`, over random sequences.

use reattempt_core::Random;
use reattempt_redis::rule::{State, TIME_TO_LIVE, TOKEN, settle};
use reattempt_testing::Seeded;

use crate::server::Server;

/// The number of sequences in a run of all tests; CI sets `REATTEMPT_SEQUENCES` to 100000.
pub(crate) const SEQUENCES: u64 = 2_000;
pub(crate) const STEPS: usize = 8;

struct Step {
    now: u64,
    earned: u64,
    cost: u64,
    least: u64,
}

/// Returns one of these values.
pub(crate) fn choose<T: Copy>(random: &mut Seeded, from: &[T]) -> T {
    from[usize::try_from(random.next_u64() % from.len() as u64).unwrap()]
}

/// Returns a number from one of these ranges.
pub(crate) fn pick(random: &mut Seeded, ranges: &[(u64, u64)]) -> u64 {
    let (least, most) = choose(random, ranges);
    least + random.next_u64() % (most - least + 1)
}

/// Returns the number of sequences that the environment asks for, or else the usual one.
pub(crate) fn sequences(usual: u64) -> u64 {
    std::env::var("REATTEMPT_SEQUENCES").map_or(usual, |number| number.parse().unwrap())
}

fn first_text(random: &mut Seeded) -> Option<String> {
    let tokens = pick(random, &[(0, 3 * TOKEN), (0, 20 * TOKEN), (0, 100_000 * TOKEN), (0, u64::MAX - 1)]);
    let at = pick(random, &[(1_700_000_000_000, 1_700_000_060_000), (0, 1), (0, u64::MAX - 1)]);
    let texts = ["", "rubbish", "1 2 3", "-1 1", "1e3 1", " 1 1", "1 1\n", "007 08", "1\0 1"];
    match random.next_u64() % 8 {
        0 => None,
        1 => Some(choose(random, &texts).to_owned()),
        _ => Some(format!("{tokens} {at}")),
    }
}

fn step(random: &mut Seeded, now: &mut u64) -> Step {
    let forward = pick(random, &[(0, 3), (0, 2_000), (0, 2 * TIME_TO_LIVE), (0, 1_000_000_000)]);
    let back = pick(random, &[(0, 0), (0, 0), (0, 100), (0, 3 * TIME_TO_LIVE)]);
    *now = (*now + forward).saturating_sub(back);
    let earned = pick(random, &[(0, 0), (0, TOKEN), (0, 30 * TOKEN), (0, u64::MAX - 1)]);
    let cost = pick(random, &[(TOKEN, TOKEN), (2 * TOKEN, 2 * TOKEN), (0, 0), (0, 50 * TOKEN)]);
    let least = pick(random, &[(0, 0), (10 * TOKEN, 10 * TOKEN), (0, 50 * TOKEN)]);
    Step { now: *now, earned, cost, least }
}

// F-13
#[tokio::test]
async fn script_is_the_function() {
    let Some(server) = Server::start(&[]).await else { return };
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    // The script with the test's clock.
    let source = include_str!("../../src/settle.lua");
    let timed = source.replace("redis.call('TIME')", "{ARGV[5], ARGV[6]}");
    assert_ne!(source, timed);
    let hash: String = redis::cmd("SCRIPT").arg("LOAD").arg(&timed).query(&mut connection).unwrap();

    for seed in 0..sequences(SEQUENCES) {
        let random = &mut Seeded::new(seed);
        let (mut now, text) = (1_700_000_000_000, first_text(random));
        let steps: Vec<_> = (0..STEPS).map(|_| step(random, &mut now)).collect();
        let mut pipe = redis::pipe();
        pipe.del("k").ignore();
        if let Some(text) = &text {
            pipe.set("k", text).ignore();
        }
        for step in &steps {
            let (seconds, micros) = (step.now / 1000, step.now % 1000 * 1000 + 999);
            pipe.cmd("EVALSHA").arg(&hash).arg(1).arg("k").arg(step.earned).arg(step.cost).arg(step.least);
            pipe.arg("mark").arg(seconds).arg(micros);
            pipe.get("k");
        }
        let replies: Vec<redis::Value> = pipe.query(&mut connection).unwrap();
        let mut state = text.as_deref().and_then(State::parse);
        for (step, reply) in steps.iter().zip(replies.chunks(2)) {
            let (next, expected) = settle(state, step.now, step.earned, step.cost, step.least);
            let answer: (bool, String) = redis::from_redis_value(reply[0].clone()).unwrap();
            let written: String = redis::from_redis_value(reply[1].clone()).unwrap();
            assert_eq!(answer, (expected, "mark".to_owned()), "seed {seed}, {text:?}");
            assert_eq!(written, next.to_string(), "seed {seed}, {text:?}");
            state = Some(next);
        }
    }
}
