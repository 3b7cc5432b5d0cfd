//! Retry budgets: the trait, and the types for a custom budget.
//!
//! Policies use a [`RetryBudget`](crate::RetryBudget) by default. A custom [`Budget`] decides in `acquire` whether a
//! retry may be sent, and is notified when the retry ends.
//!
//! The budget of a process does not count the retries of other processes. If many processes rarely call one server,
//! share a budget through Redis or Valkey: `.budget(FleetBudget::new(RedisStore::new(url)?))`, with the crate
//! [`reattempt-redis`](https://docs.rs/reattempt-redis).
//!
//! | item | content |
//! |---|---|
//! | [`Budget`] | the trait that every budget implements |
//! | [`Evidence`], [`Work`] | what a failure shows: about the request, the server, and other attempts |
//! | [`Permit`], [`PermitIssuer`] | the permission for one retry, and the budget to which it is returned |
//! | [`PaidRetry`] | a granted retry that was sent |
//! | [`SpendOnly`] | a wrapper for a shared budget: the layer with the wrapper spends tokens, but its outcomes are not recorded |
//! | [`Unlimited`] | a budget that grants every retry |

pub use reattempt_core::{Budget, Evidence, PaidRetry, Permit, PermitIssuer, SpendOnly, Unlimited, Work};
