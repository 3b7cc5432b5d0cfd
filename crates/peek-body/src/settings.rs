//! The bounds within which a body is read, and the rules that judge it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};
use http_body::SizeHint;
use reattempt_core::{Classification, Classifier};
use reattempt_engine::Http;
use reattempt_engine::classify::{Outcome, RequestView};
use reattempt_engine::wall::clock;
use reattempt_replay::{ReplayLimits, ReplayMemory};

/// The most frames that are held. Each takes about a hundred bytes, however short it is.
pub(crate) const MOST_FRAMES: usize = 512;

/// The least time for the body of an error, which is short and worth reading.
const ERRORS_WITHIN: Duration = Duration::from_secs(1);

type Rule = Arc<dyn for<'a> Classifier<Outcome<'a>> + Send + Sync>;
type Choose = Arc<dyn Fn(RequestView<'_>) -> Option<Arc<Settings>> + Send + Sync>;

/// The settings of a layer. Clones share the memory.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) up_to: usize,
    pub(crate) within: Duration,
    pub(crate) limits: ReplayLimits,
    /// Names the destinations, among which the memory is shared.
    pub(crate) http: Http,
    pub(crate) rules: Vec<Rule>,
    /// Returns other settings for a request.
    pub(crate) choose: Option<Choose>,
}

impl Default for Settings {
    fn default() -> Self {
        let settings = Self {
            up_to: 64 * 1024,
            within: Duration::from_millis(100),
            limits: ReplayLimits::default(),
            http: Http::new(),
            rules: Vec::new(),
            choose: None,
        };
        settings.in_all(16 * 1024 * 1024)
    }
}

/// The way in which a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The length of the body, if it is known.
    pub(crate) length: Option<u64>,
    /// `true` if the body is read to its length, whatever time that takes.
    pub(crate) waits: bool,
    /// The time after which the body is handed on.
    pub(crate) within: Duration,
}

impl Settings {
    pub(crate) fn in_all(self, bytes: usize) -> Self {
        let limits = ReplayLimits::default().memory(ReplayMemory::new(bytes)).per_call(self.up_to);
        Self { limits: limits.by_destination(), ..self }
    }

    pub(crate) fn up_to(self, bytes: usize) -> Self {
        Self { up_to: bytes, limits: self.limits.per_call(bytes.max(1)), ..self }
    }

    /// Returns the settings for a request.
    pub(crate) fn for_request(self: &Arc<Self>, request: RequestView<'_>) -> Arc<Self> {
        let chosen = self.choose.as_ref().and_then(|choose| choose(request));
        chosen.unwrap_or_else(|| Arc::clone(self))
    }

    /// Returns the way in which a body is read, or `None` if it is handed on at once.
    // B-2, B-3, B-4
    pub(crate) fn plan(
        &self,
        (method, streamed): (&Method, bool),
        (status, headers): (StatusCode, &HeaderMap),
        length: &SizeHint,
    ) -> Option<Plan> {
        let is_tunnel = status.is_informational() || *method == Method::CONNECT;
        let is_empty = length.exact() == Some(0);
        let is_long = usize::try_from(length.lower()).map_or(true, |length| length > self.up_to);
        if is_tunnel || is_empty || is_long || self.up_to == 0 {
            return None;
        }
        let within = if status.is_success() { self.within } else { self.within.max(ERRORS_WITHIN) };
        // A server that reads while it writes may wait for a caller that waits for the response.
        let waits = length.exact().is_some() && !streamed;
        if !waits && (within.is_zero() || !clock::has_timer() || (length.exact().is_none() && is_stream(headers))) {
            return None;
        }
        Some(Plan { length: length.exact(), waits, within })
    }

    /// Returns the first verdict of a rule on a whole body.
    pub(crate) fn classify(&self, outcome: Outcome<'_>) -> Option<Classification> {
        self.rules.iter().find_map(|rule| rule.classify(outcome))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeekBodyLayer")
            .field("up_to", &self.up_to)
            .field("within", &self.within)
            .field("memory", self.limits.memory_ref())
            .field("rules", &self.rules.len())
            .finish_non_exhaustive()
    }
}

/// Returns `true` if a rule may read the bytes of the body.
// B-6
pub(crate) fn is_identity(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// The content types of bodies that are read while they are written.
const STREAMS: [&str; 8] = [
    "text/event-stream",
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/json-seq",
    "application/stream+json",
    "application/vnd.amazon.eventstream",
    "application/x-json-stream",
];

/// The beginnings of further such content types.
const FAMILIES: [&str; 3] = ["application/grpc", "application/connect+", "multipart/"];

/// Returns `true` if the content type is that of a stream.
fn is_stream(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return false };
    let kind = kind.as_bytes();
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let begins =
        |family: &&str| essence.get(..family.len()).is_some_and(|start| start.eq_ignore_ascii_case(family.as_bytes()));
    STREAMS.iter().any(|stream| essence.eq_ignore_ascii_case(stream.as_bytes())) || FAMILIES.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn plan(settings: &Settings, status: u16, kind: &'static str, length: Option<u64>, streamed: bool) -> Option<Plan> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        let hint = length.map_or_else(SizeHint::default, SizeHint::with_exact);
        settings.plan((&Method::GET, streamed), (StatusCode::from_u16(status).unwrap(), &headers), &hint)
    }

    // B-2, B-3, B-4
    #[tokio::test]
    async fn bodies_are_held_by_length_and_type() {
        let (ms, json) = (Duration::from_millis, "application/json");
        let settings = Settings::default();
        let wait = |length, waits, within| Some(Plan { length, waits, within: ms(within) });
        let rows = [
            (200, json, Some(2000), false, wait(Some(2000), true, 100)),
            (200, json, Some(2000), true, wait(Some(2000), false, 100)),
            (200, json, Some(0), false, None),
            (101, json, Some(5), false, None),
            (200, json, Some(64 * 1024), false, wait(Some(64 * 1024), true, 100)),
            (200, json, Some(64 * 1024 + 1), false, None),
            (200, json, None, false, wait(None, false, 100)),
            (400, json, None, false, wait(None, false, 1000)),
            (200, "text/event-stream", Some(9), false, wait(Some(9), true, 100)),
            (200, "Text/Event-Stream; charset=utf-8", None, false, None),
            (200, "application/x-ndjson", None, false, None),
            (200, "application/grpc+proto", None, false, None),
            (200, "application/connect+json", None, false, None),
            (200, "multipart/x-mixed-replace;boundary=x", None, false, None),
            (500, "application/json-seq", None, false, None),
        ];
        for (status, kind, length, streamed, expected) in rows {
            assert_eq!(plan(&settings, status, kind, length, streamed), expected, "{status} {kind} {length:?}");
        }
    }

    // B-3
    #[test]
    fn without_runtime_known_length_is_held() {
        let settings = Settings::default();
        assert!(plan(&settings, 200, "text/plain", Some(9), false).is_some());
        assert_eq!(plan(&settings, 200, "text/plain", None, false), None);
    }

    #[test]
    fn tunnel_is_not_held() {
        let hint = SizeHint::with_exact(9);
        let settings = Settings::default();
        assert_eq!(settings.plan((&Method::CONNECT, false), (StatusCode::OK, &HeaderMap::new()), &hint), None);
    }

    // B-6
    #[test]
    fn encoded_body_is_not_read() {
        let encoded = |value| HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(value))]);
        assert!(is_identity(&HeaderMap::new()) && is_identity(&encoded("Identity")));
        assert!(!is_identity(&encoded("gzip")) && !is_identity(&encoded("")));
    }
}
