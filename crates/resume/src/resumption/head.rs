//! The answer to a request for the rest of a body.

use http::response::Parts;
use http::{Response, StatusCode};
use http_body::Body;
use reattempt_core::{Budget, Schedule, Verdict};
use reattempt_engine::wall::clock::Instant;
use reattempt_engine::wall::{chain, is_from_fallback, refusal_in};
use tower::BoxError;

use super::Resumption;
use crate::message::{ResumableResponse, Target};
use crate::{Mismatch, Part, ResumePoint, Source};

impl<R: Source, Backoff: Schedule, B: Budget> Resumption<R, Backoff, B> {
    /// Returns the part that continues the body, or `None` if another resume follows.
    pub(super) fn read_head(
        &mut self,
        outcome: Result<Response<R::Body>, BoxError>,
        point: &ResumePoint,
    ) -> Result<Option<(R::Body, Part)>, BoxError> {
        let now = Instant::now();
        let (head, body) = match outcome {
            Ok(response) => response.into_message().into_parts(),
            Err(error) => {
                let classification = self.classify(Err(&*error));
                return self.failed(now, classification, refusal_in(&*error), Err(chain(&*error))).map(|()| None);
            }
        };
        let mismatch = match point.check(head.status, &head.headers) {
            Ok(part) if !self.is_same_resource(&head, point, part) => return Err(self.give_up(Mismatch::Resource)),
            Ok(part) => match self.accept(head.status, part, body.size_hint().exact()) {
                Ok(()) => return Ok(Some((body, part))),
                Err(mismatch) => return Err(self.give_up(mismatch)),
            },
            Err(mismatch) => mismatch,
        };
        drop(body);
        let classification = self.classify(Ok(&head));
        match classification.verdict {
            Verdict::Transient(_) | Verdict::NotProcessed(_) if may_change(head.status) => {
                self.failed(now, classification, None, Ok(head.status)).map(|()| None)
            }
            _ => Err(self.give_up(mismatch)),
        }
    }

    /// Checks a part against the settings and the length of its body.
    fn accept(&mut self, status: StatusCode, part: Part, exact: Option<u64>) -> Result<(), Mismatch> {
        let expected = part.skip().saturating_add(part.length());
        if exact.is_some_and(|found| found != expected) {
            return Err(Mismatch::Length { expected, found: exact });
        }
        if part.skip() > self.rules.max_skip {
            return Err(Mismatch::Skip { skip: part.skip(), most: self.rules.max_skip });
        }
        if status == StatusCode::OK && std::mem::replace(&mut self.skipped_whole, true) {
            return Err(Mismatch::Status(status));
        }
        Ok(())
    }

    /// Returns `false` if redirects or a fallback led to a different resource than before. The host may differ if the
    /// path is the requested one, because a set of endpoints probably chose it. The whole address may differ if the
    /// entity tag and the total length are the same, because a redirect to a signed URL is another one each time.
    fn is_same_resource(&self, head: &Parts, point: &ResumePoint, part: Part) -> bool {
        let is_same_content = point.has_tag() && part.total().is_some() && part.total() == point.total();
        let is_same_target = match (&self.target, head.extensions.get::<Target>()) {
            (Some(first), Some(target)) => {
                is_same_content || first.path == target.path && (self.is_as_requested || first.origin == target.origin)
            }
            (None, None) => true,
            _ => false,
        };
        is_same_target && self.from_fallback == is_from_fallback(Ok(&head.extensions))
    }
}

/// Returns `false` if the status proves that the content changed, whatever a classifier returns.
fn may_change(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::RANGE_NOT_SATISFIABLE || status.is_server_error()
}
