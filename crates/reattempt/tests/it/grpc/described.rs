//! Tests of methods whose `.proto` file declares them as repeatable.

use http::Request;
use reattempt::grpc::{DescriptorSet, Grpc};
use reattempt::hedge::HedgePolicy;
use reattempt::{CallOptions, RetryLayer};
use reattempt_grpc::Code;
use tonic::body::Body;
use tower::{Layer, ServiceExt};

use crate::grpc::support::{GrpcServer, call, lost, trailers_only, unmarked};

/// Made by protoc from `shop.proto` and `plain.proto`.
const SHOP: &[u8] = include_bytes!("../../../../grpc/tests/it/descriptors/shop.binpb");

fn shop() -> DescriptorSet {
    DescriptorSet::parse(SHOP).unwrap()
}

fn call_of(path: &str) -> Request<Body> {
    Request::post(format!("http://one.example{path}")).body(Body::empty()).unwrap()
}

/// Returns the number of attempts of a call that the server never answers with success.
async fn attempts(request: Request<Body>, server: &GrpcServer) -> usize {
    let policy = unmarked(0).described_by(shop());
    let _ = RetryLayer::new(policy).layer(server.clone()).oneshot(request).await;
    server.count()
}

// RET-7, trap 24
#[tokio::test(start_paused = true)]
async fn method_with_a_level_is_repeatable() {
    for (path, expected) in [
        ("/shop.v1.Catalog/Find", 3),
        ("/shop.v1.Catalog/Watch", 3),
        ("/shop.v1.Orders/Cancel", 3),
        ("/Clock/Read", 3),
        ("/shop.v1.Orders/Place", 1),
        ("/shop.v1.Orders/Amend", 1),
        ("/shop.v1.Orders/Unknown", 1),
        ("/other.Service/Find", 1),
    ] {
        let server = GrpcServer::at_once(|_| trailers_only(Code::Unavailable));
        assert_eq!(attempts(call_of(path), &server).await, expected, "{path}: a code");
        let server = GrpcServer::by(|_| (0, Err(lost(std::io::Error::from(std::io::ErrorKind::ConnectionReset)))));
        assert_eq!(attempts(call_of(path), &server).await, expected, "{path}: a lost connection");
    }
}

#[tokio::test(start_paused = true)]
async fn options_precede_descriptors() {
    for (path, repeatable, expected) in [("/shop.v1.Catalog/Find", false, 1), ("/shop.v1.Orders/Place", true, 3)] {
        let mut request = call_of(path);
        request.extensions_mut().insert(CallOptions::new().repeatable(repeatable));
        let server = GrpcServer::at_once(|_| trailers_only(Code::Unavailable));
        assert_eq!(attempts(request, &server).await, expected, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_set_counts() {
    /// A file without a package: `service.method`, which is idempotent.
    const SERVICE: &[u8] = b"\x0a\x1a2\x18\x0a\x07service\x12\x0d\x0a\x06method\x22\x03\x90\x02\x02";
    let service = DescriptorSet::parse(SERVICE).unwrap();
    let policy = unmarked(0).described_by(service).described_by(shop());
    for request in [call(), call_of("/shop.v1.Orders/Cancel")] {
        let server = GrpcServer::at_once(|_| trailers_only(Code::Unavailable));
        RetryLayer::new(policy.clone()).layer(server.clone()).oneshot(request).await.unwrap();
        assert_eq!(server.count(), 3);
    }
}

/// The set that tonic-build wrote for tonic-health, whose methods have no level.
#[test]
fn set_of_tonic_build_is_read() {
    let health = DescriptorSet::parse(tonic_health::pb::FILE_DESCRIPTOR_SET).unwrap();
    assert_eq!((health.levels().count(), health.level("/grpc.health.v1.Health/Check")), (0, None));
}

// HG-14
#[test]
fn hedging_reports_descriptors_as_unused() {
    let warnings = HedgePolicy::with(Grpc::new().described_by(shop())).validate();
    let [warning] = &warnings[..] else { panic!("one warning") };
    assert_eq!(warning.field(), "described_by");
}
