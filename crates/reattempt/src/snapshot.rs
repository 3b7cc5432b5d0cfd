//! A snapshot: everything that is in force in a client now, as text and as JSON.
//!
//! In an incident, the first question is what the client does: which breakers are open, which servers are out, how many
//! retries are left, and which policies apply. A [`Snapshot`] has all of that in one value. The program builds it from
//! the handles that it holds anyway; nothing is registered, and nothing is read until then.
//!
//! ```
//! use reattempt::RetryBudget;
//! use reattempt::guard::CircuitBreaker;
//! use reattempt::snapshot::Snapshot;
//!
//! let budget = RetryBudget::cautious();
//! let breaker = CircuitBreaker::counting();
//!
//! let now = Snapshot::new().add("stock", &budget).add("stock", &breaker);
//! assert_eq!(
//!     now.to_string(),
//!     "budget stock: rule cautious, capacity 10, refusals 0\n\
//!      circuit_breaker stock: open_time 60s, probes 1\n"
//! );
//! ```
//!
//! | part | its handle |
//! |---|---|
//! | the tokens of each destination | [`RetryBudget`](crate::RetryBudget) |
//! | the limits and the budget of a policy | [`RetryPolicy`](crate::RetryPolicy), [`HedgePolicy`](crate::hedge::HedgePolicy) |
//! | breakers, limits, throttles and pauses | each guard of [`guard`](crate::guard) |
//! | a standard stack: its times, policy and guards | [`StandardLayer`](crate::standard::StandardLayer) |
//! | servers with their price, failure rate and ejection | [`EndpointsHandle`](crate::endpoints::EndpointsHandle) |
//! | a table of policies: limits, endpoints | [`PolicyHandle`](crate::policies::PolicyHandle) |
//! | what many processes share | `FleetBudget` and `FleetRateLimit` of the crate `reattempt-fleet` |
//! | a policy file: its version, policies, budgets and guards | `PolicyFile` of the crate `reattempt-policy-file` |
//! | your own parts | a type that implements [`Inspect`] |
//!
//! Clones of a budget, a guard or a handle share their state, so keep a clone of what the client was built with.
//!
//! # JSON
//!
//! With the feature `serde`, a snapshot is a list of parts for any format of serde. Each part is an object:
//!
//! ```
//! # #[cfg(feature = "serde")] {
//! use reattempt::guard::Bulkhead;
//! use reattempt::snapshot::Snapshot;
//!
//! let now = Snapshot::new().add("stock", &Bulkhead::new(8));
//! let json = serde_json::to_string(&now).unwrap_or_default();
//! assert_eq!(json, r#"[{"kind":"bulkhead","name":"stock","limit":8}]"#);
//! # }
//! ```
//!
//! Fields are added in minor versions. The names of fields are not changed before the next major version.
//!
//! # Secrets
//!
//! Names and texts pass through the function that removes the userinfo, the query and the fragment from each URL in a
//! log. If the destinations are made by [a function of your own](crate::Http::destination), what it returns is shown,
//! so it must not return a key. The page names your servers, so serve it on an internal port.

use std::fmt;

use reattempt_engine::wall::{clock, redacted};

#[doc(inline)]
pub use reattempt_core::snapshot::{Inspect, Part, Value};

/// The state of a client's parts at one moment, in the order in which they were added.
///
/// `Display` writes a line for each part. The parts are read one after the other while calls continue, and each as its
/// own handle reads it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    parts: Vec<Part>,
}

impl Snapshot {
    /// Creates a snapshot without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the state of a part now. `name` says what the part is for; parts of different kinds may share it.
    #[must_use = "the part is in the snapshot that is returned"]
    pub fn add(mut self, name: &str, part: &(impl Inspect + ?Sized)) -> Self {
        let part = part.inspect(clock::Instant::now().since_epoch());
        self.parts.push(part.named(name).map_texts(&redacted));
        self
    }

    /// Returns the parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| part.fmt(f))
    }
}

#[cfg(feature = "serde")]
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
impl serde_core::Serialize for Snapshot {
    fn serialize<S: serde_core::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(&self.parts)
    }
}
