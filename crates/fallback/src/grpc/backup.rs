//! A backup for a gRPC channel. tonic's requests are saved for it as their bodies are sent.

use http::{HeaderMap, Request};
use reattempt_engine::Deadline;
use reattempt_engine::grpc::Grpc;
use reattempt_engine::protocol::{Saved, SavedRequest};
use reattempt_replay::SavedHead;
use tonic::body::Body;

use crate::{Backup, FallbackLayer, SaveRequest};

impl<S> FallbackLayer<Backup<S>, Grpc> {
    /// Creates a layer that sends the requests of failed gRPC calls to another channel, the backup. This requires the
    /// feature `tonic` and requests from tonic's generated clients.
    ///
    /// The backup must have the client's response type, so put the same layers around it. Once the backup is called,
    /// the call's outcome is the backup's, even if it fails. Once a response has begun, it is not replaced, however it
    /// ends.
    ///
    /// The body is saved as it is sent to the first channel, up to the limit in [`Grpc::replay`]: by default, 256 KiB
    /// per call. A call with a longer body is not sent to the backup. When the backup is called, the first upload is
    /// aborted. The `grpc-timeout` header of the backup's call contains the time left until the deadline.
    ///
    /// A call that the first server may have processed is sent to the backup only if
    /// [`CallOptions::repeatable`](reattempt_engine::CallOptions::repeatable) or [`Grpc::repeatable`] allows that. By
    /// default, the backup is called only if there is proof that the first server did not process the call, such as a
    /// failed connection, or if the server asked for a retry. UNAVAILABLE alone is no proof.
    ///
    /// ```
    /// use reattempt::RetryLayer;
    /// use reattempt::fallback::FallbackLayer;
    /// use tonic::transport::Endpoint;
    /// use tonic_health::pb::health_client::HealthClient;
    /// use tower::ServiceBuilder;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let channel = |address| Endpoint::from_static(address).connect_lazy();
    /// let backup = ServiceBuilder::new()
    ///     .layer(RetryLayer::grpc())
    ///     .service(channel("http://backup.example:50051"));
    /// let channel = ServiceBuilder::new()
    ///     .layer(FallbackLayer::grpc_backup(backup))
    ///     .layer(RetryLayer::grpc())
    ///     .service(channel("http://one.example:50051"));
    /// let mut client = HealthClient::new(channel);
    /// # drop(client.check(tonic_health::pb::HealthCheckRequest::default()));
    /// # }
    /// ```
    pub fn grpc_backup(service: S) -> Self {
        Self::with(Grpc::new(), Backup::new(service))
    }
}

impl SaveRequest<Request<Body>> for Grpc {
    type Saved = SavedRequest<Body>;

    /// Returns the request to send, and its saved form. This duplicates code for other clients, where a shared function
    /// would no longer be inlined.
    #[inline]
    fn save_copy(&self, request: Request<Body>) -> (Request<Body>, Option<SavedRequest<Body>>) {
        let (head, body) = request.into_parts();
        let limits = self.http.limits_of(&head, &body);
        let mut saved = None;
        let body = Self::first_reader(body, &head.extensions, &limits);
        let body = SavedRequest::save(SavedHead::of_parts(&head), body, &mut saved);
        (Request::from_parts(head, Body::new(body)), saved)
    }

    #[inline]
    fn take_copy(saved: SavedRequest<Body>, deadline: Option<Deadline>) -> Option<Request<Body>> {
        if !saved.at_hand() {
            return None;
        }
        saved.body.cancel_others();
        let mut request = Request::new(Body::new(saved.body));
        saved.head.move_to(&mut request);
        if let Some(deadline) = deadline {
            deadline.write_to(request.headers_mut());
        }
        Some(request)
    }

    fn headers_of(request: &mut Request<Body>) -> &mut HeaderMap {
        request.headers_mut()
    }
}
