//! A connector for hyper-util's client and tonic's channel.

use std::error::Error;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use tokio::time::sleep;
use tower_service::Service;

use super::WireFault;
use super::io::FaultyIo;
use crate::faults::{Faults, Shared};

type BoxError = Box<dyn Error + Send + Sync>;

impl Faults<WireFault> {
    /// Wraps a connector for hyper-util or tonic.
    ///
    /// reqwest does not let a connector wrap its connections; use [`Faults::relay`] instead.
    pub fn connector<C>(&self, inner: C) -> FaultConnector<C> {
        FaultConnector { inner, shared: Arc::clone(&self.shared) }
    }
}

/// A connector whose connections have faults, created by [`Faults::connector`].
#[derive(Debug)]
pub struct FaultConnector<C> {
    inner: C,
    shared: Arc<Shared<WireFault>>,
}

impl<C: Clone> Clone for FaultConnector<C> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<C, R> Service<R> for FaultConnector<C>
where
    C: Service<R, Response: Read + Write + Unpin + Send + 'static, Future: Send + 'static>,
    C::Error: Into<BoxError>,
{
    type Response = TokioIo<FaultyIo<TokioIo<C::Response>>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (connection, open) = self.shared.ledger.connect();
        let (fault, delay) = self.shared.take(None, connection, |_| true);
        let connecting = self.inner.call(request);
        Box::pin(async move {
            sleep(delay).await;
            match fault {
                WireFault::Refuse => Err(std::io::Error::from(ErrorKind::ConnectionRefused).into()),
                WireFault::TimeOut => std::future::pending().await,
                fault => {
                    let io = connecting.await.map_err(Into::into)?;
                    Ok(TokioIo::new(FaultyIo::new(TokioIo::new(io), fault, open)))
                }
            }
        })
    }
}
