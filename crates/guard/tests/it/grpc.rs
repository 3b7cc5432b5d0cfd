//! Tests of guards around gRPC clients: calls are judged at their trailers, and a refusal is a response.

use http::Request;
use http_body_util::BodyExt;
use reattempt::guard::contract::GuardKind;
use reattempt::guard::{Bulkhead, CircuitBreaker, GuardLayer, Reason, Refused};
use reattempt_grpc::Code;
use reattempt_testing_layers::grpc::{Answer, GrpcServer, Step, ends_with, lost, streaming, trailers_only};
use reattempt_testing_layers::guard::{Recorder, refused, timeless};
use tonic::body::Body;
use tower::Layer;

fn request() -> Request<Body> {
    Request::post("http://one.example/service/method").body(Body::empty()).unwrap()
}

// G-24
#[tokio::test(start_paused = true)]
async fn health_of_codes() {
    for number in 0..=16 {
        let code = Code::from_number(number);
        let health = match code {
            Code::ResourceExhausted => "Overloaded",
            Code::Unknown | Code::Internal | Code::DataLoss => "Failed",
            Code::Unavailable | Code::DeadlineExceeded => "Unavailable",
            Code::Cancelled => "Ignored",
            _ => "Served",
        };
        for answer in [trailers_only, ends_with] {
            let recorder = Recorder::default();
            let client = GuardLayer::grpc(recorder.clone()).layer(GrpcServer::at_once(move |_| answer(code)));
            let response = client.send(request()).await.unwrap();
            let _ = response.into_body().collect().await.unwrap();
            assert_eq!(recorder.log(), ["admitted", health], "{code:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn call_is_judged_at_its_trailers() {
    let recorder = Recorder::holding();
    let client = GuardLayer::grpc(recorder.clone()).layer(GrpcServer::at_once(|_| ends_with(Code::Internal)));
    let response = client.send(request()).await.unwrap();
    assert_eq!(recorder.log(), ["admitted"]);
    let mut body = Box::pin(response.into_body());
    assert!(body.frame().await.unwrap().unwrap().is_data());
    assert_eq!(recorder.log(), ["admitted"]);
    assert!(body.frame().await.unwrap().unwrap().is_trailers());
    assert_eq!(recorder.log(), ["admitted", "Failed", "Complete"]);
}

#[tokio::test(start_paused = true)]
async fn unread_body_is_neutral() {
    let recorder = Recorder::default();
    let client = GuardLayer::grpc(recorder.clone()).layer(GrpcServer::at_once(|_| ends_with(Code::Ok)));
    drop(client.send(request()).await.unwrap());
    assert_eq!(recorder.log(), ["admitted", "abandoned"]);
}

/// Callers of server streams often take what they need and drop the rest.
#[tokio::test(start_paused = true)]
async fn stream_dropped_after_message_is_served() {
    let answer = || streaming([Step::Wait(20), Step::Data("message"), Step::Hang]);
    for (timeout, health) in [("3S", "Served"), ("1S", "Unavailable")] {
        let recorder = Recorder::default();
        let client = GuardLayer::grpc(recorder.clone()).layer(GrpcServer::at_once(move |_| answer()));
        let mut request = request();
        request.headers_mut().insert("grpc-timeout", timeout.parse().unwrap());
        let mut body = Box::pin(client.send(request).await.unwrap().into_body());
        assert!(body.frame().await.unwrap().unwrap().is_data());
        tokio::time::sleep(std::time::Duration::from_millis(1000)).await;
        drop(body);
        assert_eq!(recorder.log(), ["admitted", health], "{timeout}");
        let latency = if health == "Served" { 20 } else { 1020 };
        assert_eq!(recorder.latencies(), [std::time::Duration::from_millis(latency)]);
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_streams_leave_breaker_closed() {
    let server = GrpcServer::at_once(|_| streaming([Step::Data("message"), Step::Hang]));
    let client = GuardLayer::grpc(CircuitBreaker::rate().seed(1)).layer(server.clone());
    for _ in 0..50 {
        let mut body = Box::pin(client.send(request()).await.unwrap().into_body());
        assert!(body.frame().await.unwrap().unwrap().is_data());
    }
    assert_eq!(server.count(), 50);
}

/// The stream ends after the probe's lease.
// G-1
#[tokio::test(start_paused = true)]
async fn message_of_a_probe_closes_the_breaker() {
    let server = GrpcServer::at_once(|number| match number {
        ..=20 => trailers_only(Code::Unavailable),
        _ => streaming([Step::Data("message"), Step::Hang]),
    });
    let limits = (CircuitBreaker::rate().seed(1), Bulkhead::new(64));
    let client = GuardLayer::grpc(limits).layer(server.clone());
    for _ in 0..20 {
        drop(client.send(request()).await.unwrap());
    }
    tokio::time::sleep(std::time::Duration::from_secs(33)).await;
    let mut streams = Vec::new();
    for _ in 0..10 {
        let mut body = Box::pin(client.send(request()).await.unwrap().into_body());
        assert!(body.frame().await.unwrap().unwrap().is_data());
        streams.push(body);
    }
    assert_eq!(server.count(), 30);
}

/// A server that ends the stream in order has failed. A lost connection is an event of its own.
// C-6
#[tokio::test(start_paused = true)]
async fn body_without_a_status_has_failed() {
    type Case = (fn() -> Answer, &'static str);
    let answers: [Case; 2] = [
        (|| streaming([Step::Data("message")]), "Failed"),
        (|| streaming([Step::Fail(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into())]), "Lost"),
    ];
    for (answer, health) in answers {
        let recorder = Recorder::default();
        let client = GuardLayer::grpc(recorder.clone()).layer(GrpcServer::at_once(move |_| answer()));
        let _ = client.send(request()).await.unwrap().into_body().collect().await;
        assert_eq!(recorder.log(), ["admitted", health]);
    }
}

// C-6
#[tokio::test(start_paused = true)]
async fn lost_connection_is_lost() {
    let recorder = Recorder::default();
    let server = GrpcServer::by(|_| (0, Err(lost(std::io::Error::from(std::io::ErrorKind::BrokenPipe)))));
    let client = GuardLayer::grpc(recorder.clone()).layer(server);
    assert!(client.send(request()).await.is_err());
    assert_eq!(recorder.log(), ["admitted", "Lost"]);
}

#[tokio::test(start_paused = true)]
async fn open_breaker_answers_unavailable() {
    let server = GrpcServer::at_once(|_| trailers_only(Code::Unavailable));
    let client = GuardLayer::grpc(timeless().consecutive_failures(5)).layer(server.clone());
    for _ in 0..5 {
        drop(client.send(request()).await.unwrap());
    }
    let response = client.send(request()).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "14");
    assert_eq!(response.headers()["reattempt-refused"], "circuit-breaker");
    let refused = response.extensions().get::<Refused>().unwrap();
    assert_eq!((refused.guard(), refused.reason()), (GuardKind::CIRCUIT_BREAKER, Reason::Open));
    assert_eq!(server.count(), 5);
}

#[tokio::test(start_paused = true)]
async fn own_limit_answers_resource_exhausted() {
    for kind in [GuardKind::RATE_LIMIT, GuardKind::BULKHEAD, GuardKind::named(&"fleet rate limit")] {
        let recorder = Recorder::default();
        recorder.refuse(Refused::new(kind, Reason::Full));
        let client = GuardLayer::grpc(recorder).layer(GrpcServer::at_once(|_| ends_with(Code::Ok)));
        let response = client.send(request()).await.unwrap();
        assert_eq!(response.headers()["grpc-status"], "8");
    }
}

#[tokio::test(start_paused = true)]
async fn passed_grpc_timeout_is_answered() {
    let recorder = Recorder::default();
    let client = GuardLayer::grpc(recorder.clone()).layer(GrpcServer::at_once(|_| ends_with(Code::Ok)));
    let mut late = request();
    late.headers_mut().insert("grpc-timeout", "0n".parse().unwrap());
    let response = client.send(late).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "4");
    assert!(recorder.log().is_empty());
}

// G-7
#[tokio::test(start_paused = true)]
async fn retry_waits_for_a_known_wait() {
    let recorder = Recorder::default();
    recorder.refuse(refused().after(std::time::Duration::from_millis(100)));
    let server = GrpcServer::at_once(|_| ends_with(Code::Ok));
    let client = tower::ServiceBuilder::new()
        .layer(reattempt::RetryLayer::grpc())
        .layer(GuardLayer::grpc(recorder.clone()))
        .service(server.clone());
    let call = tokio::spawn(client.send(request()));
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    recorder.admit();
    let response = call.await.unwrap().unwrap();
    assert!(response.headers().get("grpc-status").is_none());
    assert_eq!(server.count(), 1);
    assert_eq!(server.fields("grpc-previous-rpc-attempts"), [None]);
    recorder.refuse(refused());
    let response = client_answer(&recorder).await;
    assert_eq!(response.headers()["grpc-status"], "14");
}

async fn client_answer(recorder: &Recorder) -> http::Response<impl http_body::Body> {
    let client = tower::ServiceBuilder::new()
        .layer(reattempt::RetryLayer::grpc())
        .layer(GuardLayer::grpc(recorder.clone()))
        .service(GrpcServer::at_once(|_| ends_with(Code::Ok)));
    client.send(request()).await.unwrap()
}

// G-23
#[tokio::test(start_paused = true)]
async fn refused_answer_is_unsent_outside() {
    let (outer, inner) = (Recorder::default(), Recorder::default());
    inner.refuse(Refused::new(GuardKind::RATE_LIMIT, Reason::RateExceeded));
    let layers = tower::ServiceBuilder::new().layer(GuardLayer::grpc(outer.clone())).layer(GuardLayer::grpc(inner));
    let client = layers.service(GrpcServer::at_once(|_| ends_with(Code::Ok)));
    let response = client.send(request()).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "8");
    assert_eq!(outer.log(), ["admitted", "unsent"]);
}
