//! Hooks that run before each attempt.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use reattempt_core::Failure;

#[cfg(feature = "http")]
use crate::call::timed_out::RefusedResponse;

/// The information about the next attempt that a [`before_attempt`](crate::RetryPolicy::before_attempt) hook gets.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AttemptContext {
    /// The attempt's number, from 1.
    pub number: u32,
    /// The previous attempt's failure, or `None` for the first attempt.
    pub cause: Option<Failure>,
    /// The head of the last refused response, if any, for example one with an authentication challenge.
    #[cfg(feature = "http")]
    pub refused: Option<RefusedResponse>,
    pub(crate) carried: Option<Carried>,
}

impl AttemptContext {
    /// Returns the value that the hook [left](Carried) in the head of the previous attempt, if it has this type. `None`
    /// for the first attempt.
    #[must_use]
    pub fn carried<T: 'static>(&self) -> Option<&T> {
        self.carried.as_ref()?.0.downcast_ref()
    }
}

/// A value that a [`before_attempt`](crate::RetryPolicy::before_attempt) hook leaves in the extensions of a request
/// head, for the hook of the call's next attempt.
///
/// It tells that hook what the refused attempt was sent with, such as a token. The layer takes it out of the head
/// before it sends the request. [`AttemptContext::carried`] returns it.
///
/// ```
/// use http::request::Parts;
/// use reattempt::RetryPolicy;
/// use reattempt::retry::{AttemptContext, Carried};
///
/// let policy = RetryPolicy::http().before_attempt(|head: &mut Parts, attempt: AttemptContext| {
///     Box::pin(async move {
///         let shard = attempt.carried::<u32>().map_or(0, |last| last + 1);
///         head.headers.insert("x-shard", shard.into());
///         head.extensions.insert(Carried::new(shard));
///     })
/// });
/// ```
#[derive(Clone)]
pub struct Carried(Arc<dyn Any + Send + Sync>);

impl Carried {
    /// Creates the value for the next attempt's hook.
    pub fn new<T: Send + Sync + 'static>(value: T) -> Self {
        Self(Arc::new(value))
    }
}

/// The output omits the value, which may be a credential.
impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carried").finish_non_exhaustive()
    }
}

type HookFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A hook that is called with heads of type `Head`.
pub(crate) trait BeforeAttempt<Head>: Send + Sync {
    fn before_attempt<'a>(&'a self, head: &'a mut Head, attempt: AttemptContext) -> HookFuture<'a>;
}

impl<Head, F: for<'a> Fn(&'a mut Head, AttemptContext) -> HookFuture<'a> + Send + Sync> BeforeAttempt<Head> for F {
    fn before_attempt<'a>(&'a self, head: &'a mut Head, attempt: AttemptContext) -> HookFuture<'a> {
        self(head, attempt)
    }
}
