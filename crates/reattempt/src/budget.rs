//! Retry budgets: the contract, and the parts for a custom budget.
//!
//! [`RetryBudget`](crate::RetryBudget) is the budget in policies. A custom [`Budget`] decides in `acquire` whether a
//! retry may be sent. It is notified when the retry ends.
//!
//! | item | content |
//! |---|---|
//! | [`Budget`] | the contract |
//! | [`Permit`], [`PermitIssuer`] | permission for one retry, and the budget to which it is returned |
//! | [`PaidRetry`] | a granted retry that was sent |
//! | [`SpendOnly`] | a budget for the second of two layers that share one: it spends tokens and earns no credit |
//! | [`Unlimited`] | a budget that grants every retry |

pub use reattempt_core::{Budget, PaidRetry, Permit, PermitIssuer, SpendOnly, Unlimited};
