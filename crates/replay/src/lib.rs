//! HTTP requests that can be sent more than once.
//!
//! A client consumes the requests that it sends. To send one again, save its parts before the first attempt:
//!
//! | item | use |
//! |---|---|
//! | [`SavedHead`] | saves the method, target, headers and extensions |
//! | [`ReplayBody`] | keeps the body's frames while streaming them to the client |
//! | [`ReplayLimits`], [`ReplayMemory`] | limit the memory for kept frames, per call and for all calls |
//! | [`ReplayWatch`] | reports an attempt that cannot continue while another one runs |
//! | [`UploadBody`] | a body of any size that each attempt opens anew, such as a file |
//! | [`Drain`] | reads the rest of a refused response, so that its HTTP/1 connection can be reused |
//! | [`resume`] | contains the rules for resuming an interrupted response body |
//!
//! ```
//! use http::Request;
//! use http_body_util::Full;
//! use reattempt_replay::{ReplayBody, ReplayLimits, SavedHead};
//!
//! let limits = ReplayLimits::default();
//! let request = Request::put("http://one.example/orders/7").body(Full::from("order"))?;
//! let first = request.map(|body| ReplayBody::new(body, &limits));
//! let head = SavedHead::new(&first);
//! let body = first.body().try_clone().expect("nothing was read yet");
//!
//! // Send `first`. If that fails:
//! let mut second = Request::new(body);
//! head.move_to(&mut second);
//! assert_eq!(second.uri(), first.uri());
//! # Ok::<(), http::Error>(())
//! ```
//!
//! # When to use it alone
//!
//! Use it in your own retry loop, proxy or traffic mirror. It needs no runtime, and leaves retry decisions to the crate
//! `reattempt`. That crate re-exports the body as `reattempt::ReplayBody`, and its limits in `reattempt::body`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod complete;
mod drain;
mod error;
mod frames;
mod limits;
mod memory;
mod noted;
mod prefetched;
mod progress;
pub mod resume;
mod saved_head;
mod shared;
mod source_watch;
mod sync;
mod upload;
mod wakers;
mod watch;

pub use body::ReplayBody;
pub use drain::Drain;
pub use error::ReplayError;
pub use limits::ReplayLimits;
pub use memory::{ReplayCharge, ReplayMemory};
pub use saved_head::SavedHead;
pub use source_watch::SourceWatch;
pub use upload::{FileState, UploadBody, UploadError};
pub use watch::ReplayWatch;
