//! The setters of a protocol in the chain of a policy or a layer that holds one.

/// Makes setters of a type that holds a protocol. Each calls the protocol's setter of the same name, through the
/// holder's method `protocol`.
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

/// Makes the setters of these groups. A holder has only those that have an effect in it.
///
/// | group | setters |
/// |---|---|
/// | `reading` | how requests and outcomes are read, by every protocol of HTTP messages |
/// | `sending` | how requests are kept, and refused responses drained |
/// | `proving` | which errors prove that a request was not processed |
/// | `http` | how outcomes are read by HTTP alone |
/// | `trusting` | whether HTTP repeats a request because of the key that it came with |
/// | `repeating` | whether HTTP generates keys, and follows redirects |
macro_rules! protocol_setters {
    ($protocol:ident: $($group:ident),+) => {
        $($crate::protocol::protocol_setters! { @$group $protocol })+
    };
    (@reading $protocol:ident) => {
        $crate::protocol::forward_setters! { $protocol:
            classify<V: Into<reattempt_core::Classification>>(
                classifier: impl for<'a> Fn($crate::call::outcome::Outcome<'a>) -> Option<V>
                    + Send + Sync + 'static
            );
            classify_with(
                classifier: impl for<'a> reattempt_core::Classifier<$crate::call::outcome::Outcome<'a>>
                    + Send + Sync + 'static
            );
            options_for(
                rule: impl for<'a> Fn($crate::call::request_view::RequestView<'a>)
                    -> Option<$crate::call::options::CallOptions> + Send + Sync + 'static
            );
            destination(
                destination: impl for<'a> Fn(&'a http::Uri) -> std::borrow::Cow<'a, str>
                    + Send + Sync + 'static
            );
            destination_by_host(by_host: bool);
        }
    };
    (@sending $protocol:ident) => {
        $crate::protocol::forward_setters! { $protocol:
            replay(limits: reattempt_replay::ReplayLimits);
            drain_limit(bytes: u64);
        }
    };
    (@proving $protocol:ident) => {
        $crate::protocol::forward_setters! { $protocol:
            refused_stream_is_proof(proof: bool);
        }
    };
    (@http $protocol:ident) => {
        $crate::protocol::forward_setters! { $protocol:
            on_status(status: http::StatusCode, verdict: reattempt_core::Verdict);
            hints(hints: reattempt_http::Hints);
        }
    };
    (@trusting $protocol:ident) => {
        $crate::protocol::forward_setters! { $protocol:
            trust_idempotency_keys(trusted: bool);
        }
    };
    (@repeating $protocol:ident) => {
        $crate::protocol::forward_setters! { $protocol:
            generate_idempotency_keys(generate: bool);
            redirects_below(follows: bool);
        }
    };
}

pub(crate) use {forward_setters, protocol_setters};
