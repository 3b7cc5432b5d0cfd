//! The deadline of a gRPC call that waits for its turn.

use http::Request;

use super::Grpc;
use crate::call::deadline::Deadline;
use crate::pace::Paced;

impl<B> Paced<Request<B>> for Grpc {
    fn deadline(&self, request: &Request<B>) -> Option<Deadline> {
        let from_headers = Deadline::from_headers(request.headers());
        self.http.deadline(request).into_iter().chain(from_headers).min()
    }
}
