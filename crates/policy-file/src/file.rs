//! The handle to a policy file: the current policies, and the layers that follow them.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reattempt::Http;
use reattempt::policies::{PolicyStack, PolicyTableLayer};
use reattempt::protocol::RequestProtocol;

use crate::bodies::Bodies;
use crate::budget::KillSwitch;
use crate::changing::{ChangeLock, Changing};
use crate::error::{ErrorKind, PolicyFileError};
use crate::event::PolicyFileEvent;
use crate::follow::{Follow, Follower};
use crate::in_force::{InForce, Version};
use crate::look_up::Report;
use crate::options::PolicyFileOptions;
use crate::pause::Pause;
use crate::reader::{Document, Format, Mistakes, Problem};
use crate::state::States;
use crate::watch::{Settling, is_same};
use crate::{disk, watch};

/// A handle to a policy file and its current policies.
///
/// Clones are handles to the same file. Clients follow the file even if all handles are dropped. The watch ends when
/// all handles, layers and clients have been dropped.
///
/// ```no_run
/// use http_body_util::Full;
/// use hyper_util::client::legacy::Client;
/// use hyper_util::rt::TokioExecutor;
/// use reattempt_policy_file::PolicyFile;
/// use tower::ServiceBuilder;
///
/// # fn main() -> Result<(), reattempt_policy_file::PolicyFileError> {
/// let policies = PolicyFile::load("policies.toml")?;
/// let client = ServiceBuilder::new()
///     .layer(policies.layer())
///     .service(Client::builder(TokioExecutor::new()).build_http());
/// # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PolicyFile {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    options: PolicyFileOptions,
    switch: KillSwitch,
    /// Held during a change, so that all followers apply changes in the same order. The state's own lock is held only
    /// briefly, so that the program's callbacks can read the handle.
    changing: ChangeLock,
    state: Mutex<Inner>,
    bodies: Bodies,
    pause: Arc<Pause>,
}

/// The part that a reload changes.
struct Inner {
    document: Arc<Document>,
    states: Arc<States>,
    followers: Vec<Arc<dyn Follow>>,
    /// The content that was last tried, so that the same content is not reported twice.
    tried: Result<Vec<u8>, String>,
    error: Option<PolicyFileError>,
    version: Version,
}

impl PolicyFileOptions {
    /// Reads a file with these options and watches it, unless the watch is turned off.
    ///
    /// # Errors
    /// Returns every problem in the file with its line, or the reason why the file cannot be read or watched.
    pub fn load(self, path: impl AsRef<Path>) -> Result<PolicyFile, PolicyFileError> {
        PolicyFile::open(path.as_ref(), self)
    }
}

