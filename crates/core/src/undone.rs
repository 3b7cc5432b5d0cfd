//! The stages at which an attempt ends without being processed.

/// The stage at which an attempt ended without being processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Undone {
    /// The request waited for a connection that another call was opening, and that call gave up or failed.
    NoConnection,
    /// The request was never passed to the connection.
    NotDispatched,
    /// The server refused the request before processing any of it, with REFUSED_STREAM. Some proxies send it after
    /// their backend has processed the request.
    Refused,
    /// The server's GOAWAY excluded the request.
    Excluded,
}

/// The kinds of attempt that a call has already resent. Each kind is resent at most once.
// TR-1, TR-2, TR-4
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resent([bool; 3]);

impl Resent {
    /// Marks this kind as resent. Returns `false` if it already was.
    pub fn insert(&mut self, kind: Undone) -> bool {
        let [no_connection, not_dispatched, refused] = &mut self.0;
        let resent = match kind {
            Undone::NoConnection => no_connection,
            Undone::NotDispatched => not_dispatched,
            Undone::Refused | Undone::Excluded => refused,
        };
        !core::mem::replace(resent, true)
    }
}
