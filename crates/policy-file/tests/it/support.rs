//! A file in a folder of its own, a scripted server, and calls to it.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use reattempt::policies::{PolicyClient, PolicyTableLayer};
use reattempt::{Http, ReplayBody};
use reattempt_policy_file::{PolicyFile, PolicyFileEvent, PolicyFileOptions};
use tower::{Layer, Service, service_fn};

/// A folder that is removed with its content.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("reattempt-policy-file-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of the policy file.
    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("p.toml")
    }

    /// Writes the policy file.
    pub(crate) fn write(&self, text: impl AsRef<[u8]>) {
        fs::write(self.file(), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The events of a file, as texts without the folder's name.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<String>>>);

impl Events {
    pub(crate) fn observer(&self, folder: &Folder) -> impl Fn(&PolicyFileEvent) + Send + Sync + 'static {
        let (events, folder) = (Arc::clone(&self.0), format!("{}/", folder.path().display()));
        move |event| events.lock().unwrap().push(event.to_string().replace(&folder, ""))
    }

    /// Returns the events since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Loads the file without a watch.
pub(crate) fn load(folder: &Folder) -> (PolicyFile, Events) {
    let events = Events::default();
    let options = PolicyFileOptions::new().unwatched().observe(events.observer(folder));
    (options.load(folder.file()).unwrap(), events)
}

pub(crate) type Sent = Request<ReplayBody<Full<Bytes>>>;

/// The requests that reached the server, as method and path.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<String>>>);

impl Ledger {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    pub(crate) fn count(&self) -> usize {
        self.take().len()
    }

    /// Returns a server that answers every request with this status.
    pub(crate) fn server(
        &self,
        status: u16,
    ) -> impl Service<Sent, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static
    {
        self.server_of(status)
    }

    /// Returns such a server for requests with another body.
    pub(crate) fn server_of<B: Send + 'static>(
        &self,
        status: u16,
    ) -> impl Service<Request<B>, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static {
        let ledger = Arc::clone(&self.0);
        service_fn(move |request: Request<B>| {
            ledger.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
            let response = Response::builder().status(status).body(Full::<Bytes>::default()).unwrap();
            async move { Ok(response) }
        })
    }
}

pub(crate) fn get(uri: &str) -> Request<Full<Bytes>> {
    Request::get(uri).body(Full::default()).unwrap()
}

/// Puts the layer around a server that answers with this status.
pub(crate) fn client<S: Clone>(layer: &PolicyTableLayer<Http>, server: S) -> PolicyClient<S, Http> {
    layer.layer(server)
}
