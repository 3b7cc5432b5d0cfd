//! The scene of one run: the shared layers, one owner's calls and the other's attack, drawn from a seed.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Guarding {
    Breaker,
    /// A limit set by the user.
    Rate,
    /// No limit except the quotas that servers state.
    Quota,
    Bulkhead,
    BulkheadQueue,
    Adaptive,
    Throttle,
    SendRate,
    Pause,
    /// Breaker, quotas and bulkhead in one layer.
    Several,
    /// No guard, but a set of servers with a second tier.
    Tiers,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Attack {
    /// Many destinations, each called once, with any outcome.
    Names,
    /// Many destinations, each with a call that never gets a response.
    Holds,
    /// A few destinations with many long bodies that are sent and never get a response.
    Bodies,
    /// Requests without an authority, whose `Host` is the other owner's.
    Hosts,
    /// Names and `Host` fields of up to 300 KB.
    LongNames,
    /// Many destinations that state a spent quota of an hour.
    Quotas,
    /// At the other owner's destination: requests that no server can carry out.
    Unsupported,
    /// At that destination: uploads that are slower than the server's patience.
    SlowUploads,
    /// At that destination: calls that are dropped before their responses.
    HangUps,
}

/// A server's action on an attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Act {
    Status(u16),
    /// 200, after 60 ms.
    Slow,
    /// 429 with a quota that is spent for an hour.
    Quota,
    Lost,
    Hang,
    /// 408 while the body is still being sent.
    UploadTimeout,
}

/// A call of the owner whose calls must end as they would alone.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) at: u64,
    pub(crate) method: &'static str,
    /// The acts on its attempts.
    pub(crate) acts: &'static [Act],
}

