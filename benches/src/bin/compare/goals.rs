//! The lines of the table and what each is to reach: all of it, in one place.

/// One line of the table: one of our contenders beside its peers.
#[derive(Debug)]
pub(crate) struct Line {
    /// The part of the table.
    pub(crate) part: &'static str,
    /// The row it is from.
    pub(crate) row: &'static str,
    /// What stands in its first column.
    pub(crate) title: &'static str,
    /// Our contender.
    pub(crate) ours: &'static str,
    /// What is to be reached.
    pub(crate) goals: &'static [Goal],
}

/// A figure of ours and its limit.
#[derive(Debug)]
pub(crate) struct Goal {
    pub(crate) figure: Figure,
    pub(crate) limit: Limit,
    /// Where the goal is known to be missed, the ceiling of the figure, or the ratio: what was measured and a
    /// little slack.
    pub(crate) known: Option<f64>,
}

/// What is compared, always for one operation and above the bare contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    Instructions,
    Allocations,
    /// Bytes still in use after the operation.
    Kept,
    /// Bytes of the future, without what it boxes.
    Size,
    /// Bytes on the heap for the future.
    Boxed,
    Nanoseconds,
    /// Instructions, with what is bare in it: how much dearer a call is as a whole.
    Whole,
}

/// How far the figure may go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    AtMost(f64),
    /// At most so many times the same figure of this contender.
    Times(f64, &'static str),
}

const fn goal(figure: Figure, limit: Limit) -> Goal {
    Goal { figure, limit, known: None }
}

/// A goal that is not reached yet, or only just.
const fn missed(figure: Figure, limit: Limit, known: f64) -> Goal {
    Goal { figure, limit, known: Some(known) }
}

use Figure::{Allocations, Boxed, Instructions, Nanoseconds, Size, Whole};
use Limit::{AtMost, Times};

pub(crate) const LINES: &[Line] = &[
    Line {
        part: CALLS,
        row: "template",
        title: "first-time success, template, empty body",
        ours: "ours",
        goals: &[
            goal(Instructions, Times(0.85, "tower")),
            goal(Allocations, AtMost(1.0)),
            goal(Nanoseconds, Times(0.80, "tower")),
        ],
    },
    Line {
        part: CALLS,
        row: "fresh",
        title: "first-time success, fresh, 1 KiB body",
        ours: "ours",
        goals: &[goal(Instructions, Times(0.68, "tower")), goal(Allocations, AtMost(2.0))],
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
        goals: NEVER,
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
        title: "fails once, then succeeds, delay 0, paused clock",
        ours: "ours",
        goals: &[missed(Instructions, Times(2.0, "tower"), 2.50)],
    },
    Line {
        part: CALLS,
        row: "once-fresh",
        title: "the same, fresh, 1 KiB body",
        ours: "ours",
        goals: &[missed(Instructions, Times(2.0, "tower"), 2.05)],
    },
    Line {
        part: CALLS,
        row: "grpc",
        title: "gRPC unary, first-time success, 1 KiB message in memory",
        ours: "ours",
        goals: &[goal(Instructions, Times(1.3, "ours-http"))],
    },
    Line {
        part: CALLS,
        row: "grpc",
        title: "the same, encoded when it is read, as generated clients have it",
        ours: "ours-encoded",
        goals: &[goal(Instructions, Times(1.3, "ours-http"))],
    },
    Line {
        part: CALLS,
        row: "grpc",
        title: "in memory, by a service config",
        ours: "ours-by-config",
        goals: &[],
    },
    Line {
        part: CALLS,
        row: "size",
        title: "bytes of the future around a ready inner one",
        ours: "ours",
        goals: &[goal(Size, AtMost(424.0)), goal(Boxed, AtMost(0.0))],
    },
    Line {
        part: WIRE,
        row: "wire",
        title: "1 KiB PUT over loopback HTTP/1.1, the client's side, hyper-util",
        ours: "ours",
        goals: &[goal(Whole, Times(1.07, "bare")), goal(Allocations, AtMost(3.0))],
    },
    Line { part: WIRE, row: "wire-reqwest", title: "the same, reqwest", ours: "ours", goals: &[] },
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
        goals: &[goal(Instructions, AtMost(60.0))],
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
        goals: &[goal(Nanoseconds, Times(1.0 / 5.0, "tower"))],
    },
    Line {
        part: BUDGETS,
        row: "two-threads",
        title: "credits on two threads, half full",
        ours: "ours-half-full",
        goals: &[goal(Nanoseconds, Times(1.0 / 2.0, "tower"))],
    },
    Line {
        part: BUDGETS,
        row: "two-threads",
        title: "credits on two threads, 64 destinations, one not full",
        ours: "ours-64-destinations",
        goals: &[goal(Nanoseconds, Times(1.0, "tower"))],
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
        goals: &[goal(Instructions, AtMost(80.0))],
    },
    Line {
        part: BODIES,
        row: "body",
        title: "keeping it",
        ours: "ours-keeping",
        goals: &[missed(Instructions, AtMost(120.0), 162.0)],
    },
    Line {
        part: BODIES,
        row: "body",
        title: "kept by the least code: one lock, one clone, one place, both bounds",
        ours: "least-keeping",
        goals: &[],
    },
    Line {
        part: BODIES,
        row: "body",
        title: "replaying it, of 64 MiB",
        ours: "ours-replaying",
        goals: &[goal(Instructions, AtMost(80.0))],
    },
    Line {
        part: BODIES,
        row: "body-of-4-mib",
        title: "replaying it, of 4 MiB",
        ours: "ours-replaying",
        goals: &[goal(Instructions, AtMost(80.0))],
    },
    Line {
        part: WAITING,
        row: "waiting-bytes",
        title: "bytes for each of 100,000 waiting calls",
        ours: "ours",
        goals: &[],
    },
    Line {
        part: WAITING,
        row: "one-more",
        title: "one more call fails, with 1,000 waiting",
        ours: "ours-1000",
        goals: &[],
    },
    Line {
        part: WAITING,
        row: "one-more",
        title: "one more call fails, with 100,000 waiting",
        ours: "ours-100000",
        goals: &[goal(Instructions, Times(1.05, "ours-1000"))],
    },
];

/// What tower costs that never clones, and nothing allocated.
const NEVER: &[Goal] = &[goal(Instructions, Times(1.4, "tower")), goal(Allocations, AtMost(0.0))];

const CALLS: &str = "Calls";
const WIRE: &str = "On the wire";
const DELAYS: &str = "Delays";
const BUDGETS: &str = "Budgets";
const BODIES: &str = "Bodies";
const WAITING: &str = "Waiting calls";
