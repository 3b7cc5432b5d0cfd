//! Tests of the rules of hedging, one by one.

use std::io::ErrorKind::{ConnectionRefused, ConnectionReset};
use std::pin::pin;

use http::Request;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::{CallOptions, RetryBudget};
use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, task};
use tower::{Layer, Service, ServiceExt};

use crate::hedge::support::{Act, Body, Server, With, answer, get, ms};
use crate::hedge::{policy, report};

// HG-1
#[tokio::test(start_paused = true)]
async fn one_more_each_delay_without_answer() {
    let server = Server::by(|arrival, _| match arrival {
        3 => Act::from(200).later(ms(30)),
        _ => Act::Hang,
    });
    let began = Instant::now();
    let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), report(&answer)), (200, Some((3, 3))));
    assert_eq!((server.times(), began.elapsed()), (vec![0, 100, 200], ms(230)));
    let numbers: Vec<_> = server.seen().iter().map(|seen| seen.number()).collect();
    assert_eq!(numbers, [None, Some(2), Some(3)]);
}

// HG-1
#[tokio::test(start_paused = true)]
async fn attempts_never_exceed_the_cap() {
    let server = Server::by(|_, _| Act::from(200).later(ms(60_000)));
    let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((server.count(), report(&answer)), (3, Some((3, 1))));
}

// HG-1
#[tokio::test(start_paused = true)]
async fn answer_before_delay_is_untouched() {
    let server = Server::by(|_, _| Act::from(200).later(ms(99)));
    let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((server.count(), report(&answer)), (1, None));
    assert!(answer.extensions().is_empty());
}

// HG-2
#[tokio::test(start_paused = true)]
async fn hg_2_without_a_delay_all_go_at_once() {
    let server = Server::by(|_, _| Act::Hang);
    let client = HedgeLayer::new(policy().delay(ms(0))).layer(server.clone());
    let mut call = task::spawn(client.oneshot(get()));
    assert_pending!(call.poll());
    assert_eq!(server.count(), 3, "in a single turn");
}

// HG-3
#[tokio::test(start_paused = true)]
async fn first_good_answer_cancels_others() {
    let server = Server::by(|arrival, _| match arrival {
        2 => Act::from(200).later(ms(150)),
        _ => Act::from(204).later(ms(1000)),
    });
    let mut client = HedgeLayer::new(policy()).layer(server.clone());
    ServiceExt::<Request<Body>>::ready(&mut client).await.unwrap();
    let mut call = pin!(client.call(get()));
    let answer = call.as_mut().await.unwrap();
    assert_eq!((answer.status().as_u16(), report(&answer)), (200, Some((3, 2))));
    assert_eq!(server.cancelled(), 2, "though the future of the call is still held");
    advance(ms(5000)).await;
    assert_eq!((server.count(), server.unused()), (3, 0), "nor does anything follow");
}

// trap 27
#[tokio::test(start_paused = true)]
async fn fast_failure_does_not_beat_good_answer() {
    for failure in [503, 429] {
        let server = Server::by(move |arrival, _| match arrival {
            1 => Act::from(200).later(ms(500)),
            _ => failure.into(),
        });
        let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
        assert_eq!((answer.status().as_u16(), report(&answer)), (200, Some((3, 1))), "{failure}");
    }
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(200).later(ms(500)),
        _ => ConnectionRefused.into(),
    });
    let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), report(&answer)), (200, Some((3, 1))));
}

// HG-4
#[tokio::test(start_paused = true)]
async fn failure_sends_next_and_moves_later_ones() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).later(ms(30)),
        _ => Act::from(200).later(ms(300)),
    });
    let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((server.times(), report(&answer)), (vec![0, 30, 130], Some((3, 2))));
}

// HG-4
#[tokio::test(start_paused = true)]
async fn hg_4_each_failure_sends_one() {
    // The first two fail at the same time.
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).later(ms(150)),
        2 => Act::from(503).later(ms(50)),
        _ => Act::from(200).later(ms(10)),
    });
    let policy = policy().max_attempts(4);
    let answer = HedgeLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(server.times(), [0, 100, 150, 150]);
}

