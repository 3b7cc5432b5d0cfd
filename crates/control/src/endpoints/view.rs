//! The state of each endpoint, for `Debug`, metrics and snapshots.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::snapshot::Part;

use super::ejections::{MemberRecord, stamp};
use super::endpoint::EjectReason;
use super::latency_word::time_of;
use super::place::Place;
use super::trail::EndpointId;
use crate::sync::Ordering;

/// The state of an endpoint.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EndpointView {
    /// The id of the endpoint.
    pub id: EndpointId,
    /// The name of the endpoint.
    pub name: Arc<str>,
    /// The tier number, from 0.
    pub tier: usize,
    /// The weight, or 0 for a reserve.
    pub weight: u32,
    /// The number of attempts in flight.
    pub in_flight: usize,
    /// The number of attempts sent to the endpoint.
    pub picks: u64,
    /// The latency, if it is known. It halves every 2 s without an attempt, and is unknown after a return.
    pub latency: Option<Duration>,
    /// The running failure rate, from 0 to 1. It halves every 4 s without an attempt.
    pub failing: f64,
    /// The time until the endpoint returns, or `None` if it is in service.
    pub out: Option<Duration>,
    /// The reason for its ejection, or `None` if it is in service.
    pub reason: Option<EjectReason>,
}

impl EndpointView {
    /// Returns the state at `now`, in milliseconds, or as of the last attempt.
    pub(crate) fn of<T>(record: &MemberRecord<T>, now: Option<u64>) -> Self {
        let endpoint = record.member.endpoint();
        let (latency, failing) = match now.map(stamp) {
            Some(now) => (endpoint.latency.read(now), endpoint.failures.rate(now)),
            None => (endpoint.latency.last(), endpoint.failures.last_rate()),
        };
        // An endpoint whose ejection has expired returns with the next pick.
        let left = |until: u64| until.checked_sub(now.unwrap_or(0)).filter(|left| *left > 0);
        let ejected = record.ejected().filter(|_| record.out);
        let ejected = ejected.and_then(|(until, reason)| left(until).map(|left| (left, reason)));
        Self {
            id: endpoint.named.id,
            name: Arc::clone(&endpoint.named.name),
            tier: record.place.tier,
            weight: record.place.weight,
            in_flight: record.member.in_flight(),
            picks: endpoint.picks.load(Ordering::Relaxed),
            latency: (latency > 0).then(|| time_of(latency)),
            failing: f64::from(failing) / 65_536.0,
            out: ejected.map(|(left, _)| Duration::from_millis(left)),
            reason: ejected.map(|(_, reason)| reason),
        }
    }
}

impl EndpointView {
    /// Returns the price by which a pick compares endpoints of one tier, whose largest weight this is: the latency ×
    /// the load × (1 + 32 × the failure rate). The load is in flight ÷ weight + 1 ÷ the largest weight.
    fn price(&self, largest_weight: u32) -> Option<Duration> {
        let load = self.in_flight as f64 / f64::from(self.weight) + 1.0 / f64::from(largest_weight);
        let price = self.latency?.as_secs_f64() * load * (1.0 + 32.0 * self.failing);
        Duration::try_from_secs_f64(price).ok()
    }

    pub(crate) fn inspect(&self, largest_weight: u32) -> Part {
        Part::new("endpoint", &*self.name)
            .field("tier", self.tier)
            .field("weight", self.weight)
            .field("in_flight", self.in_flight)
            .field("picks", self.picks)
            .field_if("latency", self.latency)
            .field("failing", self.failing)
            .field_if("price", self.price(largest_weight))
            .field_if("out", self.out)
            .field_if("reason", self.reason.map(|reason| reason.to_string()))
    }
}

/// The endpoint's place in its set.
impl From<&EndpointView> for Place {
    fn from(view: &EndpointView) -> Self {
        Self::new().tier(view.tier).weight(view.weight)
    }
}
