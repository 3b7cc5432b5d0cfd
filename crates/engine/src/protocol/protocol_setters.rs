//! The protocol setters on policies and layers.

/// Defines setters on a type that contains a protocol. Each calls the protocol's setter of the same name through the
/// method `protocol`.
#[doc(hidden)]
#[macro_export]
macro_rules! forward_setters {
    ($protocol:ident: $(
        $name:ident $(<$parameter:ident: $bound:path>)? ($($argument:ident: $type:ty),*);
    )*) => {$(
        #[doc = concat!(
            "Sets this of the protocol: see [`", stringify!($protocol), "::", stringify!($name), "`]."
        )]
        pub fn $name $(<$parameter: $bound>)? (self, $($argument: $type),*) -> Self {
            self.protocol(|protocol| protocol.$name($($argument),*))
        }
    )*};
}

/// Defines the setters of these groups. A type gets only the groups that affect it.
///
/// | group | setters |
/// |---|---|
/// | `reading` | how requests and outcomes of HTTP messages are read, in every protocol |
/// | `sending` | how requests are saved, and refused responses drained |
/// | `proving` | which errors prove that a request was not processed |
/// | `http` | how outcomes are read, only for plain HTTP |
/// | `telling` | the header with a deadline, only for plain HTTP |
/// | `trusting` | whether an `Idempotency-Key` makes a request repeatable |
/// | `repeating` | key generation, and redirects followed by the inner service |
#[doc(hidden)]
#[macro_export]
macro_rules! protocol_setters {
    ($protocol:ident: $($group:ident),+) => {
        $($crate::protocol_setters! { @$group $protocol })+
    };
    (@reading $protocol:ident) => {
        $crate::forward_setters! { $protocol:
            classify<V: Into<$crate::classify::Classification>>(
                classifier: impl for<'a> Fn($crate::classify::Outcome<'a>) -> Option<V>
                    + Send + Sync + 'static
            );
            classify_with(
                classifier: impl for<'a> $crate::classify::Classifier<$crate::classify::Outcome<'a>>
                    + Send + Sync + 'static
            );
            options_for(
                rule: impl for<'a> Fn($crate::classify::RequestView<'a>)
                    -> Option<$crate::CallOptions> + Send + Sync + 'static
            );
            destination(
                destination: impl for<'a> Fn(&'a http::Uri) -> std::borrow::Cow<'a, str>
                    + Send + Sync + 'static
            );
            destination_for(
                destination: impl for<'a> Fn($crate::classify::RequestView<'a>) -> std::borrow::Cow<'a, str>
                    + Send + Sync + 'static
            );
            destination_by_host(by_host: bool);
        }
    };
    (@sending $protocol:ident) => {
        $crate::forward_setters! { $protocol:
            replay(limits: $crate::body::ReplayLimits);
            drain_limit(bytes: u64);
        }
    };
    (@proving $protocol:ident) => {
        $crate::forward_setters! { $protocol:
            refused_stream_is_proof(proof: bool);
        }
    };
    (@http $protocol:ident) => {
        $crate::forward_setters! { $protocol:
            on_status(status: http::StatusCode, verdict: $crate::Verdict);
            hints(hints: $crate::classify::Hints);
        }
    };
    (@telling $protocol:ident) => {
        $crate::forward_setters! { $protocol:
            deadline_header(header: $crate::deadline::DeadlineHeader);
        }
    };
    (@trusting $protocol:ident) => {
        $crate::forward_setters! { $protocol:
            trust_idempotency_keys(trusted: bool);
        }
    };
    (@repeating $protocol:ident) => {
        $crate::forward_setters! { $protocol:
            generate_idempotency_keys(generate: bool);
            redirects_below(follows: bool);
        }
    };
}

pub use protocol_setters;
