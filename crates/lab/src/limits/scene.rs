//! The scenes: what happens to the server and to the load, phase by phase.

use clap::ValueEnum;

/// A scene of `lab limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Scene {
    /// The server loses half of its workers for a while
    Step,
    /// The server slows down over three minutes, to a third of its capacity
    Leak,
    /// The server fails all requests at once for a minute
    Failures,
    /// A fifth of the requests take sixteen times as long as the others
    Bimodal,
    /// The client calls twice per second, and then above the capacity
    Idle,
}

/// A stretch of time with one kind of server and load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) seconds: u32,
    /// Requests that are processed in parallel.
    pub(super) workers: u32,
    /// The mean time of a request in seconds, at the start and at the end of the phase.
    pub(super) service: (f64, f64),
    /// `true` if a fifth of the requests takes long.
    pub(super) bimodal: bool,
    /// `true` if every request fails at once.
    pub(super) fails: bool,
    /// Calls a second.
    pub(super) load: f64,
}

/// 16 workers of 50 ms answer 320 requests a second; the load is a quarter more.
const STEADY: Phase = Phase {
    name: "steady",
    seconds: 60,
    workers: 16,
    service: (0.05, 0.05),
    bimodal: false,
    fails: false,
    load: 400.0,
};

/// In a bimodal phase, this share of the requests takes this much of the mean, and the others the rest.
const SLOW_SHARE: f64 = 0.2;
const SLOW_FACTOR: f64 = 4.0;

impl Scene {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Step => "capacity step",
            Self::Leak => "slow leak",
            Self::Failures => "fast failures",
            Self::Bimodal => "bimodal latency",
            Self::Idle => "idle client",
        }
    }

    pub(super) fn phases(self) -> Vec<Phase> {
        let named = |name, phase| Phase { name, ..phase };
        let below = Phase { load: 240.0, ..STEADY };
        match self {
            Self::Step => {
                vec![named("before", STEADY), named("half", Phase { workers: 8, ..STEADY }), named("after", STEADY)]
            }
            Self::Leak => vec![
                named("before", STEADY),
                named("slower", Phase { seconds: 180, service: (0.05, 0.15), ..STEADY }),
                named("slow", Phase { service: (0.15, 0.15), ..STEADY }),
            ],
            Self::Failures => {
                vec![named("before", below), named("failing", Phase { fails: true, ..below }), named("after", below)]
            }
            Self::Bimodal => vec![
                named("above capacity", Phase { bimodal: true, seconds: 120, ..STEADY }),
                named("below", Phase { bimodal: true, ..below }),
            ],
            Self::Idle => vec![named("idle", Phase { load: 2.0, seconds: 180, ..STEADY }), named("busy", STEADY)],
        }
    }
}

impl Phase {
    /// Returns the mean time of a request in seconds, at a place of the phase from 0 to 1.
    fn mean(&self, place: f64) -> f64 {
        let (from, to) = self.service;
        from + (to - from) * place
    }

    /// Returns the time of a request in seconds, from two random numbers in [0, 1).
    pub(super) fn service_time(&self, place: f64, [kind, spread]: [f64; 2]) -> f64 {
        let mean = self.mean(place);
        let mean = match (self.bimodal, kind < SLOW_SHARE) {
            (false, _) => mean,
            (true, true) => mean * SLOW_FACTOR,
            (true, false) => mean * (1.0 - SLOW_SHARE * SLOW_FACTOR) / (1.0 - SLOW_SHARE),
        };
        // A fifth more or less.
        mean * (0.8 + 0.4 * spread)
    }

    /// Returns the requests that the server can answer in a second.
    pub(super) fn capacity(&self, place: f64) -> f64 {
        if self.fails { 0.0 } else { f64::from(self.workers) / self.mean(place) }
    }
}
