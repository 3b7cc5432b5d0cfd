//! Accessors for the inner service, shared by every service in this crate.

/// Defines `get_ref`, `get_mut` and `into_inner` for a service with a field of type `$Inner`.
#[doc(hidden)]
#[macro_export]
macro_rules! inner_accessors {
    ($Inner:ty, $($field:ident).+) => {
        /// Returns the inner service.
        pub fn get_ref(&self) -> &$Inner {
            &self.$($field).+
        }

        /// Returns the inner service, which the next call uses. Do not call its `poll_ready`: this service's
        /// `poll_ready` does that.
        pub fn get_mut(&mut self) -> &mut $Inner {
            &mut self.$($field).+
        }

        /// Returns the inner service.
        pub fn into_inner(self) -> $Inner {
            self.$($field).+
        }
    };
}

pub use inner_accessors;
