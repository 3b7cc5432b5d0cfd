//! The watch as a stream of changes, which tower reads as a `Discover`.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use kube::Api;
use kube::runtime::watcher::{self, DefaultBackoff, Event, watcher};
use tokio::time::{Sleep, sleep};
use tower::discover::Change;

use crate::error::{Problem, SlicesError};
use crate::pod::Pod;
use crate::slice::EndpointSlice;
use crate::slices::{Pods, Slices, Wanted};

/// The limit of a list of all slices, because kube's client has none by default. A page usually comes within a second.
const LONGEST_LIST: Duration = Duration::from_secs(30);

/// The events taken in one poll, so that a server that always has more does not stop the other tasks of the thread.
const MOST_EVENTS: usize = 1024;

type Watch = Pin<Box<dyn Stream<Item = Result<Event<EndpointSlice>, watcher::Error>> + Send>>;

/// The place of the watch.
pub(crate) struct Service {
    pub(crate) api: Api<EndpointSlice>,
    /// The name of the service, for the label.
    pub(crate) name: Box<str>,
    /// `namespace/service`, for errors.
    pub(crate) shown: Box<str>,
    pub(crate) wanted: Wanted,
}

impl Service {
    fn watch(&self) -> Watch {
        let config = watcher::Config::default().labels(&format!("kubernetes.io/service-name={}", self.name));
        Box::pin(watcher(self.api.clone(), config))
    }
}

/// The changes of a service's endpoints, created by [`EndpointSlices::changes`](crate::EndpointSlices::changes) and
/// [`connect`](crate::EndpointSlices::connect).
///
/// It is polled in a runtime. After an error the next change follows by itself, once the watch goes on.
///
/// The events that are there at once are applied together, so an endpoint that moves from one slice to another does not
/// leave in between. The watch ends when the stream is dropped; there is no task.
pub struct SliceChanges<F> {
    service: Service,
    connect: F,
    watch: Watch,
    backoff: DefaultBackoff,
    /// The wait after an error.
    pause: Option<Pin<Box<Sleep>>>,
    slices: Slices,
    /// The slices of a list until it is complete, and its limit.
    list: Option<(Slices, Pin<Box<Sleep>>)>,
    /// `true` if the slices have changed since the last comparison.
    is_changed: bool,
    /// The endpoints that have been inserted and not removed.
    pods: Pods,
    /// The kind of the last problem with the slices, which is reported once.
    problem: Option<std::mem::Discriminant<Problem>>,
    changes: VecDeque<Change<Pod, ()>>,
    errors: VecDeque<Problem>,
}

/// No field is pinned in place.
impl<F> Unpin for SliceChanges<F> {}

impl<F> SliceChanges<F> {
    pub(crate) fn new(service: Service, connect: F) -> Self {
        Self {
            watch: service.watch(),
            service,
            connect,
            backoff: DefaultBackoff::default(),
            pause: None,
            slices: Slices::default(),
            list: None,
            is_changed: false,
            pods: Pods::new(),
            problem: None,
            changes: VecDeque::new(),
            errors: VecDeque::new(),
        }
    }

