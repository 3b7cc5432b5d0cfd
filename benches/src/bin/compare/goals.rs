//! The lines of the table and their goals: all of them, in one place.

/// One line of the table: one of our contenders beside its peers.
#[derive(Debug)]
pub(crate) struct Line {
    /// The part of the table.
    pub(crate) part: &'static str,
    /// The row it is from.
    pub(crate) row: &'static str,
    /// Its first column.
    pub(crate) title: &'static str,
    /// Our contender.
    pub(crate) ours: &'static str,
    /// The limits of its figures.
    pub(crate) goals: &'static [Goal],
}

/// A figure of ours and its limit.
#[derive(Debug)]
pub(crate) struct Goal {
    pub(crate) figure: Figure,
    pub(crate) limit: Limit,
    /// The ceiling of a goal that is known to be missed: the measured figure, or ratio, and 3 %.
    pub(crate) known: Option<f64>,
}

/// The quantity that is compared, always for one operation and above the bare contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Figure {
    Instructions,
    Allocations,
    /// Bytes still in use after the operation.
    Saved,
    /// Bytes of the future, without what it boxes.
    Size,
    /// Bytes on the heap for the future.
    Boxed,
    /// CPU time by turns in one process. It is shown as a ratio only.
    Time,
    /// Instructions, with what is bare in it: how much dearer a call is as a whole.
    Whole,
    /// Crates compiled into a program.
    Crates,
    /// CPU seconds of a cold build.
    CpuSeconds,
    /// Bytes of the stripped program.
    Stripped,
}

impl Figure {
    /// Returns whether a run of counts alone leaves it out.
    pub(crate) fn is_slow(self) -> bool {
        matches!(self, Self::Time | Self::Crates | Self::CpuSeconds | Self::Stripped)
    }
}

/// The upper bound of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    AtMost(f64),
    /// At most so many times the same figure of the best of these contenders.
    Times(f64, &'static [&'static str]),
    /// At most so many more than this contender.
    Above(f64, &'static str),
    /// No limit: the ratio to the best of these is shown.
    Shown(&'static [&'static str]),
}

/// The share of a limit that is left free: counts move by up to 2 % with the path of the checkout.
pub(crate) const AIR: f64 = 0.03;

const fn goal(figure: Figure, limit: Limit) -> Goal {
    Goal { figure, limit, known: None }
}

/// A goal that is not reached yet.
const fn missed(figure: Figure, limit: Limit, known: f64) -> Goal {
    Goal { figure, limit, known: Some(known) }
}

use Figure::{
    Allocations, Boxed, CpuSeconds, Crates, Instructions, Saved, Size, Stripped, Time, Whole,
};
use Limit::{Above, AtMost, Shown, Times};

/// tower's `Retry` by hand, with either budget: the better one counts.
const TOWER: &[&str] = &["tower", "tower-bucket"];

