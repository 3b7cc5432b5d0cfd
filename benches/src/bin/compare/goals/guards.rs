//! The goals of guards, each alone and in the layer around a call.

use super::Figure::{Allocations, Instructions, Time};
use super::Limit::{Above, AtMost, Shown, Times};
use super::{Line, goal};

pub(super) const LINES: &[Line] = &[
    Line {
        part: GUARDS,
        row: "guard-look-up",
        title: "look-up of a destination, one of one",
        ours: "ours",
        goals: &[goal(Instructions, AtMost(30.0))],
    },
    Line {
        part: GUARDS,
        row: "guard-look-up",
        title: "look-up of a destination, each of 64 by turns",
        ours: "ours-among-64",
        // The hash costs 54. Thirty processes, each with a seed of its own, had 108 to 113.
        goals: &[goal(Instructions, AtMost(120.0))],
    },
    Line {
        part: GUARDS,
        row: "guard-breaker",
        title: "closed breaker, a call and its success, rate form",
        ours: "ours",
        goals: &[
            // Each thread finds its word. It is exchanged twice, each time after a check of its epoch, and the
            // ticket goes through memory.
            goal(Instructions, AtMost(139.0)),
            goal(Instructions, Shown(&["recloser", "failsafe"])),
            goal(Allocations, AtMost(0.0)),
        ],
    },
    Line {
        part: GUARDS,
        row: "guard-breaker",
        title: "closed breaker, a call and its success, counting form",
        ours: "ours-counting",
        // It counts as exactly as the rate form, in the same words.
        goals: &[goal(Instructions, AtMost(139.0))],
    },
    Line {
        part: GUARDS,
        row: "guard-breaker-open",
        title: "open breaker, a refusal with its wait",
        ours: "ours",
        // The wait is computed, and the refusal is moved through memory twice.
        goals: &[goal(Instructions, AtMost(62.0))],
    },
    Line {
        part: GUARDS,
        row: "guard-rate-limit",
        title: "rate limit, a token",
        ours: "ours",
        // std's lock costs 25.
        goals: &[
            goal(Instructions, AtMost(93.0)),
            goal(Instructions, Shown(&["governor"])),
            goal(Allocations, AtMost(0.0)),
        ],
    },
    Line {
        part: GUARDS,
        row: "guard-rate-limit",
        title: "the same through the guard's contract",
        ours: "ours-guard",
        goals: &[],
    },
    Line {
        part: GUARDS,
        row: "guard-places",
        title: "bulkhead, a place taken and released at the head",
        ours: "ours",
        // The place is exchanged twice, and the pass, the end and the answers go through memory.
        goals: &[goal(Instructions, AtMost(97.0)), goal(Allocations, AtMost(0.0))],
    },
    Line {
        part: GUARDS,
        row: "guard-places",
        title: "the same, held to the end of the body",
        ours: "ours-to-the-end",
        goals: &[],
    },
    Line {
        part: GUARDS,
        row: "guard-places",
        title: "adaptive limit, a place and its sample",
        ours: "ours-adaptive",
        // A bulkhead's 94, and a sample of four words.
        goals: &[goal(Instructions, AtMost(139.0)), goal(Allocations, AtMost(0.0))],
    },
    Line {
        part: GUARDS,
        row: "guard-throttle",
        title: "throttle, a call and its success",
        ours: "ours",
        // std's lock is 25 of them; behind it the window moves on, and the call counts in its bucket and in the total.
        goals: &[goal(Instructions, AtMost(163.0)), goal(Allocations, AtMost(0.0))],
    },
    Line {
        part: GUARDS,
        row: "two-threads-breaker",
        title: "closed breaker on two threads, rate form",
        ours: "ours",
        // The peers' time depends on how often both threads meet in one cache line: 0.09 to 0.68 in seven runs, ours
        // being steady. On a machine with other work the threads hardly meet, and the ratio means nothing.
        goals: &[goal(Time, Times(0.7, &["recloser", "failsafe"]))],
    },
    Line {
        part: GUARDS,
        row: "two-threads-breaker",
        title: "closed breaker on two threads, counting form",
        ours: "ours-counting",
        goals: &[goal(Time, Times(0.6, &["recloser", "failsafe"]))],
    },
    Line {
        part: LAYERS,
        row: "guarded-breaker",
        title: "fresh call through a breaker",
        ours: "ours",
        goals: &[
            goal(Instructions, Shown(&["resilience-breaker", "seatbelt"])),
            goal(Instructions, Shown(&["least"])),
            goal(Allocations, AtMost(0.0)),
        ],
    },
    Line {
        part: LAYERS,
        row: "guarded-limit",
        title: "fresh call through a rate limit",
        ours: "ours",
        goals: &[
            goal(Instructions, Shown(&["tower-limit", "resilience-limiter"])),
            goal(Instructions, Shown(&["least"])),
        ],
    },
    Line {
        part: LAYERS,
        row: "guarded-places",
        title: "fresh call through a bulkhead",
        ours: "ours",
        goals: &[
            goal(Instructions, Shown(&["tower-limit", "resilience-bulkhead"])),
            goal(Instructions, Shown(&["least"])),
        ],
    },
    Line {
        part: LAYERS,
        row: "guarded-adaptive",
        title: "fresh call through an adaptive limit",
        ours: "ours",
        goals: &[
            goal(Instructions, Shown(&["tower-acc", "resilience-adaptive"])),
            goal(Instructions, Shown(&["least"])),
        ],
    },
    Line {
        part: LAYERS,
        row: "standard",
        title: "fresh call through the standard stack",
        ours: "ours",
        goals: &[
            goal(Instructions, Shown(&["ours-retry"])),
            // Services inside may read the deadline in the extensions: their map, its table and the value.
            goal(Allocations, Above(3.0, "ours-retry")),
        ],
    },
];

const GUARDS: &str = "Guards alone";
const LAYERS: &str = "Guards around a call";
