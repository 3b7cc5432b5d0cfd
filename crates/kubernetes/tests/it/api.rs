//! An API server with the EndpointSlices of one namespace: lists in pages, watches from a resource version, bookmarks,
//! the compaction that makes a version too old, and faults by script. It is a tower service below kube's client, so it
//! has no port and needs no real time.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tower::service_fn;

/// The end of a request that is not answered as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A status with the `Status` object that an API server sends with it.
    Status(u16),
    /// A 200 with this text.
    Text(&'static str),
    /// No response.
    Hang,
    /// No connection.
    Refuse,
}

/// Clones share the server.
#[derive(Clone, Default)]
pub(crate) struct Api(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    slices: BTreeMap<String, Value>,
    version: u64,
    /// The last version that no watch can start from.
    compacted: u64,
    log: Vec<(u64, &'static str, Value)>,
    watches: Vec<UnboundedSender<Result<Bytes, std::io::Error>>>,
    list_faults: VecDeque<Fault>,
    watch_faults: VecDeque<Fault>,
    requests: Vec<String>,
    /// The most items in a page of a list, or 0.
    page: usize,
}

impl Api {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Returns a client of this server.
    pub(crate) fn client(&self) -> kube::Client {
        let api = self.clone();
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let api = api.clone();
            async move { api.answer(request.uri().to_string()).await }
        });
        kube::Client::new(service, "default")
    }

    /// Adds a slice, or replaces it.
    pub(crate) fn apply(&self, mut slice: Value) {
        let mut state = self.lock();
        state.step();
        let name = slice["metadata"]["name"].as_str().unwrap().to_owned();
        slice["metadata"]["resourceVersion"] = json!(state.version.to_string());
        let kind = if state.slices.contains_key(&name) { "MODIFIED" } else { "ADDED" };
        state.slices.insert(name, slice.clone());
        state.log_event(kind, slice);
    }

    pub(crate) fn delete(&self, name: &str) {
        let mut state = self.lock();
        let Some(mut slice) = state.slices.remove(name) else { return };
        state.step();
        slice["metadata"]["resourceVersion"] = json!(state.version.to_string());
        state.log_event("DELETED", slice);
    }

    /// Returns the slices that there are.
    pub(crate) fn slices(&self) -> Vec<Value> {
        self.lock().slices.values().cloned().collect()
    }

    /// Sends a bookmark: the version so far, without a slice.
    pub(crate) fn bookmark(&self) {
        let mut state = self.lock();
        let version = state.version.max(1).to_string();
        let meta = json!({ "resourceVersion": version, "creationTimestamp": null });
        state.send(&event(
            "BOOKMARK",
            json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": meta }),
        ));
    }

    /// Makes all versions so far too old, and ends the watches with the error that says so.
    pub(crate) fn expire(&self) {
        let mut state = self.lock();
        state.step();
        state.compacted = state.version;
        state.log.clear();
        state.send(&event("ERROR", status(410, "Expired")));
        state.watches.clear();
    }

    /// Makes all versions so far too old, and closes the watches without a word.
    pub(crate) fn forget(&self) {
        let mut state = self.lock();
        state.step();
        state.compacted = state.version;
        state.log.clear();
        state.watches.clear();
    }

    /// Applies a slice. The watches get this line in place of the event.
    pub(crate) fn garble(&self, slice: Value, line: &str) {
        let watches = std::mem::take(&mut self.lock().watches);
        self.apply(slice);
        let mut state = self.lock();
        state.watches = watches;
        state.send(&format!("{line}\n"));
    }

    /// Sends an error event, after which the server leaves the watch open.
    pub(crate) fn error_event(&self, code: u16) {
        self.lock().send(&event("ERROR", status(code, "InternalError")));
    }

    /// Applies a slice whose event breaks off in the middle, with or without an error of the connection.
    pub(crate) fn cut(&self, slice: Value, broken: bool) {
        let watches = std::mem::take(&mut self.lock().watches);
        self.apply(slice);
        let state = self.lock();
        let Some((_, kind, object)) = state.log.last() else { return };
        let line = event(kind, object.clone());
        for watch in watches {
            let _ = watch.send(Ok(Bytes::copy_from_slice(&line.as_bytes()[..line.len() / 2])));
            if broken {
                let _ = watch.send(Err(std::io::Error::new(std::io::ErrorKind::ConnectionReset, "reset")));
            }
        }
    }

    /// Closes the watches, as the server does after their time limit.
    pub(crate) fn close(&self) {
        self.lock().watches.clear();
    }

    pub(crate) fn next_list(&self, fault: Fault) {
        self.lock().list_faults.push_back(fault);
    }

    pub(crate) fn next_watch(&self, fault: Fault) {
        self.lock().watch_faults.push_back(fault);
    }

    pub(crate) fn heal(&self) {
        let mut state = self.lock();
        state.list_faults.clear();
        state.watch_faults.clear();
    }

    pub(crate) fn pages_of(&self, page: usize) {
        self.lock().page = page;
    }

    /// Takes the requests: the path with the query.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().requests)
    }

    /// Returns the number of watches that the client has not dropped.
    pub(crate) fn watches(&self) -> usize {
        let mut state = self.lock();
        state.watches.retain(|watch| !watch.is_closed());
        state.watches.len()
    }

    async fn answer(&self, uri: String) -> Result<Response<Stream>, std::io::Error> {
        let is_watch = uri.contains("watch=true");
        let fault = {
            let mut state = self.lock();
            state.requests.push(uri.clone());
            let faults = if is_watch { &mut state.watch_faults } else { &mut state.list_faults };
            faults.pop_front()
        };
        match fault {
            Some(Fault::Hang) => pending().await,
            Some(Fault::Refuse) => Err(std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "refused")),
            Some(Fault::Text(text)) => Ok(whole(200, text)),
            Some(Fault::Status(code)) => Ok(whole(code, &status(code, "Expired").to_string())),
            None if is_watch => Ok(Response::new(self.lock().watch(&uri))),
            None => Ok(whole(200, &self.lock().list(&uri).to_string())),
        }
    }
}

