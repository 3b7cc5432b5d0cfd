//! Hooks that run before each attempt.

use std::pin::Pin;

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
