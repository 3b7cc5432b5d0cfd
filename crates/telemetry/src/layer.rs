//! The layer that measures calls or attempts, and its service, for the telemetry of every protocol.

use reattempt_engine::wall::{Sending, inner_accessors, send_method};
use tower_layer::{Layer, Stack};
use tower_service::Service;

/// A layer that measures calls or attempts. The `around` method of a telemetry such as
/// [`HttpTelemetry`](super::HttpTelemetry) creates one layer for calls and one for attempts.
#[derive(Debug, Clone)]
pub struct MeasuringLayer<T> {
    telemetry: T,
    side: Side,
}

/// The subject of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Call,
    Attempt,
}

/// Puts `layer` between a layer that measures calls and one that measures attempts.
pub(crate) fn around<T: Clone, L>(telemetry: &T, layer: L) -> Stack<Stack<MeasuringLayer<T>, L>, MeasuringLayer<T>> {
    let of = |side| MeasuringLayer { telemetry: telemetry.clone(), side };
    Stack::new(Stack::new(of(Side::Attempt), layer), of(Side::Call))
}

impl<S, T: Clone> Layer<S> for MeasuringLayer<T> {
    type Service = Measured<S, T>;

    fn layer(&self, inner: S) -> Measured<S, T> {
        let Self { telemetry, side } = self.clone();
        Measured { inner, telemetry, side }
    }
}

/// A client whose calls or attempts are measured, created by [`MeasuringLayer`].
#[derive(Debug, Clone)]
pub struct Measured<S, T> {
    pub(crate) inner: S,
    pub(crate) telemetry: T,
    pub(crate) side: Side,
}

impl<S, T> Measured<S, T> {
    inner_accessors!(S, inner);
    send_method!(Sending<Self, Req, <Self as Service<Req>>::Future>);
}
