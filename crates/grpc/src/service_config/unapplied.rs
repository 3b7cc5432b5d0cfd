//! Config settings that no layer applies, so that a program can report them.

use std::fmt;

use super::MethodConfig;

/// A config setting that no layer applies, from [`ServiceConfig::unapplied`](super::ServiceConfig::unapplied).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnappliedSetting<'a> {
    name: &'a str,
    field: &'static str,
}

impl<'a> UnappliedSetting<'a> {
    /// Returns the entry's methods: `/service/method`, `/service/`, or an empty string for the default entry.
    pub const fn methods(&self) -> &'a str {
        self.name
    }

    /// Returns the name of the field, such as `waitForReady`.
    pub const fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for UnappliedSetting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "the default entry" } else { self.name };
        write!(f, "{} of {name} is not applied", self.field)
    }
}

/// Returns the unapplied settings of an entry.
pub(super) fn of<'a>(name: &'a str, method: &MethodConfig) -> impl Iterator<Item = UnappliedSetting<'a>> + use<'a> {
    // `waitForReady: false` is the default behaviour.
    let fields = [
        ("waitForReady", method.wait_for_ready == Some(true)),
        ("maxRequestMessageBytes", method.max_request_message_bytes.is_some()),
        ("maxResponseMessageBytes", method.max_response_message_bytes.is_some()),
    ];
    let set = fields.into_iter().filter(|(_, set)| *set);
    set.map(move |(field, _)| UnappliedSetting { name, field })
}
