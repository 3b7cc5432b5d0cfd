//! gRPC calls that were carried out although their status suggests otherwise, counted at the server.

use http::{HeaderName, HeaderValue, StatusCode};
use reattempt::fallback::FallbackLayer;
use reattempt::grpc::Grpc;
use reattempt::schedule::Constant;
use reattempt::standard::StandardLayer;
use reattempt::{CallOptions, RetryLayer, RetryPolicy};
use reattempt_faults::{Reply, Script, Server};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{Layer, ServiceBuilder};

const METHOD: &str = "/grpc.health.v1.Health/Check";

/// Returns a server that carries out every call and then always responds this way.
async fn server(reply: &Reply) -> Server {
    Server::http2(Script::default().otherwise(reply.clone().carried_out(true))).await.unwrap()
}

fn channel(server: &Server) -> Channel {
    Endpoint::from_shared(server.url("")).unwrap().connect_lazy()
}

/// Returns the replies that prove nothing, with the code that the caller gets.
fn replies() -> [(Reply, Code); 6] {
    let proxy = |status| (Reply::status(StatusCode::from_u16(status).unwrap()), Code::Unavailable);
    [
        // A server whose response exceeds its message limit.
        (Reply::grpc_error(8), Code::ResourceExhausted),
        // A proxy whose backend died with the call.
        (Reply::grpc_error(14), Code::Unavailable),
        proxy(429),
        proxy(502),
        proxy(503),
        proxy(504),
    ]
}

fn policy() -> RetryPolicy<Grpc, Constant> {
    RetryPolicy::grpc().backoff(Constant::immediate())
}

/// Calls once with these options. Returns the caller's code.
async fn check(policy: RetryPolicy<Grpc, Constant>, server: &Server, options: CallOptions) -> Code {
    let mut client = HealthClient::new(RetryLayer::new(policy).layer(channel(server)));
    let mut request = Request::new(HealthCheckRequest::default());
    request.extensions_mut().insert(options);
    client.check(request).await.unwrap_err().code()
}

fn executions(server: &Server) -> usize {
    server.ledger().arrivals().iter().filter(|arrival| arrival.carried_out).count()
}

// OUT-1, RET-7, C-12, field 13, field 14, trap 65
#[tokio::test]
async fn unmarked_call_is_carried_out_once() {
    for (reply, code) in replies() {
        let server = server(&reply).await;
        for _ in 0..10 {
            assert_eq!(check(policy(), &server, CallOptions::new()).await, code, "{reply:?}");
        }
        assert_eq!(executions(&server), 10, "{reply:?}");
    }
}

/// The caller allows repeats for a call, a method or all calls. Options of the call take precedence.
// RET-7, C-12, field 14
#[tokio::test]
async fn allowed_call_is_retried() {
    let repeatable = |allowed| CallOptions::new().repeatable(allowed);
    let of_method = |path: &'static str| {
        policy().options_for(move |request| (request.path() == path).then(|| CallOptions::new().repeatable(true)))
    };
    let rows = [
        (policy(), repeatable(true), 3),
        (policy().repeatable(true), CallOptions::new(), 3),
        (policy().repeatable(true), repeatable(false), 1),
        (of_method(METHOD), CallOptions::new(), 3),
        (of_method("/grpc.health.v1.Health/Watch"), CallOptions::new(), 1),
        (of_method(METHOD), repeatable(false), 1),
    ];
    for (reply, code) in replies() {
        for (number, (policy, options, expected)) in rows.clone().into_iter().enumerate() {
            let server = server(&reply).await;
            assert_eq!(check(policy, &server, options).await, code, "{number} {reply:?}");
            assert_eq!(executions(&server), expected, "{number} {reply:?}");
        }
    }
}

/// A pushback of 0 or more asks for the retry. Any other pushback stops it, and a code that is not retryable stays so.
// PB-3, PB-7, RET-7, C-12
#[tokio::test]
async fn pushback_asks_for_a_retry() {
    let pushed = |code, value: &'static str| {
        let name = HeaderName::from_static("grpc-retry-pushback-ms");
        Reply::grpc_error(code).header(name, HeaderValue::from_static(value))
    };
    let rows = [(8, "0", 3), (14, "1", 3), (4, "0", 3), (14, "-1", 1), (14, "soon", 1), (14, "05", 1), (13, "0", 1)];
    for (code, value, expected) in rows {
        let server = server(&pushed(code, value)).await;
        check(policy(), &server, CallOptions::new()).await;
        assert_eq!(executions(&server), expected, "{code} {value}");
    }
}

/// Neither the standard stack nor a backup declares calls as repeatable.
// RET-7, C-12, field 14, trap 65
#[tokio::test]
async fn no_stack_declares_calls_repeatable() {
    for (reply, code) in replies() {
        let (first, backup) = (server(&reply).await, server(&reply).await);
        let client = ServiceBuilder::new()
            .layer(FallbackLayer::grpc_backup(StandardLayer::grpc().layer(channel(&backup))))
            .layer(StandardLayer::grpc())
            .service(channel(&first));
        let status = HealthClient::new(client).check(HealthCheckRequest::default()).await.unwrap_err();
        assert_eq!((status.code(), executions(&first), executions(&backup)), (code, 1, 0), "{reply:?}");
    }
}
