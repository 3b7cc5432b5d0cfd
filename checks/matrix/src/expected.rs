//! The expectation for a cell by the README's table "What is retried". It shares no code with the library.

use crate::cell::{Cell, Fault, How, Kind, Protocol, Security, Stack};
use crate::exchange::{End, Observed};

/// The course of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// The first attempt is answered normally.
    First,
    /// The head has come: the call is a success, and the caller sees its body break off or stall.
    Begun,
    /// A later attempt is answered by the recovered server.
    Retried,
    /// The caller gets the first failure.
    NotRetried,
    /// All attempts fail.
    Exhausted,
    /// The last attempt waits for a connection that another call gives up. Over HTTP it is not sent again.
    LastWaited,
    /// Later attempts fail as well, for a reason that the first could not know.
    InVain,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    Success,
    /// The head of a response has come.
    Begun,
    /// Proof that nothing was processed.
    NotProcessed,
    /// The request may have been processed.
    Uncertain,
    Permanent,
    /// The table has no row for it, so any safe course is right.
    Unspecified,
}

/// Returns an objection if the table does not permit this course.
pub(crate) fn objection(cell: &Cell, observed: &Observed) -> Option<String> {
    let permitted = permitted(cell);
    let Observed { attempts, end } = observed;
    let failed = matches!(end, End::Failed(_));
    // A wait for a connection that another call gave up is sent again once, and is no attempt.
    let most = if shares_connection(cell) { 4 } else { 3 };
    let right = permitted.iter().any(|course| match course {
        Course::First => *attempts == 1 && *end == End::Served,
        // A gRPC call whose response breaks off has no status, so it fails.
        Course::Begun if cell.protocol.is_grpc() => *attempts == 1 && failed,
        Course::Begun if cell.fault == Fault::Body(How::Stall) => *attempts == 1 && *end == End::Stalled,
        Course::Begun => *attempts == 1 && *end == End::Broken,
        Course::Retried => (2..=most).contains(attempts) && *end == End::Served,
        Course::NotRetried => *attempts == 1 && failed,
        Course::Exhausted => (3..=most).contains(attempts) && failed,
        Course::LastWaited if cell.protocol.is_grpc() => false,
        Course::LastWaited => {
            let waited = |text: &String| text.contains("CheckoutNoLongerWanted");
            (3..=most).contains(attempts) && matches!(end, End::Failed(text) if waited(text))
        }
        Course::InVain => (2..=most).contains(attempts) && failed,
    });
    (!right).then(|| format!("expected {permitted:?}, {observed:?}"))
}

fn permitted(cell: &Cell) -> Vec<Course> {
    use Course::{Begun, Exhausted, First, InVain, LastWaited, NotRetried, Retried};
    let repeatable = match cell.kind {
        Kind::Get | Kind::PutStreamed | Kind::PostWithKey | Kind::Marked => true,
        Kind::Post => false,
        // Whoever hedges a gRPC method has declared that it may be repeated.
        Kind::Unmarked => cell.stack == Stack::Hedge,
    };
    let uncertain = || match (repeatable, has_read(cell)) {
        (true, _) if cell.is_stuck() => vec![Exhausted],
        (true, _) => vec![Retried],
        (false, true) => vec![NotRetried],
        // An attempt that waited for the connection was surely not sent, and the next one stalls as well.
        (false, false) if cell.is_stuck() => vec![NotRetried, InVain],
        // The server cannot know whether the client had sent what it did not read.
        (false, false) => vec![NotRetried, Retried],
    };
    let courses = match row(cell) {
        Row::Success => vec![First],
        Row::Begun => vec![Begun],
        Row::NotProcessed => vec![Retried],
        Row::Uncertain => uncertain(),
        Row::Permanent => vec![NotRetried],
        Row::Unspecified => vec![NotRetried, Retried],
    };
    // Over HTTP/2 one fault ends the connection of all calls, in whatever state they are.
    let several = shares_connection(cell);
    let courses = match cell.fault {
        Fault::GoAwayAbove if is_exception(cell) => vec![First, Retried, NotRetried],
        Fault::GoAwayAbove => vec![First, Retried],
        Fault::GoAwayBelow if is_exception(cell) => vec![Retried, NotRetried],
        // An attempt that the broken connection has failed is followed by one that time ends together with the others.
        Fault::Head(How::Stall) if several && !repeatable => [courses, vec![InVain]].concat(),
        Fault::Head(How::Stall) if several => [courses, vec![LastWaited]].concat(),
        // Calls that wait for the connection of another one learn only that there is none.
        Fault::Certificate if several => vec![NotRetried, InVain],
        Fault::Body(How::Reset | How::Close) if several => [courses, uncertain()].concat(),
        _ => courses,
    };
    // A layer that hedges only safe methods sends no other request twice.
    match cell.stack == Stack::Hedge && !cell.is_hedged() && courses.contains(&Retried) {
        true => [courses, vec![NotRetried]].concat(),
        false => courses,
    }
}

