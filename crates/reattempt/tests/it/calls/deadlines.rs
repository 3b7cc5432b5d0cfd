//! Tests of deadlines: in the request, in its options, and what happens when they pass.

use reattempt::error::TimeLimit;
use reattempt::{Deadline, RetryLayer, TimedOut};
use reattempt_core::StopReason;
use reattempt_schedule_fixed::Constant;
use tokio::time::Instant;
use tokio_test::{assert_ready, task};
use tower::{Layer, ServiceExt};

use crate::calls::support::{Act, Server, With, endless, get, ms, options, policy, report_of};

// trap 20
#[tokio::test(start_paused = true)]
async fn retry_past_deadline_is_not_begun() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy()).layer(server.clone());
    let mut call = task::spawn(client.oneshot(get().with(Deadline::after(ms(99)))));
    let response = assert_ready!(call.poll(), "at once, without sleeping first").unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (503, 1));
    assert_eq!(report_of(&response).stop_reason(), StopReason::DeadlineExceeded);
}

// trap 20
#[tokio::test(start_paused = true)]
async fn retry_at_deadline_is_too_late() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().max_attempts(9)).layer(server.clone());
    client.oneshot(get().with(Deadline::after(ms(200)))).await.unwrap();
    assert_eq!(server.times(), [0, 100]);
}

// trap 20
#[tokio::test(start_paused = true)]
async fn hint_past_limit_ends_this_call_alone() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).header("retry-after", "40"),
        2 => 503.into(),
        _ => 200.into(),
    });
    let client = RetryLayer::new(policy()).layer(server.clone());
    let response = client.clone().oneshot(get()).await.unwrap();
    assert_eq!(report_of(&response).stop_reason(), StopReason::ElapsedExhausted);
    assert_eq!(server.count(), 1);
    let response = client.oneshot(get()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (200, 3), "the next is retried");
}

// trap 20
#[tokio::test(start_paused = true)]
async fn draining_does_not_pass_deadline() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::Answer(http::Response::builder().status(503).body(endless(ms(1))).unwrap()),
        _ => 200.into(),
    });
    let policy = policy().backoff(Constant::immediate());
    let client = RetryLayer::new(policy).layer(server.clone());
    client.oneshot(get().with(Deadline::after(ms(10)))).await.unwrap();
    assert!(server.times()[1] <= 10, "sent at {:?} ms, after the deadline", server.times());
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_two_deadlines_counts() {
    for (of_request, of_options) in [(150, 1000), (1000, 150)] {
        let server = Server::statuses([503]);
        let client = RetryLayer::new(policy().max_attempts(9)).layer(server.clone());
        let request =
            get().with(Deadline::after(ms(of_request))).with(options().deadline(Deadline::after(ms(of_options))));
        client.oneshot(request).await.unwrap();
        assert_eq!(server.times(), [0, 100]);
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_carries_deadline() {
    let server = Server::statuses([503, 200]);
    let deadline = Deadline::after(ms(5000));
    let client = RetryLayer::new(policy()).layer(server.clone());
    client.oneshot(get().with(deadline)).await.unwrap();
    for seen in server.seen() {
        assert_eq!(seen.head.extensions.get::<Deadline>(), Some(&deadline));
    }
}

#[tokio::test(start_paused = true)]
async fn deadline_interrupts_boxed_errors() {
    let server = Server::by(|_, _| Act::Hang);
    let client = RetryLayer::new(policy().boxed_errors()).layer(server.clone());
    let began = Instant::now();
    let error = client.oneshot(get().with(Deadline::after(ms(70)))).await.unwrap_err();
    assert_eq!(began.elapsed().as_millis(), 70);
    let timed_out = error.downcast_ref::<TimedOut>().unwrap();
    assert_eq!((timed_out.limit(), timed_out.after()), (TimeLimit::Deadline, ms(70)));
    assert_eq!((server.count(), server.cancelled()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn deadline_interrupts_later_attempt() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).header("x-why", "busy"),
        _ => Act::Hang,
    });
    let client = RetryLayer::new(policy().boxed_errors()).layer(server.clone());
    let error = client.oneshot(get().with(Deadline::after(ms(170)))).await.unwrap_err();
    let timed_out = error.downcast_ref::<TimedOut>().unwrap();
    assert_eq!((timed_out.limit(), timed_out.after()), (TimeLimit::Deadline, ms(70)));
    let refused = timed_out.refused().unwrap();
    assert_eq!((refused.status.as_u16(), &refused.headers["x-why"]), (503, &"busy".parse().unwrap()));
    let text = "the deadline passed after 70ms; the last answer was 503 Service Unavailable";
    assert_eq!(error.to_string(), text);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_goes_before_a_longer_timeout() {
    let server = Server::by(|_, _| Act::Hang);
    let client = RetryLayer::new(policy().attempt_timeout(ms(100))).layer(server.clone());
    let error = client.oneshot(get().with(Deadline::after(ms(70)))).await.unwrap_err();
    assert_eq!(error.downcast_ref::<TimedOut>().unwrap().limit(), TimeLimit::Deadline);
    assert_eq!(server.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn deadline_does_not_interrupt_own_error() {
    let server = Server::by(|_, _| Act::from(200).later(ms(500)));
    let client = RetryLayer::new(policy()).layer(server.clone());
    let response = client.oneshot(get().with(Deadline::after(ms(70)))).await.unwrap();
    assert_eq!((response.status().as_u16(), server.cancelled()), (200, 0));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_interrupts_a_hook_that_hangs() {
    let server = Server::statuses([200]);
    let policy =
        policy().boxed_errors().before_attempt(|_: &mut http::request::Parts, _| Box::pin(std::future::pending()));
    let client = RetryLayer::new(policy).layer(server.clone());
    let call = client.oneshot(get().with(Deadline::after(ms(70))));
    let error = tokio::time::timeout(ms(1000), call).await.expect("the call is over").unwrap_err();
    assert_eq!(error.downcast_ref::<TimedOut>().unwrap().limit(), TimeLimit::Deadline);
    assert_eq!(server.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn options_deadline_reaches_every_attempt() {
    let server = Server::statuses([503, 200]);
    let deadline = Deadline::after(ms(5000));
    let client = RetryLayer::new(policy()).layer(server.clone());
    client.clone().oneshot(get().with(options().deadline(deadline))).await.unwrap();
    let later = Deadline::after(ms(9000));
    client.oneshot(get().with(later).with(options().deadline(deadline))).await.unwrap();
    assert_eq!(server.count(), 3);
    for seen in server.seen() {
        assert_eq!(seen.head.extensions.get::<Deadline>(), Some(&deadline), "the earlier one");
    }
}