impl PolicyFile {
    /// Reads a file and watches it, with the default [`PolicyFileOptions`]. A file whose name ends with `.json` is read
    /// as JSON (feature `json`), and any other as TOML.
    ///
    /// # Errors
    /// Returns every problem in the file with its line, or the reason why the file cannot be read.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, PolicyFileError> {
        PolicyFileOptions::new().load(path)
    }

    pub(crate) fn open(path: &Path, options: PolicyFileOptions) -> Result<Self, PolicyFileError> {
        let fail = |kind| PolicyFileError::new(path, kind);
        let bytes = disk::read(path).map_err(fail)?;
        let document = document(path, &bytes, &options).map_err(|(kind, _)| fail(kind))?;
        let switch = KillSwitch::default();
        switch.set(document.never_retry);
        let states = States::of(&document, &States::default(), options.fleet.as_ref());
        let bodies = Bodies::new(options.bodies.clone(), &document);
        let (document, states) = (Arc::new(document), Arc::new(states));
        let version = Version::first(&bytes);
        let inner = Inner { document, states, followers: Vec::new(), tried: Ok(bytes), error: None, version };
        let (path, pause) = (path.to_owned(), Arc::new(Pause::default()));
        let interval = options.interval;
        let (changing, state) = (ChangeLock::default(), Mutex::new(inner));
        let shared = Arc::new(Shared { path, options, switch, changing, state, bodies, pause });
        if let Some(interval) = interval {
            let (weak, pause) = (Arc::downgrade(&shared), Arc::clone(&shared.pause));
            let mut settling = Settling::default();
            let look = move || {
                let Some(shared) = weak.upgrade() else { return false };
                shared.forget_dropped_layers();
                let content = disk::read(&shared.path);
                let is_known = shared.has_tried(&content);
                if !is_known && !shared.switch.is_on() && shared.turns_retries_off(&content) {
                    shared.switch_on();
                }
                if let Some(settled) = settling.found(content, is_known) {
                    // The file may have changed in the meantime, and a reload may already have applied the newer
                    // content.
                    shared.apply(|| Some(disk::read(&shared.path)).filter(|now| is_same(now, &settled)));
                }
                true
            };
            watch::start(interval, pause, look)
                .map_err(|error| PolicyFileError::new(&shared.path, ErrorKind::NoWatch(Arc::new(error))))?;
        }
        Ok(Self { shared })
    }

    /// Creates a layer for HTTP requests, including reqwest's, that applies the current policies.
    ///
    /// Each layer has its own sets of endpoints. All layers for one file share the file's budgets and guards. The error
    /// type of the clients is tower's `BoxError`.
    pub fn layer(&self) -> PolicyTableLayer<Http> {
        self.layer_with(Http::new(), |_, policy| policy)
    }

    /// Creates a layer for any protocol, with settings that a file cannot contain: classifiers, hooks, observers.
    /// `change` is called with each policy in use and its name, when the layer is created and whenever the file
    /// changes. The name is empty for the library's defaults. `change` may read this handle and create layers. A reload
    /// in it has no effect.
    ///
    /// ```no_run
    /// use reattempt::grpc::Grpc;
    /// use reattempt_policy_file::PolicyFile;
    ///
    /// # fn main() -> Result<(), reattempt_policy_file::PolicyFileError> {
    /// let policies = PolicyFile::load("policies.toml")?;
    /// let layer = policies.layer_with(Grpc::new(), |name, policy| {
    ///     let name = name.to_owned();
    ///     policy.retries(|retries| retries.observe(move |server, event| eprintln!("{name} {server}: {event}")))
    /// });
    /// # Ok(())
    /// # }
    /// ```
    pub fn layer_with<P>(
        &self,
        protocol: P,
        change: impl Fn(&str, PolicyStack<P>) -> PolicyStack<P> + Send + Sync + 'static,
    ) -> PolicyTableLayer<P>
    where
        P: RequestProtocol<Errors: 'static> + Clone + Send + Sync + 'static,
    {
        self.shared.forget_dropped_layers();
        let _changing = self.shared.changing.begin();
        let (document, states) = self.shared.in_force();
        let owner = Arc::clone(&self.shared) as _;
        let weak = Arc::downgrade(&self.shared);
        let report: Report = Arc::new(move |name, error| {
            let Some(shared) = weak.upgrade() else { return };
            if let Some(observer) = &shared.options.observer {
                observer(&PolicyFileEvent::ResolveFailed { name: name.to_owned(), error: Arc::new(error) });
            }
        });
        let states = (&*states, &self.shared.switch);
        let (handle, follower) = Follower::begin(protocol, Box::new(change), &document, states, (owner, report));
        self.shared.lock().followers.push(Arc::new(follower));
        handle.layer()
    }

    /// Returns what is in force, for a snapshot.
    pub(crate) fn in_force(&self) -> InForce {
        let inner = self.shared.lock();
        let (document, states) = (Arc::clone(&inner.document), Arc::clone(&inner.states));
        let (path, followers) = (self.shared.path.clone(), inner.followers.clone());
        InForce { path, document, states, followers, version: inner.version }
    }

    pub(crate) fn bodies(&self) -> &Bodies {
        &self.shared.bodies
    }

    /// Reads the file now, without waiting for the watch. Has no effect if the content has not changed since it was
    /// last applied or rejected.
    ///
    /// # Errors
    /// Returns the reason why the file cannot be used. The previous policies are then kept.
    pub fn reload(&self) -> Result<(), PolicyFileError> {
        self.shared.apply(|| Some(disk::read(&self.shared.path)));
        self.error().map_or(Ok(()), Err)
    }

    /// Returns the reason why the file's latest content is not used, or `None` if it is used.
    pub fn error(&self) -> Option<PolicyFileError> {
        self.shared.lock().error.clone()
    }

    /// Returns `true` if the file turns all retries off.
    pub fn never_retry(&self) -> bool {
        self.shared.switch.is_on()
    }

    /// Returns the names of the current policies.
    pub fn names(&self) -> Vec<String> {
        self.shared.lock().document.policies.iter().map(|policy| policy.name.clone()).collect()
    }
}

