//! The table of retriers: each crate that sends a request more than once, as its source of the named versions has it.

use serde::Serialize;

/// A crate that retries, in a range of its versions.
#[derive(Debug)]
pub(super) struct Retrier {
    /// The name of the crate.
    pub(super) name: &'static str,
    /// The oldest version whose source was read, and the newest. Newer versions are taken for the same.
    pub(super) read: (&'static str, &'static str),
    /// The versions before the oldest that was read.
    pub(super) older: Older,
    pub(super) kind: Kind,
    /// The failures after which it sends again.
    pub(super) after: &'static str,
    /// The setting that turns it off.
    pub(super) off: &'static str,
    /// The file of the crate that has its retries.
    pub(super) file: &'static str,
}

/// The versions of a crate before the oldest that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Older {
    /// They were not read.
    Unknown,
    /// They send nothing twice unless the program asks for it.
    Silent,
}

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
}

impl Retrier {
    /// Returns the address of the source that was read last.
    pub(super) fn source(&self) -> String {
        format!("https://docs.rs/crate/{}/{}/source/{}", self.name, self.read.1, self.file)
    }
}

/// Returns an entry for a crate that retries only if the program asks for it.
const fn on_demand(
    name: &'static str,
    read: (&'static str, &'static str),
    after: &'static str,
    file: &'static str,
) -> Retrier {
    let off = "remove its layer or call";
    Retrier { name, read, older: Older::Unknown, kind: Kind::OnDemand, after, off, file }
}

const NACKS: &str = "an HTTP/2 stream refused by the server, or a GOAWAY without an error; the body must be bytes";

