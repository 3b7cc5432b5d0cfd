//! The dimensions of the matrix.

use std::fmt;

/// The point at which an exchange fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// The server has read nothing: it is down (`Reset`), or fails as soon as it has accepted.
    Refused,
    MidHead,
    MidBody,
    /// The server has read the whole request.
    Whole,
    MidResponseHead,
    MidResponseBody,
}

/// The way in which it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A TCP reset.
    Reset,
    /// An orderly end of what the server sends.
    Fin,
    /// The server neither reads nor sends any more.
    Stall,
    /// Bytes that are not HTTP.
    Garbage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    PutStreamed,
    Post,
    PostWithKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    HyperUtil,
    Reqwest,
}

/// One cell of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) point: Point,
    pub(crate) fault: Fault,
    pub(crate) version: Version,
    /// The number of calls that are made at once.
    pub(crate) calls: usize,
    pub(crate) kind: Kind,
    pub(crate) library: Library,
}

impl Cell {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let points = [
            Point::Refused,
            Point::MidHead,
            Point::MidBody,
            Point::Whole,
            Point::MidResponseHead,
            Point::MidResponseBody,
        ];
        points.into_iter().flat_map(|point| {
            [Fault::Reset, Fault::Fin, Fault::Stall, Fault::Garbage].into_iter().flat_map(move |fault| {
                [Version::Http1, Version::Http2].into_iter().flat_map(move |version| {
                    [1, 20].into_iter().flat_map(move |calls| {
                        let kinds = [Kind::Get, Kind::PutStreamed, Kind::Post, Kind::PostWithKey];
                        kinds.into_iter().flat_map(move |kind| {
                            let libraries = [Library::HyperUtil, Library::Reqwest];
                            libraries.into_iter().map(move |library| Self {
                                point,
                                fault,
                                version,
                                calls,
                                kind,
                                library,
                            })
                        })
                    })
                })
            })
        })
    }

    /// Returns the reason if this cell cannot be run.
    pub(crate) fn senseless(&self) -> Option<&'static str> {
        (self.point == Point::MidBody && self.kind == Kind::Get).then_some("a GET has no body in whose middle to fail")
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { point, fault, version, calls, kind, library } = self;
        write!(f, "{point:?} × {fault:?} × {version:?} × {calls} × {kind:?} × {library:?}")
    }
}
