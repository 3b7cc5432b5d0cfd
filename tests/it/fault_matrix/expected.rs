//! The expectation for a cell by the README's table "What is retried". It shares no code with the
//! library.

use crate::fault_matrix::cell::{Cell, Fault, Kind, Point, Version};
use crate::fault_matrix::exchange::{End, Observed};

/// The course of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// The response head has come: the call is a success, and the body is the caller's.
    Answered,
    /// A second attempt, or a third if the second was not sent, is answered by the healthy server.
    Retried,
    /// The caller gets the first failure.
    NotRetried,
    /// All attempts fail.
    Exhausted,
}

/// Returns an objection if the table does not permit this course. `read` is `true` if the server
/// has read some of the call's first attempt.
pub(crate) fn objection(cell: &Cell, read: bool, observed: &Observed) -> Option<String> {
    let permitted = permitted(cell, read);
    let right = permitted.iter().any(|course| match course {
        Course::Answered => {
            let stalls = cell.fault == Fault::Stall;
            let end = if stalls { End::Stalled } else { End::Broken };
            observed.attempts == 1 && observed.end == end
        }
        Course::Retried => (2..=3).contains(&observed.attempts) && observed.end == End::Served,
        Course::NotRetried => observed.attempts == 1 && matches!(observed.end, End::Failed(_)),
        Course::Exhausted => observed.attempts == 3 && matches!(observed.end, End::Failed(_)),
    });
    if cell.kind == Kind::Post && observed.arrivals > 1 {
        return Some(format!("arrived {} times: {observed:?}", observed.arrivals));
    }
    (!right).then(|| format!("expected {permitted:?}, read: {read}, {observed:?}"))
}

fn permitted(cell: &Cell, read: bool) -> &'static [Course] {
    let repeatable = cell.kind != Kind::Post;
    match (cell.point, cell.fault) {
        // 1xx, 2xx, 3xx: success.
        (Point::MidResponseBody, _) => &[Course::Answered],
        // Proof that nothing was sent: the connection was not made.
        (Point::Refused, Fault::Reset) => &[Course::Retried],
        // No answer in time. Over HTTP/2 a retry uses the connection that has stalled.
        (_, Fault::Stall) if !repeatable => &[Course::NotRetried],
        (_, Fault::Stall) if cell.version == Version::Http2 => &[Course::Exhausted],
        // Connection lost after sending, or an answer that is not HTTP.
        _ if repeatable => &[Course::Retried],
        _ if read => &[Course::NotRetried],
        // The server cannot know whether the client had sent what it did not read.
        _ => &[Course::NotRetried, Course::Retried],
    }
}
