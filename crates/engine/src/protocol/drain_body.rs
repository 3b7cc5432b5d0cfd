//! Draining of refused responses, so that their connections can be reused.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use reattempt_replay::Drain;

use crate::call::timed_out::RefusedResponse;

pin_project! {
    /// A future that reads a refused response to its end, up to [`drain_limit`](crate::Http::drain_limit) bytes.
    #[derive(Debug)]
    pub struct DrainBody<B> {
        #[pin]
        body: Drain<B>,
    }
}

impl<B: Body> DrainBody<B> {
    pub(crate) fn new(response: Response<B>, limit: u64) -> (Self, Option<RefusedResponse>) {
        let (head, body) = response.into_parts();
        let refused = RefusedResponse { status: head.status, headers: head.headers };
        (Self { body: Drain::new(body, limit) }, Some(refused))
    }
}

impl<B: Body> Future for DrainBody<B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let _ = ready!(self.project().body.poll(cx));
        Poll::Ready(())
    }
}
