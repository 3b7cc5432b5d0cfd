//! Retry budgets: the contract, and the parts that a budget of your own is made of.
//!
//! [`RetryBudget`](crate::RetryBudget) is the budget that policies have. A [`Budget`] of your own decides in
//! `acquire` if a retry may be sent, and is notified of what became of it.
//!
//! | item | content |
//! |---|---|
//! | [`Budget`] | the contract |
//! | [`Permit`], [`PermitIssuer`] | the grant of one retry, and the budget it is returned to |
//! | [`PaidRetry`] | a retry that was granted and sent |
//! | [`SpendOnly`] | a budget for the second of two layers that share it: it pays, and earns no credit |
//! | [`Unlimited`] | a budget that grants every retry |

pub use reattempt_core::{Budget, PaidRetry, Permit, PermitIssuer, SpendOnly, Unlimited};
