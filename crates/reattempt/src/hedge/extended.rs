//! The responses that can contain a report.

use crate::protocol::sealed::Sealed;

/// A response with extensions: of the `http` crate, or of reqwest.
#[diagnostic::on_unimplemented(
    message = "a hedged response of type `{Self}` cannot carry its report",
    note = "hedging is for clients that answer with `http::Response`, or with `reqwest::Response` with the feature `reqwest`"
)]
pub trait Extended: Sealed {
    /// Returns the extensions.
    #[doc(hidden)]
    fn extensions_mut(&mut self) -> &mut http::Extensions;
}

impl<B> Sealed for http::Response<B> {}

impl<B> Extended for http::Response<B> {
    fn extensions_mut(&mut self) -> &mut http::Extensions {
        http::Response::extensions_mut(self)
    }
}

#[cfg(feature = "reqwest")]
impl Sealed for reqwest::Response {}

#[cfg(feature = "reqwest")]
impl Extended for reqwest::Response {
    fn extensions_mut(&mut self) -> &mut http::Extensions {
        reqwest::Response::extensions_mut(self)
    }
}
