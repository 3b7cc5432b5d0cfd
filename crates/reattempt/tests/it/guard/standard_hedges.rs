//! Tests of the standard stack with hedges instead of retries.

use reattempt::fallback::{FallbackLayer, FellBack};
use reattempt::guard::{Bulkhead, CircuitBreaker, Refused, Throttle};
use reattempt::hedge::HedgePolicy;
use reattempt::standard::{StandardHedgedClient, StandardLayer};
use reattempt::{CallOptions, Deadline, Report, RetryPolicy, TimedOut};
use tokio::time::Instant;
use tower::Layer;

use super::support::Recorder;
use crate::calls::support::{Act, Server, get, ms, post};

/// Returns a policy with a hedge after 100 ms.
fn hedges() -> HedgePolicy<reattempt::Http, reattempt::RetryBudget, reattempt::error::BoxedError> {
    HedgePolicy::http().delay(ms(100)).boxed_errors()
}

/// Returns a server that hangs at the first attempt, and responds to the second.
fn slow_at_first() -> Server {
    Server::by(|number, _| if number == 1 { Act::Hang } else { Act::from(200) })
}

#[tokio::test(start_paused = true)]
async fn hedge_is_sent_through_the_guards() {
    let (server, guard) = (slow_at_first(), Recorder::default());
    let layer = StandardLayer::http().hedge(hedges()).guards(guard.clone());
    let response = layer.layer(server.clone()).send(get()).await.unwrap();
    assert_eq!(Report::of(&response).unwrap().winner().unwrap(), 2);
    assert_eq!(server.times(), [0, 100]);
    assert_eq!(guard.log(), ["admitted", "admitted", "Served", "abandoned"]);
}

/// Guards that were set earlier are kept, and see outcomes as the hedges' protocol classifies them.
#[tokio::test(start_paused = true)]
async fn hedges_replace_retries_under_the_guards() {
    let (server, guard) = (Server::by(|_, _| Act::from(503)), Recorder::default());
    let layer = StandardLayer::http().guards(guard.clone());
    let layer = layer.retry(RetryPolicy::http().max_attempts(5).seed(1).boxed_errors());
    let served =
        |http: reattempt::Http| http.on_status(http::StatusCode::SERVICE_UNAVAILABLE, reattempt::Verdict::Success);
    let client = layer.hedge(hedges().protocol(served)).layer(server.clone());
    assert_eq!(client.send(get()).await.unwrap().status(), 503);
    assert_eq!((server.count(), guard.log()), (1, vec!["admitted".into(), "Served".into()]));
}

// G-21
#[tokio::test(start_paused = true)]
async fn refused_hedge_leaves_the_first_attempt() {
    let server = Server::by(|_, _| Act::from(200).later(ms(500)));
    let layer = StandardLayer::http().hedge(hedges());
    let breaker = CircuitBreaker::rate().seed(1);
    let client = layer.limits(breaker, Bulkhead::new(1)).layer(server.clone());
    let began = Instant::now();
    assert_eq!(client.send(get()).await.unwrap().status(), 200);
    assert_eq!((server.times(), began.elapsed()), (vec![0], ms(500)));
}

#[tokio::test(start_paused = true)]
async fn total_time_ends_a_hedged_call() {
    let (server, guard) = (Server::by(|_, _| Act::Hang), Recorder::default());
    let layer = StandardLayer::http().hedge(hedges()).guards(guard.clone());
    let layer = layer.attempt_timeout(ms(900)).total_time(ms(950));
    let client = layer.layer(server.clone());
    let began = Instant::now();
    let error = client.send(get()).await.unwrap_err();
    assert_eq!(error.downcast_ref::<TimedOut>().unwrap().to_string(), "the deadline passed after 950ms");
    assert_eq!((server.times(), began.elapsed()), (vec![0, 100], ms(950)));
    // The first attempt ends at its own timeout, and the second at the deadline, which left it less than a second.
    assert_eq!(guard.log(), ["admitted", "admitted", "Unavailable", "abandoned"]);
}

/// Every attempt has the earliest of the total time, the options' deadline and the request's.
#[tokio::test(start_paused = true)]
async fn attempts_have_the_earliest_deadline() {
    let layer = StandardLayer::http().hedge(hedges()).total_time(ms(5_000));
    for (of_options, of_request, expected) in [(6_000, 9_000, 5_000), (400, 9_000, 400), (8_000, 300, 300)] {
        let server = slow_at_first();
        let after = |time: u64| Deadline::after(ms(time));
        let options = CallOptions::new().deadline(after(of_options));
        let client = layer.layer(server.clone()).with_options(options);
        let mut request = get();
        request.extensions_mut().insert(after(of_request));
        let expected = after(expected);
        client.send(request).await.unwrap();
        let deadlines: Vec<_> = server.seen().iter().map(|seen| seen.head.extensions.get().copied()).collect();
        assert_eq!(deadlines, [Some(expected); 2]);
    }
}

