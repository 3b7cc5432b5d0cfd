//! Files as upload bodies, read on tokio's blocking threads.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::{FileState, UploadError};
use crate::error::BoxError;

/// The length of the pieces in which a file is read. A client holds few of them at a time.
const PIECE: u64 = 128 * 1024;

/// Returns the present state of the regular file at `path`.
pub(super) async fn state_of(path: &Path) -> Result<FileState, UploadError> {
    let path = Arc::<Path>::from(path);
    blocking(move || open_regular(&path).and_then(|file| file.metadata()).map(|metadata| state(&metadata)))?
        .await
        .map_err(|_| UploadError::Panicked)?
        .map_err(open_error)
}

/// An open file, from which the rest of a range is read.
pub(super) struct FileBody {
    rest: u64,
    stage: FileStage,
}

/// The result of reading a piece.
type PieceRead = Result<(Box<OpenFile>, Vec<u8>), UploadError>;

enum FileStage {
    Idle(Box<OpenFile>),
    Reading(JoinHandle<PieceRead>),
    Failed,
}

/// A file with the state that it must have.
struct OpenFile {
    file: File,
    path: Arc<Path>,
    state: FileState,
}

impl FileBody {
    /// Opens the file at `path`, which must have this state, for reading this range.
    pub(super) async fn open(path: Arc<Path>, state: FileState, range: Range<u64>) -> Result<Self, UploadError> {
        let start = range.start;
        let opened = blocking(move || {
            let file = open_regular(&path).map_err(open_error)?;
            let mut open = OpenFile { file, path, state };
            open.check()?;
            open.file.seek(SeekFrom::Start(start)).map_err(open_error)?;
            Ok(Box::new(open))
        })?;
        let open = opened.await.map_err(|_| UploadError::Panicked)??;
        Ok(Self { rest: range.end - range.start, stage: FileStage::Idle(open) })
    }
}

impl OpenFile {
    /// Returns an error if the file has changed.
    fn check(&self) -> Result<(), UploadError> {
        let after = state(&self.file.metadata().map_err(read_error)?);
        if after == self.state {
            return Ok(());
        }
        Err(UploadError::Changed { path: self.path.to_path_buf(), before: self.state, after })
    }

    /// Reads the next piece. The file is checked after the piece was read and before it is sent, so a piece of a
    /// changed file is never sent.
    fn read(self: Box<Self>, most: u64) -> PieceRead {
        let mut piece = Vec::with_capacity(usize::try_from(most).unwrap_or(0));
        (&self.file).take(most).read_to_end(&mut piece).map_err(read_error)?;
        self.check()?;
        Ok((self, piece))
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.rest == 0 {
            return Poll::Ready(None);
        }
        if let FileStage::Idle(_) = self.stage
            && let FileStage::Idle(open) = std::mem::replace(&mut self.stage, FileStage::Failed)
        {
            let most = self.rest.min(PIECE);
            self.stage = FileStage::Reading(blocking(move || open.read(most))?);
        }
        let FileStage::Reading(reading) = &mut self.stage else { return Poll::Ready(None) };
        let read = ready!(Pin::new(reading).poll(cx));
        self.stage = FileStage::Failed;
        let (open, piece) = read.map_err(|_| UploadError::Panicked)??;
        self.rest = self.rest.saturating_sub(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        if piece.is_empty() {
            return Poll::Ready(None);
        }
        self.stage = FileStage::Idle(open);
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest)
    }
}

/// Opens a file for reading. Anything else is refused before it is opened, because opening a pipe may block for ever.
fn open_regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    File::open(path)
}

fn state(metadata: &Metadata) -> FileState {
    #[cfg(unix)]
    let device_and_inode = {
        use std::os::unix::fs::MetadataExt;
        Some((metadata.dev(), metadata.ino()))
    };
    #[cfg(not(unix))]
    let device_and_inode = None;
    FileState { length: metadata.len(), modified: metadata.modified().ok(), device_and_inode }
}

/// Runs `work` on a blocking thread of the current runtime.
fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, UploadError> {
    let runtime = Handle::try_current().map_err(|error| UploadError::Open(Arc::new(error)))?;
    Ok(runtime.spawn_blocking(work))
}

fn open_error(error: io::Error) -> UploadError {
    UploadError::Open(Arc::new(error))
}

fn read_error(error: io::Error) -> UploadError {
    UploadError::Read(Arc::new(error))
}
