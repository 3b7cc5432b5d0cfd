//! qdrant-client: the layer below its generated clients. `Qdrant` itself makes its own channel.

use qdrant_client::qdrant::points_client::PointsClient;
use qdrant_client::qdrant::{CountPoints, UpsertPoints};
use reattempt::grpc::Grpc;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, Retry, RetryLayer, RetryPolicy};
use reattempt_faults::{Reply, Server};
use tonic::transport::{Channel, Endpoint, Error};
use tower::ServiceBuilder;

use crate::{Outcome, assert_arrivals, soon};

const UNAVAILABLE: u32 = 14;
const INTERNAL: u32 = 13;

type Retried = Retry<Channel, RetryPolicy<Grpc, Constant>>;

fn points(server: &Server) -> Result<PointsClient<Retried>, Error> {
    let channel = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::grpc().backoff(soon())))
        .service(Endpoint::from_shared(server.url(""))?.connect_lazy());
    Ok(PointsClient::new(channel))
}

pub(crate) async fn run() -> Outcome {
    let count = || CountPoints { collection_name: "a".into(), ..CountPoints::default() };
    // The count only reads.
    let reading = || {
        let mut reading = tonic::Request::new(count());
        reading.extensions_mut().insert(CallOptions::new().repeatable(true));
        reading
    };
    let server = Server::http2([Reply::grpc_error(UNAVAILABLE), Reply::grpc("")]).await?;
    points(&server)?.count(reading()).await?;
    assert_arrivals("a count after UNAVAILABLE", server.ledger(), &["POST", "POST"]);

    let upsert = UpsertPoints { collection_name: "a".into(), ..UpsertPoints::default() };
    let server = Server::http2([Reply::grpc_error(INTERNAL)]).await?;
    points(&server)?.upsert(upsert).await.unwrap_err();
    assert_arrivals("an upsert after INTERNAL", server.ledger(), &["POST"]);

    let upsert = UpsertPoints { collection_name: "a".into(), ..UpsertPoints::default() };
    let server = Server::http2([Reply::grpc_error(UNAVAILABLE)]).await?;
    points(&server)?.upsert(upsert).await.unwrap_err();
    assert_arrivals("an upsert after UNAVAILABLE", server.ledger(), &["POST"]);

    let server = Server::http2([Reply::reset(), Reply::grpc("")]).await?;
    points(&server)?.count(reading()).await?;
    assert_arrivals("a repeatable count after a reset", server.ledger(), &["POST", "POST"]);
    Ok(())
}
