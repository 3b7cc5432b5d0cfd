//! Weights of endpoints from the load that their servers report.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{HeaderMap, Response};
use http_body::{Body, Frame};
use pin_project_lite::pin_project;
use reattempt_control::Place;
use reattempt_engine::body::{Watch, Watched};
use reattempt_guard::handle::now;
use tower_service::Service;

use super::handle::name_of;
use super::load_report::LoadReport;

/// The time from a server's first report until its weight counts.
const BLACKOUT: Duration = Duration::from_secs(10);
/// The time from a server's last report until its weight no longer counts.
const EXPIRY: Duration = Duration::from_secs(180);
/// The time for which the mean of the weights is kept, so that it is not computed for each of many endpoints.
const MEAN_AGE: Duration = Duration::from_millis(100);
/// The weight of an endpoint with the mean weight, so that weights are rounded to 1 % of the mean.
const MEAN_WEIGHT: f64 = 100.0;

/// The load reports of a client's servers, from which its endpoints get their weights.
///
/// Use it if servers differ in size, or have other work to do. They report their load in their responses, by the Open
/// Request Cost Aggregation (ORCA) of xDS. A server that reports twice the utilization of another one at the same rate
/// of calls gets half the calls. Clones share the reports. Create one for each client with endpoints.
///
/// [`watch`](Self::watch) wraps the client of each endpoint, and reads the reports. [`place`](Self::place) sets the
/// weight. A look-up places its endpoints again after each answer, even if the answer is unchanged, so set its interval
/// to 1 s to 10 s:
///
/// ```
/// use std::net::SocketAddr;
/// use std::time::Duration;
/// use reattempt::endpoints::{Endpoints, LoadReports};
/// # use bytes::Bytes;
/// # use http_body_util::Empty;
/// # fn client_of(_: SocketAddr) -> hyper_util::client::legacy::Client<
/// #     hyper_util::client::legacy::connect::HttpConnector, Empty<Bytes>,
/// # > {
/// #     hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http()
/// # }
///
/// # fn main() -> Result<(), reattempt::endpoints::EndpointsError> {
/// let reports = LoadReports::new();
/// let watch = reports.clone();
/// let client = Endpoints::dns("orders.default.svc:8080", Duration::from_secs(1))?
///     .placed(move |address, place| reports.place(address, place))
///     .connect(move |address| watch.watch(&address, client_of(address)))
///     .http();
/// # reattempt::check::<http::Request<Empty<Bytes>>, _>(&client);
/// # Ok(())
/// # }
/// ```
///
/// For a list or a stream of changes, call [`place_again`](super::EndpointsHandle::place_again) once per second from a
/// task. With a handle's update, use [`update_placed`](super::EndpointsHandle::update_placed), so that new endpoints
/// have the same scale of weights.
///
/// Each endpoint needs its own client, whose responses are `http::Response`s. Reports are not read from reqwest's
/// responses, nor through an [`EndpointsLayer`](super::EndpointsLayer), which has one client for all servers.
///
/// # Reports
///
/// | field | in | format |
/// |---|---|---|
/// | `endpoint-load-metrics` | headers, trailers | `TEXT cpu_utilization=0.3,rps_fractional=100`, or `BIN` and a base64-encoded message. `JSON` is not read. |
/// | `endpoint-load-metrics-bin` | headers, trailers | a base64-encoded `xds.data.orca.v3.OrcaLoadReport` |
///
/// If both are present, only `endpoint-load-metrics-bin` is read. A report that is longer than 4,096 bytes or cannot be
/// parsed is ignored, and so is a value that is negative, infinite or not a number. Reports in a stream of their own
/// (`OpenRcaService`) are not requested.
///
/// # Weights
///
/// The weight of a server is rps ÷ (utilization + eps ÷ rps), as for `weighted_round_robin` in gRFC A58. `rps` is
/// `rps_fractional`, `eps` the errors per second, and the utilization is `application_utilization`, or without it
/// `cpu_utilization`. A report without a utilization or a rate is ignored. The weight counts from 10 s after a server's
/// first report, because a new server is not warm yet, until 3 min after its last one. An endpoint without such a
/// weight gets the mean of the others. If fewer than two have one, all weights are equal.
///
/// The weight steers how often an endpoint is drawn, and at most by the factor 64. The price of a slow or failing
/// endpoint still wins over its weight, so a server cannot attract calls that it does not answer.
#[derive(Clone, Default)]
pub struct LoadReports {
    table: Arc<Mutex<ReportTable>>,
}

#[derive(Default)]
struct ReportTable {
    /// The last reports by the names of endpoints. Clients, calls and response bodies keep them alive.
    servers: HashMap<Arc<str>, Weak<LastReport>>,
    /// The mean of the weights, or `None` if fewer than two count, and the time when it was computed.
    mean: Option<(Option<f64>, Duration)>,
}

impl LoadReports {
    /// Creates an empty table of reports.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wraps the client of the endpoint with this key. Its responses are returned unchanged, after their reports are
    /// read. The report of the endpoint is kept until the last clone of this client and its calls are dropped.
    pub fn watch<C>(&self, key: &(impl Display + ?Sized), client: C) -> Watching<C> {
        let (name, mut table) = (name_of(key), self.table());
        let servers = &mut table.servers;
        if servers.len() == servers.capacity() {
            servers.retain(|_, report| report.strong_count() > 0);
        }
        let known = servers.get(&name).and_then(Weak::upgrade);
        let report = known.unwrap_or_default();
        servers.insert(name, Arc::downgrade(&report));
        Watching { client, report }
    }

