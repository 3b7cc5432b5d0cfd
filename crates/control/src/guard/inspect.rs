//! Fields that several guards have in a snapshot.

use reattempt_core::snapshot::Part;

use super::places::Usage;
use super::wait_queue::Patience;

/// Adds the limits on waiting calls, if any may wait.
pub(super) fn queue(patience: Patience, part: Part) -> Part {
    match patience.calls {
        0 => part,
        calls => part.field("queue", calls).field("longest_wait", patience.time),
    }
}

/// Adds the calls that hold a place or wait for one.
pub(super) fn usage(usage: Usage, part: Part) -> Part {
    part.field("limit", usage.limit)
        .field("in_flight", usage.in_flight)
        .field("waiting", usage.waiting)
        .field("past_head", usage.past_head)
        .field_if("oldest_past_head", usage.oldest_past_head)
}
