//! The comparison of two endpoints by their prices.
//!
//! The price is latency × (in flight + 1) × (1 + 32 f), where f is the running failure rate. In a tier with
//! weights, the load is in flight ÷ weight + 1 ÷ largest weight instead (W-1). In a pair:
//!
//! | rule | reason |
//! |---|---|
//! | a latency counts as at most eight times the other one (P-3) | the cheaper endpoint would otherwise catch the calls of all while it pauses |
//! | latencies that differ by at most half of the smaller one are equal (P-4) | equal servers get equal numbers of calls |
//! | an endpoint that has not answered counts as its rival, or as its lower bound if that is more, for one call at a time (P-7) | with a fixed default, the endpoint would get no calls or too many |

use super::endpoint::Member;
use super::words::Stamp;

/// The number of calls in flight above which the price no longer rises, so that a price fits in 64 bits.
const MOST_IN_FLIGHT: usize = 1 << 16;
/// The greatest load in a tier with weights: at least 256 calls at an endpoint.
const MOST_WEIGHTED: u64 = 1 << 17;
/// The greatest ratio of the latencies of a pair.
const MOST_RATIO: u64 = 8;

impl<T> Member<T> {
    /// Returns `true` if this endpoint has a lower price than the other one. If the prices are equal, neither is
    /// cheaper.
    pub(crate) fn is_cheaper(&self, other: &Self, weighted: bool, now: Stamp) -> bool {
        match self.latencies(other, now) {
            Some(latencies) => self.has_lower_price(other, latencies, self.loads(other, weighted), now),
            None => self.seems_cheaper(other, weighted, now),
        }
    }

    /// Returns the loads of both, in a tier with or without weights.
    // A function call would make a pick 10 % slower.
    #[inline(always)]
    pub(crate) fn loads(&self, other: &Self, weighted: bool) -> (u64, u64) {
        match weighted {
            true => (self.weighted_load().min(MOST_WEIGHTED), other.weighted_load().min(MOST_WEIGHTED)),
            false => (self.load(), other.load()),
        }
    }

    #[inline]
    fn load(&self) -> u64 {
        (self.in_flight() + 1).min(MOST_IN_FLIGHT) as u64
    }

    /// Returns the latencies of both, or `None` if one is unknown.
    // A function call would make a pick 10 % slower.
    #[inline(always)]
    pub(crate) fn latencies(&self, other: &Self, now: Stamp) -> Option<(u32, u32)> {
        match (self.endpoint().latency.read(now), other.endpoint().latency.read(now)) {
            (0, _) | (_, 0) => None,
            latencies => Some(latencies),
        }
    }

    /// Compares the prices if a latency is unknown. One attempt at a time is then enough to measure it.
    #[cold]
    fn seems_cheaper(&self, other: &Self, weighted: bool, now: Stamp) -> bool {
        let loads = self.loads(other, weighted);
        let [own, others] = [self, other].map(|member| &member.endpoint().latency);
        let [at_least, rival_at_least] = [own, others].map(|latency| latency.at_least(now));
        // A lower bound is no latency, so the ratio to a known latency has no bound.
        let (latency, rival) = match (own.read(now), others.read(now)) {
            (0, 0) => return self.has_lower_price(other, (at_least.max(1), rival_at_least.max(1)), loads, now),
            (0, _) if self.is_being_measured() => return false,
            (0, rival) => (at_least.max(rival), rival),
            (_, 0) if other.is_being_measured() => return true,
            (latency, _) => (latency, rival_at_least.max(latency)),
        };
        self.price(latency.into(), loads.0, now) < other.price(rival.into(), loads.1, now)
    }

    /// Returns `true` if the endpoint has not answered, although an attempt is in flight or was dropped lately.
    pub(crate) fn is_silent(&self, now: Stamp) -> bool {
        let latency = &self.endpoint().latency;
        latency.read(now) == 0 && (self.is_being_measured() || latency.at_least(now) > 0)
    }

    /// Returns `true` if an attempt is in flight that will measure the latency. Calls that were open at the last return
    /// are none.
    fn is_being_measured(&self) -> bool {
        self.in_flight() > self.endpoint().latency.open_before()
    }

    /// Compares the prices, with the latencies of both in units of 256 ns.
    // A function call would make a pick 10 % slower.
    #[inline(always)]
    pub(crate) fn has_lower_price(
        &self,
        other: &Self,
        (latency, rival): (u32, u32),
        loads: (u64, u64),
        now: Stamp,
    ) -> bool {
        let (latency, rival) = (u64::from(latency), u64::from(rival));
        let lower = latency.min(rival);
        let is_equal = latency.max(rival) <= lower + lower / 2;
        let most = if is_equal { lower } else { MOST_RATIO * lower };
        self.price(latency.min(most), loads.0, now) < other.price(rival.min(most), loads.1, now)
    }

    /// Returns the price. It fits in 64 bits, because its factors are below 2³¹, at most 2¹⁷, and below 34 × 1,024.
    #[inline]
    fn price(&self, latency: u64, load: u64, now: Stamp) -> u64 {
        latency * load * self.endpoint().failures.factor(now)
    }
}
