//! A streamed body, read through ours, which keeps it; and one that is opened for each attempt.
//!
//! An operation is one chunk; the chunks are shared bytes, made beforehand. The whole cost of a
//! chunk counts, with the source and the loop that reads it, which `bare` shows. A replay is
//! compared with keeping.

use std::convert::Infallible;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame};
use http_body_util::Full;
use reattempt::ReplayBody;
use reattempt::body::{ReplayLimits, ReplayMemory, UploadBody};

use super::{Row, Work, above, alone, call};
use crate::contenders::{Least, ROOM, ours};
use crate::inner::Reads;
use crate::requests::kilobyte;

/// A usual read of a file, or a frame of HTTP/2.
const CHUNK: usize = 16 * 1024;
/// A chunk that our body keeps by reference.
const LARGE: usize = 512 * 1024;
const SHORT: usize = 64;
static DATA: [u8; LARGE] = [7; LARGE];

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "body",
        title: "streamed body of 64 MiB, per chunk of 16 KiB",
        operations: 4096,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(4096, CHUNK, read)),
            alone("ours-passing", || each(4096, CHUNK, |source| read(ReplayBody::passthrough(source)))),
            alone("ours-past-cap", || each(4096, CHUNK, read_past_cap)),
            alone("ours-keeping", || each(4096, CHUNK, read_and_keep)),
            alone("least-copying", || each(4096, CHUNK, read_and_copy_no_more)),
            above("ours-replaying", "ours-keeping", || each(4096, CHUNK, read_twice)),
        ],
    },
    Row {
        name: "body-short",
        title: "streamed body of 256 KiB, per chunk of 64 bytes",
        operations: 4096,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(4096, SHORT, read)),
            alone("ours-keeping", || each(4096, SHORT, read_and_keep)),
            alone("least-copying", || each(4096, SHORT, read_and_copy_no_more)),
        ],
    },
    Row {
        name: "body-large",
        title: "streamed body of 2 GiB, per chunk of 512 KiB",
        operations: 4096,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || each(4096, LARGE, read)),
            alone("ours-keeping", || each(4096, LARGE, read_and_keep)),
            alone("least-keeping", || each(4096, LARGE, read_and_keep_no_more)),
        ],
    },
    Row {
        name: "body-of-4-mib",
        title: "streamed body of 4 MiB, per chunk of 16 KiB",
        operations: 2048,
        counted: true,
        timed: false,
        contenders: &[
            alone("ours-keeping", || each(256, CHUNK, read_and_keep)),
            above("ours-replaying", "ours-keeping", || each(256, CHUNK, read_twice)),
        ],
    },
    Row {
        name: "upload",
        title: "PUT of 1 KiB that is opened for each attempt",
        operations: 500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || call::each(Reads, upload())),
            above("ours", "bare", || call::each(ours(Reads), upload())),
        ],
    },
];

/// Returns a function that makes requests with the same upload.
fn upload() -> impl FnMut() -> Request<UploadBody> {
    let body = UploadBody::cloned(Full::new(kilobyte()));
    move || Request::put("http://shop.example/orders/7").body(body.clone()).unwrap()
}

/// A body of chunks of one length; its size hint does not reveal their number.
struct Source {
    left: usize,
    length: usize,
}

impl Body for Source {
    type Data = Bytes;
    type Error = Infallible;

    #[inline(never)]
    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(left) = self.left.checked_sub(1) else { return Poll::Ready(None) };
        self.left = left;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&DATA[..self.length])))))
    }
}

/// Reads a body to its end; returns the number of chunks.
fn read<B: Body<Data = Bytes> + Unpin>(body: B) -> usize {
    read_each(body, |data| drop(black_box(data)))
}

fn read_each<B: Body<Data = Bytes> + Unpin>(mut body: B, each: impl Fn(Bytes)) -> usize {
    let mut context = Context::from_waker(Waker::noop());
    let mut chunks = 0;
    while let Poll::Ready(Some(frame)) = Pin::new(&mut body).poll_frame(&mut context) {
        let Ok(Ok(data)) = frame.map(Frame::into_data) else { panic!("all of it is data") };
        each(data);
        chunks += 1;
    }
    chunks
}

/// Returns limits that every body fits into.
fn enough() -> ReplayLimits {
    ReplayLimits::default().per_call(usize::MAX).memory(ReplayMemory::new(ROOM))
}

/// Reads a body that passes the usual 64 KiB with the fifth chunk.
fn read_past_cap(source: Source) -> usize {
    let first = ReplayBody::new(source, &ReplayLimits::default());
    let kept = first.try_clone().expect("nothing has been read");
    let chunks = read(first);
    assert!(!kept.is_replayable());
    chunks
}

fn read_and_keep(source: Source) -> usize {
    let first = ReplayBody::new(source, &enough());
    let kept = first.try_clone().expect("nothing has been read");
    let chunks = read(first);
    assert!(kept.is_replayable());
    chunks
}

fn read_and_keep_no_more(source: Source) -> usize {
    keep_no_more(source, false)
}

fn read_and_copy_no_more(source: Source) -> usize {
    keep_no_more(source, true)
}

fn keep_no_more(source: Source, copies: bool) -> usize {
    let (first, kept) = Least::new(source, copies, Arc::default());
    let chunks = read(first);
    assert_eq!(kept.lock().chunks(), chunks);
    chunks
}

fn read_twice(source: Source) -> usize {
    let first = ReplayBody::new(source, &enough());
    let kept = first.try_clone().expect("nothing has been read");
    let chunks = read(first);
    assert_eq!(read(kept), chunks);
    chunks
}

/// Reads bodies of equal chunks; the number of operations is rounded to whole bodies.
fn each(chunks: usize, length: usize, read: impl Fn(Source) -> usize + 'static) -> Work {
    Box::new(move |operations| {
        for _ in 0..operations.div_ceil(chunks as u64) {
            assert_eq!(black_box(read(black_box(Source { left: chunks, length }))), chunks);
        }
    })
}

/// Checks that each contender reads every chunk, and that no large chunk is copied.
pub(super) fn check() {
    for contender in ROWS.iter().flat_map(|row| row.contenders) {
        (contender.prepare)()(1);
    }
    let first = ReplayBody::new(Source { left: 100, length: LARGE }, &enough());
    let kept = first.try_clone().expect("nothing has been read");
    for body in [first, kept] {
        let same = |data: Bytes| assert_eq!(data.as_ptr(), DATA.as_ptr());
        assert_eq!(read_each(body, same), 100);
    }
}
