//! Tests of bodies that each reader opens anew: their bytes, their errors, and the wrappers in which they are found.

use std::error::Error;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use reattempt_replay::{ReplayBody, ReplayError, ReplayLimits, ReplayMemory, UploadBody, UploadError};

use crate::support::trailers;

type BoxError = Box<dyn Error + Send + Sync>;

/// A body with these frames, which are ready, and whose end is known only after one more poll.
struct Frames(std::vec::IntoIter<Frame<Bytes>>);

impl Body for Frames {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

fn frames(data: &[&'static str]) -> Frames {
    let frames: Vec<_> = data.iter().map(|data| Frame::data(Bytes::from_static(data.as_bytes()))).collect();
    Frames(frames.into_iter())
}

/// Returns an upload of this length with these frames, and the number of its openings.
fn upload(length: u64, data: &'static [&'static str]) -> (UploadBody, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let body = UploadBody::new(length, move || {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, io::Error>(frames(data)) }
    });
    (body, opened)
}

async fn text<B: Body<Data = Bytes, Error: Into<BoxError>>>(body: B) -> Result<String, BoxError> {
    let bytes = body.collect().await.map_err(Into::into)?.to_bytes();
    Ok(String::from_utf8(bytes.into())?)
}

fn cause<'a>(error: &'a (dyn Error + 'static)) -> &'a UploadError {
    std::iter::successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref()).unwrap()
}

fn limits() -> ReplayLimits {
    ReplayLimits::default().memory(ReplayMemory::new(0))
}

#[tokio::test]
async fn each_reader_opens_its_own_body() {
    let (body, opened) = upload(6, &["one", "two"]);
    let first = ReplayBody::new(body, &limits());
    let kept = first.try_clone().unwrap();
    assert_eq!((first.size_hint().exact(), first.is_end_stream()), (Some(6), false));
    assert_eq!(opened.load(Ordering::Relaxed), 0, "not before it is polled");
    for (attempt, reader) in [first, kept.try_clone().unwrap(), kept].into_iter().enumerate() {
        assert_eq!(text(reader).await.unwrap(), "onetwo");
        assert_eq!(opened.load(Ordering::Relaxed), attempt + 1);
    }
}

#[tokio::test]
async fn reader_begins_anew_while_another_is_read() {
    let mut first = ReplayBody::new(upload(6, &["one", "two"]).0, &limits());
    let kept = first.try_clone().unwrap();
    assert_eq!(first.frame().await.unwrap().unwrap().into_data().unwrap(), "one");
    assert_eq!((first.size_hint().exact(), kept.was_polled()), (Some(3), true));
    kept.forget_polls();
    assert!(!kept.was_polled() && kept.is_replayable() && first.is_replayable());
    assert_eq!(text(kept).await.unwrap(), "onetwo");
    assert_eq!(text(first).await.unwrap(), "two");
}

#[tokio::test]
async fn cancelled_reader_ends_and_is_woken() {
    let body = UploadBody::new(3, std::future::pending::<Result<Full<Bytes>, io::Error>>);
    let first = ReplayBody::new(body, &limits());
    let kept = first.try_clone().unwrap();
    let source = kept.watch_source().unwrap();
    let mut waiting = tokio_test_task(first.collect());
    assert!(waiting.poll().is_pending() && source.is_pending());
    kept.cancel_others();
    assert!(waiting.is_woken());
    let Poll::Ready(Err(error)) = waiting.poll() else { panic!("it goes on") };
    assert!(matches!(error.downcast_ref(), Some(ReplayError::Superseded)));
    assert!(kept.is_replayable() && !kept.source_failed());
}

/// A future with a waker that counts.
struct Spawned<F> {
    future: std::pin::Pin<Box<F>>,
    flag: Arc<crate::support::Flag>,
}

fn tokio_test_task<F: Future>(future: F) -> Spawned<F> {
    Spawned { future: Box::pin(future), flag: crate::support::Flag::new() }
}

impl<F: Future> Spawned<F> {
    fn poll(&mut self) -> Poll<F::Output> {
        self.future.as_mut().poll(&mut Context::from_waker(&self.flag.waker()))
    }

    fn is_woken(&self) -> bool {
        self.flag.take() > 0
    }
}

/// A body with missing or surplus bytes never completes, and its surplus is not returned.
#[tokio::test]
async fn other_length_is_never_a_good_end() {
    for (length, data, actual) in [
        (7, &["one", "two"][..], 6),
        (5, &["one", "two"], 6),
        (6, &["one", "two", "", "x"], 7),
        (3, &["one", "two"], 6),
        (1, &[], 0),
    ] {
        let data: &'static [&'static str] = data;
        let mut body = upload(length, data).0;
        let mut read = Vec::new();
        let error = loop {
            match body.frame().await.expect("it must not end well") {
                Ok(frame) => read.extend(frame.into_data().unwrap()),
                Err(error) => break error,
            }
        };
        assert!(body.frame().await.is_none());
        assert!((read.len() as u64) < length, "{length}");
        let UploadError::Length { expected, actual: seen } = error else { panic!("{error}") };
        assert_eq!((expected, seen), (length, actual));
    }
}

