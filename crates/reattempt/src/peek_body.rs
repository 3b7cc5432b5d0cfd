//! Response bodies that are read as part of their attempt, so that a body that breaks or contains an error is retried.
//!
//! [`PeekBodyLayer`](crate::PeekBodyLayer) reads short bodies before it returns the response:
//!
//! ```
//! use std::time::Duration;
//!
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::standard::StandardLayer;
//! use reattempt::{PeekBodyLayer, classify};
//! use tower::ServiceBuilder;
//!
//! let client = ServiceBuilder::new()
//!     .layer(StandardLayer::http())
//!     .layer(PeekBodyLayer::new().within(Duration::from_secs(60)).classify(classify::aws_xml))
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
//! ```
//!
//! | body | effect |
//! |---|---|
//! | breaks behind a success | the attempt failed like a lost connection: a request that may be repeated is sent again, a breaker counts it, endpoints avoid the server, a hedged call waits for the first whole answer |
//! | breaks behind a failure | the head decides |
//! | whole, and judged by a rule | the rule's verdict |
//! | longer than 64 KiB, later than 100 ms, or a stream by its content type | the head decides, and the rest is handed on while it arrives |
//!
//! A body of known length has no time limit of its own: the limits of the attempt and of the call cover it. Guards and
//! endpoints measure the time until a short body has ended. The settings are those of the layer.
//!
//! # Rules of services
//!
//! They are in [`classify`](mod@crate::classify). Those that read JSON need the feature `json`.
//!
//! | service | rule |
//! |---|---|
//! | DynamoDB, Kinesis, SQS, Lambda and others with AWS's JSON protocols | `aws_json` |
//! | S3, STS and others with AWS's XML protocols | [`aws_xml`](crate::classify::aws_xml), with a longer [`within`](crate::PeekBodyLayer::within) |
//! | Drive, Gmail and other JSON APIs of Google | `google` |
//! | GitHub's secondary rate limits | [`github`](crate::classify::github) |
//! | OpenAI's empty accounts | [`openai`](crate::classify::openai) |
//! | Shopify's GraphQL | `shopify` |
//! | Slack's Web API | `slack` |
//! | Stripe's lock timeouts | `stripe` |
//! | Connect's unary calls | `connect` |
//! | bulk requests of Elasticsearch and OpenSearch | `bulk_all_rejected` |
//! | Azure | none: `x-ms-error-code` and the statuses are in the head |
//!
//! A rule of one's own is a function of head and body, with `json_any` and
//! [`xml_error_code`](crate::classify::xml_error_code) as readers.

pub use reattempt_peek_body::{PeekBody, PeekableRequest, PeekableResponse, PeekedBody, ResponseFuture};