/// The retriers by name. Entries of one crate are in the order of their versions.
pub(super) const RETRIERS: &[Retrier] = &[
    Retrier {
        name: "async-openai",
        read: ("0.43.0", "0.43.0"),
        older: Older::Unknown,
        kind: Kind::Attempts(4),
        after: "429 but for an exhausted quota, 5xx and connection errors, for every method, POST included; Retry-After is \
                obeyed",
        off: "Client::with_http_service (feature middleware) with a service of your own, such as ReqwestService",
        file: "src/middleware/retry/openai.rs",
    },
    Retrier {
        name: "aws-smithy-runtime",
        read: ("1.9.0", "1.16.2"),
        older: Older::Unknown,
        kind: Kind::Attempts(3),
        after: "500, 502, 503, 504, throttling, connection errors and timeouts, where the configuration comes from \
                aws-config or the behaviour version is v2026_01_12 or later",
        off: "RetryConfig::disabled() in the configuration of the client",
        file: "src/client/defaults.rs",
    },
    on_demand("backoff", ("0.4.0", "0.4.0"), "errors that the program calls transient", "src/future.rs"),
    on_demand("backon", ("1.6.0", "1.6.0"), "the errors that `when` selects, by default all", "src/retry.rs"),
    Retrier {
        name: "bb8",
        read: ("0.8.0", "0.9.1"),
        older: Older::Unknown,
        kind: Kind::Connections,
        after: "a connection that cannot be made, until connection_timeout has passed (30 s by default)",
        off: "Builder::retry_connection(false)",
        file: "src/api.rs",
    },
    Retrier {
        name: "etcd-client",
        read: ("0.21.1", "0.21.1"),
        older: Older::Unknown,
        kind: Kind::OnDemand,
        after: "a token that has expired: 2 attempts",
        off: "do not call ConnectOptions::with_auto_token_refresh(true)",
        file: "src/caller.rs",
    },
    Retrier {
        name: "fetch",
        read: ("0.19.0", "0.19.0"),
        older: Older::Unknown,
        kind: Kind::Attempts(4),
        after: "in the standard pipeline: 5xx, 429 and timeouts, for safe methods whose body can be copied; Retry-After is obeyed",
        off: "standard_pipeline(|pipeline, _| pipeline.retry(|retry| retry.max_retry_attempts(0)))",
        file: "src/pipeline/standard.rs",
    },
    Retrier {
        name: "fred",
        read: ("9.0.0", "10.1.0"),
        older: Older::Unknown,
        kind: Kind::Attempts(3),
        after: "a connection that closes while the command is in flight, whatever the command does",
        off: "ConnectionConfig::max_command_attempts = 1",
        file: "src/types/config.rs",
    },
    Retrier {
        name: "google-cloud-gax-internal",
        read: ("0.5.0", "0.7.21"),
        older: Older::Unknown,
        kind: Kind::Attempts(10),
        after: "UNAVAILABLE and transport errors of idempotent calls, within 60 s",
        off: "ClientBuilder::with_retry_policy(NeverRetry) of the client",
        file: "src/http.rs",
    },
    Retrier {
        name: "google-cloud-storage",
        read: ("1.21.0", "1.21.0"),
        older: Older::Unknown,
        kind: Kind::Uncounted,
        after: "408, 429, 5xx and transport errors of idempotent calls, within 300 s",
        off: "with_retry_policy(NeverRetry) on the builder of the client",
        file: "src/retry_policy.rs",
    },
    Retrier {
        name: "hyper-util",
        read: ("0.1.3", "0.1.21"),
        older: Older::Unknown,
        kind: Kind::Unsent,
        after: "a pooled connection that was closed before the request was written",
        off: "client::legacy::Builder::retry_canceled_requests(false)",
        file: "src/client/legacy/client.rs",
    },
    Retrier {
        name: "kube-client",
        read: ("4.0.0", "5.0.0"),
        older: Older::Silent,
        kind: Kind::Attempts(16),
        after: "429, 503 and 504, for every method, POST included; Retry-After is obeyed",
        off: "Config::default_retry = false",
        file: "src/client/retry.rs",
    },
    Retrier {
        name: "mongodb",
        read: ("3.0.0", "3.9.1"),
        older: Older::Unknown,
        kind: Kind::Attempts(2),
        after: "network errors and retryable server errors, for reads and for writes that the server can recognise; in \
                3.9.1 a call that the server refuses for overload may have 3 attempts",
        off: "retryReads=false&retryWrites=false in the connection string",
        file: "src/client/executor.rs",
    },
    Retrier {
        name: "object_store",
        read: ("0.11.0", "0.14.2"),
        older: Older::Unknown,
        kind: Kind::Attempts(11),
        after: "5xx and connection errors, and timeouts of idempotent requests, within 3 minutes",
        off: "RetryConfig { max_retries: 0, .. } by with_retry of the store's builder",
        file: "src/client/retry.rs",
    },
    Retrier {
        name: "octocrab",
        read: ("0.40.0", "0.54.9"),
        older: Older::Unknown,
        kind: Kind::Attempts(4),
        after: "429, 5xx and every transport error, at once and for every method whose body can be copied",
        off: "OctocrabBuilder::add_retry_config(RetryConfig::None)",
        file: "src/service/middleware/retry.rs",
    },
    Retrier {
        name: "opentelemetry-otlp",
        read: ("0.33.1", "0.33.1"),
        older: Older::Silent,
        kind: Kind::Attempts(4),
        after: "429, 502, 503, 504 and retryable gRPC codes of an export",
        off: "with_retry_policy(RetryPolicy::disabled()) on the exporter's builder",
        file: "src/retry_policy.rs",
    },
    Retrier {
        name: "qdrant-client",
        read: ("1.20.0", "1.20.0"),
        older: Older::Unknown,
        kind: Kind::Attempts(2),
        after: "INTERNAL, UNAVAILABLE, CANCELLED and UNKNOWN, at once and on a new connection, for every call of Qdrant",
        off: "the generated clients, such as PointsClient, over a channel of your own",
        file: "src/channel_pool.rs",
    },
    Retrier {
        name: "rdkafka-sys",
        read: ("4.10.0", "4.10.0"),
        older: Older::Unknown,
        kind: Kind::Uncounted,
        after: "a message that is not acknowledged, until message.timeout.ms has passed (5 minutes by default)",
        off: "message.send.max.retries = 0; enable.idempotence = true makes retries safe",
        file: "librdkafka/CONFIGURATION.md",
    },
    Retrier {
        name: "redis",
        read: ("0.32.0", "2.0.0-rc.2"),
        older: Older::Unknown,
        kind: Kind::Attempts(17),
        after: "in the cluster client: MOVED, ASK, TRYAGAIN, connection errors. The connection manager repeats \
                connections alone",
        off: "ClusterClientBuilder::retries(0)",
        file: "src/cluster_handling/client.rs",
    },
    Retrier {
        name: "reqwest",
        read: ("0.12.22", "0.12.22"),
        older: Older::Unknown,
        kind: Kind::Attempts(3),
        after: NACKS,
        off: "nothing before 0.12.23",
        file: "src/async_impl/client.rs",
    },
    Retrier {
        name: "reqwest",
        read: ("0.12.23", "0.13.5"),
        older: Older::Unknown,
        kind: Kind::Attempts(3),
        after: NACKS,
        off: "ClientBuilder::retry(reqwest::retry::never())",
        file: "src/retry.rs",
    },
    on_demand(
        "reqwest-retry",
        ("0.6.0", "0.9.1"),
        "408, 429, 5xx, timeouts and connection errors, for every method, POST included",
        "src/middleware.rs",
    ),
    Retrier {
        name: "rust-s3",
        read: ("0.38.0", "0.38.0"),
        older: Older::Unknown,
        kind: Kind::Attempts(2),
        after: "transport errors, and with the feature fail-on-err 408, 429, 500, 502, 503, 504, for reads and parts",
        off: "s3::set_retries(0)",
        file: "src/lib.rs",
    },
    Retrier {
        name: "scylla",
        read: ("1.0.0", "1.9.0"),
        older: Older::Unknown,
        kind: Kind::Uncounted,
        after: "errors of one node, on the next node: all of an idempotent statement, else those before it ran",
        off: "ExecutionProfileBuilder::retry_policy(Arc::new(FallthroughRetryPolicy::new()))",
        file: "src/policies/retry/default.rs",
    },
    on_demand("seatbelt", ("0.11.0", "0.11.0"), "the outcomes that its classifier selects", "src/retry/mod.rs"),
    Retrier {
        name: "sqlx-core",
        read: ("0.8.0", "0.9.0"),
        older: Older::Unknown,
        kind: Kind::Connections,
        after: "a connection that is refused, until acquire_timeout has passed (30 s by default)",
        off: "a short PoolOptions::acquire_timeout",
        file: "src/pool/inner.rs",
    },
    on_demand("tokio-retry", ("0.3.2", "0.3.2"), "every error, or those of its condition", "src/lib.rs"),
    Retrier {
        name: "tonic",
        read: ("0.14.9", "0.14.9"),
        older: Older::Unknown,
        kind: Kind::Connections,
        after: "a lost connection of a Channel: the next call makes a new one, and the call that lost it fails",
        off: "nothing to turn off",
        file: "src/transport/channel/service/reconnect.rs",
    },
    Retrier {
        name: "tonic-xds",
        read: ("0.1.0-alpha.4", "0.1.0-alpha.4"),
        older: Older::Unknown,
        kind: Kind::Unsent,
        after: "a call without a connection, once; with a route's retry_policy also its codes, for any call, up to 5 attempts",
        off: "a route without a retry_policy; the repeat without a connection cannot be turned off",
        file: "src/client/retry.rs",
    },
    on_demand("tower", ("0.5.3", "0.5.3"), "the outcomes that the policy selects", "src/retry/mod.rs"),
    on_demand("tower-resilience-retry", ("0.14.0", "0.14.0"), "every error, or those of its predicate", "src/lib.rs"),
    Retrier {
        name: "typespec_client_core",
        read: ("0.5.0", "1.2.0-beta.1"),
        older: Older::Unknown,
        kind: Kind::Attempts(9),
        after: "408, 429, 500, 502, 503, 504 and transport errors of clients of azure_core, within 60 s, for every \
                method",
        off: "ClientOptions { retry: RetryOptions::none(), .. }",
        file: "src/http/policies/retry/mod.rs",
    },
];