    /// Takes the events that are there, and finds the changes that they make together.
    /// `None` is the end of the watch, which kube's never has.
    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        for _ in 0..MOST_EVENTS {
            match self.watch.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(event))) => self.take(event),
                Poll::Ready(Some(Err(error))) => {
                    if is_lossy(&error) {
                        self.start_over();
                    }
                    self.fail(Problem::Watch(Box::new(error)));
                    return Poll::Ready(Some(()));
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    self.compare();
                    let list = self.list.as_mut().map(|(_, limit)| limit.as_mut().poll(cx));
                    if list.is_some_and(|limit| limit.is_ready()) {
                        self.start_over();
                        self.fail(Problem::SlowList);
                    }
                    return self.news();
                }
            }
        }
        self.compare();
        cx.waker().wake_by_ref();
        self.news()
    }

    fn take(&mut self, event: Event<EndpointSlice>) {
        let wanted = &self.service.wanted;
        match (event, &mut self.list) {
            (Event::Init, list) => *list = Some((Slices::default(), Box::pin(sleep(LONGEST_LIST)))),
            (Event::InitApply(slice), Some((slices, _))) => slices.apply(slice, wanted),
            (Event::InitDone, list) => {
                if let Some((slices, _)) = list.take() {
                    self.slices = slices;
                    self.is_changed = true;
                }
            }
            (Event::Apply(slice) | Event::InitApply(slice), _) => {
                self.slices.apply(slice, wanted);
                self.is_changed = true;
            }
            (Event::Delete(slice), _) => {
                self.slices.delete(&slice);
                self.is_changed = true;
            }
        }
    }

    /// Compares the endpoints of the slices with those that were reported.
    fn compare(&mut self) {
        if !std::mem::take(&mut self.is_changed) {
            return;
        }
        let pods = match self.slices.pods(&self.service.wanted) {
            Ok(pods) => pods,
            Err(problem) => {
                let kind = std::mem::discriminant(&problem);
                if self.problem.replace(kind) != Some(kind) {
                    self.errors.push_back(problem);
                }
                return;
            }
        };
        self.problem = None;
        // Insertions come first, so that a set that is updated in between is not empty.
        let new = pods.iter().filter(|(address, pod)| self.pods.get(address) != Some(pod));
        self.changes.extend(new.map(|(_, pod)| Change::Insert(pod.clone(), ())));
        let gone = self.pods.iter().filter(|(address, _)| !pods.contains_key(address));
        self.changes.extend(gone.map(|(_, pod)| Change::Remove(pod.clone())));
        self.pods = pods;
    }

    fn news(&self) -> Poll<Option<()>> {
        if self.changes.is_empty() && self.errors.is_empty() { Poll::Pending } else { Poll::Ready(Some(())) }
    }

    /// Lists all slices again. Until that is done, the last ones count.
    fn start_over(&mut self) {
        self.watch = self.service.watch();
        self.list = None;
    }

    /// Reports an error of the watch, and waits before the next request. The wait grows with each error, and is never
    /// reset by a success: kube does that once two minutes have passed without an error. A server that lists the slices
    /// but fails each watch would otherwise be asked without a rest.
    fn fail(&mut self, problem: Problem) {
        self.compare();
        self.pause = self.backoff.next().map(|wait| Box::pin(sleep(wait)));
        self.errors.push_back(problem);
    }
}

/// Returns `true` if an event may have been lost, or can no longer be had: all slices must be listed. kube itself does
/// this only for a 410 inside the watch, and would skip an unreadable event. After a lost connection, the watch goes on
/// where it was.
fn is_lossy(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchError(_) => true,
        watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
            matches!(error, kube::Error::Api(_) | kube::Error::SerdeError(_))
        }
        _ => false,
    }
}

impl<F: FnMut(&Pod) -> C, C> Stream for SliceChanges<F> {
    type Item = Result<Change<Pod, C>, SlicesError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(change) = self.changes.pop_front() {
                return Poll::Ready(Some(Ok(match change {
                    Change::Insert(pod, ()) => {
                        let client = (self.connect)(&pod);
                        Change::Insert(pod, client)
                    }
                    Change::Remove(pod) => Change::Remove(pod),
                })));
            }
            if let Some(problem) = self.errors.pop_front() {
                return Poll::Ready(Some(Err(SlicesError::new(&*self.service.shown, problem))));
            }
            if ready!(self.poll_events(cx)).is_none() {
                return Poll::Ready(None);
            }
        }
    }
}

impl<F> fmt::Debug for SliceChanges<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SliceChanges")
            .field("service", &self.service.shown)
            .field("pods", &self.pods.len())
            .finish_non_exhaustive()
    }
}