/// A request that may not run twice at once has one attempt, and everything else in the stack.
#[tokio::test(start_paused = true)]
async fn unsafe_request_keeps_the_total_time() {
    let server = Server::by(|_, _| Act::Hang);
    let layer = StandardLayer::http().hedge(hedges());
    let client = layer.total_time(ms(1_000)).layer(server.clone());
    let began = Instant::now();
    let error = client.send(post()).await.unwrap_err();
    assert!(error.is::<TimedOut>(), "{error}");
    assert_eq!((server.count(), began.elapsed()), (1, ms(500)));
}

/// The throttle counts calls, not hedges, and the fallback responds to what it refuses.
#[tokio::test(start_paused = true)]
async fn throttle_and_fallback_surround_hedges() {
    let server = Server::by(|_, _| Act::from(503));
    let layer = StandardLayer::http()
        .hedge(hedges())
        .fallback(FallbackLayer::http(|_| Some(http::Response::new("[]".into()))))
        .throttle(Throttle::new().seed(1).inactive_below(1, 0));
    let client = layer.layer(server.clone());
    let (mut refused, mut sent) = (0, 0);
    for _ in 0..20 {
        let before = server.count();
        let response = client.send(get()).await.unwrap();
        match response.extensions().get::<FellBack>().unwrap().failed().outcome() {
            Err(error) if error.is::<Refused>() => {
                assert_eq!(server.count(), before);
                refused += 1;
            }
            outcome => {
                assert!(outcome.is_ok());
                sent += server.count() - before;
            }
        }
    }
    assert!(refused > 5, "{refused}");
    assert!(sent > 20 - refused, "a failure is followed by a hedge while the budget lasts");
}

#[test]
fn delay_at_the_attempt_timeout_is_refused() {
    let layer = || StandardLayer::http().hedge(hedges());
    let texts = [
        layer().attempt_timeout(ms(100)).checked().err(),
        layer().total_time(ms(200)).checked().err(),
        StandardLayer::http().attempt_timeout(ms(100)).hedge(hedges()).checked().err(),
    ];
    for text in texts {
        let text = text.map(|error| error.to_string());
        let expected = "`HedgePolicy::delay` must be below `attempt_timeout`, but it is 100ms";
        assert_eq!(text.as_deref(), Some(expected));
    }
    // A quantile is not known in advance.
    let quantile = HedgePolicy::http().boxed_errors();
    assert!(layer().hedge(quantile).attempt_timeout(ms(100)).checked().is_ok());
    // Retries that replace hedges have no such delay.
    let retries = RetryPolicy::http().seed(1).boxed_errors();
    assert!(layer().retry(retries).attempt_timeout(ms(100)).checked().is_ok());
}

#[test]
fn debug_output_names_the_policy() {
    let layer = StandardLayer::http();
    let retries = format!("{layer:?}");
    assert!(retries.starts_with("StandardLayer { policy: RetryPolicy { "), "{retries}");
    let layer = layer.hedge(hedges());
    let text = format!("{layer:?}");
    assert!(text.starts_with("StandardLayer { policy: HedgePolicy { "), "{text}");
    assert!(text.contains("delay: Fixed(100ms)"), "{text}");
    let client = layer.layer(Server::statuses([200]));
    assert_eq!(client.get_ref().policy().current_delay(), Some(ms(100)));
}

#[cfg(feature = "tonic")]
#[tokio::test(start_paused = true)]
async fn grpc_stack_hedges_in_its_own_types() {
    use crate::grpc::support::{GrpcServer, ends_with};

    let late = |number| match number {
        1 => (60_000, Ok(ends_with(reattempt_grpc::Code::Ok))),
        _ => (200, Ok(ends_with(reattempt_grpc::Code::Ok))),
    };
    let request = || {
        let body = tonic::body::Body::empty();
        http::Request::post("http://one.example/service/method").body(body).unwrap()
    };
    let policy = || HedgePolicy::grpc().delay(ms(100));
    let layer = StandardLayer::grpc().hedge(policy());
    let client: StandardHedgedClient<GrpcServer, reattempt::grpc::Grpc> = layer.layer(GrpcServer::by(late));
    let began = Instant::now();
    assert!(client.send(request()).await.unwrap().headers().get("grpc-status").is_none());
    assert_eq!(began.elapsed(), ms(300));

    let layer = layer.attempt_timeout(ms(190)).total_time(ms(250));
    let response = layer.layer(GrpcServer::by(late)).send(request()).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "4");
    assert_eq!(began.elapsed(), ms(300 + 250));
}

#[test]
fn hedged_clients_have_types_to_store() {
    fn service<R, S: tower::Service<R>>(_: S) {}
    let layer = StandardLayer::http().hedge(hedges());
    let client: StandardHedgedClient<Server> = layer.layer(Server::statuses([200]));
    service::<http::Request<crate::calls::support::Body>, _>(client);
    #[cfg(feature = "reqwest")]
    service::<reqwest::Request, _>(layer.layer(reqwest::Client::new()));
}
