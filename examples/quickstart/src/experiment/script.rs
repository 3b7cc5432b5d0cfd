//! The script of faults: one step for each attempt of each call.
//!
//! Input: a seed and a number of calls. Output: the calls and their steps. Attempt `k` of a call
//! meets step `k` whichever client sends it, so the clients can be compared. No step depends on
//! time or on other calls. A longer script begins like a shorter one of the same seed.

use std::fmt;

use http::Method;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};

/// All calls, numbered from 1.
#[derive(Debug)]
pub(crate) struct Script {
    calls: Vec<Call>,
}

/// One call, and its faults.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    /// The number of refused connections before one is accepted; `u32::MAX` for no end.
    refusals: u32,
    /// The steps of the attempts that reach the server; the last step repeats.
    steps: Vec<Step>,
}

/// The four kinds of request: three may be repeated, each for its own reason; the last may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Safe to repeat by its method.
    Get,
    /// Safe to repeat by its method, if its body can be sent again: it is streamed.
    Put,
    /// Safe to repeat because the server recognises its `Idempotency-Key`.
    PostWithKey,
    /// Not safe to repeat once the server may have carried it out.
    Post,
}

/// The server's behaviour for one attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// `true` if the server carries the request out before the fault.
    pub(crate) executed: bool,
    pub(crate) reply: Reply,
}

/// The server's answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    /// A status, with or without a delay that the server asks for.
    Status(u16, Wait),
    /// No answer: the connection is reset.
    Reset,
    /// A 200 with half of its body; then the connection is reset.
    BreakOff,
    /// An answer long after the client's time limit.
    Slow,
}

/// The delay that the server asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wait {
    Unsaid,
    /// `Retry-After`.
    Seconds(u32),
    /// `Retry-After-Ms`.
    Millis(u32),
}

impl Script {
    pub(crate) fn draw(seed: u64, calls: u32) -> Self {
        // A named generator, so that a seed gives the same script on every platform.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { calls: (0..calls).map(|_| Call::draw(&mut random)).collect() }
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = (u32, &Call)> {
        (1..).zip(&self.calls)
    }

    pub(crate) fn call(&self, id: u32) -> Option<&Call> {
        self.calls.get(usize::try_from(id.checked_sub(1)?).ok()?)
    }
}

impl Call {
    fn draw(random: &mut impl Rng) -> Self {
        let kind = match random.random_range(0..10) {
            0..4 => Kind::Get,
            4..6 => Kind::Put,
            6..8 => Kind::PostWithKey,
            _ => Kind::Post,
        };
        // Of 20 calls, 9 meet no fault, 9 meet one or two, and 2 always fail.
        let (faults, hopeless) = match random.random_range(0..20) {
            0..9 => (0, false),
            9..15 => (1, false),
            15..18 => (2, false),
            _ => (1, true),
        };
        let mut call = Self { kind, refusals: 0, steps: Vec::new() };
        for _ in 0..faults {
            match Step::draw_fault(random) {
                Some(step) => call.steps.push(step),
                None if hopeless => call.refusals = u32::MAX,
                None => call.refusals += 1,
            }
        }
        if !hopeless {
            call.steps.push(Step::SUCCESS);
        }
        call
    }

    /// Returns `true` if connection number `connection`, from 0, is refused.
    pub(crate) fn refuses(&self, connection: u32) -> bool {
        connection < self.refusals
    }

    /// Returns the step of the `arrival`th attempt that reaches the server, from 1.
    pub(crate) fn step(&self, arrival: u32) -> Step {
        let index = usize::try_from(arrival.saturating_sub(1)).unwrap_or(usize::MAX);
        let step = self.steps.get(index).or_else(|| self.steps.last());
        step.copied().unwrap_or(Step::SUCCESS)
    }
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Get, Kind::Put, Kind::PostWithKey, Kind::Post];

    pub(crate) fn method(self) -> Method {
        match self {
            Kind::Get => Method::GET,
            Kind::Put => Method::PUT,
            Kind::PostWithKey | Kind::Post => Method::POST,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Get => "GET",
            Kind::Put => "PUT",
            Kind::PostWithKey => "POST with a key",
            Kind::Post => "POST without a key",
        })
    }
}

impl Step {
    const SUCCESS: Self = Self { executed: true, reply: Reply::Status(200, Wait::Unsaid) };

    /// The answer to a request that arrived incomplete.
    pub(crate) const GARBLED: Self = Self { executed: false, reply: Reply::Status(400, Wait::Unsaid) };

    /// Draws a fault; `None` for a refused connection.
    fn draw_fault(random: &mut impl Rng) -> Option<Self> {
        let maybe_executed = random.random_bool(0.5);
        let (reply, executed) = match random.random_range(0..100) {
            0..14 => return None,
            14..32 => (Reply::Status(503, Wait::Unsaid), maybe_executed),
            32..36 => (Reply::Status(503, Wait::Seconds(1)), maybe_executed),
            36..46 => {
                let wait = Wait::Millis(random.random_range(50..300));
                (Reply::Status(503, wait), maybe_executed)
            }
            46..60 => (Reply::Status(500, Wait::Unsaid), maybe_executed),
            60..66 => (Reply::Status(429, Wait::Unsaid), false),
            66..72 => (Reply::Status(429, Wait::Millis(random.random_range(50..300))), false),
            72..87 => (Reply::Reset, maybe_executed),
            87..92 => (Reply::BreakOff, true),
            _ => (Reply::Slow, maybe_executed),
        };
        Some(Self { executed, reply })
    }
}
