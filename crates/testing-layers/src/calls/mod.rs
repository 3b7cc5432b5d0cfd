//! Helpers for tests of whole calls: a scripted server, requests, bodies and a log of events.

mod bodies;
mod server;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use reattempt::observe::{Event, Observer};
use reattempt::{CallOptions, Http, Report, RetryPolicy};
use reattempt_control::RetryBudget;
use reattempt_core::{Failure, FailureKind, Verdict};
use reattempt_schedule_fixed::Constant;

pub use reattempt_testing::ms;

pub use bodies::{AnswerBody, FedBody, Watch, endless, failing, fed, of_frames, watched};
pub use server::{Act, Answer, Attempt, Broken, Mocked, Server, answer, mocked, ready};

pub type Body = Full<Bytes>;
pub type Policy = RetryPolicy<Http, Constant>;

pub const ONE: &str = "http://one.example/";
pub const TWO: &str = "http://two.example/";

/// Returns the defaults, except that the delay is exactly 100 ms.
pub fn policy() -> Policy {
    RetryPolicy::http().backoff(Constant::new(ms(100))).budget(RetryBudget::percent(10)).seed(1)
}

/// Returns a budget with this many tokens per destination, which only successes refill.
pub fn tokens(capacity: f64) -> RetryBudget {
    RetryBudget::ratio(0.1).min_per_second(0.0).capacity(capacity)
}

pub fn request(method: &str, uri: &str, body: &'static str) -> Request<Body> {
    Request::builder().method(method).uri(uri).body(Body::from(body)).unwrap()
}

pub fn get() -> Request<Body> {
    request("GET", ONE, "")
}

pub fn put() -> Request<Body> {
    request("PUT", ONE, "hello")
}

pub fn post() -> Request<Body> {
    request("POST", ONE, "hello")
}

pub trait With {
    /// Returns the request with a value in its extensions.
    fn with<T: Clone + Send + Sync + 'static>(self, value: T) -> Self;
    /// Returns the request with a header.
    fn header(self, name: &'static str, value: &'static str) -> Self;
}

impl<B> With for Request<B> {
    fn with<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions_mut().insert(value);
        self
    }

    fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers_mut().insert(name, value.parse().unwrap());
        self
    }
}

pub fn options() -> CallOptions {
    CallOptions::new()
}

pub fn server_failure(code: u16) -> Failure {
    Failure::new(FailureKind::Server).with_code(code)
}

pub fn transient(code: u16) -> Verdict {
    Verdict::Transient(server_failure(code))
}

pub fn report_of(answer: &Answer) -> &Report {
    answer.extensions().get::<Report>().expect("a report in the response")
}

/// Every event as text, after the destination.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Log {
    fn on_event(&self, destination: &str, event: &Event<'_>) {
        self.0.lock().unwrap().push(format!("{destination}: {event}"));
    }
}