impl State {
    /// Moves to the next version. The first one is 1, because 0 means any version.
    fn step(&mut self) {
        self.version = self.version.max(1) + 1;
    }

    fn log_event(&mut self, kind: &'static str, slice: Value) {
        self.send(&event(kind, slice.clone()));
        self.log.push((self.version, kind, slice));
    }

    fn send(&mut self, line: &str) {
        let bytes = Bytes::copy_from_slice(line.as_bytes());
        // In two parts, because a line need not be one frame.
        let (one, two) = (bytes.slice(..bytes.len() / 3), bytes.slice(bytes.len() / 3..));
        self.watches.retain(|watch| watch.send(Ok(one.clone())).is_ok() && watch.send(Ok(two.clone())).is_ok());
    }

    fn list(&self, uri: &str) -> Value {
        let from = query(uri, "continue").map_or(0, |token| token.parse::<usize>().unwrap());
        let page = if self.page == 0 { usize::MAX } else { self.page };
        let items: Vec<_> = self.slices.values().skip(from).take(page).collect();
        let next = from + items.len();
        let more = if next < self.slices.len() { json!(next.to_string()) } else { json!("") };
        let metadata = json!({ "resourceVersion": self.version.max(1).to_string(), "continue": more });
        json!({ "kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1", "metadata": metadata, "items": items })
    }

    fn watch(&mut self, uri: &str) -> Stream {
        let from: u64 = query(uri, "resourceVersion").unwrap().parse().unwrap();
        let (sender, receiver) = unbounded_channel();
        if from < self.compacted {
            let _ = sender.send(Ok(Bytes::from(event("ERROR", status(410, "Expired")))));
            return Stream(receiver);
        }
        for (_, kind, slice) in self.log.iter().filter(|(version, ..)| *version > from) {
            let _ = sender.send(Ok(Bytes::from(event(kind, slice.clone()))));
        }
        self.watches.push(sender);
        Stream(receiver)
    }
}

fn query<'a>(uri: &'a str, name: &str) -> Option<&'a str> {
    let query = uri.split_once('?')?.1;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn event(kind: &str, object: Value) -> String {
    format!("{}\n", json!({ "type": kind, "object": object }))
}

fn status(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("scripted {code}"), "reason": reason, "code": code,
    })
}

fn whole(code: u16, text: &str) -> Response<Stream> {
    let (sender, receiver) = unbounded_channel();
    let _ = sender.send(Ok(Bytes::copy_from_slice(text.as_bytes())));
    let mut response = Response::new(Stream(receiver));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

/// The body of a response, which ends when the server drops its side.
pub(crate) struct Stream(UnboundedReceiver<Result<Bytes, std::io::Error>>);

impl Body for Stream {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|part| part.map(|part| part.map(Frame::data)))
    }
}
