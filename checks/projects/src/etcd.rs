//! etcd-client: the layer in its custom channel.

use etcd_client::{Channel, Client};
use http::Response;
use reattempt::{CallOptions, RetryLayer, RetryPolicy};
use reattempt_faults::{Reply, Server};
use tonic::body::Body;
use tonic::transport::Endpoint;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use crate::{Outcome, assert_arrivals, soon};

const UNAVAILABLE: u32 = 14;
const INTERNAL: u32 = 13;

async fn client(server: &Server) -> Result<Client, BoxError> {
    // Calls have no options of their own, so a rule marks the reads.
    let policy = RetryPolicy::grpc().backoff(soon()).options_for(|request| {
        let reads = request.path() == "/etcdserverpb.KV/Range";
        reads.then(|| CallOptions::new().repeatable(true))
    });
    let retried = ServiceBuilder::new()
        .layer(RetryLayer::new(policy))
        .service(Endpoint::from_shared(server.url(""))?.connect_lazy());
    let channel = retried.map_response(|response: Response<_>| response.map(Body::new)).map_err(BoxError::from);
    Ok(Client::from_channel(Channel::Custom(BoxCloneSyncService::new(channel)), None).await?)
}

pub(crate) async fn run() -> Outcome {
    let server = Server::http2([Reply::grpc_error(UNAVAILABLE), Reply::grpc("")]).await?;
    let found = client(&server).await?.get("a", None).await?;
    assert!(found.kvs().is_empty());
    assert_arrivals("a get after UNAVAILABLE", server.ledger(), &["POST", "POST"]);

    let server = Server::http2([Reply::grpc_error(UNAVAILABLE)]).await?;
    client(&server).await?.put("a", "b", None).await.unwrap_err();
    assert_arrivals("a put after UNAVAILABLE", server.ledger(), &["POST"]);

    let server = Server::http2([Reply::grpc_error(INTERNAL)]).await?;
    client(&server).await?.put("a", "b", None).await.unwrap_err();
    assert_arrivals("a put after INTERNAL", server.ledger(), &["POST"]);

    // A connection that breaks after the call was sent: the put may have been carried out.
    let server = Server::http2([Reply::reset()]).await?;
    client(&server).await?.put("a", "b", None).await.unwrap_err();
    assert_arrivals("a put after a reset", server.ledger(), &["POST"]);
    Ok(())
}