/// Returns `true` if calls use one connection together.
fn shares_connection(cell: &Cell) -> bool {
    cell.protocol != Protocol::Http1 && cell.calls > 1
}

/// Returns `true` if one request of each connection is an exception, which the design names: its error looks like that
/// of a request that was sent.
fn is_exception(cell: &Cell) -> bool {
    let repeatable = cell.kind != Kind::Post && (cell.kind != Kind::Unmarked || cell.stack == Stack::Hedge);
    !repeatable && cell.calls > 1
}

/// Returns the number of calls that ended as exceptions.
pub(crate) fn exceptions<'a>(cell: &Cell, all: impl Iterator<Item = &'a Observed>) -> usize {
    let goes_away = matches!(cell.fault, Fault::GoAwayAbove | Fault::GoAwayBelow);
    let counts = goes_away && is_exception(cell) && cell.stack != Stack::Hedge;
    all.filter(|it| counts && it.attempts == 1 && matches!(it.end, End::Failed(_))).count()
}

/// Returns `true` if the server has surely read a part of each call's first attempt.
fn has_read(cell: &Cell) -> bool {
    let alone = cell.protocol == Protocol::Http1 || cell.calls == 1;
    // A status or the end of a stream is the answer to one request.
    let answers = matches!(cell.fault, Fault::Busy | Fault::EarlyBusy | Fault::ResetStream)
        || matches!(cell.fault, Fault::Unavailable | Fault::Exhausted | Fault::DeadlineExceeded);
    // Over HTTP/2 the halves of several frames become whole ones, which end the connection.
    let stalls = cell.stalls() && !matches!(cell.fault, Fault::Accept(_) | Fault::Head(_));
    !matches!(cell.fault, Fault::Accept(_)) && (alone || answers || stalls)
}

fn row(cell: &Cell) -> Row {
    let tls = cell.security == Security::Tls;
    match cell.fault {
        Fault::EarlyHints | Fault::GoAwayAbove => Row::Success,
        Fault::Body(_) | Fault::WrongLength | Fault::ResetAfterHead => Row::Begun,
        Fault::NoTrailers | Fault::LateUnavailable => Row::Begun,
        // No connection was made.
        Fault::Down | Fault::Alert | Fault::CutHandshake => Row::NotProcessed,
        Fault::Accept(How::Reset | How::Close) if tls => Row::NotProcessed,
        Fault::Accept(How::Garbage) | Fault::BrokenHandshake if tls => Row::Unspecified,
        Fault::RefusedStream | Fault::GoAwayBelow => Row::NotProcessed,
        Fault::Throttled => Row::NotProcessed,
        Fault::Certificate | Fault::NotFound | Fault::Internal => Row::Permanent,
        // gRPC translates the code of a reset into a status, of which the README does not speak.
        Fault::ResetStream if cell.protocol.is_grpc() => match cell.kind {
            Kind::Unmarked if cell.stack != Stack::Hedge => Row::Permanent,
            _ => Row::Unspecified,
        },
        Fault::Busy | Fault::EarlyBusy | Fault::ResetStream => Row::Uncertain,
        // A status of gRPC proves nothing.
        Fault::Unavailable | Fault::Exhausted | Fault::DeadlineExceeded => Row::Uncertain,
        Fault::Accept(_) | Fault::Request(_) | Fault::Upload(_) | Fault::Whole(_) | Fault::Head(_) => Row::Uncertain,
        Fault::BrokenHandshake => Row::Uncertain,
    }
}
