//! Scripted faults for tests of retries, with any client.
//!
//! A retrying client is tested against a server that fails according to a script. A ledger records every request that
//! the server received:
//!
//! ```
//! use http::{Request, StatusCode};
//! use reattempt_faults::{Faults, ServiceFault};
//! # use tower::ServiceExt;
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! # let call = async |server: reattempt_faults::FaultService<_>| {
//! #     for _ in 0..2 {
//! #         server.clone().oneshot(Request::put("/orders/7").body("tea".to_owned()).unwrap()).await.unwrap();
//! #     }
//! # };
//!
//! let faults = Faults::new([ServiceFault::Status(StatusCode::SERVICE_UNAVAILABLE)]);
//! call(faults.service()).await; // your client, with its retries
//! faults.ledger().no_unsafe_repeat().bodies_intact().at_most_attempts(2);
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Over a socket, any client can be tested in the same way. `examples/loop_by_hand.rs` tests a handwritten loop:
//!
//! ```
//! use reattempt_faults::{Reply, Server};
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! # let call = async |url: String| {
//! #     while reqwest::Client::builder().no_proxy().build().unwrap().put(&url).send().await.is_err() {}
//! # };
//!
//! let server = Server::http1([Reply::reset()]).await?;
//! call(server.url("/orders/7")).await; // your client, with its retries
//! server.ledger().no_unsafe_repeat().bodies_intact().at_most_attempts(2);
//! # Ok::<(), std::io::Error>(())
//! # })?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! If a rule is violated, the test fails with a message that shows the calls:
//!
//! ```text
//! call "POST /pay" was carried out 2 times, and may not be repeated
//!     time  connection  request    body                   carried out  answer
//!     0 ms  server      POST /pay  3 B 56e4c91944536249  yes          503
//!   100 ms  server      POST /pay  3 B 56e4c91944536249  yes          200
//! ```
//!
//! The test also fails if a step of the script was not used.
//!
//! | item | content |
//! |---|---|
//! | [`Faults`] | a running script, owned by the test |
//! | [`ServiceFault`] | faults injected by a tower layer or service: status, error, delay, lost response, no response, never ready, panic |
//! | [`WireFault`] | faults of a connection: refused, timed out, reset or half-closed after some bytes, stalled, slowed down, with garbage or a TLS alert |
//! | [`Server`], [`Reply`] | an HTTP/1.1, HTTP/2 or gRPC server: early and informational responses, wrong lengths, truncated responses, arbitrary bytes, REFUSED_STREAM, GOAWAY, missing trailers |
//! | `Tls` | a server's certificate, created for the test |
//! | [`Script`], [`Step`] | which arrivals get which faults: by order, call, connection and time |
//! | [`Chances`] | random faults; the same seed gives the same faults |
//! | `Recorder`, `Recording` | real outages, recorded as a script; `lab replay` in the repository simulates other policies with it |
//! | [`Ledger`], [`Arrival`] | every request that reached the server or the cluster, and its outcome |
//! | `Sends` | a counter of the requests that are really sent for the attempts of a call, which detects hidden retries inside a client |
//! | [`Rule`], [`Violation`] | the assertions, and the error for one that fails |
//!
//! # Features
//!
//! | feature | content |
//! |---|---|
//! | `http2` | the HTTP/2 and gRPC server |
//! | `hyper` | the connectors for hyper-util's client and tonic's channel, which inject faults and count requests |
//! | `tls` | the servers with TLS (`Tls`) |
//! | `toml` | scripts in TOML (`Script::from_toml`), and recordings of real outages |
//! | `record` | an observer of reattempt's layers that writes such a recording (`Recorder`) |
//!
//! No feature is enabled by default.
//!
//! # Time
//!
//! All delays use tokio's clock. If a test uses no sockets, pause the clock (`#[tokio::test(start_paused = true)]`), so
//! that the test takes no real time.
//!
//! # Any client
//!
//! The kit observes only requests, so the client may be written in any language. In the repository, `checks/clients`
//! tests reqwest's own retries, reqwest-retry, tower-resilience-retry, and curl as a process. One test shows that each
//! of them repeats a payment. `checks/matrix` tests reattempt with every fault of the kit.
//!
//! # Production outages
//!
//! A `Recorder` observes the layers of reattempt and records the outages of real calls as a script. The kit can run
//! this script, and `lab replay FILE` in the repository uses it to simulate other policies. `Recording` lists the
//! limitations.
//!
//! # Calls
//!
//! The server cannot determine which requests are attempts of the same call. Give each call in a test its own path, an
//! idempotency key, or the header [`CALL_HEADER`].

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod arriving;
mod chances;
mod faults;
mod ledger;
#[cfg(feature = "record")]
mod recorder;
#[cfg(feature = "toml")]
mod recording;
mod reset;
mod rules;
mod script;
#[cfg(feature = "hyper")]
mod sends;
mod server;
mod service;
mod task;
mod time_line;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "toml")]
mod toml;
mod wire;
#[cfg(feature = "toml")]
mod words;

pub use chances::{Chances, Per};
pub use faults::{Faults, Unused};
pub use ledger::{Arrival, CALL_HEADER, Exchange, Ledger};
pub use rules::{Rule, Violation};
pub use script::{Fault, Script, Step};
#[cfg(feature = "hyper")]
#[cfg_attr(docsrs, doc(cfg(feature = "hyper")))]
pub use sends::{Repeated, Sends, SendsLayer, SendsService};
#[cfg(feature = "http2")]
#[cfg_attr(docsrs, doc(cfg(feature = "http2")))]
pub use server::Http2;
pub use server::{End, Read, Reply, Server, Unsupported};
pub use service::{Alone, BoxError, FaultBody, FaultLayer, FaultService, ServiceFault};

#[cfg(feature = "toml")]
#[cfg_attr(docsrs, doc(cfg(feature = "toml")))]
pub use self::toml::ScriptError;
#[cfg(feature = "record")]
#[cfg_attr(docsrs, doc(cfg(feature = "record")))]
pub use recorder::Recorder;
#[cfg(feature = "toml")]
#[cfg_attr(docsrs, doc(cfg(feature = "toml")))]
pub use recording::Recording;
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use tls::Tls;
pub use wire::{Break, Direction, FaultyIo, Relay, WireFault};
#[cfg(feature = "hyper")]
#[cfg_attr(docsrs, doc(cfg(feature = "hyper")))]
pub use wire::{CountingConnector, CountingIo, FaultConnector};

use ledger::checksum;
