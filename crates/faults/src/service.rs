//! Faults of a tower service, for tests of timing and decisions without a socket.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Buf;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tower_layer::Layer;
use tower_service::Service;

use crate::faults::{Faults, Shared};
use crate::ledger::Exchange;
use crate::script::{Fault, Sealed};
#[cfg(feature = "toml")]
use crate::words;

/// The error of a service with faults: an injected [`io::Error`], or the inner service's own error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A fault of a tower service for HTTP.
///
/// Only [`NoFault`](Self::NoFault) and [`LoseResponse`](Self::LoseResponse) call the inner service. All others read the
/// whole request, as a server would, except for [`NeverReady`](Self::NeverReady) and
/// [`PanicInCall`](Self::PanicInCall).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "toml", derive(serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum ServiceFault {
    /// No fault: the inner service responds. Without an inner service, the response is 200.
    #[default]
    NoFault,
    /// A response with this status and an empty body.
    Status(#[cfg_attr(feature = "toml", serde(deserialize_with = "words::status"))] StatusCode),
    /// A gRPC response with only this status code, in its head.
    Grpc(u32),
    /// An error of this kind. Only [`io::ErrorKind::ConnectionRefused`] proves that the request was not carried out.
    Error(#[cfg_attr(feature = "toml", serde(deserialize_with = "words::kind"))] io::ErrorKind),
    /// The inner service carries out the request, but an error of this kind replaces its response.
    LoseResponse(#[cfg_attr(feature = "toml", serde(deserialize_with = "words::kind"))] io::ErrorKind),
    /// There is never a response.
    Hang,
    /// The instance is never ready. This fault is chosen before the request is known, so its step cannot select a call.
    /// As a random fault, it acts like [`Hang`](Self::Hang).
    NeverReady,
    /// A panic in the response future.
    Panic,
    /// A panic in `Service::call`.
    PanicInCall,
}

impl Sealed for ServiceFault {}

impl Fault for ServiceFault {}

impl Faults<ServiceFault> {
    /// Returns a layer that injects the faults in front of an inner service.
    pub fn layer(&self) -> FaultLayer {
        FaultLayer { shared: Arc::clone(&self.shared) }
    }

    /// Returns a service without an inner service. If the script has no fault for a request, it responds with 200 and
    /// an empty body.
    pub fn service(&self) -> FaultService<Alone> {
        FaultService { alone: true, ..self.layer().layer(Alone(())) }
    }
}

/// A layer that injects faults, created by [`Faults::layer`].
#[derive(Debug, Clone)]
pub struct FaultLayer {
    shared: Arc<Shared<ServiceFault>>,
}

impl<S> Layer<S> for FaultLayer {
    type Service = FaultService<S>;

    fn layer(&self, inner: S) -> FaultService<S> {
        FaultService { inner, shared: Arc::clone(&self.shared), never_ready: false, alone: false }
    }
}

/// A service with faults, created by [`FaultLayer`] or [`Faults::service`].
#[derive(Debug)]
pub struct FaultService<S> {
    inner: S,
    shared: Arc<Shared<ServiceFault>>,
    never_ready: bool,
    /// `true` if there is no inner service.
    alone: bool,
}

impl<S: Clone> Clone for FaultService<S> {
    fn clone(&self) -> Self {
        let (inner, shared) = (self.inner.clone(), Arc::clone(&self.shared));
        Self { inner, shared, never_ready: false, alone: self.alone }
    }
}

impl<S, B, R: 'static> Service<Request<B>> for FaultService<S>
where
    S: Service<Request<B>, Response = Response<R>, Future: Send + 'static>,
    S::Error: Into<BoxError> + 'static,
    B: Body<Data: Buf + Send, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<FaultBody<R>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let stalls = |fault: &ServiceFault| *fault == ServiceFault::NeverReady;
        if self.never_ready || self.shared.take_early(0, stalls).is_some() {
            self.never_ready = true;
            return Poll::Pending;
        }
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[allow(clippy::panic, reason = "the script asks for it")]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let exchange = self.shared.ledger.arrive(&self.shared.server, 0, &request);
        let (fault, delay) = self.shared.take(Some(&exchange.call()), 0, |fault| *fault != ServiceFault::NeverReady);
        let fault = match fault {
            ServiceFault::NoFault if self.alone => ServiceFault::Status(StatusCode::OK),
            ServiceFault::LoseResponse(kind) if self.alone => ServiceFault::Error(kind),
            fault => fault,
        };
        match fault {
            ServiceFault::PanicInCall => {
                exchange.answer("panic");
                panic!("injected by the script");
            }
            ServiceFault::NoFault | ServiceFault::LoseResponse(_) => {
                let response = self.inner.call(request);
                Box::pin(pass(exchange, fault, delay, response))
            }
            fault => Box::pin(fail(exchange, fault, delay, request.into_body())),
        }
    }
}