#[tokio::test]
async fn stated_length_is_checked_when_opened() {
    for stated in [4, 6] {
        let body = UploadBody::new(5, move || async move { Ok::<_, io::Error>(Full::from(vec![0; stated])) });
        let mut reader = ReplayBody::new(body, &limits());
        let opened = std::future::poll_fn(|cx| reader.poll_open(cx)).await.unwrap_err();
        assert_eq!(opened.to_string(), format!("the opened body has {stated} bytes instead of 5"));
        assert!(reader.source_failed());
    }
}

#[tokio::test]
async fn trailers_follow_last_data() {
    let body = UploadBody::new(3, || async {
        let one = Frame::data(Bytes::from_static(b"one"));
        Ok::<_, io::Error>(Frames(vec![one, Frame::trailers(trailers("7"))].into_iter()))
    });
    let read = ReplayBody::new(body, &limits()).collect().await.unwrap();
    assert_eq!(read.trailers(), Some(&trailers("7")));
    assert_eq!(read.to_bytes(), "one");
}

#[tokio::test]
async fn failed_opening_has_its_cause() {
    let body = UploadBody::new(3, || async { Err::<Full<Bytes>, _>(io::Error::other("no such key")) });
    let reader = ReplayBody::new(body, &limits());
    let kept = reader.try_clone().unwrap();
    let error = reader.collect().await.unwrap_err();
    assert_eq!(cause(&*error).to_string(), "the body could not be opened: no such key");
    assert!(kept.source_failed());
}

#[tokio::test]
async fn opening_can_be_awaited_first() {
    let (body, opened) = upload(6, &["one", "two"]);
    let mut reader = ReplayBody::new(body.open_within(Duration::from_secs(3)), &limits());
    assert_eq!(reader.open_within(), Some(Duration::from_secs(3)));
    std::future::poll_fn(|cx| reader.poll_open(cx)).await.unwrap();
    assert!(!reader.was_polled(), "nothing was sent");
    assert_eq!(text(reader).await.unwrap(), "onetwo");
    assert_eq!(opened.load(Ordering::Relaxed), 1);
}

#[test]
fn panic_is_no_end() {
    let body = UploadBody::new(3, || async {
        if true {
            panic!("boom");
        }
        Ok::<_, io::Error>(frames(&["one"]))
    });
    let mut reader = pin!(ReplayBody::new(body, &limits()));
    let mut context = Context::from_waker(Waker::noop());
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reader.as_mut().poll_frame(&mut context))).unwrap_err();
    let Poll::Ready(Some(Err(error))) = reader.as_mut().poll_frame(&mut context) else { panic!("it ends well") };
    assert!(matches!(cause(&*error), UploadError::Panicked));
}

#[tokio::test]
async fn empty_and_unknown_lengths() {
    let (empty, opened) = upload(0, &[]);
    assert!(ReplayBody::new(empty, &limits()).is_end_stream());
    assert_eq!(opened.load(Ordering::Relaxed), 0);
    assert!(UploadBody::default().is_end_stream());
    let body = UploadBody::with_unknown_length(|| async { Ok::<_, io::Error>(frames(&["one", "two"])) });
    let reader = ReplayBody::new(body, &limits());
    assert_eq!((reader.size_hint().exact(), reader.is_replayable()), (None, true));
    assert_eq!(text(reader).await.unwrap(), "onetwo");
    let cloned = ReplayBody::new(UploadBody::cloned(Full::from("one")), &limits());
    let again = cloned.try_clone().unwrap();
    assert_eq!((text(cloned).await.unwrap(), text(again).await.unwrap()), ("one".to_owned(), "one".to_owned()));
}

#[tokio::test]
async fn joined_parts_are_opened_first() {
    let text_of = |text: &'static str| UploadBody::cloned(Full::from(text));
    let joined = UploadBody::joined([text_of("head "), upload(6, &["one", "two"]).0, text_of(""), text_of(" tail")]);
    assert_eq!(joined.length(), Some(16));
    for _ in 0..2 {
        assert_eq!(text(joined.clone()).await.unwrap(), "head onetwo tail");
    }
    let missing = UploadBody::new(3, || async { Err::<Full<Bytes>, _>(io::Error::other("gone")) });
    let mut broken = UploadBody::joined([text_of("head "), missing]);
    let error = broken.frame().await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the body could not be opened: gone");
    let short = UploadBody::joined([text_of("head "), upload(7, &["one", "two"]).0]);
    assert!(matches!(cause(&*text(short).await.unwrap_err()), UploadError::Length { expected: 7, actual: 6 }));
}

