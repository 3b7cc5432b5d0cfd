//! Retry policies from a file that is reloaded when it changes.
//!
//! Operators can change policies without a release: delays, attempts, budgets, guards and endpoints, for each
//! destination and route. If the file contains mistakes, the policies do not change, and every mistake is reported with
//! its line. A single line turns all retries off.
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
//!
//! [[bodies]]            # short response bodies that are read as part of their attempt
//! destination = "https://dynamodb.us-east-1.amazonaws.com"
//! rules = ["aws-json"]
//! ```
//!
//! ```no_run
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::PeekBodyLayer;
//! use reattempt_policy_file::PolicyFileOptions;
//! use tower::ServiceBuilder;
//!
//! # fn main() -> Result<(), reattempt_policy_file::PolicyFileError> {
//! let policies = PolicyFileOptions::new()
//!     .observe(|event| eprintln!("{event}"))
//!     .bodies(PeekBodyLayer::new())
//!     .load("policies.toml")?;
//! let client = ServiceBuilder::new()
//!     .layer(policies.layer())
//!     .layer(policies.body_layer())
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
//! # Ok(())
//! # }
//! ```
//!
//! Use [`PolicyFile::layer`] for HTTP, including reqwest. Use [`PolicyFile::layer_with`] for gRPC, or to add settings
//! in code: classifiers, hooks, observers. A call that succeeds on the first attempt loads the policy table once, and
//! allocates only for guards.
//!
//! # The file
//!
//! | top-level key | content |
//! |---|---|
//! | `never_retry` | `true` turns all retries off |
//! | `default` | the policy for requests that match no route. If this key is missing, a file with one policy and no routes uses that policy. Any other file uses the policy named `default`, or the library's defaults if no policy has that name |
//! | `[[routes]]` | the requests to which a policy applies: `destination`, `method` and `path`, or `grpc`. The first matching route is used |
//! | `[endpoints.NAME]` | equivalent servers that share state: `urls`, or a `dns` name with an `interval`. `base` is the base URL of requests. It must not use `https` if the servers use `http`. Servers from `dns` always use `http` |
//! | `[[bodies]]` | the responses whose bodies are read as part of their attempt, if the program [supports it](PolicyFileOptions::bodies) (HTTP). The first matching section is used |
//! | any other table | a policy |
//!
//! | key of a policy | content | default |
//! |---|---|---|
//! | `profile` | a [well-known policy](reattempt::profile), including its classifier if it has one. The fields below modify the policy | none |
//! | `schedule` | `exponential`, `decorrelated`, `constant`, `linear`, `truncated`, `list`, each with its own fields | `exponential` |
//! | `max_attempts` | the maximum number of attempts, including the first, or `"none"` | 3 |
//! | `max_elapsed` | the maximum time from the start of a call to the start of its last attempt, or `"none"` | `"30s"` |
//! | `max_server_delay` | the maximum delay that a server may ask for | `"60s"` |
//! | `attempt_timeout` | the time limit for each attempt, up to the response head | none |
//! | `repeatable` | `true` if every request may be processed twice, `false` if none may | by method and idempotency key; over gRPC, none may |
//! | `on_status` | verdicts for single statuses, such as `["501 retry", "429 return"]`; `pending` polls, and `not-processed` also retries requests that must not be repeated (HTTP) | the [table](reattempt::Http) |
//! | `on_code` | verdicts for single codes, such as `["ABORTED retry", "UNAVAILABLE return"]` (gRPC) | the library's table |
//! | `rate_limit` | `true` if the [rate-limit headers](reattempt::classify::Hints::rate_limit) of well-known services are read (HTTP) | `false` |
//! | `delay_headers` | further headers with a delay, such as `["x-cooldown"]` (HTTP) | none |
//! | `quota_headers` | further pairs of headers with a quota, such as `["x-calls-left x-calls-reset"]` (HTTP) | none |
//! | `budget` | `"cautious"`, `"ratio"`, `"aws_quota"`, `"fleet"`, `"none"`, or a table with numbers | `"cautious"` |
//! | `guards` | the guards of each attempt, such as `"breaker:open_time=10s"` | none |
//! | `endpoints` | the name of an endpoints section | none |
//!
//! | key of a section of bodies | content | default |
//! |---|---|---|
//! | `destination`, `method`, `path` | the requests, as they are sent to a server: behind endpoints, the destination is that of the server | any |
//! | `up_to` | the length up to which a body is read: a number of bytes or a text such as `"64 KiB"`; 0 reads none | the program's, usually 64 KiB |
//! | `within` | the time for which a body of unknown length is held, for errors at least 1 s | the program's, usually `"100ms"` |
//! | `rules` | the [services](reattempt::peek_body) whose rules judge a whole body: `aws-json`, `aws-xml`, `bulk-all-rejected`, `connect`, `github`, `google`, `openai`, `shopify`, `slack`, `stripe` | none |
//!
//! A destination is a host with an optional port and scheme: `"orders"`, `"orders:8080"`, `"https://orders.example"`. A
//! request without an authority, such as one with only a path, matches no destination. In a path, `{id}` matches one
//! segment, and a final `*` matches the rest. Paths are compared exactly as sent.
//!
//! [`fields`] lists every field with its type, default and an example. [`schema`] returns the JSON Schema for
//! completion in editors. The file `policies.schema.json` contains the same text. `lab check FILE` lists mistakes and
//! unusual values, and describes each route and policy. With `--explain orders.internal "POST /v1/orders"` it shows the
//! policy in force for one request. The schema and this command are based on the reader of this crate.
//!
//! TOML is the default. With the feature `json`, files with the extension `.json` are read too. YAML is not supported,
//! because YAML libraries disagree on the values of `no`, `1:30` and `012`, and a policy should not depend on the
//! library.
//!
//! # When the file changes
//!
//! A thread reads the file four times per second. A change takes effect when two consecutive reads find the same
//! content, because a file that is being written may be incomplete. `never_retry = true` takes effect at the first
//! read, even if another program rewrites the file all the time. [`PolicyFileOptions::interval`] sets the interval.
//! With [`PolicyFileOptions::unwatched`], the program triggers each reload. File system notifications are not used,
//! because they miss changes on network file systems and in mounted volumes. The thread is independent of async
//! runtimes, so a busy or stopped runtime does not delay it. It ends when all handles, layers and clients of the file
//! have been dropped.
//!
//! | item | after a change |
//! |---|---|
//! | calls in flight | finish with the policy that they started with |
//! | budgets | keep their tokens, up to the new capacity, if the policy keeps its name and its kind of budget |
//! | guards | keep their state and get the new settings, if the name of the policy and the kind of the guard stay the same |
//! | bodies | the next attempts have the new bounds and rules |
//! | endpoints | servers that are still listed keep their state, if the section keeps its name, its base, and its `dns` name or at least one of its `urls`. If it does not, calls in flight continue with the previous servers |
//! | `never_retry` | also applies to calls in flight: retries that are already waiting are sent, but no other retries. A gRPC attempt that no server application has processed may still be replaced |
//! | a file with mistakes, or an empty or missing file | is reported once, and the policies do not change. If the file sets `never_retry` to `true`, that still applies |
//!
//! To change the file, write a new one under a different name and rename it, so that an incomplete file is never read.
//! The maximum size is 1 MiB.
//!
//! # Limits
//!
//! | limit | consequence |
//! |---|---|
//! | a `dns` name becomes addresses | requests use plain HTTP, with the address as their authority. For HTTPS, list `urls`, or use a connector that resolves names in the client |
//! | a look-up that fails | the servers are kept, and [`PolicyFileEvent::ResolveFailed`] reports the first of several consecutive failures |
//! | guards are chosen at run time | each call with guards allocates one to five times |
#![forbid(unsafe_code)]
#![warn(unnameable_types)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(any(feature = "toml", feature = "json")),
    allow(dead_code, unused_imports, unreachable_code, reason = "no format can be read")
)]

mod bodies;
mod body_layer;
mod budget;
mod changing;
mod disk;
mod error;
mod event;
mod file;
mod follow;
mod in_force;
mod inspect;
mod look_up;
mod options;
mod pause;
pub mod reader;
mod state;
mod threads;
mod watch;

#[doc = include_str!("fields.md")]
pub mod fields {}

pub use disk::read_text;
pub use error::PolicyFileError;
pub use event::PolicyFileEvent;
pub use file::PolicyFile;
pub use options::PolicyFileOptions;
pub use reader::Problem;

/// Returns the JSON Schema for policy files, for editors and validators. The crate's file `policies.schema.json`
/// contains the same text.
pub fn schema() -> String {
    reader::schema()
}

/// Returns the page [`fields`].
#[doc(hidden)]
pub fn fields_page() -> String {
    reader::page()
}