/// Lets the inner service respond.
async fn pass<R, E: Into<BoxError>>(
    exchange: Exchange,
    fault: ServiceFault,
    delay: Duration,
    response: impl Future<Output = Result<Response<R>, E>>,
) -> Result<Response<FaultBody<R>>, BoxError> {
    wait(delay).await;
    let response = response.await;
    exchange.carried_out(true);
    if let ServiceFault::LoseResponse(kind) = fault {
        exchange.answer(format!("lost: {kind}"));
        return Err(io::Error::from(kind).into());
    }
    match response {
        Ok(response) => {
            answer(&exchange, response.status());
            Ok(response.map(|body| FaultBody(Some(body))))
        }
        Err(error) => {
            exchange.answer("error of the inner service");
            Err(error.into())
        }
    }
}

/// Reads the request and fails.
#[allow(clippy::panic, reason = "the script asks for it")]
async fn fail<B, R>(
    exchange: Exchange,
    fault: ServiceFault,
    delay: Duration,
    body: B,
) -> Result<Response<FaultBody<R>>, BoxError>
where
    B: Body<Data: Buf, Error: Into<BoxError>>,
{
    read(&exchange, body).await?;
    wait(delay).await;
    match fault {
        ServiceFault::Status(status) => {
            answer(&exchange, status);
            let mut response = Response::new(FaultBody(None));
            *response.status_mut() = status;
            Ok(response)
        }
        ServiceFault::Grpc(code) => {
            exchange.answer(format!("grpc-status {code}"));
            let mut response = Response::new(FaultBody(None));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
            response.headers_mut().insert("grpc-status", code.into());
            Ok(response)
        }
        ServiceFault::Error(kind) => {
            exchange.carried_out(kind != io::ErrorKind::ConnectionRefused);
            exchange.answer(kind.to_string());
            Err(io::Error::from(kind).into())
        }
        ServiceFault::Panic => {
            exchange.answer("panic");
            panic!("injected by the script");
        }
        _ => std::future::pending().await,
    }
}

/// Waits for the delay. Zero needs no timer.
async fn wait(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

/// Records a status, which may prove that the request was not carried out.
fn answer(exchange: &Exchange, status: StatusCode) {
    exchange.carried_out(!matches!(status.as_u16(), 421 | 425 | 429));
    exchange.answer(status.as_str());
}

/// Reads a body to its end.
async fn read<B>(exchange: &Exchange, body: B) -> Result<(), BoxError>
where
    B: Body<Data: Buf, Error: Into<BoxError>>,
{
    let mut body = pin!(body);
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        if let Ok(mut data) = frame.map_err(Into::into)?.into_data() {
            exchange.read(&data.copy_to_bytes(data.remaining()));
        }
    }
    exchange.read_whole();
    Ok(())
}

/// The inner service of [`Faults::service`], which responds with 200.
#[derive(Debug, Clone)]
pub struct Alone(());

/// The body of a response: the body from the inner service, or an empty one.
#[derive(Debug)]
pub struct FaultBody<B>(Option<B>);

impl<B> Service<Request<B>> for Alone {
    type Response = Response<String>;
    type Error = std::convert::Infallible;
    type Future = std::future::Ready<Result<Response<String>, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        std::future::ready(Ok(Response::default()))
    }
}

impl<B: Body + Unpin> Body for FaultBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match &mut self.0 {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
