//! The hook that runs before each attempt.

use std::pin::Pin;

use reattempt_core::Failure;

#[cfg(feature = "http")]
use crate::call::timed_out::RefusedResponse;

/// The attempt that is about to be made, as a [`before_attempt`](crate::RetryPolicy::before_attempt) hook receives it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AttemptContext {
    /// Its number, from 1.
    pub number: u32,
    /// The failure of the attempt before it; `None` for the first.
    pub cause: Option<Failure>,
    /// The head of the response that was refused last, if there was one. It may contain a challenge, for instance.
    #[cfg(feature = "http")]
    pub refused: Option<RefusedResponse>,
}

type HookFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A hook over heads of type `Head`.
pub(crate) trait BeforeAttempt<Head>: Send + Sync {
    fn before_attempt<'a>(&'a self, head: &'a mut Head, attempt: AttemptContext) -> HookFuture<'a>;
}

impl<Head, F> BeforeAttempt<Head> for F
where
    F: for<'a> Fn(&'a mut Head, AttemptContext) -> HookFuture<'a> + Send + Sync,
{
    fn before_attempt<'a>(&'a self, head: &'a mut Head, attempt: AttemptContext) -> HookFuture<'a> {
        self(head, attempt)
    }
}
