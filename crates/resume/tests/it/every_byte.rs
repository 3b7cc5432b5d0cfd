//! A body of 4 KiB that breaks at each of its bytes, from servers that answer ranges in every way that HTTP permits.

use std::io::{Error, ErrorKind};
use std::sync::{Arc, LazyLock, Mutex};

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::{HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use reattempt::resume::Checkpoint;
use tower::{BoxError, Layer, ServiceExt, service_fn};

use super::support::layer;

const LENGTH: usize = 4096;

/// The position at which the caller's own ranges begin, and the one before which they end.
const OWN: std::ops::Range<usize> = 100..4000;

/// The manner in which a server answers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    Exact,
    /// Open ranges are not satisfiable.
    ClosedOnly,
    /// Without the total length.
    UnknownTotal,
    /// From an earlier byte.
    Earlier,
    /// The beginning of the rest.
    Beginning,
    /// The whole content, in place of the rest.
    Whole,
    /// With a date in place of a tag, which only the first response has.
    Dated,
}

const MANNERS: [Manner; 7] = [
    Manner::Exact,
    Manner::ClosedOnly,
    Manner::UnknownTotal,
    Manner::Earlier,
    Manner::Beginning,
    Manner::Whole,
    Manner::Dated,
];

fn content() -> Bytes {
    static CONTENT: LazyLock<Bytes> = LazyLock::new(|| (0..LENGTH).map(|at| u8::try_from(at % 251).unwrap()).collect());
    CONTENT.clone()
}

/// Parses `bytes=FIRST-LAST` or `bytes=FIRST-`.
fn parse(range: &HeaderValue) -> (usize, Option<usize>) {
    let (first, last) = range.to_str().unwrap().strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    (first.parse().unwrap(), last.parse().ok())
}

/// Answers a request. The first body breaks before `cut`, a position in the content.
fn answer(
    request: &Request<String>,
    manner: Manner,
    cut: Option<usize>,
) -> Response<StreamBody<impl Stream<Item = Result<Frame<Bytes>, Error>> + use<>>> {
    let (is_first, asked) = (cut.is_some(), request.headers().get("range").map(parse));
    let (mut first, mut end) = asked.map_or((0, LENGTH), |(first, last)| (first, last.map_or(LENGTH, |last| last + 1)));
    let is_open = asked.is_some_and(|(_, last)| last.is_none());
    let mut response = Response::builder();
    if manner == Manner::ClosedOnly && is_open {
        (first, end) = (0, 0);
        response = response.status(416);
    } else if asked.is_some() && (is_first || manner != Manner::Whole) {
        if !is_first && manner == Manner::Earlier {
            first = first.saturating_sub(17);
        }
        if !is_first && manner == Manner::Beginning {
            end = end.min(first + 1000);
        }
        let total = if manner == Manner::UnknownTotal { "*".to_owned() } else { LENGTH.to_string() };
        response = response.status(206).header("content-range", format!("bytes {first}-{}/{total}", end - 1));
    } else {
        (first, end) = (0, LENGTH);
    }
    response = response.header("content-length", end - first);
    response = match (manner, is_first) {
        (Manner::Dated, true) => response
            .header("last-modified", "Thu, 26 Nov 2026 12:00:00 GMT")
            .header("date", "Thu, 26 Nov 2026 12:01:00 GMT"),
        (Manner::Dated, false) => response,
        _ => response.header("etag", "\"1\""),
    };
    let data = Ok(Frame::data(content().slice(first..cut.unwrap_or(end).clamp(first, end))));
    let broken = cut.filter(|&cut| cut < end).map(|_| Err(Error::from(ErrorKind::ConnectionReset)));
    response.body(StreamBody::new(stream::iter([data].into_iter().chain(broken)))).unwrap()
}

/// Downloads with a break before the byte at `cut`.
async fn download(request: Request<String>, manner: Manner, cut: usize) -> Result<Bytes, BoxError> {
    let cut = Arc::new(Mutex::new(Some(cut)));
    let server = service_fn(move |request: Request<String>| {
        let response = answer(&request, manner, cut.lock().unwrap().take());
        async move { Ok::<_, BoxError>(response) }
    });
    let response = layer().layer(server).oneshot(request).await?;
    Ok(response.into_body().collect().await?.to_bytes())
}

fn get() -> Request<String> {
    Request::get("http://one.example/file").body(String::new()).unwrap()
}

/// The whole content.
// field 27
#[tokio::test(start_paused = true)]
async fn whole_content_is_joined_at_every_byte() {
    for manner in MANNERS {
        for cut in 0..LENGTH {
            let data = download(get(), manner, cut).await;
            assert_eq!(data.expect("whole"), content(), "{manner:?} {cut}");
        }
    }
}

/// The caller's own range. A server that ignores it for the rest would have to send less than it does.
// field 28
#[tokio::test(start_paused = true)]
async fn own_range_is_joined_at_every_byte() {
    for manner in MANNERS {
        for cut in OWN {
            let mut request = get();
            let range = format!("bytes={}-{}", OWN.start, OWN.end - 1);
            request.headers_mut().insert("range", range.parse().unwrap());
            let data = download(request, manner, cut).await;
            match manner {
                Manner::Whole => assert!(data.is_err(), "{cut}"),
                _ => assert_eq!(data.expect("whole"), content().slice(OWN), "{manner:?} {cut}"),
            }
        }
    }
}

/// A download that stopped before each byte, with the length stored beside it, and whose rest breaks again half-way.
#[tokio::test(start_paused = true)]
async fn stored_offset_is_joined_at_every_byte() {
    for manner in MANNERS {
        for offset in 0..LENGTH {
            let validator = match manner {
                Manner::Dated => HeaderValue::from_static("Thu, 26 Nov 2026 12:00:00 GMT"),
                _ => HeaderValue::from_static("\"1\""),
            };
            let mut request = get();
            let checkpoint = Checkpoint::new(offset as u64, validator).unwrap().total(LENGTH as u64);
            checkpoint.write_to(request.headers_mut());
            let data = download(request, manner, usize::midpoint(offset, LENGTH)).await;
            assert_eq!(data.expect("whole"), content().slice(offset..), "{manner:?} {offset}");
        }
    }
}