/// A transparent wrapper passes the question on. One that changes length or trailers hides the upload, which is then
/// sent once.
#[tokio::test]
async fn upload_is_found_in_transparent_wrappers() {
    let upload = || upload(6, &["one", "two"]).0;
    let boxed: UnsyncBoxBody<Bytes, BoxError> = upload().map_err(Into::into).boxed_unsync();
    let reader = ReplayBody::new(boxed, &limits());
    let again = reader.try_clone().unwrap();
    assert_eq!((text(reader).await.unwrap(), text(again).await.unwrap()), ("onetwo".into(), "onetwo".into()));
    assert!(ReplayBody::is_upload_body(&reqwest::Body::wrap(upload())));
    assert!(ReplayBody::is_upload_body(&tonic::body::Body::new(upload())));

    let checksum = || std::future::ready(Some(Ok::<_, UploadError>(HeaderMap::new())));
    assert!(!ReplayBody::is_upload_body(&upload().with_trailers(checksum())));
    assert!(!ReplayBody::is_upload_body(&Limited::new(upload(), 10)));
    assert!(!ReplayBody::is_upload_body(&upload().map_frame(|frame| frame.map_data(|data| data.slice(1..)))));
    // The outer layer must see that its reader is polled.
    assert!(!ReplayBody::is_upload_body(&ReplayBody::new(upload(), &limits())));
    let mut begun = upload();
    begun.frame().await.unwrap().unwrap();
    assert!(!ReplayBody::is_upload_body(&begun), "some of it was read");
    assert_eq!(text(begun).await.unwrap(), "two");
}

#[cfg(feature = "file")]
mod file {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A file that is removed when the test ends.
    struct TestFile(PathBuf);

    impl TestFile {
        fn new(name: &str, content: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("reattempt-upload-{name}-{}", std::process::id()));
            fs::write(&path, content).unwrap();
            Self(path)
        }
    }

    impl Drop for TestFile {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    fn content(length: usize) -> Vec<u8> {
        (0..=250).cycle().take(length).collect()
    }

    async fn read(body: impl Body<Data = Bytes, Error: Into<BoxError>>) -> Result<Bytes, BoxError> {
        Ok(body.collect().await.map_err(Into::into)?.to_bytes())
    }

    #[tokio::test]
    async fn file_and_range_are_read_again() {
        let all = content(300_000);
        let file = TestFile::new("range", &all);
        for range in [0..300_000_usize, 0..1, 131_072..262_144, 299_999..300_000, 5..5] {
            let wide = range.start as u64..range.end as u64;
            let body = UploadBody::file_range(&file.0, wide.clone()).await.unwrap();
            assert_eq!(body.length(), Some(wide.end - wide.start));
            for _ in 0..2 {
                assert_eq!(read(body.clone()).await.unwrap(), all[range.clone()], "{range:?}");
            }
        }
        let past = UploadBody::file_range(&file.0, 299_999..300_001).await.unwrap_err();
        assert_eq!(past.to_string(), "bytes 299999 to 300001 are not within a file of 300000 bytes");
        #[allow(clippy::reversed_empty_ranges, reason = "a caller's mistake")]
        let reversed = UploadBody::file_range(&file.0, 5..3).await.unwrap_err();
        assert!(matches!(reversed, UploadError::Range { .. }));
    }

    #[tokio::test]
    async fn changed_file_is_not_opened_again() {
        type Change = fn(&PathBuf);
        let change: [(&str, Change); 4] = [
            ("longer", |path| fs::write(path, content(9)).unwrap()),
            ("touched", |path| {
                fs::File::options().write(true).open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            }),
            ("replaced", |path| {
                let (before, new) = (fs::metadata(path).unwrap(), path.with_extension("new"));
                fs::write(&new, content(8)).unwrap();
                fs::File::options().write(true).open(&new).unwrap().set_modified(before.modified().unwrap()).unwrap();
                fs::rename(&new, path).unwrap();
            }),
            ("removed", |path| fs::remove_file(path).unwrap()),
        ];
        for (name, change) in change {
            let file = TestFile::new(name, &content(8));
            let first = ReplayBody::new(UploadBody::file(&file.0).await.unwrap(), &limits());
            let mut again = first.try_clone().unwrap();
            assert_eq!(read(first).await.unwrap(), content(8));
            change(&file.0);
            let error = std::future::poll_fn(|cx| again.poll_open(cx)).await.unwrap_err();
            match error {
                UploadError::Changed { before, after, .. } => assert_ne!(before, after),
                UploadError::Open(_) => assert_eq!(name, "removed"),
                other => panic!("{other}"),
            }
        }
    }

    /// The piece that was read together with the change is not returned, so no attempt mixes old and new bytes.
    #[tokio::test]
    async fn file_that_changes_is_never_mixed() {
        let file = TestFile::new("mixed", &content(500_000));
        let mut body = UploadBody::file(&file.0).await.unwrap();
        let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(piece, content(131_072));
        fs::write(&file.0, vec![0xFF; 500_000]).unwrap();
        fs::File::options().write(true).open(&file.0).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let error = body.frame().await.unwrap().unwrap_err();
        assert!(matches!(error, UploadError::Changed { .. }), "{error}");
        assert!(error.to_string().contains("500000 bytes, modified at 0.000000000"), "{error}");
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn only_regular_files_are_uploads() {
        let folder = UploadBody::file(std::env::temp_dir()).await.unwrap_err();
        assert_eq!(folder.to_string(), "the body could not be opened: it is not a regular file");
        let missing = UploadBody::file("/nonexistent/file").await.unwrap_err();
        assert!(matches!(missing, UploadError::Open(_)));
    }
}
