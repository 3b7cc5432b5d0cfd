//! A middleware that acts as a server, and the client around it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Extensions, HeaderMap, Response};
use reattempt::schedule::Constant;
use reattempt::{Http, RetryBudget, RetryPolicy};
use reattempt_reqwest_middleware::{ChainLayer, ReattemptMiddleware};
use reqwest::Request;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, Result};

/// One answer of the server.
#[derive(Debug)]
pub(crate) enum Answer {
    Status(u16),
    WithHeader(u16, &'static str, &'static str),
    /// The response comes after this delay.
    Slow(Duration),
    /// The body breaks.
    Torn,
    /// The middleware itself fails.
    Broken(std::io::ErrorKind),
}

/// A server that follows a script, and then responds with 200. It is the last middleware of a chain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Server {
    script: Arc<Mutex<VecDeque<Answer>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) host: Option<String>,
    pub(crate) headers: HeaderMap,
    /// The body, if it is bytes.
    pub(crate) bytes: Option<Vec<u8>>,
    /// The marks of earlier attempts, which the server leaves in the extensions.
    pub(crate) marks: usize,
}

/// The number of attempts that left a mark in these extensions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks(pub(crate) usize);

impl Server {
    pub(crate) fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        let script = Arc::new(Mutex::new(script.into_iter().collect()));
        Self { script, seen: Arc::default() }
    }

    pub(crate) fn statuses<const N: usize>(script: [u16; N]) -> Self {
        Self::new(script.map(Answer::Status))
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl Middleware for Server {
    async fn handle(&self, request: Request, extensions: &mut Extensions, _: Next<'_>) -> Result<reqwest::Response> {
        let marks = extensions.get_or_insert_default::<Marks>();
        let seen = Seen {
            host: request.url().host_str().map(str::to_owned),
            headers: request.headers().clone(),
            bytes: request.body().and_then(|body| body.as_bytes()).map(<[u8]>::to_vec),
            marks: marks.0,
        };
        marks.0 += 1;
        self.seen.lock().unwrap().push(seen);
        let answer = self.script.lock().unwrap().pop_front().unwrap_or(Answer::Status(200));
        let response = match answer {
            Answer::Status(status) => Response::builder().status(status),
            Answer::WithHeader(status, name, value) => Response::builder().status(status).header(name, value),
            Answer::Slow(time) => {
                tokio::time::sleep(time).await;
                Response::builder()
            }
            Answer::Torn => {
                let parts = [Ok("some"), Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))];
                let body = reqwest::Body::wrap_stream(futures_util::stream::iter(parts));
                return Ok(Response::new(body).into());
            }
            Answer::Broken(kind) => return Err(Error::middleware(std::io::Error::from(kind))),
        };
        Ok(response.body("").unwrap().into())
    }
}

/// Returns a policy of three attempts with a delay of 10 ms, whose budget grants every retry.
pub(crate) fn policy() -> RetryPolicy<Http, Constant> {
    RetryPolicy::http().backoff(Constant::new(Duration::from_millis(10))).budget(RetryBudget::unlimited())
}

/// Returns a client of this server, with a middleware that runs these layers.
pub(crate) fn client<L>(layer: L, server: &Server) -> ClientWithMiddleware
where
    L: for<'a> ChainLayer<'a> + Send + Sync + 'static,
{
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    ClientBuilder::new(http).with(ReattemptMiddleware::new(layer)).with(server.clone()).build()
}

pub(crate) const URL: &str = "http://orders.example/7";
