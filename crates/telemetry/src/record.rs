//! The record of a call or an attempt, from its start until it returns a response head or an error, or is dropped.

use std::borrow::Cow;
use std::sync::Arc;

use http::{StatusCode, Version};
use reattempt_engine::classify::RequestView;
use reattempt_engine::wall::clock::Instant;
use reattempt_engine::wall::frame::{Frame, Tried};

use super::Shared;
use super::call::HttpCall;
use super::labels::{method_of, server_of, url_of, version_of};
use super::layer::Side;
use super::output::{Begun, End, Open};

/// A call or an attempt in flight.
pub(super) struct Record {
    started: Instant,
    /// `None` for an attempt.
    call: Option<Arc<HttpCall>>,
    /// The endpoint of an attempt, until the outputs have it.
    tried: Tried,
    open: Vec<Box<dyn Open>>,
    head: Option<(StatusCode, Version)>,
    /// The error type, which is `cancelled` until there is an outcome.
    error: Option<Cow<'static, str>>,
}

impl Record {
    pub(super) fn begin(shared: &Arc<Shared>, side: Side, request: RequestView<'_>) -> Self {
        let (call, resends) = match side {
            Side::Call => (Some(HttpCall::new(shared)), 0),
            Side::Attempt => (None, HttpCall::count_attempt(shared)),
        };
        let real_server = server_of(request);
        let (real_server, server) = (real_server.as_ref(), &shared.servers.label_of(real_server.as_ref()));
        let url = || url_of(request);
        let begun = Begun { side, method: method_of(request.method()), server, real_server, url: &url, resends };
        let open = shared.outputs.iter().map(|output| output.begin(&begun)).collect();
        Self { started: Instant::now(), call, tried: Tried::Nowhere, open, head: None, error: Some("cancelled".into()) }
    }

    /// Calls or polls the service by calling `run`, with this call or attempt as the current one. Notes the endpoint
    /// that an attempt was sent to meanwhile.
    pub(super) fn within<R>(&mut self, run: impl FnOnce() -> R) -> R {
        let entered = self.call.as_ref().map(HttpCall::enter);
        let result = nested(&self.open, run);
        drop(entered);
        if self.call.is_none()
            && let Some(tried) = Frame::current().known()
        {
            self.tried = tried;
            self.name_endpoint();
        }
        result
    }

    /// Passes the endpoint's name to the outputs, if it is known.
    fn name_endpoint(&mut self) {
        if let Some(name) = self.tried.pick().and_then(|pick| pick.id.name()) {
            self.open.iter_mut().for_each(|open| open.endpoint(&name));
            self.tried = Tried::Nowhere;
        }
    }

    /// Ends the record with a response head.
    ///
    /// `broke` is the error type of a body that broke while it was read as part of the attempt.
    pub(super) fn responded(mut self, (status, version): (StatusCode, Version), broke: Option<&'static str>) {
        self.head = Some((status, version));
        self.error = match status.as_u16() >= 400 {
            true => Some(status.as_str().to_owned().into()),
            false => broke.map(Into::into),
        };
    }

    /// Ends the record with an error type.
    pub(super) fn failed(mut self, error: &'static str) {
        self.error = Some(error.into());
    }
}

/// Calls `run` with all of these entered, the first one outermost.
fn nested<R>(open: &[Box<dyn Open>], run: impl FnOnce() -> R) -> R {
    match open.split_first() {
        Some((first, rest)) => {
            let _entered = first.enter();
            nested(rest, run)
        }
        None => run(),
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // The attempt may have been sent late.
        self.name_endpoint();
        let end = End {
            after: self.started.elapsed(),
            status: self.head.map(|(status, _)| status.as_u16()),
            version: self.head.and_then(|(_, version)| version_of(version)),
            error: self.error.take(),
            resends: self.call.as_ref().map_or(0, |call| call.resends()),
        };
        self.open.iter_mut().for_each(|open| open.end(&end));
    }
}
