//! The end of a gRPC call after its response head: trailers, an error or the deadline.

use std::error::Error;

use http::HeaderMap;
use reattempt_grpc::{Code, GRPC_STATUS};

use super::errors::code_of_error;
use crate::call::finish::Finish;

impl Finish {
    /// Records that the deadline ended the response. No status was received, so the budget records nothing.
    pub(super) fn end_late(self) {
        if self.has_status {
            return;
        }
        self.notify_broke_off(Code::DeadlineExceeded.number());
    }

    /// Records that the response has ended with these trailers.
    #[inline]
    pub(super) fn end_with_trailers(self, trailers: &HeaderMap) {
        if self.has_status {
            return;
        }
        match trailers.get(GRPC_STATUS) {
            Some(status) if status == "0" => self.succeeded(),
            Some(status) => {
                let code = Code::from_bytes(status.as_bytes());
                self.broken(code.number(), trailers, true);
            }
            None => self.broken_by(Code::Unknown, true),
        }
    }

    /// Records that the response failed with this error.
    pub(super) fn end_with_error(self, error: &(dyn Error + 'static)) {
        if self.has_status {
            return;
        }
        self.broken_by(code_of_error(error), false);
    }

    #[cold]
    fn broken_by(self, code: Code, responded: bool) {
        let status = HeaderMap::from_iter([(GRPC_STATUS, code.number().into())]);
        self.broken(code.number(), &status, responded);
    }
}
