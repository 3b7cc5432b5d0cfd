//! The scenes: which servers are faulty, and how.

use clap::ValueEnum;

/// A scene of `lab endpoints`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Scene {
    /// One of three servers refuses connections
    #[value(name = "1-of-3")]
    OneOfThree,
    /// Two of three servers refuse connections
    #[value(name = "2-of-3")]
    TwoOfThree,
    /// 8 of 20 servers refuse connections
    #[value(name = "8-of-20")]
    EightOfTwenty,
    /// 11 of 20 servers refuse connections
    #[value(name = "11-of-20")]
    ElevenOfTwenty,
    /// 14 of 20 servers refuse connections
    #[value(name = "14-of-20")]
    FourteenOfTwenty,
    /// Five servers: one dead, one failing half of the requests, one twenty times slower, two healthy
    Mixed,
    /// One of three servers refuses connections, and is ten times slower in the first 20 s of its return
    Cold,
    /// Five servers fail 40 % of the requests each
    Alike,
    /// All three servers of the first tier refuse connections, and two others are the second tier
    Tiers,
    /// The first request to one of three servers takes half a second
    OneSlow,
    /// One of five servers stops, and goes on where it was
    Stopped,
    /// One of three servers never answers, from its first request on
    Silent,
    /// Three servers stop for a second each minute, one after another
    Pauses,
    /// Three servers fail 20 % of the requests each, and two others are the second tier
    FailingTier,
}

/// The state of a server during the fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum State {
    Well,
    /// It refuses connections.
    Refuses,
    /// It fails this share of the requests, after its work.
    Fails(f64),
    /// Each request takes so many times as long.
    Slow(f64),
    /// It refuses connections, and is ten times slower for 20 s from its first request after the fault.
    Cold,
    /// The first request takes so many times as long.
    SlowOnce(f64),
    /// It stops, with the requests that it has.
    Stopped,
    /// It answers nothing, and its callers give up.
    Silent,
    /// It stops for a second each minute, from this second on.
    Pauses(u64),
}

impl Scene {
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::OneOfThree => "1 of 3 refuses",
            Self::TwoOfThree => "2 of 3 refuse",
            Self::EightOfTwenty => "8 of 20 refuse",
            Self::ElevenOfTwenty => "11 of 20 refuse",
            Self::FourteenOfTwenty => "14 of 20 refuse",
            Self::Mixed => "dead, half failing, slow, two good",
            Self::Cold => "1 of 3 refuses, returns cold",
            Self::Alike => "all fail 40 %",
            Self::Tiers => "a tier of 3 refuses, 2 are left",
            Self::OneSlow => "one answer of 0.5 s at 1 of 3",
            Self::Stopped => "1 of 5 stops",
            Self::Silent => "1 of 3 never answers",
            Self::Pauses => "3 servers pause 1 s a minute",
            Self::FailingTier => "a tier of 3 fails 20 %, 2 are left",
        }
    }

    /// Returns the state of each server during the fault.
    pub(super) fn servers(self) -> Vec<State> {
        let refusing = |bad: usize, all: usize| {
            let state = |server| if server < bad { State::Refuses } else { State::Well };
            (0..all).map(state).collect()
        };
        match self {
            Self::OneOfThree => refusing(1, 3),
            Self::TwoOfThree => refusing(2, 3),
            Self::EightOfTwenty => refusing(8, 20),
            Self::ElevenOfTwenty => refusing(11, 20),
            Self::FourteenOfTwenty => refusing(14, 20),
            Self::Mixed => {
                vec![State::Refuses, State::Fails(0.5), State::Slow(20.0), State::Well, State::Well]
            }
            Self::Cold => vec![State::Cold, State::Well, State::Well],
            Self::Alike => vec![State::Fails(0.4); 5],
            Self::Tiers => refusing(3, 5),
            Self::OneSlow => vec![State::SlowOnce(25.0), State::Well, State::Well],
            Self::Stopped => {
                vec![State::Stopped, State::Well, State::Well, State::Well, State::Well]
            }
            Self::Silent => vec![State::Silent, State::Well, State::Well],
            Self::Pauses => [0, 20, 40].map(State::Pauses).to_vec(),
            Self::FailingTier => {
                let fails = State::Fails(0.2);
                vec![fails, fails, fails, State::Well, State::Well]
            }
        }
    }

    /// Returns the number of servers of the first tier.
    pub(super) fn first_tier(self) -> usize {
        match self {
            Self::Tiers | Self::FailingTier => 3,
            _ => self.servers().len(),
        }
    }
}
