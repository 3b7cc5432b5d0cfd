//! The public type of a guard, around the shell that all guards share.

/// Implements the setters that all guards have, `Guard`, `Inspect`, `Debug`, and the ticket type.
///
/// The guard is a struct around `PerDestination`. `kind` is its word in a snapshot, `memory` the memory used by 1024
/// destinations, and `replaced` completes the docs of `replace_settings`.
macro_rules! guard {
    (
        $guard:ident $(<$rule:ident: $bound:ident>)?, $ticket:ident, $state:ty,
        kind: $kind:literal, memory: $memory:literal, replaced: $replaced:literal $(,)?
    ) => {
        #[doc = concat!("The proof that a [`", stringify!($guard), "`] admitted a call or has it in the queue.")]
        pub struct $ticket $(<$rule: $bound>)? ($crate::guard::per_destination::Ticket<$state>);

        impl $(<$rule: $bound>)? $guard $(<$rule>)? {
            /// Sets the maximum number of destinations with their own state. Default: 1024.
            ///
            #[doc = concat!("That number of destinations takes ", $memory, ". The setting is clamped to 1 to 65536.")]
            pub fn max_destinations(self, most: usize) -> Self {
                Self(self.0.max_destinations(most))
            }

            /// Shares one state among all destinations if `on`. Default: one state per destination.
            ///
            /// Use it for a client of a single server, or to limit the client as a whole. A later call to
            /// [`max_destinations`](Self::max_destinations) undoes this setting.
            pub fn shared(self, on: bool) -> Self {
                Self(self.0.shared(on))
            }

            /// Adopts another guard's settings, except `max_destinations` and `shared`. This guard keeps its state.
            ///
            #[doc = $replaced]
            pub fn replace_settings(&self, with: &Self) {
                self.0.replace_settings(&with.0);
            }

            /// Returns a warning for each setting outside its recommended range.
            pub fn validate(&self) -> Vec<reattempt_core::Warning> {
                self.0.validate()
            }
        }

        impl $(<$rule: $bound>)? reattempt_core::guard::Guard for $guard $(<$rule>)? {
            type Ticket = $ticket $(<$rule>)?;

            #[inline(always)]
            fn admit(&self, arrival: &Arrival<'_>) -> Admit<Self::Ticket> {
                self.0.admit(arrival, $ticket)
            }

            #[inline(always)]
            fn end_ticket(&self, ticket: Self::Ticket, end: &End, now: Duration) -> Option<Self::Ticket> {
                self.0.end_ticket(ticket.0, end, now).map($ticket)
            }

            #[inline(always)]
            fn times_success(&self, ticket: &Self::Ticket) -> bool {
                self.0.times_success(&ticket.0)
            }

            fn is_probe(&self, ticket: &Self::Ticket) -> bool {
                ticket.0.is_probe()
            }

            fn usual_latency(&self, ticket: &Self::Ticket, _: Duration) -> Option<Duration> {
                self.0.usual_latency(&ticket.0)
            }

            fn record_latency(&self, ticket: &Self::Ticket, latency: Duration) {
                self.0.record_latency(&ticket.0, latency);
            }

            fn resume(&self, ticket: &mut Self::Ticket, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
                self.0.resume(&mut ticket.0, arrival, waker)
            }

            fn renew(&self, ticket: Self::Ticket, arrival: &Arrival<'_>) -> Result<Self::Ticket, Refused> {
                self.0.renew(ticket.0, arrival).map($ticket)
            }

            fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
                self.0.would_admit(arrival)
            }

            fn validate(&self) -> Vec<reattempt_core::Warning> {
                self.0.validate()
            }
        }

        impl $(<$rule: $bound>)? reattempt_core::snapshot::Inspect for $guard $(<$rule>)? {
            fn inspect(&self, now: Duration) -> reattempt_core::snapshot::Part {
                self.0.inspect($kind, now)
            }
        }

        impl $(<$rule: $bound>)? std::fmt::Debug for $guard $(<$rule>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.show(stringify!($guard), f)
            }
        }

        impl $(<$rule: $bound>)? std::fmt::Debug for $ticket $(<$rule>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.show(stringify!($ticket), f)
            }
        }
    };
}

pub(crate) use guard;