// HG-5
#[tokio::test(start_paused = true)]
async fn fatal_answer_ends_call() {
    let server = Server::by(|arrival, _| match arrival {
        2 => 404.into(),
        _ => Act::from(200).later(ms(500)),
    });
    let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), report(&answer)), (404, Some((2, 2))));
    assert_eq!((server.times(), server.cancelled()), (vec![0, 100], 1));
}

// HG-6
#[tokio::test(start_paused = true)]
async fn stop_leaves_those_in_flight() {
    let stop = |status: u16| Act::from(status).header("x-should-retry", "false");
    let server = Server::by(move |arrival, _| match arrival {
        1 => Act::from(200).later(ms(700)),
        _ => stop(503).later(ms(10)),
    });
    let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), report(&answer)), (200, Some((2, 1))));
    assert_eq!(server.times(), [0, 100]);

    let server = Server::by(move |arrival, _| match arrival {
        1 => Act::from(502).later(ms(700)),
        _ => stop(503).later(ms(10)),
    });
    let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), server.count()), (502, 2), "the last to come");
}

// HG-7
#[tokio::test(start_paused = true)]
async fn asked_wait_is_never_shortened() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).header("retry-after", "2").later(ms(10)),
        2 => Act::Hang,
        _ => 200.into(),
    });
    let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(answer.status(), 200);
    let times = server.times();
    assert!((2010..=2211).contains(&times[1]), "up to a tenth longer, not shorter: {times:?}");
    assert_eq!(times[2] - times[1], 100, "the later ones each delay after it");
}

// HG-7, trap 18
#[tokio::test(start_paused = true)]
async fn shorter_wait_of_another_shortens_none() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).header("retry-after", "10").later(ms(150)),
        2 => Act::from(503).header("retry-after", "1").later(ms(60)),
        _ => 200.into(),
    });
    HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert!(server.times()[2] >= 10_150, "{:?}", server.times());
}

// HG-7
#[tokio::test(start_paused = true)]
async fn hg_7_the_tenth_is_cut_at_the_limit() {
    for _ in 0..100 {
        let server = Server::by(|arrival, _| match arrival {
            1 => Act::from(503).header("retry-after", "28"),
            _ => 200.into(),
        });
        let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
        assert_eq!(answer.status(), 200, "30 s are enough for 28");
        assert!((28_000..30_000).contains(&server.times()[1]), "{:?}", server.times());
    }
}

// HG-7
#[tokio::test(start_paused = true)]
async fn hg_7_a_wait_of_zero_is_no_wait() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).header("retry-after", "0").later(ms(10)),
        _ => 200.into(),
    });
    HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(server.times(), [0, 10]);
}

// HG-4
#[tokio::test(start_paused = true)]
async fn should_retry_makes_failure_mendable() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(400).header("x-should-retry", "true"),
        _ => 200.into(),
    });
    let client = HedgeLayer::new(policy()).layer(server.clone());
    assert_eq!((client.oneshot(get()).await.unwrap().status().as_u16(), server.count()), (200, 2));
}

// HG-7
#[tokio::test(start_paused = true)]
async fn too_long_wait_means_no_further_attempt() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).header("retry-after", "61"),
        _ => 200.into(),
    });
    let client = HedgeLayer::new(policy().max_elapsed(None)).layer(server.clone());
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 503);
    assert_eq!(server.count(), 1);
}

// HG-9
#[tokio::test(start_paused = true)]
async fn last_failure_is_the_outcome_of_all() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(500).later(ms(350)),
        2 => Act::from(502).later(ms(290)),
        _ => ConnectionReset.into(),
    });
    // 500 is fatal in the default table.
    let failing = policy().protocol(|http| {
        http.on_status(http::StatusCode::INTERNAL_SERVER_ERROR, crate::hedge::support::transient(500))
    });
    let answer = HedgeLayer::new(failing).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), report(&answer)), (502, Some((3, 2))));
    assert_eq!(server.count(), 3, "and nothing is retried on top");

    let server = Server::by(|_, _| ConnectionReset.into());
    let broken = HedgeLayer::new(policy()).layer(server).oneshot(get()).await.unwrap_err();
    assert_eq!(broken.attempt, 3, "the inner service's own error");
}

