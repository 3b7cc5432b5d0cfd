//! Hedging: a slow call is sent again while its first attempt continues, and the first good response wins.
//!
//! **Hedging multiplies load.** Each hedge is an additional request to a server that may be slow because it is
//! overloaded. The budget must grant each hedge, and a delay based on a running quantile limits the number of hedges.
//! **The server may process a request several times concurrently.** Over HTTP, only safe methods are therefore hedged,
//! unless the caller allows others. A protocol that cannot distinguish safe methods hedges every call.
//!
//! **Over HTTP/2, losers can end the connection that all calls share.** Each loser's stream is reset while its answer
//! may be on its way. Put a [`LingerLayer`](crate::linger::LingerLayer) around the client, which reads these answers.
//! Most clients also have a setting for the number of reset streams that they remember: in hyper-util
//! `http2_max_concurrent_reset_streams`, in hyper's own builder without the prefix. reqwest has none. The
//! [guide][guide] names that of each client.
//!
//! The caller gets the outcome of the winning attempt. If several attempts were sent or one failed, the response has a
//! [`Report`](crate::Report) in its extensions.
//!
//! | item | content |
//! |---|---|
//! | [`HedgeLayer`], [`Hedge`], [`ResponseFuture`] | the middleware |
//! | [`HedgePolicy`] | its settings, with their defaults |
//!
//! [guide]: https://docs.rs/reattempt/latest/reattempt/guide/index.html

mod call;
mod future;
mod layer;
mod policy;
mod running;
mod service;
mod stopwatch;

pub use future::ResponseFuture;
#[doc(hidden)]
pub use layer::HedgeLayer;
pub use policy::HedgePolicy;
pub use service::Hedge;
pub(crate) use service::begin;
