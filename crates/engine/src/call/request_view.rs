//! A view of a request of any type, for classifiers, option rules and the retry decision.

use std::borrow::Cow;
use std::fmt;

use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, Method, Request, Uri};
use reattempt_http::{is_head_repeatable, is_repeatable};
use reattempt_replay::SavedHead;

/// A view of the head of a new or saved request. Creating a view copies nothing.
///
/// ```
/// use http::Request;
/// use reattempt::classify::RequestView;
///
/// let request = Request::get("http://one.example/search?q=rust").header("x-tenant", "a").body(())?;
/// let view = RequestView::from(&request);
/// assert_eq!((view.method(), view.path(), view.query()), ("GET", "/search", Some("q=rust")));
/// assert_eq!(view.authority(), Some("one.example"));
/// assert_eq!(view.header("X-Tenant"), Some(&b"a"[..]));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct RequestView<'a>(Head<'a>);

/// The head that a view refers to.
#[derive(Clone, Copy)]
enum Head<'a> {
    Message {
        method: &'a Method,
        target: Target<'a>,
        headers: &'a HeaderMap,
        /// `None` for reqwest's requests, whose extensions are private.
        extensions: Option<&'a Extensions>,
    },
    Saved(&'a SavedHead),
    /// The request is not an HTTP message and has no head.
    None,
}

#[derive(Clone, Copy)]
enum Target<'a> {
    Uri(&'a Uri),
    #[cfg(feature = "reqwest")]
    Url(&'a reqwest::Url),
}

impl<'a> RequestView<'a> {
    /// Returns the method, such as `GET`.
    pub fn method(&self) -> &'a str {
        match self.0 {
            Head::Message { method, .. } => method.as_str(),
            Head::Saved(head) => head.method_name().unwrap_or_default(),
            Head::None => "",
        }
    }

    /// Returns the URI's scheme, if it has one.
    pub fn scheme(&self) -> Option<&'a str> {
        self.scheme_and_authority().0
    }

    /// Returns the URI's authority, if it has one: the host, with userinfo and port if present.
    pub fn authority(&self) -> Option<&'a str> {
        self.scheme_and_authority().1
    }

    /// Returns the URI's path.
    pub fn path(&self) -> &'a str {
        self.path_and_query().0
    }

    /// Returns the URI's query, if it has one.
    pub fn query(&self) -> Option<&'a str> {
        self.path_and_query().1
    }

    /// Returns the first value of the header with this name, if there is one.
    pub fn header(&self, name: impl AsRef<str>) -> Option<&'a [u8]> {
        self.value(&HeaderName::from_bytes(name.as_ref().as_bytes()).ok()?)
    }
}

/// The output omits the query, the userinfo and the header values, which may contain credentials.
impl fmt::Debug for RequestView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestView")
            .field("method", &self.method())
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

impl<'a, B> From<&'a Request<B>> for RequestView<'a> {
    #[inline]
    fn from(request: &'a Request<B>) -> Self {
        Self(Head::Message {
            method: request.method(),
            target: Target::Uri(request.uri()),
            headers: request.headers(),
            extensions: Some(request.extensions()),
        })
    }
}

#[cfg(feature = "reqwest")]
impl<'a> From<&'a reqwest::Request> for RequestView<'a> {
    #[inline]
    fn from(request: &'a reqwest::Request) -> Self {
        let (method, target) = (request.method(), Target::Url(request.url()));
        Self(Head::Message { method, target, headers: request.headers(), extensions: None })
    }
}

/// Internal methods.
impl<'a> RequestView<'a> {
    /// The view of a request that is not an HTTP message.
    pub(crate) const HEADLESS: Self = Self(Head::None);

    /// Returns a view of a head without its request.
    #[inline]
    pub(crate) fn of_parts(head: &'a Parts) -> Self {
        Self(Head::Message {
            method: &head.method,
            target: Target::Uri(&head.uri),
            headers: &head.headers,
            extensions: Some(&head.extensions),
        })
    }

    /// Returns a view of a saved head.
    pub(crate) fn of_saved(head: &'a SavedHead) -> Self {
        Self(Head::Saved(head))
    }

    /// Returns the view for classifiers, or `None` if there is no head.
    pub(crate) fn known(self) -> Option<Self> {
        (self.is_restorable() && !matches!(self.0, Head::None)).then_some(self)
    }

