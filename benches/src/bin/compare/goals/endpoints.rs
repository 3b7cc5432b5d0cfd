//! The goals of one client over several servers.

use super::Figure::{Allocations, Instructions};
use super::Limit::{Above, AtMost, Shown};
use super::{Line, goal};

pub(super) const LINES: &[Line] = &[
    Line {
        part: ENDPOINTS,
        row: "endpoints-pick",
        title: "pick of one of 3 endpoints, and the end of its attempt",
        ours: "ours-3",
        // About 60 are arc-swap's, 60 draw two endpoints, 115 compare their prices, and 45 record the latency. The aim
        // would need a list without reference counts.
        goals: &[goal(Instructions, AtMost(372.0)).aim(300.0), goal(Allocations, AtMost(0.0))],
    },
    Line {
        part: ENDPOINTS,
        row: "endpoints-pick",
        title: "the same, one of 1,000",
        ours: "ours-1000",
        goals: &[goal(Instructions, AtMost(372.0)).aim(300.0), goal(Allocations, AtMost(0.0))],
    },
    Line {
        part: ENDPOINTS,
        row: "endpoints-balanced",
        title: "fresh call to one of three clients (`Balanced`)",
        ours: "ours",
        goals: &[
            // The aim is below the pick alone (362). Above it are two moves of the request, because the future readies
            // the client (123), and the ticket's way through the layer, against 133 for a destination that is not
            // needed. 856 before attempts were judged by whose time ran out.
            goal(Instructions, Above(986.0, "ours-guard")).aim(200.0),
            goal(Instructions, Shown(&["tower-balance"])),
            goal(Instructions, Shown(&["tower-buffered"])),
            goal(Allocations, AtMost(0.0)),
        ],
    },
    Line {
        part: ENDPOINTS,
        row: "endpoints-balanced",
        title: "a guard layer without a rule",
        ours: "ours-guard",
        goals: &[],
    },
    Line {
        part: ENDPOINTS,
        row: "endpoints-directed",
        title: "fresh call to one of three base URLs (`Directed`)",
        ours: "ours",
        // Besides the pick, the request's base is compared, a URL is built from its parts, and the former is dropped.
        goals: &[goal(Instructions, Above(1_168.0, "ours-guard")).aim(600.0), goal(Allocations, AtMost(0.0))],
    },
    Line {
        part: ENDPOINTS,
        row: "endpoints-dead",
        title: "fresh call with retries to one of three clients, one of them dead, repeated until it succeeds",
        ours: "ours",
        goals: &[goal(Instructions, Shown(&["ours-all-well"]))],
    },
];

const ENDPOINTS: &str = "Several servers";
