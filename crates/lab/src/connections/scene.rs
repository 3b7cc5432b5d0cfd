//! The scenes: the servers, and the fault that each has for a while.

use clap::ValueEnum;

use super::fleet::{Calls, Fleet};
use super::times::SECOND;

/// A scene on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Scene {
    /// Each second the server resets one connection
    Reset,
    /// Ten times a second the server sends GOAWAY on all connections, and processes no stream above the last
    Goaway,
    /// Each of two servers in turn is killed and returns after a second, one every four seconds
    Rolling,
    /// The server dies after 1,000 responses, and returns after --restart
    #[value(name = "crash-1000")]
    Crash1000,
    /// The server dies after 100 responses, and returns after --restart
    #[value(name = "crash-100")]
    Crash100,
    /// The server dies after 20 responses, and returns after --restart
    #[value(name = "crash-20")]
    Crash20,
    /// The server stalls at a load of 0.9. Its balancer resets all connections whenever 300 ms of work wait
    Balancer,
    /// The server refuses every stream before it processes it
    RefusedStreams,
    /// The server resets a connection at every request
    HangsUp,
    /// A token dies each second, and the client holds calls back for the 20 ms in which it renews it
    Token,
    /// As token, but new calls carry the dead token meanwhile
    TokenUnheld,
    /// All three servers of the first tier refuse connections, and two others are the second tier
    TierRefuses,
    /// All three servers of the first tier reset a connection at every request, and two others are the second tier
    TierHangsUp,
    /// All three servers refuse connections
    AllRefuse,
}

/// An action of a fault that recurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strike {
    ResetOne,
    GoAway,
    KillNext,
    ExpireToken,
}

impl Scene {
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Reset => "one connection reset each second",
            Self::Goaway => "GOAWAY on all, 10 a second",
            Self::Rolling => "rolling restart of 2",
            Self::Crash1000 => "crash loop, 1000 responses",
            Self::Crash100 => "crash loop, 100 responses",
            Self::Crash20 => "crash loop, 20 responses",
            Self::Balancer => "stall, balancer resets all",
            Self::RefusedStreams => "refuses all streams",
            Self::HangsUp => "hangs up",
            Self::Token => "token dies each second",
            Self::TokenUnheld => "token dies, calls not held",
            Self::TierRefuses => "tier of 3 refuses, 2 behind",
            Self::TierHangsUp => "tier of 3 hangs up, 2 behind",
            Self::AllRefuse => "all 3 refuse",
        }
    }

    /// Returns the fleets of the scene, unless the command line has others.
    pub(super) fn fleets(self) -> Vec<Fleet> {
        let in_flight = |clients, calls, connections| Fleet { clients, calls: Calls::InFlight(calls), connections };
        let rate = |clients, rate| Fleet { clients, calls: Calls::PerSecond(rate), connections: 1 };
        match self {
            Self::Reset | Self::Goaway => vec![in_flight(1, 64, 1), in_flight(1, 256, 4), rate(1000, 1.0)],
            Self::Crash1000 => vec![in_flight(1, 64, 1), in_flight(1, 256, 4)],
            Self::Crash100 => vec![in_flight(1, 64, 1), rate(1000, 1.0)],
            Self::Crash20 => vec![in_flight(1, 64, 1)],
            Self::Token | Self::TokenUnheld => vec![in_flight(1, 64, 2), in_flight(1, 256, 4)],
            Self::Rolling => vec![in_flight(1, 64, 1), rate(100, 10.0)],
            Self::Balancer => vec![rate(20, 50.0), rate(2000, 0.2)],
            Self::RefusedStreams | Self::HangsUp | Self::TierHangsUp => vec![in_flight(1, 64, 1), rate(1000, 1.0)],
            Self::TierRefuses => vec![rate(100, 10.0), rate(1000, 1.0)],
            Self::AllRefuse => vec![rate(1000, 1.0)],
        }
    }

    /// Returns the number of servers of the first tier, and of the second.
    pub(super) const fn servers(self) -> [usize; 2] {
        match self {
            Self::Rolling => [2, 0],
            Self::TierRefuses | Self::TierHangsUp => [3, 2],
            Self::AllRefuse => [3, 0],
            _ => [1, 0],
        }
    }

    /// Returns the number of servers that can just carry the load. With two servers in turn, one can.
    pub(super) const fn carrying(self) -> usize {
        match self {
            Self::TierRefuses | Self::TierHangsUp => 2,
            Self::AllRefuse => 3,
            _ => 1,
        }
    }

    /// Returns the share of the capacity that the load takes.
    pub(super) const fn load(self) -> f64 {
        match self {
            Self::Balancer => 0.9,
            _ => 0.8,
        }
    }

    /// Returns the usual duration of the fault, in seconds.
    pub(super) const fn fault(self) -> u64 {
        match self {
            Self::Balancer => 5,
            _ => 60,
        }
    }

    /// Returns the recurring action of the fault, and its interval.
    pub(super) const fn strikes(self) -> Option<(Strike, u64)> {
        match self {
            Self::Reset => Some((Strike::ResetOne, SECOND)),
            Self::Goaway => Some((Strike::GoAway, SECOND / 10)),
            Self::Rolling => Some((Strike::KillNext, 4 * SECOND)),
            Self::Token | Self::TokenUnheld => Some((Strike::ExpireToken, SECOND)),
            _ => None,
        }
    }

    /// Returns the number of responses after which the server dies.
    pub(super) const fn dies_after(self) -> Option<u64> {
        match self {
            Self::Crash1000 => Some(1000),
            Self::Crash100 => Some(100),
            Self::Crash20 => Some(20),
            _ => None,
        }
    }

    /// Returns `true` if servers of the first tier refuse connections during the fault.
    pub(super) const fn refuses_connections(self) -> bool {
        matches!(self, Self::TierRefuses | Self::AllRefuse)
    }

    /// Returns `true` if servers of the first tier reset the connection of a request during the fault.
    pub(super) const fn hangs_up(self) -> bool {
        matches!(self, Self::HangsUp | Self::TierHangsUp)
    }

    /// Returns `true` if a client with a dead token sends nothing until it has a new one.
    pub(super) const fn holds_calls(self) -> bool {
        matches!(self, Self::Token)
    }
}