pub(crate) const LINES: &[Line] = &[
    Line {
        part: CALLS,
        row: "template",
        title: "first-time success, template, empty body",
        ours: "ours",
        goals: &[
            missed(Instructions, Times(0.85, TOWER), 1.20),
            missed(Allocations, AtMost(0.0), 1.0),
            goal(Time, Shown(TOWER)),
        ],
    },
    Line {
        part: CALLS,
        row: "fresh",
        title: "first-time success, fresh, 1 KiB body",
        ours: "ours",
        goals: &[
            missed(Instructions, Times(0.55, TOWER), 0.75),
            missed(Allocations, AtMost(0.0), 1.0),
            goal(Time, Shown(TOWER)),
        ],
    },
    Line {
        part: CALLS,
        row: "never",
        title: "cannot be retried: one attempt allowed",
        ours: "ours-one-attempt",
        goals: NEVER,
    },
    Line {
        part: CALLS,
        row: "never",
        title: "cannot be retried: the client opted out",
        ours: "ours-opted-out",
        goals: NEVER,
    },
    Line {
        part: CALLS,
        row: "never",
        title: "cannot be retried: the request opted out",
        ours: "ours-opted-out-by-request",
        goals: &[missed(Instructions, Times(1.4, TOWER), 1.48), goal(Allocations, AtMost(0.0))],
    },
    Line {
        part: CALLS,
        row: "never",
        title: "cannot be retried: no body is kept",
        ours: "ours-body-not-kept",
        goals: NEVER,
    },
    Line {
        part: CALLS,
        row: "once",
        title: "fails once, then succeeds, delay 0, paused clock, template",
        ours: "ours",
        goals: &[goal(Instructions, Shown(TOWER))],
    },
    Line {
        part: CALLS,
        row: "once-fresh",
        title: "the same, fresh, 1 KiB body",
        ours: "ours",
        goals: &[goal(Instructions, Shown(TOWER))],
    },
    Line {
        part: CALLS,
        row: "once-unknown",
        title: "the same, fresh, no run-time name in any table, attempt number shown",
        ours: "ours",
        goals: &[
            missed(Instructions, Times(2.4, TOWER), 2.80),
            missed(Allocations, AtMost(14.0), 17.0),
        ],
    },
    Line {
        part: CALLS,
        row: "not-full",
        title: "first-time success, fresh, all buckets full",
        ours: "ours-full",
        goals: &[],
    },
    Line {
        part: CALLS,
        row: "not-full",
        title: "the same, the bucket of its own destination not full",
        ours: "ours-own-not-full",
        goals: &[missed(Instructions, Times(1.15, &["ours-full"]), 1.60)],
    },
    Line {
        part: CALLS,
        row: "not-full",
        title: "the same, the bucket of another destination not full",
        ours: "ours-other-not-full",
        goals: &[missed(Instructions, Times(1.15, &["ours-full"]), 1.60)],
    },
    Line {
        part: CALLS,
        row: "observer",
        title: "first-time success, fresh, observer on",
        ours: "ours-on",
        goals: &[
            missed(Instructions, Times(1.3, &["ours-off"]), 1.90),
            missed(Allocations, Above(0.0, "ours-off"), 2.0),
        ],
    },
    Line {
        part: CALLS,
        row: "hook",
        title: "first-time success, fresh, hook on",
        ours: "ours-on",
        goals: &[goal(Instructions, Shown(&["ours-off"]))],
    },
    Line {
        part: CALLS,
        row: "size",
        title: "bytes of the future around a ready inner one",
        ours: "ours",
        goals: &[goal(Size, AtMost(424.0)), goal(Boxed, AtMost(0.0))],
    },
    Line {
        part: GRPC,
        row: "grpc",
        title: "gRPC unary, first-time success, 1 KiB message in memory",
        ours: "ours",
        goals: &[missed(Instructions, Times(1.3, &["ours-http"]), 2.15)],
    },
    Line {
        part: GRPC,
        row: "grpc",
        title: "the same, encoded when it is read, as generated clients have it",
        ours: "ours-encoded",
        goals: &[missed(Instructions, Times(1.3, &["ours-http"]), 2.15)],
    },
    Line {
        part: GRPC,
        row: "grpc",
        title: "in memory, by a service config",
        ours: "ours-by-config",
        goals: &[missed(Instructions, Times(1.35, &["ours"]), 1.90)],
    },
    Line {
        part: GRPC,
        row: "inbound",
        title: "deadline of an inbound call: the request has no field",
        ours: "ours-without-field",
        goals: &[goal(Allocations, AtMost(0.0))],
    },
    Line {
        part: GRPC,
        row: "inbound",
        title: "the same, with the field",
        ours: "ours",
        goals: &[missed(Instructions, AtMost(700.0), 1500.0), goal(Allocations, AtMost(3.0))],
    },
    Line {
        part: GRPC,
        row: "inbound",
        title: "the same, extensions there already, as behind a server",
        ours: "ours-with-extensions",
        goals: &[goal(Allocations, AtMost(1.0))],
    },
    Line {
        part: OPERATIONS,
        row: "retry",
        title: "`retry()` of a closure, success",
        ours: "ours",
        goals: &[
            missed(Instructions, Times(1.5, &["backon"]), 8.2),
            missed(Allocations, AtMost(0.0), 1.0),
        ],
    },
    Line {
        part: OPERATIONS,
        row: "retry-once",
        title: "`retry()` of a closure, fails once, delay 0",
        ours: "ours",
        goals: &[
            missed(Instructions, Times(1.25, &["backon"]), 2.40),
            missed(Allocations, AtMost(1.0), 3.0),
        ],
    },
    Line {
        part: OPERATIONS,
        row: "retry-size",
        title: "bytes of the future of `retry()`",
        ours: "ours",
        goals: &[missed(Size, AtMost(240.0), 448.0)],
    },
    Line {
        part: LAYERS,
        row: "hedge",
        title: "hedged call, first attempt succeeds at its second poll, fixed delay",
        ours: "ours-fixed",
        goals: &[missed(Instructions, Times(0.31, &["tower-hedge"]), 0.85)],
    },
    Line {
        part: LAYERS,
        row: "hedge",
        title: "the same, delay by quantile",
        ours: "ours-quantile",
        goals: &[missed(Instructions, Times(0.37, &["tower-hedge"]), 0.97)],
    },
    Line {
        part: LAYERS,
        row: "pace",
        title: "paced call that need not wait",
        ours: "ours",
        goals: &[goal(Allocations, AtMost(0.0))],
    },
    Line {
        part: WIRE,
        row: "wire",
        title: "1 KiB PUT over loopback HTTP/1.1, the client's side, hyper-util",
        ours: "ours",
        goals: &[missed(Whole, Times(1.062, &["bare"]), 1.10), goal(Allocations, AtMost(3.0))],
    },
    Line {
        part: WIRE,
        row: "wire-h2",
        title: "the same over HTTP/2",
        ours: "ours",
        goals: &[missed(Whole, Times(1.05, &["bare"]), 1.09)],
    },
    Line {
        part: WIRE,
        row: "wire-reqwest",
        title: "over HTTP/1.1, reqwest",
        ours: "ours",
        goals: &[],
    },
    Line {
        part: WIRE,
        row: "in-flight-256",
        title: "CPU of a call on 2 threads with 256 in flight, HTTP/1.1",
        ours: "ours",
        goals: &[goal(Time, Times(1.03, &["bare"]))],
    },
    Line {
        part: WIRE,
        row: "in-flight-256-h2",
        title: "CPU of a call on 2 threads with 256 in flight, HTTP/2",
        ours: "ours",
        goals: &[goal(Time, Times(1.03, &["bare"]))],
    },
    Line {
        part: WIRE,
        row: "in-flight-512",
        title: "CPU of a call on 2 threads with 512 in flight, HTTP/1.1",
        ours: "ours",
        goals: &[goal(Time, Times(1.03, &["bare"]))],
    },
    Line {
        part: WIRE,
        row: "in-flight-512-h2",
        title: "CPU of a call on 2 threads with 512 in flight, HTTP/2",
        ours: "ours",
        goals: &[goal(Time, Times(1.03, &["bare"]))],
    },
    Line {
        part: DELAYS,
        row: "delay",
        title: "next delay, full jitter, factor 2",
        ours: "ours",
        goals: &[goal(Instructions, AtMost(25.0))],
    },
    Line {
        part: DELAYS,
        row: "delay",
        title: "the same with rand's SmallRng",
        ours: "ours-small-rng",
        goals: &[],
    },
    Line {
        part: DELAYS,
        row: "delay",
        title: "full jitter, factor 3",
        ours: "ours-factor-3",
        goals: &[],
    },
    Line {
        part: DELAYS,
        row: "delay",
        title: "full jitter, factor 1.5",
        ours: "ours-factor-1.5",
        goals: &[],
    },
    Line {
        part: DELAYS,
        row: "delay",
        title: "equal jitter, factor 2",
        ours: "ours-equal",
        goals: &[],
    },
    Line {
        part: DELAYS,
        row: "delay",
        title: "decorrelated jitter",
        ours: "ours-decorrelated",
        goals: &[],
    },
    Line {
        part: BUDGETS,
        row: "credit",
        title: "credit of a success, all full",
        ours: "ours-full",
        goals: &[goal(Instructions, AtMost(22.0))],
    },
    Line {
        part: BUDGETS,
        row: "credit",
        title: "credit of a success, half full, one bucket",
        ours: "ours-half-full",
        goals: &[goal(Instructions, AtMost(22.0))],
    },
    Line {
        part: BUDGETS,
        row: "credit",
        title: "the same behind the question whether all are full: they are",
        ours: "ours-full-asked",
        goals: &[goal(Instructions, AtMost(22.0))],
    },
    Line {
        part: BUDGETS,
        row: "credit",
        title: "the same behind the question whether all are full: half full, one bucket",
        ours: "ours-half-full-asked",
        goals: &[],
    },
    Line {
        part: BUDGETS,
        row: "credit",
        title: "credit of a success, half full, a bucket for each destination",
        ours: "ours-half-full-keyed",
        goals: &[],
    },
    Line {
        part: BUDGETS,
        row: "credit",
        title: "credit of a success, 64 destinations, another not full",
        ours: "ours-64-destinations",
        goals: &[],
    },
    Line {
        part: BUDGETS,
        row: "take-and-give-back",
        title: "take and give back",
        ours: "ours",
        goals: &[missed(Instructions, AtMost(60.0), 67.0)],
    },
    Line {
        part: BUDGETS,
        row: "take-and-give-back",
        title: "take and give back, a bucket for each of 64 destinations",
        ours: "ours-64-destinations",
        goals: &[],
    },
    Line {
        part: BUDGETS,
        row: "take-and-spend",
        title: "take and spend",
        ours: "ours",
        goals: &[],
    },
    Line {
        part: BUDGETS,
        row: "two-threads",
        title: "credits on two threads, full",
        ours: "ours-full",
        goals: &[goal(Time, Times(0.2, &["tower"])), goal(Time, Shown(TOWER))],
    },
    Line {
        part: BUDGETS,
        row: "two-threads",
        title: "credits on two threads, half full",
        ours: "ours-half-full",
        goals: &[
            goal(Time, Times(0.5, &["tower"])),
            goal(Time, Shown(&["tower-bucket-half-full"])),
        ],
    },
    Line {
        part: BUDGETS,
        row: "two-threads",
        title: "credits on two threads, 64 destinations, one not full",
        ours: "ours-64-destinations",
        goals: &[goal(Time, Times(1.0, &["tower"]))],
    },
    Line {
        part: BODIES,
        row: "body",
        title: "a chunk of 16 KiB read from its source, nothing around it",
        ours: "bare",
        goals: &[],
    },
    Line {
        part: BODIES,
        row: "body",
        title: "the same through our body, passed through",
        ours: "ours-passing",
        goals: &[],
    },
    Line {
        part: BODIES,
        row: "body",
        title: "past the cap of what is kept",
        ours: "ours-past-cap",
        goals: &[missed(Instructions, AtMost(80.0), 110.0)],
    },
    Line {
        part: BODIES,
        row: "body-large",
        title: "kept by reference (512 KiB), least code: one lock, one clone, one place, both bounds",
        ours: "least-keeping",
        goals: &[],
    },
    Line {
        part: BODIES,
        row: "body-large",
        title: "kept by reference, ours",
        ours: "ours-keeping",
        goals: &[missed(Instructions, Times(1.15, &["least-keeping"]), 1.50)],
    },
    Line {
        part: BODIES,
        row: "body",
        title: "kept as a copy (16 KiB), least code",
        ours: "least-copying",
        goals: &[],
    },
    Line {
        part: BODIES,
        row: "body",
        title: "kept as a copy, ours",
        ours: "ours-keeping",
        goals: &[goal(Instructions, Times(1.15, &["least-copying"]))],
    },
    Line {
        part: BODIES,
        row: "body-short",
        title: "kept as a copy (64 B), least code",
        ours: "least-copying",
        goals: &[],
    },
    Line {
        part: BODIES,
        row: "body-short",
        title: "kept as a copy (64 B), ours",
        ours: "ours-keeping",
        goals: &[missed(Instructions, Times(1.15, &["least-copying"]), 1.6)],
    },
    Line {
        part: BODIES,
        row: "body",
        title: "replaying it, of 64 MiB",
        ours: "ours-replaying",
        goals: &[missed(Instructions, AtMost(80.0), 100.0)],
    },
    Line {
        part: BODIES,
        row: "body-of-4-mib",
        title: "replaying it, of 4 MiB",
        ours: "ours-replaying",
        goals: &[missed(Instructions, AtMost(80.0), 110.0)],
    },
    Line {
        part: MEMORY,
        row: "in-flight-bytes",
        title: "bytes on the heap for a call in flight",
        ours: "ours",
        goals: &[missed(Saved, Times(0.51, TOWER), 0.67)],
    },
    Line {
        part: MEMORY,
        row: "waiting-bytes",
        title: "bytes on the heap for each of 100,000 waiting calls",
        ours: "ours",
        goals: &[goal(Saved, Shown(TOWER))],
    },
    Line {
        part: MEMORY,
        row: "one-more",
        title: "one more call fails, with 1,000 waiting",
        ours: "ours-1000",
        goals: &[],
    },
    Line {
        part: MEMORY,
        row: "one-more",
        title: "one more call fails, with 20,000 waiting",
        ours: "ours-20000",
        goals: &[goal(Instructions, Times(1.05, &["ours-1000"]))],
    },
    Line {
        part: BUILD,
        row: "build",
        title: "default features, above hyper-util with HTTP/2 and tower",
        ours: "ours",
        goals: &[
            missed(Crates, AtMost(16.0), 27.0),
            missed(Stripped, AtMost(184_320.0), 9e9),
            goal(CpuSeconds, Shown(&[])),
        ],
    },
    Line {
        part: BUILD,
        row: "build-retry",
        title: "`retry()` alone, above tokio",
        ours: "ours",
        goals: &[
            missed(Crates, AtMost(13.0), 42.0),
            goal(CpuSeconds, Shown(&[])),
            goal(Stripped, Shown(&[])),
        ],
    },
];

/// The limits of calls that cannot be retried: little above a policy of tower's that never clones.
const NEVER: &[Goal] = &[goal(Instructions, Times(1.4, TOWER)), goal(Allocations, AtMost(0.0))];

const CALLS: &str = "Calls";
const GRPC: &str = "gRPC";
const OPERATIONS: &str = "Operations";
const LAYERS: &str = "Other layers";
const WIRE: &str = "On the wire";
const DELAYS: &str = "Delays";
const BUDGETS: &str = "Budgets";
const BODIES: &str = "Bodies";
const MEMORY: &str = "Memory, and many calls";
const BUILD: &str = "Building";
