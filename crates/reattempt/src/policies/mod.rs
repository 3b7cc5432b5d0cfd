//! Policies that are chosen for each call, from a table that can be replaced while calls are in flight.
//!
//! A program whose policies come from a file or a control plane puts them into a [`PolicyTable`], with conditions on
//! the request. A [`PolicyHandle`] contains the current table. A call uses the table that was current when the call
//! started. The crate `reattempt-policy-file` reads the table from a file and reloads it when the file changes.
//!
//! | item | content |
//! |---|---|
//! | [`PolicyStack`] | one policy, with its guards and endpoints |
//! | [`PolicyTable`] | the policies, and the function that chooses one |
//! | [`PolicyHandle`] | the current table |
//! | [`PolicyTableLayer`], [`PolicyClient`] | the layer, and the client to store |
//!
//! ```
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::Http;
//! use reattempt::policies::{PolicyHandle, PolicyStack, PolicyTable};
//! use tower::ServiceBuilder;
//!
//! let patient = || PolicyStack::new(Http::new()).retries(|policy| policy.max_attempts(5));
//! let once = || PolicyStack::new(Http::new()).retries(|policy| policy.max_attempts(1));
//! // Reads are retried, everything else is sent once.
//! let table = PolicyTable::new(once()).or(patient(), |request| request.method() == "GET");
//!
//! let handle = PolicyHandle::new(table);
//! let client = ServiceBuilder::new()
//!     .layer(handle.layer())
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
//!
//! // Later, while calls are in flight: the next calls are sent once.
//! handle.replace(PolicyTable::new(once()));
//! ```
//!
//! Budgets, guards and endpoints contain their own state. To keep that state, put clones of them into the new table.

mod attempts;
mod client;
mod handle;
mod layer;
mod stack;
mod table;

pub use attempts::{Attempts, Directions};
pub use client::PolicyClient;
pub use handle::{PolicyHandle, WeakPolicyHandle};
pub use layer::PolicyTableLayer;
pub use stack::{PolicyStack, TableBudget, TablePolicy};
pub use table::PolicyTable;
