//! An entry of the table of retriers. The entries are in `retriers`.

use serde::Serialize;

/// A crate that retries, in a range of its versions.
#[derive(Debug)]
pub(super) struct Retrier {
    /// The name of the crate.
    pub(super) name: &'static str,
    /// The oldest version whose source was read, and the newest. Newer versions are taken for the same.
    pub(super) read: (&'static str, &'static str),
    pub(super) kind: Kind,
    /// The failures after which it sends again, or what it does instead.
    pub(super) after: &'static str,
    /// The setting that turns it off.
    pub(super) off: &'static str,
    /// The file of the crate that has its retries.
    pub(super) file: &'static str,
}

/// The crates whose versions before the oldest that was read send nothing twice unless the program asks for it.
pub(super) const SILENT_BEFORE: &[&str] = &["kube-client", "opentelemetry-otlp"];

/// The manner in which a crate retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "attempts")]
pub(super) enum Kind {
    /// By default, up to this number of attempts in all.
    Attempts(u32),
    /// By default, without a fixed number of attempts.
    Uncounted,
    /// By default, but only a request that was never sent.
    Unsent,
    /// By default, but connections alone: no request is repeated.
    Connections,
    /// Only if the program asks for it.
    OnDemand,
    /// Never: it sends each request once, although its field has clients that retry.
    Once,
}

impl Retrier {
    /// Returns the address of the source that was read last.
    pub(super) fn source(&self) -> String {
        format!("https://docs.rs/crate/{}/{}/source/{}", self.name, self.read.1, self.file)
    }
}

/// Returns an entry for a crate that sends each request once.
pub(super) const fn once(
    name: &'static str,
    read: (&'static str, &'static str),
    after: &'static str,
    file: &'static str,
) -> Retrier {
    let off = "nothing to turn off";
    Retrier { name, read, kind: Kind::Once, after, off, file }
}

/// Returns an entry for a crate that retries only if the program asks for it.
pub(super) const fn on_demand(
    name: &'static str,
    read: (&'static str, &'static str),
    after: &'static str,
    file: &'static str,
) -> Retrier {
    let off = "remove its layer or call";
    Retrier { name, read, kind: Kind::OnDemand, after, off, file }
}