/// Reads a document and checks it against the program. The flag is `true` if the content turns retries off.
fn document(path: &Path, bytes: &[u8], options: &PolicyFileOptions) -> Result<Document, (ErrorKind, bool)> {
    let without = |kind| (kind, false);
    let text = disk::text(bytes).map_err(without)?;
    let format = Format::of(path).ok_or(without(ErrorKind::NoFormat))?;
    let document = Document::read(text, format)
        .map_err(|Mistakes { problems, never_retry, .. }| (ErrorKind::Problems(problems), never_retry))?;
    let lacking = document.policies.iter().filter(|policy| policy.is_fleet && options.fleet.is_none());
    let lacking = lacking.map(|policy| {
        let reason = "must not be \"fleet\", because this program supplies no store for it";
        Problem::new(policy.budget_line, format!("{}.budget", policy.name), reason)
    });
    let mut problems: Vec<_> = lacking.collect();
    let unread = document.bodies.first().filter(|_| options.bodies.is_none());
    problems.extend(unread.map(|section| {
        Problem::new(Some(section.line), "bodies", "must not be set, because this program does not read bodies")
    }));
    problems.extend(document.uses_no_policy());
    match problems {
        problems if !problems.is_empty() => Err((ErrorKind::Problems(problems), document.never_retry)),
        _ => Ok(document),
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if this content has already been tried.
    fn has_tried(&self, content: &Result<Vec<u8>, ErrorKind>) -> bool {
        is_tried(&self.lock().tried, &self.path, content)
    }

    fn in_force(&self) -> (Arc<Document>, Arc<States>) {
        let inner = self.lock();
        (Arc::clone(&inner.document), Arc::clone(&inner.states))
    }

    /// Returns `true` if this content turns retries off, even if it has mistakes.
    fn turns_retries_off(&self, content: &Result<Vec<u8>, ErrorKind>) -> bool {
        let Ok(bytes) = content else { return false };
        match document(&self.path, bytes, &self.options) {
            Ok(document) => document.never_retry,
            Err((_, never_retry)) => never_retry,
        }
    }

    /// Turns retries off without waiting for two equal reads, and keeps the policies. A program may rewrite the file so
    /// often that no two reads are equal.
    ///
    /// No content counts as tried afterwards. The former content therefore turns retries on again if it returns.
    fn switch_on(self: &Arc<Self>) {
        let Changing::Begun(changing) = self.changing.begin() else { return };
        // A reload may have applied newer content in the meantime.
        let content = disk::read(&self.path);
        if self.has_tried(&content) || !self.turns_retries_off(&content) {
            return;
        }
        self.switch.set(true);
        self.lock().tried = Err(String::new());
        let panicked = self.notify_followers();
        drop(changing);
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }

    /// Applies the content, or reports why that is impossible. Has no effect if this content was already tried.
    ///
    /// `read` runs while the lock for changes is held, so that older content never replaces newer content.
    fn apply(self: &Arc<Self>, read: impl FnOnce() -> Option<Result<Vec<u8>, ErrorKind>>) {
        let Changing::Begun(changing) = self.changing.begin() else { return };
        let Some(content) = read().filter(|content| !self.has_tried(content)) else { return };
        let read = content.as_ref().map_err(|kind| (kind.clone(), false));
        let read = read.and_then(|bytes| document(&self.path, bytes, &self.options));
        let tried = content.map_err(|kind| PolicyFileError::new(&self.path, kind).to_string());
        // Dropped after the locks are released, because it may contain the program's own budgets.
        let (_, former) = self.in_force();
        let was_on = self.switch.is_on();
        let is_on = match &read {
            Ok(document) => document.never_retry,
            Err((_, never_retry)) => *never_retry,
        };
        if is_on {
            // Set before the program's callbacks run, because they may block or panic.
            self.switch.set(true);
        }
        let (event, is_changed) = match read {
            Ok(document) => {
                let states = States::of(&document, &former, self.options.fleet.as_ref());
                self.switch.set(document.never_retry);
                self.bodies.replace(&document);
                let mut inner = self.lock();
                (inner.document, inner.states) = (Arc::new(document), Arc::new(states));
                inner.version = inner.version.next(tried.as_deref().unwrap_or_default());
                (inner.tried, inner.error) = (tried, None);
                (PolicyFileEvent::Reloaded { never_retry: self.switch.is_on() }, true)
            }
            Err((kind, never_retry)) => {
                let error = PolicyFileError::new(&self.path, kind);
                let never_retry = never_retry || was_on;
                self.switch.set(never_retry);
                let mut inner = self.lock();
                (inner.tried, inner.error) = (tried, Some(error.clone()));
                (PolicyFileEvent::Refused { error, never_retry }, never_retry != was_on)
            }
        };
        let panicked = if is_changed { self.notify_followers() } else { None };
        // Called without the lock, because an observer may change the file and reload it.
        drop(changing);
        self.forget_dropped_layers();
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
        if let Some(observer) = &self.options.observer {
            observer(&event);
        }
    }

    /// Applies the current policies to all layers. If a callback of the program panics, returns that panic, and the
    /// content counts as not tried.
    fn notify_followers(self: &Arc<Self>) -> Option<Box<dyn Any + Send>> {
        let (document, states) = self.in_force();
        let followers = self.lock().followers.clone();
        let mut panicked = None;
        for follower in followers {
            let follow = || follower.follow(&document, &states, &self.switch, Arc::clone(self) as _);
            panicked = catch_unwind(AssertUnwindSafe(follow)).err().or(panicked);
        }
        if panicked.is_some() {
            let mut inner = self.lock();
            (inner.tried, inner.error) =
                (Err(String::new()), Some(PolicyFileError::new(&self.path, ErrorKind::Panicked)));
        }
        panicked
    }

    /// Removes the layers that were dropped. Their remaining state contains the program's callbacks, so it is dropped
    /// without the locks.
    fn forget_dropped_layers(&self) {
        let followers = self.lock().followers.clone();
        let gone: Vec<_> = followers.into_iter().filter(|follower| !follower.is_used()).collect();
        if !gone.is_empty() {
            self.lock().followers.retain(|follower| !gone.iter().any(|gone| Arc::ptr_eq(gone, follower)));
        }
    }
}

/// Returns `true` if this content is the one that was last tried.
fn is_tried(tried: &Result<Vec<u8>, String>, path: &Path, content: &Result<Vec<u8>, ErrorKind>) -> bool {
    match (tried, content) {
        (Ok(tried), Ok(content)) => tried == content,
        (Err(tried), Err(kind)) => *tried == PolicyFileError::new(path, kind.clone()).to_string(),
        _ => false,
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.pause.end();
    }
}

impl fmt::Debug for PolicyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyFile")
            .field("path", &self.shared.path)
            .field("policies", &self.names())
            .field("never_retry", &self.never_retry())
            .field("error", &self.error())
            .finish_non_exhaustive()
    }
}