/// A call of the hostile owner.
#[derive(Debug, Clone)]
pub(crate) struct HostileCall {
    pub(crate) at: u64,
    pub(crate) name: Name,
    pub(crate) act: Act,
    pub(crate) body: Upload,
    pub(crate) dropped_after: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Name {
    Own(usize),
    /// The other owner's destination.
    Foreign,
    /// A `Host` header with the other owner's name, and no authority.
    ForeignHost,
    Long,
    LongHost,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Upload {
    None,
    /// This many bytes in one frame, without an end.
    Held(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) guarding: Guarding,
    /// The capacity of the guard's table; `None` for the default.
    pub(crate) table: Option<usize>,
    pub(crate) hedged: bool,
    pub(crate) attack: Attack,
    pub(crate) calls: Vec<Call>,
    pub(crate) hostile: Vec<HostileCall>,
}

/// The capacity of a small table.
const SMALL: usize = 4;
/// More than the capacity of a default table.
const MANY: usize = 1_100;

impl Scene {
    pub(crate) fn of(seed: u64) -> Self {
        use Attack::{Holds, Names, Quotas};
        let mut random = SmallRng::seed_from_u64(seed);
        let cases = cases();
        let length = cases.len() as u64;
        let (round, at) = (seed / length, seed % length);
        let (attack, guarding) = cases[usize::try_from(at).unwrap()];
        let gateway = attack.is_at_same_destination();
        let by_names = matches!(attack, Names | Holds | Quotas);
        // Attacks on a table of the default size take most of the time, so every fourth round has half of them.
        let is_default = by_names && round % 4 == 3 && (at + round / 4) % 2 == 1;
        let table = (!is_default).then_some(SMALL);
        let names = if table.is_some() { 40 } else { MANY };
        // An owner that has called before the attack has an entry; one that comes later has none.
        let first = pick(&mut random, &[0, 1_200]);
        let calls = (0..12).map(|_| call(&mut random, first, gateway)).collect();
        let hostile = (0..attack.calls(names)).map(|number| attack.call(number, &mut random));
        let hostile = hostile.collect();
        let hedged = !gateway && random.random_ratio(1, 4);
        Self { guarding, table, hedged, attack, calls, hostile }
    }

    /// Returns `true` if both owners call the same destination.
    pub(crate) fn is_gateway(&self) -> bool {
        self.attack.is_at_same_destination()
    }

    /// The hedging budget has 1,024 buckets. While a hedge is in flight in each, new destinations draw from a shared
    /// one, which may refuse a hedge but never a call.
    pub(crate) fn buckets_are_in_use(&self) -> bool {
        self.hedged && self.attack == Attack::Holds && self.hostile.len() == MANY
    }

    /// A rate limit set by the user has one state for all new destinations while every entry is in use: its tokens are
    /// not full, or a call is in flight. With one new name per millisecond and a token after 50 ms, a small table is in
    /// use, and one of the default size is not.
    pub(crate) fn rate_entries_are_in_use(&self) -> bool {
        let in_use = match self.attack {
            Attack::Holds => true,
            Attack::Hosts => false,
            _ => self.table.is_some(),
        };
        self.guarding == Guarding::Rate && in_use
    }
}

/// Returns every attack with every guard. A gateway has a breaker, or a second tier.
fn cases() -> Vec<(Attack, Guarding)> {
    use Attack::*;
    use Guarding::*;
    let guards = [Breaker, Rate, Quota, Bulkhead, BulkheadQueue, Adaptive, Throttle, SendRate, Pause, Several];
    let attacks = [Names, Holds, Bodies, Hosts, LongNames, Quotas];
    let pairs = attacks.iter().flat_map(|attack| guards.map(|guard| (*attack, guard)));
    let gateways = [Unsupported, SlowUploads, HangUps].iter();
    pairs.chain(gateways.flat_map(|attack| [(*attack, Breaker), (*attack, Tiers)])).collect()
}

fn pick<T: Copy>(random: &mut SmallRng, from: &[T]) -> T {
    from[random.random_range(0..from.len())]
}

fn call(random: &mut SmallRng, first: u64, gateway: bool) -> Call {
    const SERVED: &[Act] = &[Act::Status(200)];
    // Alone, no guard refuses any of them, and the budget pays for each retry.
    const SCRIPTS: [&[Act]; 7] = [
        SERVED,
        SERVED,
        SERVED,
        &[Act::Slow],
        &[Act::Status(503), Act::Status(200)],
        &[Act::Status(500), Act::Status(200)],
        &[Act::Lost, Act::Status(200)],
    ];
    let acts = if gateway { SERVED } else { pick(random, &SCRIPTS) };
    Call { at: first + random.random_range(0..4_000), method: pick(random, &["GET", "PUT"]), acts }
}

impl Attack {
    fn is_at_same_destination(self) -> bool {
        matches!(self, Self::Unsupported | Self::SlowUploads | Self::HangUps)
    }

    fn calls(self, names: usize) -> usize {
        match self {
            Self::Names | Self::Holds | Self::Quotas => names,
            Self::Bodies => 160,
            Self::Hosts | Self::LongNames => 40,
            Self::Unsupported | Self::SlowUploads | Self::HangUps => 60,
        }
    }

    fn call(self, number: usize, random: &mut SmallRng) -> HostileCall {
        use Act::*;
        let at = match self {
            // Each millisecond costs only a token of a rate limit, and no table of new destinations.
            Self::Names | Self::Holds | Self::Quotas => 500 + number as u64,
            _ => 500 + 4 * number as u64,
        };
        let any = [Status(200), Status(429), Status(503), Status(501), Quota, Lost, Hang];
        let act = match self {
            Self::Names | Self::LongNames => pick(random, &any),
            Self::Holds | Self::Bodies | Self::HangUps => Hang,
            Self::Hosts => pick(random, &[Status(503), Status(429), Hang, Lost]),
            Self::Quotas => Quota,
            Self::Unsupported => pick(random, &[Status(501), Status(505)]),
            Self::SlowUploads => UploadTimeout,
        };
        let name = match self {
            Self::Names | Self::Holds | Self::Quotas => Name::Own(number),
            Self::Bodies => Name::Own(number % 6),
            Self::Hosts => Name::ForeignHost,
            Self::LongNames if random.random() => Name::Long,
            Self::LongNames => Name::LongHost,
            Self::Unsupported | Self::SlowUploads | Self::HangUps => Name::Foreign,
        };
        let body = match self {
            Self::Bodies => Upload::Held(64 * 1024),
            Self::SlowUploads => Upload::Held(1),
            _ => Upload::None,
        };
        let dropped_after = if self == Self::HangUps { 10 } else { 6_000 };
        HostileCall { at, name, act, body, dropped_after }
    }
}
