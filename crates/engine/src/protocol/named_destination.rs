//! A destination as a person writes it, for handles of guards and for rules.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use http::uri::{Authority, Scheme};
use reattempt_core::ConfigError;

use super::destination::{default_destination, normalized};
use crate::call::redact::redacted_input;
use crate::call::request_view::RequestView;

/// The destination of calls, as budgets and guards know it.
///
/// [`parse`](Self::parse) reads what a person writes: a host or a URL, with any path, upper or lower case, with or
/// without the default port or a final dot. With `http://` or `https://`, it is that server. Without a scheme, it is
/// both: the calls to `http://one.example` and to `https://one.example`.
///
/// [`key`](Self::key) is for the destinations that a program's own function returns, which are compared exactly.
///
/// ```
/// use reattempt::guard::CircuitBreaker;
/// use reattempt::guard::handle::{BreakerState, CircuitBreakerExt};
/// use reattempt::protocol::Destination;
///
/// let breaker = CircuitBreaker::rate();
/// breaker.isolate("http://One.example:80/")?;
/// assert_eq!(breaker.state("http://one.example"), BreakerState::ForcedOpen);
/// assert!(breaker.isolate("one example").is_err());
///
/// breaker.isolate(Destination::key("Tenant 7"))?;
/// # Ok::<(), reattempt::error::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    key: Box<str>,
    /// The key of the same host with https, if the text has no scheme.
    https: Option<Box<str>>,
}

/// The texts that are a destination.
const ALLOWED: &str = "a host with an optional scheme and port, such as `https://one.example:8443`";

impl Destination {
    /// Reads a host or a URL. What follows the host and port is ignored, and so is space around the text.
    ///
    /// # Errors
    /// Returns an error for a text that no request can have as its host.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let error = || ConfigError::new("destination", format_args!("`{}`", redacted_input(text)), ALLOWED);
        Self::read(text.trim()).ok_or_else(error)
    }

    fn read(text: &str) -> Option<Self> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, text),
        };
        let scheme = scheme.as_deref();
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && Scheme::try_from(scheme).is_ok()
        };
        if !scheme.is_none_or(is_scheme) {
            return None;
        }
        let authority = rest.split(['/', '?', '#']).next()?;
        let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
        let authority = Authority::try_from(address).ok()?;
        let port = address.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        let is_legal = !authority.host().trim_end_matches('.').is_empty()
            && port.is_none_or(|(_, port)| port.is_empty() || authority.port_u16().is_some());
        let of_scheme = |scheme: &str| -> Box<str> {
            match (scheme, normalized(address, Some(scheme))) {
                ("http", host) => host.into(),
                (scheme, host) => format!("{scheme}://{host}").into(),
            }
        };
        let https = scheme.is_none().then(|| of_scheme("https"));
        is_legal.then(|| Self { key: of_scheme(scheme.unwrap_or("http")), https })
    }

    /// Returns the destination with exactly this key.
    pub fn key(key: impl Into<Box<str>>) -> Self {
        Self { key: key.into(), https: None }
    }

    /// Returns the keys of budgets and guards: two for a host without a scheme.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        [Some(&self.key), self.https.as_ref()].into_iter().flatten().map(|key| &**key)
    }

    /// Returns `true` for a request to this host, for a rule of [`options_for`](crate::Http::options_for).
    ///
    /// ```
    /// use reattempt::protocol::Destination;
    /// use reattempt::{CallOptions, Http};
    ///
    /// let orders = Destination::parse("https://Orders.example:443/")?;
    /// let http = Http::new().options_for(move |request| {
    ///     orders.matches(request).then(|| CallOptions::new().max_attempts(2))
    /// });
    /// # Ok::<(), reattempt::error::ConfigError>(())
    /// ```
    pub fn matches(&self, request: RequestView<'_>) -> bool {
        let destination = default_destination(request, false);
        self.keys().any(|key| key == destination)
    }
}

impl FromStr for Destination {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        Self::parse(text)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)
    }
}

/// A destination as an argument: a text, which is read as by [`Destination::parse`], or a [`Destination`]. This trait
/// is sealed.
pub trait AsDestination: sealed::Sealed {
    /// Returns the destination.
    ///
    /// # Errors
    /// Returns an error for a text that no request can have as its host.
    #[doc(hidden)]
    fn parsed(&self) -> Result<Cow<'_, Destination>, ConfigError>;

    /// Returns the key to read. A text that is no host is its own key.
    #[doc(hidden)]
    fn key_to_read(&self) -> Cow<'_, str>;
}

impl AsDestination for str {
    fn parsed(&self) -> Result<Cow<'_, Destination>, ConfigError> {
        Destination::parse(self).map(Cow::Owned)
    }

    fn key_to_read(&self) -> Cow<'_, str> {
        Destination::read(self.trim()).map_or(self.into(), |destination| destination.key.into_string().into())
    }
}

impl AsDestination for String {
    fn parsed(&self) -> Result<Cow<'_, Destination>, ConfigError> {
        self.as_str().parsed()
    }

    fn key_to_read(&self) -> Cow<'_, str> {
        self.as_str().key_to_read()
    }
}

impl AsDestination for Destination {
    fn parsed(&self) -> Result<Cow<'_, Destination>, ConfigError> {
        Ok(Cow::Borrowed(self))
    }

    fn key_to_read(&self) -> Cow<'_, str> {
        (&*self.key).into()
    }
}

impl<T: AsDestination + ?Sized> AsDestination for &T {
    fn parsed(&self) -> Result<Cow<'_, Destination>, ConfigError> {
        T::parsed(self)
    }

    fn key_to_read(&self) -> Cow<'_, str> {
        T::key_to_read(self)
    }
}

mod sealed {
    /// The arguments of this module.
    #[expect(unnameable_types, reason = "nothing else implements it")]
    pub trait Sealed {}

    impl Sealed for str {}
    impl Sealed for String {}
    impl Sealed for super::Destination {}
    impl<T: Sealed + ?Sized> Sealed for &T {}
}
