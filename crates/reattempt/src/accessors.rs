//! The accessors of the inner service, which every service of this crate has.

/// Writes `get_ref`, `get_mut` and `into_inner` of a service around a `$Inner`, which is in its field.
macro_rules! inner_accessors {
    ($Inner:ty, $($field:ident).+) => {
        /// Returns the inner service.
        pub fn get_ref(&self) -> &$Inner {
            &self.$($field).+
        }

        /// Returns the inner service, which the next call uses. Do not ready it: `poll_ready` of this service does.
        pub fn get_mut(&mut self) -> &mut $Inner {
            &mut self.$($field).+
        }

        /// Returns the inner service.
        pub fn into_inner(self) -> $Inner {
            self.$($field).+
        }
    };
}

pub(crate) use inner_accessors;