    /// Returns the place with the weight of the endpoint with this key or name, in place of its weight so far. A
    /// reserve ([weight 0](Place::weight)) stays one.
    // W-5
    pub fn place(&self, key: &(impl Display + ?Sized), place: Place) -> Place {
        if place.get_weight() == 0 {
            return place;
        }
        let (key, now) = (key.to_string(), now());
        let mut table = self.table();
        // The name of a key with credentials is no such key.
        let report = table.servers.get(&*key).or_else(|| table.servers.get(&name_of(&key)));
        let weight = report.and_then(Weak::upgrade).and_then(|report| report.weight(now));
        let ratio = table.mean(now).zip(weight).map_or(1.0, |(mean, weight)| weight / mean);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates, and is positive")]
        let rounded = (ratio * MEAN_WEIGHT).round() as u32;
        place.weight(rounded.max(1))
    }

    fn table(&self) -> MutexGuard<'_, ReportTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReportTable {
    /// Returns the mean of the weights that count, if there are two or more.
    fn mean(&mut self, now: Duration) -> Option<f64> {
        if let Some((mean, at)) = self.mean
            && now.saturating_sub(at) < MEAN_AGE
        {
            return mean;
        }
        let (mut sum, mut count) = (0.0, 0_u32);
        for weight in self.servers.values().filter_map(|report| report.upgrade()?.weight(now)) {
            sum += weight;
            count += 1;
        }
        let mean = (count > 1).then(|| sum / f64::from(count));
        self.mean = Some((mean, now));
        mean
    }
}

/// The output contains the number of endpoints.
impl fmt::Debug for LoadReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadReports").field("servers", &self.table().servers.len()).finish()
    }
}

/// The weight by a server's last report, with the times of that report and of the first one.
#[derive(Debug, Default)]
struct LastReport(Mutex<Option<ReportedWeight>>);

#[derive(Debug, Clone, Copy)]
struct ReportedWeight {
    weight: f64,
    first: Duration,
    last: Duration,
}

impl LastReport {
    /// Records the report in these headers or trailers, if any.
    fn read(&self, fields: &HeaderMap) {
        let Some(weight) = LoadReport::read(fields).and_then(|report| report.weight()) else { return };
        let (mut reported, last) = (self.reported(), now());
        // After a gap, the blackout begins again.
        let first = reported.filter(|reported| !reported.is_over(last)).map_or(last, |reported| reported.first);
        *reported = Some(ReportedWeight { weight, first, last });
    }

    fn weight(&self, now: Duration) -> Option<f64> {
        let reported = *self.reported();
        let counts = |it: &ReportedWeight| !it.is_over(now) && now.saturating_sub(it.first) >= BLACKOUT;
        reported.filter(counts).map(|reported| reported.weight)
    }

    fn reported(&self) -> MutexGuard<'_, Option<ReportedWeight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReportedWeight {
    fn is_over(&self, now: Duration) -> bool {
        now.saturating_sub(self.last) >= EXPIRY
    }
}

/// The client of an endpoint whose load reports are read, created by [`LoadReports::watch`].
///
/// The heads of responses, the frames of their bodies and errors are returned unchanged.
#[derive(Debug, Clone)]
pub struct Watching<C> {
    client: C,
    report: Arc<LastReport>,
}

impl<C, Req, B> Service<Req> for Watching<C>
where
    C: Service<Req, Response = Response<B>>,
{
    type Response = Response<Watched<B, ReportWatch>>;
    type Error = C::Error;
    type Future = WatchingFuture<C::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        self.client.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        WatchingFuture { response: self.client.call(request), report: Some(Arc::clone(&self.report)) }
    }
}

pin_project! {
    /// The response future of [`Watching`].
    #[derive(Debug)]
    pub struct WatchingFuture<F> {
        #[pin]
        response: F,
        // `None` once it is with the response body.
        report: Option<Arc<LastReport>>,
    }
}

impl<F, B, E> Future for WatchingFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<Watched<B, ReportWatch>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.response.poll(cx))?;
        let report = this.report.take();
        if let Some(report) = &report {
            report.read(response.headers());
        }
        Poll::Ready(Ok(response.map(|body| Watched::new(body, ReportWatch(report)))))
    }
}

/// The watcher of a response body that reads the report in its trailers.
#[derive(Debug, Default)]
pub struct ReportWatch(Option<Arc<LastReport>>);

impl<B: Body> Watch<B> for ReportWatch {
    type Error = B::Error;

    fn error(error: B::Error) -> B::Error {
        error
    }

    fn read_frame(&mut self, frame: Option<Result<&Frame<B::Data>, &B::Error>>, _: impl FnOnce() -> bool) {
        let trailers = frame.and_then(Result::ok).and_then(Frame::trailers_ref);
        if let (Some(report), Some(trailers)) = (&self.0, trailers) {
            report.read(trailers);
        }
    }
}
