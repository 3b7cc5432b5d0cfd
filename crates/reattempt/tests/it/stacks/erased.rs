//! One type for every client, so that layers can be added in any order at run time.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use reattempt::ReplayBody;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

pub(crate) type AnyBody = UnsyncBoxBody<Bytes, BoxError>;
pub(crate) type Client = BoxCloneSyncService<Request<RequestBody>, Response<AnyBody>, BoxError>;

pub(crate) fn boxed_body<B>(body: B) -> AnyBody
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    body.map_err(Into::into).boxed_unsync()
}

pub(crate) fn boxed<S, B>(service: S) -> Client
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let service = ServiceBuilder::new()
        .map_response(|response: Response<B>| response.map(boxed_body))
        .map_err(Into::into)
        .service(service);
    BoxCloneSyncService::new(service)
}

/// Returns the client for the attempts of a retry or hedge layer.
pub(crate) fn of_attempts(
    client: Client,
) -> impl Service<Request<ReplayBody<RequestBody>>, Response = Response<AnyBody>, Error = BoxError, Future: Send>
+ Clone
+ Send
+ Sync {
    client.map_request(|attempt: Request<ReplayBody<RequestBody>>| attempt.map(RequestBody::new))
}

/// Any request body without trailers. A fallback's backup needs a `Clone` body: each clone reads all of it.
#[derive(Clone, Default)]
pub(crate) struct RequestBody {
    /// `None` for an empty body.
    shared: Option<Arc<Shared>>,
    /// The number of frames that this reader has returned.
    at: usize,
}

struct Shared {
    state: Mutex<State>,
    readers: Arc<Readers>,
}

struct State {
    /// `None` after its end.
    source: Option<AnyBody>,
    frames: Vec<Bytes>,
    /// The text of the source's error.
    failed: Option<String>,
}

/// The readers that wait for the source's next frame.
#[derive(Default)]
struct Readers(Mutex<Vec<Waker>>);

impl Wake for Readers {
    fn wake(self: Arc<Self>) {
        let wakers = std::mem::take(&mut *self.0.lock().unwrap());
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl RequestBody {
    /// Erases a body without inspecting it, because layers above interpret an inspection as a sign that the request was
    /// sent.
    pub(crate) fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let source = Some(boxed_body(body));
        let state = Mutex::new(State { source, frames: Vec::new(), failed: None });
        Self { shared: Some(Arc::new(Shared { state, readers: Arc::default() })), at: 0 }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(shared) = self.shared.clone() else { return Poll::Ready(None) };
        let mut state = shared.state.lock().unwrap();
        loop {
            if let Some(frame) = state.frames.get(self.at) {
                self.at += 1;
                return Poll::Ready(Some(Ok(Frame::data(frame.clone()))));
            }
            let Some(source) = &mut state.source else {
                return Poll::Ready(state.failed.clone().map(|text| Err(text.into())));
            };
            shared.readers.0.lock().unwrap().push(cx.waker().clone());
            let waker = Waker::from(Arc::clone(&shared.readers));
            let frame = ready!(Pin::new(source).poll_frame(&mut Context::from_waker(&waker)));
            waker.wake();
            match frame {
                Some(Ok(frame)) => state.frames.extend(frame.into_data().ok()),
                None => state.source = None,
                Some(Err(error)) => {
                    state.source = None;
                    state.failed = Some(error.to_string());
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let Some(shared) = &self.shared else { return true };
        let state = shared.state.lock().unwrap();
        let over = state.source.as_ref().is_none_or(Body::is_end_stream);
        over && self.at == state.frames.len() && state.failed.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let Some(shared) = &self.shared else { return SizeHint::with_exact(0) };
        let state = shared.state.lock().unwrap();
        let kept = state.frames[self.at..].iter().map(|frame| frame.len() as u64).sum::<u64>();
        let rest = state.source.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(kept + rest.lower());
        if let Some(upper) = rest.upper() {
            hint.set_upper(kept + upper);
        }
        hint
    }
}
