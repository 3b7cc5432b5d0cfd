//! The goals of the parts of a call (delays, budgets, bodies, memory), and of the dependency.

use super::Figure::{Allocations, CpuSeconds, Crates, Further, Instructions, Saved, Stripped, StrippedFat, Time};
use super::Limit::{AtMost, Shown, Times};
use super::{Line, TOWER, goal};

pub(super) const LINES: &[Line] = &[
    Line {
        part: DELAYS,
        row: "delay",
        title: "next delay, full jitter, factor 2",
        ours: "ours",
        // The form of the jitter is chosen when a call fails: 1 instruction more, and a future 56 bytes smaller.
        goals: &[goal(Instructions, AtMost(26.5))],
    },
    Line { part: DELAYS, row: "delay", title: "the same with rand's SmallRng", ours: "ours-small-rng", goals: &[] },
    Line { part: DELAYS, row: "delay", title: "full jitter, factor 3", ours: "ours-factor-3", goals: &[] },
    Line { part: DELAYS, row: "delay", title: "full jitter, factor 1.5", ours: "ours-factor-1.5", goals: &[] },
    Line { part: DELAYS, row: "delay", title: "equal jitter, factor 2", ours: "ours-equal", goals: &[] },
    Line { part: DELAYS, row: "delay", title: "decorrelated jitter", ours: "ours-decorrelated", goals: &[] },
    Line {
        part: BUDGETS,
        row: "credit",
        title: "credit of a success, all full",
        ours: "ours-full",
        goals: &[goal(Instructions, AtMost(11.0))],
    },
    Line {
        part: BUDGETS,
        row: "credit",
        title: "credit of a success, half full, one bucket",
        ours: "ours-half-full",
        // The word that all buckets share is read first, so that a success of a full budget reads no more. Then
        // one path finds the bucket, shared or of the first destination. A path for shared buckets alone took 21, but
        // its code was 60 KB of a user's program. 47 before refused requests gave a budget a brake.
        goals: &[goal(Instructions, AtMost(55.0))],
    },
    Line {
        part: BUDGETS,
        row: "credit",
        title: "credit of a success, half full and without doubt, one cautious bucket",
        ours: "ours-cautious-half-full",
        goals: &[goal(Instructions, AtMost(57.0))],
    },
    Line {
        part: BUDGETS,
        row: "credit",
        title: "the same behind the question whether all are full: they are",
        ours: "ours-full-asked",
        goals: &[goal(Instructions, AtMost(11.0))],
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
        goals: &[goal(Instructions, AtMost(75.0))],
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
        // Each take here finds the bucket full. So it is counted as not full, and uncounted when the token is back. A
        // path for shared buckets alone took 64 (see the credit).
        goals: &[goal(Instructions, AtMost(155.0))],
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
        // A permit asks whether the thread unwinds before it calls its issuer (10).
        goals: &[goal(Instructions, AtMost(140.0))],
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
        goals: &[goal(Time, Times(0.5, &["tower"])), goal(Time, Shown(&["tower-bucket-half-full"]))],
    },
    Line {
        part: BUDGETS,
        row: "two-threads",
        title: "credits on two threads, 64 destinations, one not full",
        ours: "ours-64-destinations",
        goals: &[goal(Time, Times(1.0, &["tower"]))],
    },
    Line {
        part: HEADS,
        row: "head",
        title: "the head of a fresh request, saved",
        ours: "ours",
        goals: &[goal(Instructions, Times(0.8, &["clone"])), goal(Allocations, AtMost(0.0))],
    },
    Line {
        part: HEADS,
        row: "head",
        title: "the head of a request cloned from a template, saved",
        ours: "ours-template",
        goals: &[goal(Instructions, Times(1.05, &["clone-template"])), goal(Allocations, AtMost(0.0))],
    },
    Line {
        part: HEADS,
        row: "head-restored",
        title: "the head of a fresh request, saved and restored",
        ours: "ours",
        goals: &[goal(Instructions, Shown(&["clone"]))],
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
        // A chunk that is passed through costs 113: a frame has room for trailers, and is moved twice. 102.6
        // before the caller's body could be watched.
        goals: &[goal(Instructions, AtMost(122.0))],
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
        // Ours also has the position of each reader, the leader, and the end or panic of the source.
        // The lock is std's: 16 instructions more than parking_lot's, which least uses, and four crates less.
        goals: &[goal(Instructions, Times(1.61, &["least-keeping"]))],
    },
    Line { part: BODIES, row: "body", title: "kept as a copy (16 KiB), least code", ours: "least-copying", goals: &[] },
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
        goals: &[goal(Instructions, Times(1.15, &["least-copying"]))],
    },
    Line {
        part: BODIES,
        row: "upload",
        title: "PUT of 1 KiB that is opened for each attempt",
        ours: "ours",
        // A streamed body's state, and the question to the body, which is asked twice.
        goals: &[goal(Instructions, AtMost(2150.0)), goal(Allocations, AtMost(1.0))],
    },
    Line {
        part: BODIES,
        row: "body",
        title: "replaying it, of 64 MiB",
        ours: "ours-replaying",
        // 44 are the loop, as in the bare row; the rest is the lock, the position, and the clone of the chunk. 95.2
        // before the caller's body could be watched.
        goals: &[goal(Instructions, AtMost(117.0))],
    },
    Line {
        part: BODIES,
        row: "body-of-4-mib",
        title: "replaying it, of 4 MiB",
        ours: "ours-replaying",
        // The same, with the second reader's creation and end divided among 256 chunks.
        goals: &[goal(Instructions, AtMost(124.0))],
    },
    Line {
        part: MEMORY,
        row: "in-flight-bytes",
        title: "bytes on the heap for a call in flight",
        ours: "ours",
        // The head's buffer goes from call to call, so it is as long as a usual head, not as this one.
        goals: &[goal(Saved, Times(0.67, TOWER))],
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
        goals: &[goal(Instructions, Times(1.13, &["ours-1000"]))],
    },
    Line {
        part: BUILD,
        row: "build",
        title: "default features, above hyper-util with HTTP/2 and tower",
        ours: "ours",
        goals: &[
            // Ours include one for each kind of layer. Random numbers are three, arc-swap two; the others are a hasher,
            // dates and types by name.
            goal(Crates, AtMost(24.0)),
            // With fat LTO, machine code has 52 KB for a call's decisions and 29 KB for a server's delay in all its
            // forms: dates, numbers with units, quotas. Drop glue is 38 KB. Without, each of the 16 codegen units has
            // its own drop glue and inline functions.
            goal(Stripped, AtMost(636_000.0)).aim(470_000.0),
            goal(StrippedFat, AtMost(378_000.0)).aim(260_000.0),
            goal(Further, AtMost(86_000.0)).aim(60_000.0),
            goal(CpuSeconds, Shown(&[])),
        ],
    },
    Line {
        part: BUILD,
        row: "build-retry",
        title: "`retry()` alone, above tokio",
        ours: "ours",
        goals: &[goal(Crates, AtMost(14.0)), goal(CpuSeconds, Shown(&[])), goal(Stripped, Shown(&[]))],
    },
];

const DELAYS: &str = "Delays";
const BUDGETS: &str = "Budgets";
const HEADS: &str = "Heads";
const BODIES: &str = "Bodies";
const MEMORY: &str = "Memory, and many calls";
const BUILD: &str = "Building";
