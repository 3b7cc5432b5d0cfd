//! The rate limit on a real server: its script is the function `take`, over random sequences.

use std::num::NonZeroU32;
use std::time::Duration;

use reattempt_core::Random;
use reattempt_redis::rate::{Rate, State, Taken, take};
use reattempt_redis::rule::TOKEN;
use reattempt_redis::{RateStore, RedisStore};
use reattempt_testing::Seeded;
use tokio::time::{Instant, sleep};

use crate::script::{SEQUENCES, STEPS, choose, pick, sequences};
use crate::server::Server;

fn number(random: &mut Seeded, ranges: &[(u64, u64)]) -> u32 {
    u32::try_from(pick(random, ranges)).unwrap()
}

fn random_rate(random: &mut Seeded) -> Rate {
    let ranges = &[(1, 10), (1, 5_000), (1, u32::MAX.into())];
    let [per_second, burst] = [(); 2].map(|()| NonZeroU32::new(number(random, ranges)).unwrap());
    Rate::new(per_second, burst)
}

#[tokio::test]
async fn rate_script_is_the_function() {
    let Some(server) = Server::start(&[]).await else { return };
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    // The script with the clock of the test.
    let source = include_str!("../../src/take.lua");
    let timed = source.replace("redis.call('TIME')", "{ARGV[5], ARGV[6]}");
    assert_ne!(source, timed);
    let hash: String = redis::cmd("SCRIPT").arg("LOAD").arg(&timed).query(&mut connection).unwrap();

    for seed in 0..sequences(SEQUENCES) {
        let random = &mut Seeded::new(seed);
        let rate = random_rate(random);
        let mut now = 1_700_000_000_000;
        let tokens = pick(random, &[(0, 3 * TOKEN), (0, 100_000 * TOKEN), (0, u64::MAX - 1)]);
        let text = match random.next_u64() % 4 {
            0 => None,
            1 => Some(choose(random, &["", "rubbish", "-1 1", "1e3 1", "007 08"]).to_owned()),
            _ => {
                let times =
                    [(); 2].map(|()| pick(random, &[(1_700_000_000_000, 1_700_000_060_000), (0, u64::MAX - 1)]));
                Some(format!("{tokens} {} {}", times[0], times[1]))
            }
        };
        let mut pipe = redis::pipe();
        pipe.del("k").ignore();
        if let Some(text) = &text {
            pipe.set("k", text).ignore();
        }
        let mut steps = Vec::new();
        for _ in 0..STEPS {
            let forward = pick(random, &[(0, 3), (0, 2_000), (0, 1_000_000_000)]);
            now = (now + forward).saturating_sub(pick(random, &[(0, 0), (0, 100), (0, 100_000)]));
            let wanted = number(random, &[(0, 3), (0, 1_000), (0, u32::MAX.into())]);
            pipe.cmd("EVALSHA").arg(&hash).arg(1).arg("k").arg(rate.per_second()).arg(rate.burst()).arg(wanted);
            pipe.arg("mark").arg(now / 1000).arg(now % 1000 * 1000 + 999);
            pipe.get("k");
            steps.push((now, wanted));
        }
        let replies: Vec<redis::Value> = pipe.query(&mut connection).unwrap();
        let mut state = text.as_deref().and_then(State::parse);
        for ((now, wanted), reply) in steps.into_iter().zip(replies.chunks(2)) {
            let (next, expected) = take(state, now, rate, wanted);
            let ((granted, granted_at), mark): ((u32, u64), String) =
                redis::from_redis_value(reply[0].clone()).unwrap();
            let written: String = redis::from_redis_value(reply[1].clone()).unwrap();
            assert_eq!((Taken { granted, granted_at }, &*mark), (expected, "mark"), "seed {seed}, {rate:?}, {text:?}");
            assert_eq!(written, next.to_string(), "seed {seed}, {rate:?}, {text:?}");
            state = Some(next);
        }
    }
}

/// Two connections take from one bucket, within burst + rate · time by the server's clock.
#[tokio::test]
async fn two_processes_share_a_rate() {
    let Some(server) = Server::start(&[]).await else { return };
    let [one, other] = [(); 2].map(|()| RedisStore::new(server.url()).unwrap());
    let rate = Rate::new(NonZeroU32::new(100).unwrap(), NonZeroU32::new(10).unwrap());
    let (start, mut granted) = (Instant::now(), 0);
    assert_eq!(one.take("k", rate, 7).await.unwrap().granted, 7);
    assert!((3..=4).contains(&other.take("k", rate, 7).await.unwrap().granted));
    for _ in 0..20 {
        for store in [&one, &other] {
            granted += store.take("k", rate, 1).await.unwrap().granted;
        }
        sleep(Duration::from_millis(1)).await;
    }
    assert!(u128::from(granted) <= start.elapsed().as_millis() / 10 + 1);
    assert!(server.text(&["GET", "k"]).is_some());
}
