//! The representation of faults in TOML.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::server::{End, Read, Reply};

/// The error kinds that a script can name.
const KINDS: [(&str, ErrorKind); 6] = [
    ("broken-pipe", ErrorKind::BrokenPipe),
    ("connection-aborted", ErrorKind::ConnectionAborted),
    ("connection-refused", ErrorKind::ConnectionRefused),
    ("connection-reset", ErrorKind::ConnectionReset),
    ("timed-out", ErrorKind::TimedOut),
    ("unexpected-eof", ErrorKind::UnexpectedEof),
];

pub(crate) fn kind<'de, D: Deserializer<'de>>(from: D) -> Result<ErrorKind, D::Error> {
    let word = String::deserialize(from)?;
    KINDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind).ok_or_else(|| {
        let names = KINDS.map(|(name, _)| name).join("`, `");
        D::Error::custom(format!("unknown kind of error `{word}`, expected one of `{names}`"))
    })
}

/// Returns the name of an error kind. Other kinds are treated as a reset connection.
pub(crate) fn name_of_kind(kind: ErrorKind) -> &'static str {
    let known = KINDS.iter().find(|(_, known)| *known == kind);
    known.map_or("connection-reset", |(name, _)| name)
}

pub(crate) fn status<'de, D: Deserializer<'de>>(from: D) -> Result<StatusCode, D::Error> {
    status_of(u16::deserialize(from)?).map_err(D::Error::custom)
}

pub(crate) fn milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_millis)
}

pub(crate) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    String::deserialize(from).map(Bytes::from)
}

fn status_of(number: u16) -> Result<StatusCode, String> {
    StatusCode::from_u16(number).map_err(|_| format!("status {number} is not from 100 to 999"))
}

fn fields(fields: BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let field = |(name, value): (String, String)| {
        let wrong = || format!("{name:?} = {value:?} is no header");
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        Ok((parsed, HeaderValue::from_str(&value).map_err(|_| wrong())?))
    };
    fields.into_iter().map(field).collect()
}

/// A [`Reply`] in TOML.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct RawReply {
    status: u16,
    raw: Option<String>,
    read: Read,
    informational: Vec<u16>,
    headers: BTreeMap<String, String>,
    body: String,
    trailers: Option<BTreeMap<String, String>>,
    content_length: Option<u64>,
    cut: Option<usize>,
    end: End,
    carried_out: Option<bool>,
}

impl Default for RawReply {
    fn default() -> Self {
        Self {
            status: 200,
            raw: None,
            read: Read::default(),
            informational: Vec::new(),
            headers: BTreeMap::new(),
            body: String::new(),
            trailers: None,
            content_length: None,
            cut: None,
            end: End::default(),
            carried_out: None,
        }
    }
}

impl TryFrom<RawReply> for Reply {
    type Error = String;

    fn try_from(raw: RawReply) -> Result<Self, String> {
        let has_parts = raw.status != 200 || !raw.headers.is_empty() || !raw.body.is_empty();
        let has_more = raw.trailers.is_some() || raw.content_length.is_some();
        let mut reply = match raw.raw {
            Some(_) if has_parts || has_more => {
                return Err("`raw` excludes the parts of a response".to_owned());
            }
            Some(bytes) => Self::raw(bytes),
            None => Self::status(status_of(raw.status)?).body(raw.body),
        };
        for status in raw.informational {
            reply = reply.informational(status_of(status)?);
        }
        for (name, value) in &fields(raw.headers)? {
            reply = reply.header(name.clone(), value.clone());
        }
        if let Some(trailers) = raw.trailers {
            reply = reply.trailers(fields(trailers)?);
        }
        if let Some(bytes) = raw.content_length {
            reply = reply.content_length(bytes);
        }
        if let Some(carried_out) = raw.carried_out {
            reply = reply.carried_out(carried_out);
        }
        Ok(reply.read(raw.read).cut(raw.cut.unwrap_or(usize::MAX)).end_with(raw.end))
    }
}
