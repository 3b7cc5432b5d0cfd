//! The gRPC protocol marker.

use std::error::Error;

use http::Response;
use http_body::Body;
use reattempt_core::{Judgement, ServerHint, Verdict};
use reattempt_grpc::{pushback, verdict_of_head};

use super::{DiscardBody, Http, Judge, Outcome, Protocol, errors};
use crate::{CallOptions, RefusedResponse, Report};

/// gRPC: the status of a trailers-only response, pushback, and replayable bodies.
///
/// A response whose status is among its headers is judged; any other commits the call, and its
/// trailers go to the caller unseen (rule COM-1).
#[derive(Debug, Clone, Default)]
pub struct Grpc {
    pub(crate) http: Http,
}

impl Protocol for Grpc {
    type Head = http::request::Parts;

    /// By this the caller of a tonic client gets DEADLINE_EXCEEDED.
    #[cfg(feature = "tonic")]
    fn source_of_time_limit() -> Option<tower::BoxError> {
        Some(Box::new(tonic::Status::deadline_exceeded("a time limit of the call has passed")))
    }
}

impl<B: Body> Judge<Response<B>> for Grpc {
    type Discard = DiscardBody<B>;

    fn judge(
        &self,
        outcome: Result<&Response<B>, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
    ) -> Judgement {
        let seen = match outcome {
            Ok(response) => {
                Outcome::Response { status: response.status(), headers: response.headers() }
            }
            Err(error) => Outcome::Error(error),
        };
        if let Some(verdict) = self.http.custom(seen, options) {
            let hint = seen.headers().filter(|_| verdict != Verdict::Success).map(pushback);
            return Judgement { verdict, hint: hint.unwrap_or_default() };
        }
        match outcome {
            Ok(response) => match verdict_of_head(response.status(), response.headers()) {
                None => Verdict::Success.into(),
                Some(verdict) => {
                    let hint = match verdict {
                        Verdict::Success => ServerHint::None,
                        _ => pushback(response.headers()),
                    };
                    Judgement { verdict, hint }
                }
            },
            Err(error) => judge_error(error),
        }
    }

    fn discard(&self, response: Response<B>) -> (DiscardBody<B>, Option<RefusedResponse>) {
        DiscardBody::new(response, self.http.discard_limit)
    }

    fn attach(&self, response: &mut Response<B>, report: Report) {
        response.extensions_mut().insert(report);
    }
}

#[cfg(feature = "tonic")]
fn judge_error(error: &(dyn Error + 'static)) -> Judgement {
    let status = errors::causes(error).find_map(|error| error.downcast_ref::<tonic::Status>());
    match status {
        // A status that the service below made itself: an interceptor's, say.
        Some(status) if status.source().is_none() => {
            let number = i32::from(status.code());
            let code = reattempt_grpc::Code::from_number(number.unsigned_abs());
            reattempt_grpc::verdict_of_code(code).into()
        }
        _ => errors::verdict_of_error(error).into(),
    }
}

#[cfg(not(feature = "tonic"))]
fn judge_error(error: &(dyn Error + 'static)) -> Judgement {
    errors::verdict_of_error(error).into()
}

/// tonic's requests: one boxed body for each attempt, for that is the type its channel takes.
#[cfg(feature = "tonic")]
mod channel {
    use std::borrow::Cow;

    use http::Request;
    use http::request::Parts;
    use reattempt_http::ReplayBody;
    use tonic::body::Body;

    use super::Grpc;
    use crate::Deadline;
    use crate::protocol::message::{host, wishes_of};
    use crate::protocol::{Added, Admitted, Carry, KeptRequest, NextAttempt, Origin, Wishes};

    impl Carry<Request<Body>> for Grpc {
        type Attempt = Request<Body>;
        type Kept = KeptRequest<Body>;
        type Rest = Body;

        /// Generated clients put the method among the extensions.
        fn wants_nothing(&self, _: &Request<Body>) -> bool {
            false
        }

        fn wishes(&self, request: &Request<Body>) -> Wishes {
            let own = wishes_of(request.extensions());
            // Only the header is what the server knows of the deadline.
            let told = Deadline::from_headers(request.headers());
            Wishes { deadline: own.deadline.into_iter().chain(told).min(), told, ..own }
        }

        /// Which methods may be repeated, only their callers can say.
        fn admit(&self, _: &KeptRequest<Body>) -> Admitted {
            Admitted { carry: true, repeatable: false, keyed: false }
        }

        fn target<'a>(&self, request: &'a Request<Body>) -> Cow<'a, str> {
            self.http.destination_of(request.uri(), || host(request.headers()))
        }

        fn pass(&self, mut request: Request<Body>, added: Added<'_>) -> Request<Body> {
            hand_on(&mut request, added.deadline);
            added.to_message(&mut request);
            request
        }

        fn keep(
            &self,
            mut request: Request<Body>,
            added: Added<'_>,
            kept: &mut Option<Self::Kept>,
        ) -> Request<Body> {
            hand_on(&mut request, added.deadline);
            boxed(KeptRequest::keep(request, &self.http, added, kept))
        }

        fn again(&self, kept: &mut Option<Self::Kept>, next: NextAttempt) -> Option<Request<Body>> {
            let mut attempt = KeptRequest::again(kept, next)?;
            let headers = attempt.headers_mut();
            headers.insert("grpc-previous-rpc-attempts", (next.number - 1).into());
            if let Some(deadline) = next.deadline {
                deadline.write_to(headers);
            }
            Some(boxed(attempt))
        }

        fn destination<'a>(&self, kept: &'a Self::Kept) -> Cow<'a, str> {
            kept.destination(&self.http)
        }

        fn split(&self, attempt: Request<Body>) -> (Parts, Body) {
            attempt.into_parts()
        }

        fn join(&self, head: Parts, rest: Body) -> Request<Body> {
            Request::from_parts(head, rest)
        }
    }

    impl Origin<Request<Body>> for Grpc {
        type Request = Request<Body>;
    }

    fn hand_on(request: &mut Request<Body>, deadline: Option<Deadline>) {
        if let Some(deadline) = deadline {
            deadline.write_to(request.headers_mut());
        }
    }

    fn boxed(attempt: Request<ReplayBody<Body>>) -> Request<Body> {
        attempt.map(Body::new)
    }
}