    /// Returns `false` if the head was saved but cannot be restored.
    pub(crate) fn is_restorable(self) -> bool {
        !matches!(self.0, Head::Saved(head) if !head.is_restorable())
    }

    /// Returns `true` if there is a head whose method satisfies `is`.
    #[inline]
    pub(crate) fn has_method(&self, is: impl FnOnce(&Method) -> bool) -> bool {
        match self.0 {
            Head::Message { method, .. } => is(method),
            Head::Saved(head) => head.method().is_some_and(|method| is(&method)),
            Head::None => false,
        }
    }

    /// Returns the headers of a new request.
    #[inline]
    pub(crate) fn headers(&self) -> Option<&'a HeaderMap> {
        match self.0 {
            Head::Message { headers, .. } => Some(headers),
            _ => None,
        }
    }

    /// Returns `true` if there is a header with this name.
    #[inline]
    pub(crate) fn contains(&self, name: &HeaderName) -> bool {
        match self.0 {
            Head::Message { headers, .. } => headers.contains_key(name),
            Head::Saved(head) => head.contains(name),
            Head::None => false,
        }
    }

    /// Returns the first value of the header with this name, if there is one.
    pub(crate) fn value(&self, name: &HeaderName) -> Option<&'a [u8]> {
        match self.0 {
            Head::Message { headers, .. } => headers.get(name).map(|value| value.as_bytes()),
            Head::Saved(head) => head.values(name).next(),
            Head::None => None,
        }
    }

    /// Returns `true` if the method or an idempotency key makes the request repeatable.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self.0 {
            Head::Message { method, headers, .. } => is_repeatable(method, headers),
            Head::Saved(head) => is_head_repeatable(head),
            Head::None => false,
        }
    }

    /// Returns the extensions of a new request, or `None` if they are private.
    #[inline]
    pub(crate) fn extensions(&self) -> Option<&'a Extensions> {
        match self.0 {
            Head::Message { extensions, .. } => extensions,
            _ => None,
        }
    }

    /// Returns the extension of this type.
    #[doc(hidden)]
    #[inline]
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<&'a T> {
        self.extensions()?.get()
    }

    /// Returns the URI, or `None` if there is no head or its URL is not a valid URI.
    pub(crate) fn uri(&self) -> Option<Cow<'a, Uri>> {
        match self.0 {
            Head::Message { target: Target::Uri(uri), .. } => Some(Cow::Borrowed(uri)),
            #[cfg(feature = "reqwest")]
            Head::Message { target: Target::Url(url), .. } => url.as_str().parse().ok().map(Cow::Owned),
            Head::Saved(head) => head.uri().map(Cow::Owned),
            Head::None => None,
        }
    }

    /// Returns the URI's scheme and authority, each if present.
    #[doc(hidden)]
    #[inline(always)]
    pub fn scheme_and_authority(&self) -> (Option<&'a str>, Option<&'a str>) {
        match self.0 {
            Head::Message { target: Target::Uri(uri), .. } => {
                (uri.scheme_str(), uri.authority().map(|authority| authority.as_str()))
            }
            #[cfg(feature = "reqwest")]
            Head::Message { target: Target::Url(url), .. } => {
                (Some(url.scheme()), Some(url.authority()).filter(|name| !name.is_empty()))
            }
            Head::Saved(head) => head.scheme_and_authority(),
            Head::None => (None, None),
        }
    }

    /// Returns the scheme and authority as one string, if the head stores them in that form.
    pub(crate) fn origin(&self) -> Option<&'a str> {
        match self.0 {
            #[cfg(feature = "reqwest")]
            Head::Message { target: Target::Url(url), .. } => {
                let length = url.scheme().len() + "://".len() + url.authority().len();
                url.as_str().get(..length)
            }
            Head::Saved(head) => head.origin(),
            Head::Message { .. } | Head::None => None,
        }
    }

    fn path_and_query(&self) -> (&'a str, Option<&'a str>) {
        match self.0 {
            Head::Message { target: Target::Uri(uri), .. } => (uri.path(), uri.query()),
            #[cfg(feature = "reqwest")]
            Head::Message { target: Target::Url(url), .. } => (url.path(), url.query()),
            Head::Saved(head) => {
                let target = head.path_and_query().unwrap_or_default();
                match target.split_once('?') {
                    Some((path, query)) => (path, Some(query)),
                    None => (target, None),
                }
            }
            Head::None => ("", None),
        }
    }
}
