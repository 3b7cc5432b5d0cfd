//! The deadline of a request, which may come before its turn.

use http::Request;

use crate::call::deadline::Deadline;
use crate::call::options::CallOptions;
use crate::protocol::{CloneRequest, Http, Protocol};

/// A protocol whose requests of type `Request` can be paced. Sealed.
#[diagnostic::on_unimplemented(
    message = "this `PaceLayer` cannot pace a request of type `{Request}`",
    note = "`PaceLayer::http(…)` paces `http::Request<B>`, and `reqwest::Request` with the feature `reqwest`; `PaceLayer::classified(…)` paces any request"
)]
pub trait Paced<Request>: Protocol {
    /// The deadline that travels with the request.
    #[doc(hidden)]
    fn deadline(&self, request: &Request) -> Option<Deadline>;
}

impl<B> Paced<Request<B>> for Http {
    #[inline]
    fn deadline(&self, request: &Request<B>) -> Option<Deadline> {
        let extensions = request.extensions();
        if extensions.is_empty() && self.has_no_rule() {
            return None;
        }
        let own = extensions.get().and_then(CallOptions::get_deadline);
        let of_options = own.or_else(|| self.options_by_rule(request)?.get_deadline());
        extensions.get().copied().into_iter().chain(of_options).min()
    }
}

#[cfg(feature = "reqwest")]
impl Paced<reqwest::Request> for Http {
    /// A reqwest request has no extensions, so only a rule can give it a deadline.
    fn deadline(&self, request: &reqwest::Request) -> Option<Deadline> {
        self.options_by_rule(request)?.get_deadline()
    }
}

impl<Request, C: Send + Sync + 'static> Paced<Request> for CloneRequest<C> {
    fn deadline(&self, _: &Request) -> Option<Deadline> {
        None
    }
}
