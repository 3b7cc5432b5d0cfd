//! Retry policies from a file, which is read again when it changes.
//!
//! Operations change policies without a release: delays, attempts, budgets, guards and endpoints, for each destination
//! and route. A file with a mistake changes nothing, and every mistake is reported with its line. One line turns all
//! retries off.
//!
//! ```toml
//! never_retry = false   # true turns all retries off, within a second
//! default = "patient"   # the policy of requests without a route
//!
//! [patient]
//! max_attempts = 4
//! max_elapsed = "20s"
//!
//! [orders]
//! profile = "stripe"
//! attempt_timeout = "2s"
//! budget = { ratio = 0.1, capacity = 20 }
//! guards = ["breaker:open_time=10s", "bulkhead:limit=64"]
//! endpoints = "orders"
//!
//! [[routes]]            # the first route that matches counts
//! destination = "http://orders"
//! method = ["GET", "PUT"]
//! path = "/v1/orders/{id}"
//! policy = "orders"
//!
//! [[routes]]
//! grpc = "inventory.Stock"
//! policy = "patient"
//!
//! [endpoints.orders]
//! base = "http://orders"
//! urls = ["http://orders-1:8080", "http://orders-2:8080"]
//! ```
//!
//! ```no_run
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt_policy_file::PolicyFileOptions;
//! use tower::ServiceBuilder;
//!
//! # fn main() -> Result<(), reattempt_policy_file::PolicyFileError> {
//! let policies = PolicyFileOptions::new()
//!     .observe(|event| eprintln!("{event}"))
//!     .load("policies.toml")?;
//! let client = ServiceBuilder::new()
//!     .layer(policies.layer())
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
//! # Ok(())
//! # }
//! ```
//!
//! [`PolicyFile::layer`] is for HTTP, reqwest included, and [`PolicyFile::layer_with`] for gRPC, or for a protocol with
//! settings of the program: classifiers, hooks, observers. A call that succeeds at once loads the table of policies
//! once, and allocates only for guards.
//!
//! # The file
//!
//! | at the top | content |
//! |---|---|
//! | `never_retry` | `true` turns all retries off |
//! | `default` | the policy of requests without a route. Without it, that is the only policy of a file without routes, or the policy named `default`, or else the library's defaults |
//! | `[[routes]]` | the requests of a policy: `destination`, `method` and `path`, or `grpc`. The first that matches counts |
//! | `[endpoints.NAME]` | servers that do the same work and share their state: `urls`, or a `dns` name with an `interval`; and the `base` for which requests are written, not `https` over servers of `http`, such as those of `dns` |
//! | any other table | a policy |
//!
//! | in a policy | content | default |
//! |---|---|---|
//! | `profile` | a [well-known policy](reattempt::profile), of which the fields below change a part | none |
//! | `schedule` | `exponential`, `decorrelated`, `constant`, `linear`, `truncated`, `list`, each with fields of its own | `exponential` |
//! | `max_attempts` | attempts, with the first, or `"none"` | 3 |
//! | `max_elapsed` | the time from the start of a call to that of its last attempt, or `"none"` | `"30s"` |
//! | `max_server_delay` | the longest delay that a server may ask for | `"60s"` |
//! | `attempt_timeout` | the time of each attempt, up to the response head | none |
//! | `budget` | `"cautious"`, `"ratio"`, `"aws_quota"`, `"fleet"`, `"none"`, or a table with numbers | `"cautious"` |
//! | `guards` | the guards of each attempt, such as `"breaker:open_time=10s"` | none |
//! | `endpoints` | the section of its endpoints | none |
//!
//! A destination is a host, with a port and a scheme if they matter: `"orders"`, `"orders:8080"`,
//! `"https://orders.example"`. A request without an authority, such as one with only a path, is for no destination. In
//! a path, `{id}` is any one segment, and a `*` at the end any rest. Paths are compared as they are sent.
//!
//! [`schema`] returns the JSON Schema, which is also in the file `policies.schema.json`, for completion in editors.
//! `lab check FILE` lists mistakes and unusual values, and describes each route and policy. Both use the reader of this
//! crate.
//!
//! TOML is the default. The feature `json` reads files with the ending `.json`. YAML is not read: in it `no`, `1:30`
//! and `012` are other values for other libraries, and a policy should not depend on that.
//!
//! # When the file changes
//!
//! A thread compares the content of the file four times a second, and a change is in force once two looks in a row have
//! found it: a file that is being written is found half. [`PolicyFileOptions::interval`] sets the time, and
//! [`PolicyFileOptions::unwatched`] leaves reading to the program. Notifications of the system are not used, because
//! they miss changes on network file systems and in mounted volumes. The thread is no task, so neither a busy runtime
//! nor the end of one delays it. It ends with the last handle, layer and client of the file.
//!
//! | what | after a change |
//! |---|---|
//! | calls in flight | finish under the policy that they started under |
//! | budgets | keep their tokens if the policy keeps its name and its kind of budget; a lower capacity cuts them |
//! | guards | keep their state, with the new numbers, if the policy keeps its name and the guard its kind |
//! | endpoints | those that stay keep their state, if the section keeps its name, its base, and its `dns` name or one of its `urls`. Otherwise calls in flight keep the former servers |
//! | `never_retry` | applies to calls in flight, too: retries that wait already are sent, and none follows. A gRPC attempt that no application has seen may still be replaced |
//! | a file with mistakes, an empty one, none | changes nothing, and is reported once. If it sets `never_retry` to `true`, that applies |
//!
//! Write a file under another name and rename it, so that no reader ever finds half of it. Files are at most 1 MiB
//! long.
//!
//! # Limits
//!
//! | limit | consequence |
//! |---|---|
//! | a `dns` name becomes addresses | requests are plain HTTP, with the address as their authority. For HTTPS, list `urls`, or give the client a connector that looks names up |
//! | a look-up that fails | the servers stay, and [`PolicyFileEvent::ResolveFailed`] reports the first of failures in a row |
//! | guards are chosen at run time | each call with guards allocates, one to five times |
#![forbid(unsafe_code)]
#![warn(unnameable_types)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(any(feature = "toml", feature = "json")),
    allow(dead_code, unused_imports, unreachable_code, reason = "no format can be read")
)]

mod budget;
mod disk;
mod error;
mod event;
mod file;
mod follow;
mod look_up;
mod options;
mod pause;
pub mod reader;
mod state;
mod watch;

pub use error::PolicyFileError;
pub use event::PolicyFileEvent;
pub use file::PolicyFile;
pub use options::PolicyFileOptions;
pub use reader::Problem;

/// Returns the JSON Schema of policy files, for editors and checks. The file `policies.schema.json` in the crate is the
/// same text.
pub fn schema() -> String {
    reader::schema()
}