// HG-13
#[tokio::test(start_paused = true)]
async fn attempts_have_cap_quantile_has_range() {
    let server = Server::by(|_, _| Act::from(200).later(ms(10_000)));
    for (asked, sent) in [(0, 1), (1, 1), (5, 5), (6, 5), (u32::MAX, 5)] {
        let before = server.count();
        let client = HedgeLayer::new(policy().max_attempts(asked)).layer(server.clone());
        client.oneshot(get()).await.unwrap();
        assert_eq!(server.count() - before, sent, "{asked}");
    }
    let (beyond, end) = (HedgePolicy::http().delay_quantile(1.5), HedgePolicy::http().delay_quantile(0.9999));
    assert_eq!(format!("{beyond:?}"), format!("{end:?}"));
}

/// A request that a load balancer drops is an error from below. It ends the call only with the last attempt in flight,
/// because an error may come from this side.
// HG-15, trap 36
#[tokio::test(start_paused = true)]
async fn hg_15_dropped_hedge_leaves_the_first() {
    let server = Server::by(|arrival, _| match arrival {
        2 => Act::Fail(std::io::ErrorKind::PermissionDenied),
        _ => Act::from(200).later(ms(500)),
    });
    let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), report(&answer), server.cancelled()), (200, Some((3, 1)), 1));
}

// HG-10, trap 11
#[tokio::test(start_paused = true)]
async fn dropped_call_cancels_attempts_and_wait() {
    let server = Server::by(|_, _| Act::Hang);
    let mut call = task::spawn(HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()));
    assert_pending!(call.poll());
    advance(ms(100)).await;
    assert_pending!(call.poll());
    assert_eq!((server.count(), server.cancelled()), (2, 0));
    drop(call);
    assert_eq!(server.cancelled(), 2);
    advance(ms(5000)).await;
    assert_eq!(server.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn late_hedge_is_not_waited_for() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).header("retry-after", "20").later(ms(10)),
        _ => 200.into(),
    });
    let client = HedgeLayer::new(policy().max_elapsed(ms(10_000))).layer(server.clone());
    let began = Instant::now();
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 503);
    assert_eq!((began.elapsed(), server.count()), (ms(10), 1));
}

#[tokio::test(start_paused = true)]
async fn simultaneous_answers_let_earliest_win() {
    let server = Server::by(|arrival, _| {
        let wait = [300, 200, 100][arrival - 1];
        Act::Answer(answer(200, ["one", "two", "three"][arrival - 1])).later(ms(wait))
    });
    let answer = HedgeLayer::new(policy()).layer(server).oneshot(get()).await.unwrap();
    assert_eq!(report(&answer), Some((3, 1)));
}

// CALL-8
#[tokio::test(start_paused = true)]
async fn call_8_cap_is_five_unless_it_is_set() {
    for (cap, attempts, of_call, sent) in [
        (None, 9, None, 5),
        (Some(8), 9, None, 8),
        (Some(8), 6, None, 6),
        (Some(2), 9, None, 2),
        (Some(8), 2, Some(9), 8),
        (None, 2, Some(9), 5),
    ] {
        let server = Server::by(|_, _| Act::from(200).later(ms(60_000)));
        let policy = policy().max_attempts(attempts).budget(RetryBudget::unlimited());
        let policy = match cap {
            Some(cap) => policy.attempts_cap(cap),
            None => policy,
        };
        let of_call = of_call.map(|attempts| CallOptions::new().max_attempts(attempts));
        let request = get().with(of_call.unwrap_or_default());
        HedgeLayer::new(policy).layer(server.clone()).oneshot(request).await.unwrap();
        assert_eq!(server.count(), sent, "{cap:?}, {attempts}");
    }
}
