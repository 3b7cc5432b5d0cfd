//! Fresh calls whose response bodies are read as part of their attempt.
//!
//! An operation makes a request, calls with it, and reads the response to its end. The body is in memory, like a frame
//! that a client has already received.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use reattempt::PeekBodyLayer;
#[cfg(feature = "peers")]
use reattempt::classify;
use tower::Layer;
use tower_service::Service;

use super::{Row, Work, above, alone};
use crate::contenders::ours;
use crate::requests::fresh;

const JSON: &[u8] = &[b' '; 200];
static FRAME: [u8; 16 * 1024] = [7; 16 * 1024];
const FRAMES: usize = 64;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "peek-body",
        title: "response of 200 bytes, read to its end, fresh",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(ours(Sends::short(1)))),
            above("ours", "bare", || each(ours(PeekBodyLayer::new().layer(Sends::short(1))))),
            #[cfg(feature = "peers")]
            above("ours-rule", "bare", || {
                each(ours(PeekBodyLayer::new().classify(classify::aws_json).layer(Sends::short(1))))
            }),
            alone("bare-4-frames", || each(ours(Sends::short(4)))),
            above("ours-4-frames", "bare-4-frames", || each(ours(PeekBodyLayer::new().layer(Sends::short(4))))),
        ],
    },
    Row {
        name: "peek-body-long",
        title: "response of 1 MiB in 64 frames, handed on, fresh",
        operations: 200,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(ours(Sends::LONG))),
            above("ours", "bare", || each(ours(PeekBodyLayer::new().layer(Sends::LONG)))),
        ],
    },
];

/// A client whose responses have this body.
#[derive(Debug, Clone, Copy)]
struct Sends(Frames);

impl Sends {
    const LONG: Self = Self(Frames { data: &FRAME, frames: FRAMES });

    fn short(frames: usize) -> Self {
        Self(Frames { data: &JSON[..JSON.len() / frames], frames })
    }
}

impl<B> Service<Request<B>> for Sends {
    type Response = Response<Frames>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Frames>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        drop(black_box(request));
        ready(Ok(Response::new(self.0)))
    }
}

/// A body of known length.
#[derive(Debug, Clone, Copy)]
struct Frames {
    data: &'static [u8],
    frames: usize,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    #[inline(never)]
    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(left) = self.frames.checked_sub(1) else { return Poll::Ready(None) };
        self.frames = left;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(self.data)))))
    }

    fn is_end_stream(&self) -> bool {
        self.frames == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.frames * self.data.len()) as u64)
    }
}

/// Calls a service whose future is ready at once, and reads each response to its end.
fn each<S, B>(mut service: S) -> Work
where
    S: Service<Request<crate::requests::Body>, Response = Response<B>> + 'static,
    B: Body<Data = Bytes> + Unpin,
{
    Box::new(move |operations| {
        for _ in 0..operations {
            call(&mut service);
        }
    })
}

#[inline(never)]
fn call<S, B>(service: &mut S)
where
    S: Service<Request<crate::requests::Body>, Response = Response<B>>,
    B: Body<Data = Bytes> + Unpin,
{
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(service.poll_ready(&mut context), Poll::Ready(Ok(()))));
    let Poll::Ready(Ok(response)) = pin!(service.call(fresh())).poll(&mut context) else { panic!("it is ready") };
    let mut body = response.into_body();
    while !body.is_end_stream()
        && let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context)
    {
        drop(black_box(frame));
    }
}
