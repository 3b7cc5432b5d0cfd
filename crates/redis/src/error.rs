//! The errors of a store. They never contain parts of a URL or text from a server.

use std::error::Error;
use std::fmt;

use redis::{ErrorKind, RedisError};

/// The error of a store's constructors. Its text contains no part of the URL, because a URL may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisStoreError {
    /// The URL is not a Redis or Valkey URL.
    InvalidUrl,
    /// The list of URLs is empty.
    NoUrl,
    /// The URL requires TLS, but the feature `tls` is off.
    TlsFeatureOff,
}

impl fmt::Display for RedisStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidUrl => {
                "the URL of the store is invalid: it must be redis://, rediss://, valkey://, valkeys:// or unix://, with \
                 a host or a path"
            }
            Self::NoUrl => "the list of the store's URLs is empty: it must have at least one",
            Self::TlsFeatureOff => {
                "the URL of the store asks for TLS: it needs the feature `tls` of reattempt-redis"
            }
        })
    }
}

impl Error for RedisStoreError {}

/// The error codes of Redis and Valkey that the driver does not know, in order.
const MORE_CODES: [&str; 15] = [
    "BUSY",
    "BUSYKEY",
    "DENIED",
    "INPROG",
    "IOERR",
    "MISCONF",
    "NOAUTH",
    "NOMASTERLINK",
    "NOPROTO",
    "NOREPLICAS",
    "NOTREADY",
    "OOM",
    "UNKILLABLE",
    "WRONGPASS",
    "WRONGTYPE",
];

/// The error of a failed request to the store: the kind of failure, and the server's error code if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFailed {
    kind: &'static str,
    code: Option<Box<str>>,
}

impl StoreFailed {
    pub(crate) const fn new(kind: &'static str) -> Self {
        Self { kind, code: None }
    }

    /// Returns the server's error code, such as `NOAUTH` or `READONLY`, or `None` if the error has no known code.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }
}

impl From<RedisError> for StoreFailed {
    fn from(error: RedisError) -> Self {
        let kind = match error.kind() {
            ErrorKind::Io if error.is_timeout() => "no reply in time",
            ErrorKind::Io if error.is_connection_refusal() => "the server refused the connection",
            ErrorKind::Io => cause_of(&error.to_string()),
            ErrorKind::AuthenticationFailed => "the server refused the user or the password",
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => "the reply is none of a Redis server",
            ErrorKind::Server(_) | ErrorKind::Extension => "the server returned an error",
            _ => "no server is known",
        };
        // Some servers repeat the command, including the password, in their error, even as its first word.
        let is_known = |code: &&str| matches!(error.kind(), ErrorKind::Server(_)) || MORE_CODES.contains(code);
        Self { kind, code: error.code().filter(is_known).map(Into::into) }
    }
}

/// Returns the cause of a connection's error. The driver shows the error's text alone, which may contain a name, so it
/// is only searched for known words.
fn cause_of(text: &str) -> &'static str {
    const CAUSES: [(&str, &str); 7] = [
        ("failed to lookup address", "the look-up of the host failed"),
        ("not valid for", "TLS failed: the certificate is for another name"),
        ("NotValidForName", "TLS failed: the certificate is for another name"),
        ("UnknownIssuer", "TLS failed: the certificate is from an unknown authority"),
        ("invalid peer certificate", "TLS failed: the certificate is invalid"),
        ("corrupt message", "TLS failed: the server does not use TLS"),
        ("fatal alert", "TLS failed: the server refused the handshake"),
    ];
    let cause = CAUSES.iter().find(|(words, _)| text.contains(words));
    cause.map_or("the connection failed", |(_, cause)| cause)
}

impl fmt::Display for StoreFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(f, "the store failed: {} ({code})", self.kind),
            None => write!(f, "the store failed: {}", self.kind),
        }
    }
}

impl Error for StoreFailed {}
